"""Figure 3: time against the size, at radius 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from normball.experiments.claims import NEAR, default_gain, join, short, wide
from normball.experiments.experiment import FAILS, HOLDS, IN_PART, Cell, Experiment, Setting, Verdict
from normball.experiments.projections import ALGORITHMS, COPY, PAPERS, RIVALS, sweep
from normball.experiments.style import STYLES, line, log_axes, name_lines, panels


def cells(setting: Setting) -> list[Cell]:
    """Let the number of columns grow at fixed length, then the length at a fixed number."""
    fixed, sizes = (200, (50, 200, 800)) if setting.quick else (1000, (125, 250, 500, 1000, 2000, 4000, 8000))
    shapes = dict.fromkeys([(fixed, size) for size in sizes] + [(size, fixed) for size in sizes])
    return sweep(list(shapes), "radius", [1.0], budget=0.05 if setting.quick else 0.5)


def _sweeps(data: Any) -> dict[str, Any]:
    """Return the two sweeps as tables of milliseconds, with the size that varies."""
    table = wide(data, ["members", "groups", "zeros"])
    fixed = int(table["members"].mode()[0])
    many = table[table["members"] == fixed].assign(size=lambda t: t["groups"])
    long = table[table["groups"] == fixed].assign(size=lambda t: t["members"])
    return {
        f"n = {fixed} members in a column, more and more columns": many.sort_values("size"),
        f"m = {fixed} columns, longer and longer": long.sort_values("size"),
    }


def draw(data: Any) -> Figure:
    """One panel for each sweep."""
    found = _sweeps(data)
    figure, axes = panels(2, 4.0)
    for each, (title, table), what in zip(axes, found.items(), ("columns m", "members n"), strict=True):
        for algorithm in (*ALGORITHMS, COPY):
            line(each, table["size"], table[algorithm], algorithm)
        log_axes(each, "xy")
        each.set_xticks(table["size"], [f"{size:g}" for size in table["size"]])
        each.set_title(title)
        each.set_xlabel(f"{what}; radius 1, uniform on [0, 1], one thread")
        each.set_ylabel("milliseconds")
        name_lines(each)
    return figure


def _growth(table: Any, algorithm: str) -> float:
    """Return the power of the size with which the time grows."""
    return float(np.polyfit(np.log(table["size"]), np.log(table[algorithm]), 1)[0])


def judge(data: Any) -> Verdict:
    """See the rule."""
    fastest, least, words = [], [], []
    numbers: dict[str, float] = {}
    for title, table in _sweeps(data).items():
        last = table.iloc[-1]
        name = title.split(",")[0].split(" ")[0]
        behind = {rival: float(last[rival] / last[PAPERS]) for rival in RIVALS}
        powers = {algorithm: _growth(table, algorithm) for algorithm in (PAPERS, *RIVALS)}
        fastest.append(min(behind.values()) * NEAR >= 1.0)
        least.append(powers[PAPERS] <= min(powers[rival] for rival in RIVALS) + 0.02)
        numbers |= {f"fixed {name}: {rival} at the largest size, times the paper's": v for rival, v in behind.items()}
        numbers |= {f"fixed {name}: power of the size, {algorithm}": v for algorithm, v in powers.items()}
        others = join([f"{STYLES[rival][2]} {short(value)}" for rival, value in behind.items()])
        grows = join([f"{STYLES[rival][2]} {powers[rival]:.2f}" for rival in RIVALS])
        words.append(
            f"With {name} fixed, at the largest size the others take, in times of the paper's: {others}. Its time "
            f"grows with the power {powers[PAPERS]:.2f} of the size; {grows}."
        )
    true = [*fastest, *least]
    outcome = HOLDS if all(true) else IN_PART if any(true) else FAILS
    remedy = ""
    if outcome != HOLDS:
        slower = [
            STYLES[rival][2]
            for rival in RIVALS
            if any(v * NEAR < 1.0 for key, v in numbers.items() if f": {rival} at" in key)
        ]
        remedy = (
            f"It is behind {join(slower)} as written here; against slower programs of theirs it would hold."
            if slower
            else "Its time grows no slower than that of every rival; at these sizes it is the fastest all the same."
        )
    table = wide(data, ["members", "groups", "zeros"])
    return Verdict(outcome, " ".join(words), default_gain(table), remedy, numbers)


EXPERIMENT = Experiment(
    id="fig:size",
    title="Time against the size",
    place="Figure 3",
    claim="At radius 1 the proposed method is significantly faster as the matrix grows, and size has less impact on it "
    "than on the others.",
    rule="Four questions: for fixed n and for fixed m, is the paper's algorithm the fastest of the paper's four at the "
    "largest size (within 5 %), and does its time grow with the smallest power of the size (within 0.02)? Holds if "
    "all are answered by yes, in part if any is.",
    cells=cells,
    draw=draw,
    judge=judge,
)
