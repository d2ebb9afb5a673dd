"""Beyond the paper: time against sparsity, up to radii as large as the norm, with the copy as floor."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from normball.experiments.claims import against_rivals, by_share, default_gain, wide
from normball.experiments.experiment import Cell, Experiment, Setting, Verdict
from normball.experiments.projections import ALGORITHMS, COPY, sweep
from normball.experiments.style import line, log_axes, name_lines, panels

ZEROS = (0.999, 0.99, 0.95, 0.9, 0.75, 0.5, 0.4, 0.25, 0.1, 0.0)
PARTS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 0.95)


def cells(setting: Setting) -> list[Cell]:
    """Down to no zero column, then on by parts of the norm."""
    sizes, dtypes, budget, every = ([(1000, 1000)], ("float64", "float32"), 0.5, 1)
    if setting.quick:
        sizes, budget, every = [(300, 300)], 0.05, 3
    return [
        *sweep(sizes, "zeros", ZEROS[::every], dtypes=dtypes, budget=budget),
        *sweep(sizes, "norm", PARTS[::every], dtypes=dtypes, budget=budget),
    ]


def draw(data: Any) -> Figure:
    """Draw a panel for each precision; the points stand at equal distances, because two scales meet."""
    points = list(dict.fromkeys(zip(data["at"], data["value"], strict=True)))
    points = [p for p in points if p[0] == "zeros"] + sorted(p for p in points if p[0] == "norm")
    names = [f"{100 * value:g}" if at == "zeros" else f"{value:g}" for at, value in points]
    border = sum(at == "zeros" for at, _ in points) - 0.5
    dtypes = list(dict.fromkeys(data["dtype"]))
    figure, axes = panels(len(dtypes), 4.3)
    for each, dtype in zip(axes, dtypes, strict=True):
        part = data[data["dtype"] == dtype]
        for algorithm in (*ALGORITHMS, COPY):
            own = part[part["algorithm"] == algorithm].set_index(["at", "value"])["ms"]
            line(each, np.arange(len(points)), [own[point] for point in points], algorithm)
        log_axes(each, "y")
        each.axvline(border, color="0.8", linewidth=1)
        each.set_xticks(range(len(points)), names, fontsize=10, rotation=60)
        each.set_title(f"{data['members'].iloc[0]} x {data['groups'].iloc[0]}, uniform on [0, 1], {dtype}, one thread")
        each.set_ylabel("milliseconds")
        each.set_xlabel("zero columns, %   |   radius as a part of the norm")
        name_lines(each)
    return figure


def judge(data: Any) -> Verdict:
    """See the rule."""
    table = wide(data, ["dtype", "at", "value", "zeros"])
    wins, words, remedy, numbers = against_rivals(table)
    sparse = (table["zeros"] >= 0.4).to_numpy()
    here = (
        f"The fastest of the paper's four, or equal, at {wins.sum()} of {len(wins)} points; at {wins[sparse].sum()} "
        f"of the {sparse.sum()} with at least 40 % zero columns. Over all points {words}."
    )
    return Verdict(by_share(wins), here, default_gain(table), remedy, numbers)


EXPERIMENT = Experiment(
    id="fig:sparsity",
    title="Time against the sparsity, up to the norm itself",
    place="beyond the paper, which stops at radius 8",
    claim="In both the biological and general cases of sparsity, the proposed method is the fastest (abstract).",
    rule="As for fig:time, at every point: from 99.9 % zero columns to none, then radii from 0.05 to 0.95 of the "
    "norm, in float64 and float32.",
    cells=cells,
    draw=draw,
    judge=judge,
)
