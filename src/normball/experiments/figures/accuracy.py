"""Figure 6: accuracy against the radius."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from normball.experiments.experiment import FAILS, HOLDS, IN_PART, Cell, Experiment, Setting, Verdict
from normball.experiments.figures.theta import SMALL
from normball.experiments.fits import NAMES, STATED, accuracy_table, fits
from normball.experiments.style import BLUE, GREY, VERMILION, log_axes, name_lines, panels, star

RADII = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def cells(setting: Setting) -> list[Cell]:
    """Fit by the paper's recipe at each radius; no projection and the default beside it."""
    table, seeds, radii = (SMALL, 2, RADII[:5:2]) if setting.quick else (STATED, 3, RADII)
    return [
        *fits(table, ["l1inf"], seeds, [{"radius": radius} for radius in radii]),
        *fits(table, ["none", "default"], seeds),
    ]


def _sweep(data: Any) -> Any:
    """Return the accuracies, a row for each radius and a column for each seed."""
    return data[data["method"] == "l1inf"].pivot_table(index="radius", columns="seed", values="accuracy").sort_index()


def draw(data: Any) -> Figure:
    """Draw the mean with its standard deviation, and what needs no radius as lines across."""
    figure, (axes,) = panels(1, 4.2)
    sweep = _sweep(data)
    means = sweep.mean(axis=1)
    axes.errorbar(sweep.index, means, sweep.std(axis=1), color=VERMILION, capsize=4, linestyle="none")
    axes.plot(sweep.index, means, color=VERMILION, marker="D", label="the paper's recipe")
    for method, colour, style in (("default", BLUE, "-"), ("none", GREY, "--")):
        level = float(data[data["method"] == method]["accuracy"].mean())
        axes.plot(sweep.index[[0, -1]], [level, level], color=colour, linewidth=2, linestyle=style, label=NAMES[method])
    star(axes, 0.1, 92.77, "the paper: best, 92.8 % at 0.1", (10, -4))
    log_axes(axes, "x")
    axes.set_xlabel("radius")
    axes.set_ylabel("accuracy on test samples, %")
    axes.set_title(data["data"].iloc[0])
    name_lines(axes)
    return figure


def judge(data: Any) -> Verdict:
    """See the rule."""
    sweep = _sweep(data)
    means = sweep.mean(axis=1)
    best = float(means.idxmax())
    there = sweep.loc[np.isclose(sweep.index, 0.1)].iloc[0]
    apart = sweep.loc[best] - there
    gap, error = float(apart.mean()), float(apart.std() / np.sqrt(len(apart))) if len(apart) > 1 else 0.0
    outcome = HOLDS if gap <= error else IN_PART if gap <= 2.0 else FAILS
    default = data[data["method"] == "default"]
    return Verdict(
        outcome,
        f"Best at radius {best:g} with {means.max():.1f} %"
        + ("." if gap == 0.0 else f"; at 0.1 it is {gap:.1f} ± {error:.1f} points below."),
        f"{default['accuracy'].mean():.1f} % with {default['kept'].mean():.0f} features, chosen inside the training "
        "part.",
        ""
        if outcome == HOLDS
        else f"It would hold at radius {best:g}. Which is best depends on scale, features and rate.",
        {"best radius": best, "gap at 0.1, points": gap, "its standard error": error},
    )


EXPERIMENT = Experiment(
    id="fig:accuracy",
    title="Accuracy against the radius",
    place="Figure 6",
    claim="The accuracy is highest for a radius of 0.1.",
    says="92.77 % at radius 0.1.",
    rule="Over the same seeds, the mean accuracy at 0.1 is compared with that of the best radius. Holds if the mean "
    "of the paired differences is within its standard error; in part if it is within 2 points.",
    cells=cells,
    draw=draw,
    judge=judge,
    table=lambda data: accuracy_table(data[data["method"] != "l1inf"]),
)
