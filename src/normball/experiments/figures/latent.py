"""The latent space in two dimensions (section 5)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from normball.experiments.experiment import FAILS, HOLDS, IN_PART, Cell, Experiment, Setting, Verdict
from normball.experiments.figures.theta import SMALL
from normball.experiments.fits import NAMES, STATED, portrait
from normball.experiments.style import BLUE, ORANGE, panels

METHODS = ("l1inf", "default")


def cells(setting: Setting) -> list[Cell]:
    """One fit by the paper's recipe and one by the default; shared with ``fig:features``."""
    table = SMALL if setting.quick else STATED
    return [portrait(table=asdict(table), method=method, seed=0) for method in METHODS]


def _samples(data: Any, method: str) -> Any:
    return data[(data["kind"] == "sample") & (data["method"] == method)]


def draw(data: Any) -> Figure:
    """Draw the test samples, and the line where both logits are equal."""
    figure, axes = panels(2, 4.4)
    for each, method in zip(axes, METHODS, strict=True):
        own = _samples(data, method)
        for label, colour, marker in ((0, BLUE, "o"), (1, ORANGE, "s")):
            part = own[own["label"] == label]
            each.scatter(part["z0"], part["z1"], color=colour, marker=marker, s=22, alpha=0.75, label=f"class {label}")
        low = float(min(own["z0"].min(), own["z1"].min()))
        high = float(max(own["z0"].max(), own["z1"].max()))
        each.plot([low, high], [low, high], color="0.5", linewidth=1, linestyle=":")
        each.set_title(f"{NAMES[method]}: {_sided(own):.1f} % on their side of the line")
        each.set_xlabel("latent 0")
        each.set_ylabel("latent 1")
        each.legend(loc="best", fontsize=11)
    return figure


def _sided(samples: Any) -> float:
    """Return how many samples lie on the side of their class, in per cent."""
    return 100.0 * float(np.mean((samples["z1"] > samples["z0"]) == (samples["label"] == 1)))


def judge(data: Any) -> Verdict:
    """See the rule."""
    sides = {method: _sided(_samples(data, method)) for method in METHODS}
    outcome = HOLDS if sides["l1inf"] >= 90 else IN_PART if sides["l1inf"] >= 70 else FAILS
    return Verdict(
        outcome,
        f"{sides['l1inf']:.1f} % of the test samples lie on the side of their class.",
        f"{sides['default']:.1f} %. Where another head than the network predicts, this is still the network's space.",
        "" if outcome == HOLDS else "A selection that keeps more of the informative features: see fig:features.",
        {f"{NAMES[method]}: on their side, %": value for method, value in sides.items()},
    )


EXPERIMENT = Experiment(
    id="fig:latent",
    title="The latent space",
    place="section 5, shown in text",
    claim="The autoencoder provides a two-dimensional latent space in which the samples can be seen and their "
    "classification interpreted.",
    rule="The latent vector is the logits, so the line of equal coordinates separates the classes. Holds if at least "
    "90 % of the test samples lie on the side of their class with the paper's recipe, in part from 70 % on.",
    cells=cells,
    draw=draw,
    judge=judge,
)
