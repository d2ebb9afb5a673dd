"""What the rules of the projection experiments share: who is faster, and by how much."""

from __future__ import annotations

from typing import Any

import numpy as np

from normball.experiments.experiment import FAILS, HOLDS, IN_PART
from normball.experiments.projections import DEFAULT, PAPERS, RIVALS
from normball.experiments.style import STYLES

__all__ = ["NEAR", "by_share", "join", "r_squared", "ratios", "short", "span", "wide"]

NEAR = 1.05  # medians nearer than this are equal: timings are no better


def wide(data: Any, index: list[str]) -> Any:
    """Return milliseconds with a column for each algorithm."""
    return data.pivot_table(index=index, columns="algorithm", values="ms").reset_index()


def ratios(table: Any, base: str = PAPERS, others: tuple[str, ...] = RIVALS) -> dict[str, Any]:
    """Return, for each other algorithm, how many times the time of the base one it takes."""
    return {other: (table[other] / table[base]).dropna().to_numpy() for other in others if other in table}


def short(value: float) -> str:
    """Return a number with two digits that matter, and no power of ten."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def span(values: Any) -> str:
    """Return the range of some numbers, shortly."""
    low, high = short(float(np.min(values))), short(float(np.max(values)))
    return low if low == high else f"{low} to {high}"


def by_share(true: Any) -> str:
    """Return the verdict of many comparisons: all true, at least half, or fewer."""
    share = float(np.mean(true))
    return HOLDS if share == 1.0 else IN_PART if share >= 0.5 else FAILS


def join(parts: list[str]) -> str:
    """Return a list in words."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def r_squared(x: Any, y: Any) -> float:
    """Return how well a straight line fits."""
    if len(x) < 3 or float(np.ptp(y)) == 0.0:
        return 1.0
    return float(np.corrcoef(x, y)[0, 1] ** 2)


def against_rivals(table: Any) -> tuple[Any, str, str, dict[str, float]]:
    """Compare the paper's algorithm with its three rivals at every row of a table of milliseconds.

    Returns which rows it wins, what was found in words, what would make it win all, and the numbers.
    """
    found = ratios(table)
    best = table[list(found)].min(axis=1)
    wins = (best / table[PAPERS] * NEAR >= 1.0).to_numpy()
    words = join([f"{STYLES[name][2]} takes {span(each)} times its time" for name, each in found.items()])
    losers = {name: each for name, each in found.items() if float(np.min(each)) * NEAR < 1.0}
    remedy = ""
    if losers:
        gains = {name: 1.0 / float(np.min(each)) for name, each in losers.items()}
        ahead = join([f"{STYLES[name][2]} (up to {short(gain)} times as fast)" for name, gain in gains.items()])
        remedy = (
            f"Ahead of it, at some radii, are {ahead}. All algorithms here are our own C++ under the same flags: the "
            f"claim would hold against programs slower than ours by that factor."
        )
    numbers = {"share of radii won": float(np.mean(wins))}
    numbers |= {f"{name}: times the paper's, median": float(np.median(each)) for name, each in found.items()}
    return wins, words, remedy, numbers


def default_gain(table: Any) -> str:
    """Return how the default compares with the paper's algorithm and with a copy, in words."""
    gain = (table[PAPERS] / table[DEFAULT]).to_numpy()
    copies = (table[DEFAULT] / table["copy"]).to_numpy()
    return f"The default takes {span(copies)} copies, and is {span(gain)} times as fast as the paper's algorithm."
