"""Figure 5: sparsity and theta of the autoencoder's first layer against the radius."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from normball.experiments.claims import r_squared
from normball.experiments.experiment import FAILS, HOLDS, IN_PART, Cell, Experiment, Setting, Verdict
from normball.experiments.fits import STATED, Synthetic, radii_of_layer
from normball.experiments.style import BLUE, VERMILION, log_axes, panels, star

SMALL = Synthetic(features=200, samples=200, informative=16)
RADII = sorted({*(float(f"{radius:.3g}") for radius in np.geomspace(1e-3, 10.0, 25)), 0.1})


def cells(setting: Setting) -> list[Cell]:
    """One descent for each seed; its layer is projected at all the radii."""
    table, seeds = (SMALL, 2) if setting.quick else (STATED, 3)
    return [radii_of_layer(table=asdict(table), seed=seed, radii=RADII) for seed in range(seeds)]


def draw(data: Any) -> Figure:
    """Draw sparsity above, theta below; each seed a line."""
    figure, axes = panels(2, 3.2)
    for _, own in data.groupby("seed"):
        axes[0].plot(own["radius"], own["column_sparsity"], color=BLUE, linewidth=1.5)
        axes[1].plot(own["radius"], own["theta"], color=VERMILION, linewidth=1.5)
    star(axes[0], 0.1, 99.6, "the paper: 99.6 % at 0.1", (-14, -40), "right")
    axes[0].set_ylabel("zero columns, %")
    axes[1].set_ylabel("theta")
    for each in axes:
        log_axes(each, "x")
        each.set_xlabel("radius; a line for each seed")
    return figure


def judge(data: Any) -> Verdict:
    """See the rule."""
    falls = all((np.diff(own.sort_values("radius")["column_sparsity"]) <= 0).all() for _, own in data.groupby("seed"))
    there = data[np.isclose(data["radius"], 0.1)]
    sparsity, kept = float(there["column_sparsity"].mean()), float(there["kept"].mean())
    straight = float(np.mean([r_squared(own["radius"], own["theta"]) for _, own in data.groupby("seed")]))
    yes = [falls, abs(sparsity - 99.6) <= 0.2, straight < 0.95]
    return Verdict(
        HOLDS if all(yes) else IN_PART if sum(yes) >= 2 else FAILS,
        f"At radius 0.1 {sparsity:.2f} % of the columns are zero and {kept:.0f} features are left (mean over seeds). "
        f"The sparsity {'never grows' if falls else 'grows somewhere'} with the radius. A straight line through theta "
        f"has an R squared of {straight:.2f}.",
        "The default asks for a number of features; each number has its exact theta and radius.",
        ""
        if all(yes)
        else "What radius 0.1 leaves depends on the number of features, their scale and the learning rate.",
        {"zero columns at radius 0.1, %": sparsity, "features at radius 0.1": kept, "R squared of theta": straight},
    )


EXPERIMENT = Experiment(
    id="fig:theta",
    title="Sparsity and theta of the autoencoder against the radius",
    place="Figure 5",
    claim="The larger the radius, the smaller the sparsity, around 99.6 % (some 40 features) at radius 0.1; and theta "
    "does not decrease linearly.",
    says="Column sparsity around 99.6 % at radius 0.1: around 40 features of 10000.",
    rule="Three questions: does the sparsity never grow with the radius; is it within 0.2 points of 99.6 % at radius "
    "0.1, on average over seeds; is theta not linear in the radius (R squared below 0.95)? Holds if all are answered "
    "by yes, in part if two are.",
    cells=cells,
    draw=draw,
    judge=judge,
)
