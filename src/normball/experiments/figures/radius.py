"""Figure 1, left: the share of zero columns against the radius."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from normball.experiments.claims import r_squared
from normball.experiments.experiment import FAILS, HOLDS, IN_PART, Cell, Experiment, Setting, Verdict
from normball.experiments.projections import DEFAULT, sweep
from normball.experiments.style import BLUE, log_axes, panels

RADII = tuple(float(f"{radius:.4g}") for radius in np.geomspace(1e-3, 8.0, 17))


def cells(setting: Setting) -> list[Cell]:
    """All algorithms over the radii of the paper; shared with ``fig:time``."""
    if setting.quick:
        return sweep([(300, 300)], "radius", RADII[::3], budget=0.05)
    return sweep([(1000, 1000)], "radius", RADII)


def _points(data: Any) -> Any:
    return data[data["algorithm"] == DEFAULT].sort_values("radius")


def draw(data: Any) -> Figure:
    """Linear and logarithmic radius, one below the other."""
    points = _points(data)
    figure, axes = panels(2, 3.0)
    for each in axes:
        each.plot(points["radius"], 100 * points["zeros"], color=BLUE, marker="o")
        each.set_ylabel("zero columns, %")
        each.set_xlabel("radius")
    log_axes(axes[1], "x")
    axes[0].set_title(f"{data['members'][0]} x {data['groups'][0]}, uniform on [0, 1]")
    return figure


def judge(data: Any) -> Verdict:
    """See the rule."""
    points = _points(data)
    zeros = points["zeros"].to_numpy()
    falls = bool((np.diff(zeros) <= 0).all())
    middle = points[(points["zeros"] > 0.05) & (points["zeros"] < 0.95)]
    fit = r_squared(middle["radius"], np.log(middle["zeros"]))
    outcome = HOLDS if falls and fit >= 0.95 else IN_PART if falls else FAILS
    return Verdict(
        outcome,
        f"From {100 * zeros[0]:.1f} % at radius {points['radius'].iloc[0]:g} to {100 * zeros[-1]:.1f} % at "
        f"{points['radius'].iloc[-1]:g}. A straight line through the logarithm of the share has an R squared of "
        f"{fit:.3f}.",
        "The same: the projection is unique, and all algorithms find it.",
        "" if outcome == HOLDS else "It would hold if a fall were meant, and not the form of it.",
        {"R squared of log share against radius": fit, "never grows": float(falls)},
    )


EXPERIMENT = Experiment(
    id="fig:radius",
    title="Sparsity against the radius",
    place="Figure 1, left",
    claim="The sparsity decreases exponentially as the radius increases.",
    rule="Holds if the share of zero columns never grows with the radius and, between 5 and 95 %, its logarithm is "
    "linear in the radius (R squared at least 0.95); in part if it only never grows.",
    cells=cells,
    draw=draw,
    judge=judge,
)
