"""The most important features (section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from normball.experiments.experiment import FAILS, HOLDS, IN_PART, Experiment, Verdict
from normball.experiments.figures.latent import METHODS, cells
from normball.experiments.fits import NAMES
from normball.experiments.style import BLUE, VERMILION, panels

TOP = 20


def _features(data: Any, method: str) -> Any:
    own = data[(data["kind"] == "feature") & (data["method"] == method)]
    return own.sort_values("attribution", ascending=False)


def draw(data: Any) -> Figure:
    """Draw the attributions of the first features; colour and a cross tell the idle ones."""
    figure, axes = panels(2, 4.6)
    for each, method in zip(axes, METHODS, strict=True):
        own = _features(data, method).head(TOP)
        true = own["is_informative"].astype(bool)
        names = [f"{int(f)}" if t else f"{int(f)} ✗" for f, t in zip(own["feature"], true, strict=True)]
        each.barh(range(len(own)), 100 * own["attribution"], color=np.where(true, BLUE, VERMILION))
        each.set_yticks(range(len(own)), names, fontsize=9)
        each.invert_yaxis()
        each.grid(axis="y", visible=False)
        each.set_title(f"{NAMES[method]}: {true.sum()} of the first {len(own)} informative")
        each.set_ylabel("feature (✗ idle)")
    axes[-1].set_xlabel("share of the attributions, % (integrated gradients)")
    return figure


def judge(data: Any) -> Verdict:
    """See the rule."""
    top = {m: float(_features(data, m).head(TOP)["is_informative"].astype(bool).mean()) for m in METHODS}
    every = {m: _features(data, m)["is_informative"].astype(bool) for m in METHODS}
    outcome = HOLDS if top["l1inf"] >= 0.9 else IN_PART if top["l1inf"] >= 0.5 else FAILS
    words = {
        m: f"{100 * top[m]:.0f} % of the {TOP} most important features are informative, and {every[m].sum()} of all "
        f"{len(every[m])} selected ones."
        for m in METHODS
    }
    return Verdict(
        outcome,
        words["l1inf"],
        words["default"],
        ""
        if outcome == HOLDS
        else "Ranking by a short descent from zero, as the default does, finds more of them: "
        "Adam gives steps of one size to the features that matter and to those that do not.",
        {f"{NAMES[m]}: informative among the first {TOP}, %": 100 * value for m, value in top.items()},
    )


EXPERIMENT = Experiment(
    id="fig:features",
    title="The most important features",
    place="section 5, shown in text",
    claim="The autoencoder specifically provides informative features.",
    rule=f"Holds if at least 90 % of the {TOP} features with the largest attributions in the paper's recipe are among "
    "the truly informative ones of the generator, in part from 50 % on.",
    cells=cells,
    draw=draw,
    judge=judge,
)
