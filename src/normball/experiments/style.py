"""How the pictures look: one column of panels, colours that all eyes tell apart, names beside the lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from normball.experiments.projections import COPY, DEFAULT, PAPERS

__all__ = [
    "BLACK", "BLUE", "GREEN", "GREY", "ORANGE", "PINK", "STYLES", "VERMILION",
    "line", "log_axes", "name_lines", "panels", "same_width", "star", "styled",
]  # fmt: skip

# The colours of Okabe and Ito.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PINK, BLACK, GREY = "#CC79A7", "#000000", "#666666"

# Colour, marker, name: the marker tells the lines apart where colour does not.
STYLES = {
    DEFAULT: (BLUE, "o", "normball, default"),
    PAPERS: (VERMILION, "D", "Perez et al., the paper"),
    "semismooth_newton": (ORANGE, "s", "Chu et al."),
    "active_set": (GREEN, "^", "Bejar et al."),
    "total_order": (PINK, "v", "Quattoni et al."),
    COPY: (GREY, "", "a copy"),
}

SETTINGS: dict[str, Any] = {
    "font.size": 12.5,
    "axes.titlesize": 12.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.92",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: smaller files, and it can be searched and read aloud
    "font.family": "sans-serif",
    "figure.facecolor": "white",
}


@contextmanager
def styled(salt: str) -> Iterator[None]:
    """Draw and save in this style; the same data give the same bytes."""
    with mpl.rc_context({**SETTINGS, "svg.hashsalt": salt}):  # type: ignore[dict-item]
        yield


def panels(count: int, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels one below the other, which a phone can show."""
    figure = Figure(figsize=(6.8, height * count), layout="constrained")
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(w_pad=0.12, h_pad=0.08)  # letters are wider in some formats than in others
    return figure, [figure.add_subplot(count, 1, i + 1) for i in range(count)]


def line(axes: Axes, x: Any, y: Any, algorithm: str) -> None:
    """Draw the line of an algorithm."""
    colour, marker, label = STYLES[algorithm]
    first = algorithm == DEFAULT
    axes.plot(
        x, y, color=colour, marker=marker, label=label, markersize=5.5, linewidth=2.6 if first else 1.5,
        linestyle=(0, (4, 2)) if algorithm == COPY else "-", zorder=4 if first else 3,
    )  # fmt: skip


def star(
    axes: Axes, x: float, y: float, text: str, move: tuple[float, float], ha: Literal["left", "right"] = "left"
) -> None:
    """Mark a number of the paper's."""
    axes.plot(x, y, marker="*", markersize=14, color=BLACK, zorder=5)
    axes.annotate(text, (x, y), xytext=move, textcoords="offset points", fontsize=11, ha=ha)


def plain_ticks(axis: Any) -> None:
    """Write 0.01 and 100, not powers of ten."""
    axis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(mpl.ticker.NullFormatter())


def name_lines(axes: Axes, gap: float = 0.072) -> None:
    """Write the name of each line beside its right end, moved apart where they would overlap."""
    named = [each for each in axes.get_lines() if not str(each.get_label()).startswith("_")]
    lines = [each for each in named if np.size(each.get_xdata())]
    if not lines:
        return
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = []
    for each in lines:
        x, y = np.asarray(each.get_xdata(), float), np.asarray(each.get_ydata(), float)
        last = int(np.nanargmax(np.where(np.isfinite(y), x if not axes.xaxis_inverted() else -x, np.nan)))
        ends.append(to_axes.transform((x[last], y[last])))
    wanted = np.array([end[1] for end in ends])
    for place, height in zip(np.argsort(wanted), spread(np.sort(wanted), gap), strict=True):
        each = lines[place]
        axes.annotate(
            str(each.get_label()), xy=ends[place], xycoords="axes fraction", xytext=(1.03, height),
            textcoords="axes fraction", va="center", color=each.get_color(), fontsize=11.5, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": each.get_color(), "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3},
        )  # fmt: skip


def spread(heights: Any, gap: float) -> Any:
    """Move rising numbers as little as needs be for neighbours to be a gap apart; they stay around their places."""
    places = [[float(height), 1] for height in heights]  # the centre of a block of labels, and how many there are
    blocks: list[list[float]] = []
    for centre, count in places:
        blocks.append([centre, count])
        while len(blocks) > 1 and blocks[-1][0] - blocks[-2][0] < gap * (blocks[-1][1] + blocks[-2][1]) / 2:
            (a, p), (b, q) = blocks[-2:]
            blocks[-2:] = [[(a * p + b * q) / (p + q), p + q]]
    return [centre + gap * (i - (count - 1) / 2) for centre, count in blocks for i in range(int(count))]


def same_width(axes: Sequence[Axes]) -> None:
    """Give panels one below the other the same scale, and rows at the edges some room."""
    low, high = (f([each.get_xlim()[end] for each in axes]) for end, f in enumerate((min, max)))
    for each in axes:
        each.set_xlim(low, high)
        each.margins(y=0.14)


def log_axes(axes: Axes, which: Sequence[str]) -> None:
    """Make axes logarithmic, with plain numbers."""
    for each in which:
        getattr(axes, f"set_{each}scale")("log")
        plain_ticks(getattr(axes, f"{each}axis"))
