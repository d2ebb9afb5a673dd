"""The biological tables: the paper's comparison on files of the user's."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from normball.experiments.claims import by_share
from normball.experiments.experiment import HOLDS, Cell, Experiment, Setting, Verdict
from normball.experiments.figures.autoencoder import COLOURS
from normball.experiments.fits import NAMES, accuracy_table
from normball.experiments.style import panels
from normball.experiments.tables import cross_validations

METHODS = ["none", "l1", "l1inf", "masked", "default"]


def cells(setting: Setting) -> list[Cell]:
    """None without tables."""
    return cross_validations(setting.tables, METHODS, seeds=1 if setting.quick else 2, folds=2 if setting.quick else 5)


def draw(data: Any) -> Figure:
    """Draw a panel for each table, a row for each method, a mark for each fold."""
    names = list(dict.fromkeys(data["data"]))
    figure, axes = panels(len(names), 2.4)
    for each, name in zip(axes, names, strict=True):
        part = data[data["data"] == name]
        for place, method in enumerate(METHODS):
            own = part[part["method"] == method]["accuracy"]
            each.scatter(own, [place] * len(own), color=COLOURS[method], alpha=0.45, s=26)
            each.scatter(own.mean(), place, color=COLOURS[method], marker="|", s=340, linewidths=3)
        each.set_yticks(range(len(METHODS)), [NAMES[method] for method in METHODS], fontsize=11)
        each.margins(y=0.14)
        each.invert_yaxis()
        each.set_title(name)
    axes[-1].set_xlabel("accuracy on test folds, % (| mean)")
    return figure


def judge(data: Any) -> Verdict:
    """See the rule."""
    yes, words, ours = [], [], []
    for name, part in data.groupby("data", sort=False):
        folds = part.pivot_table(index=["seed", "fold"], columns="method", values="accuracy")
        rival = folds[["none", "l1"]].mean().idxmax()
        apart = folds["l1inf"] - folds[rival]
        error = float(apart.std() / np.sqrt(len(apart)))
        share = 100.0 - float(part[part["method"] == "l1inf"]["column_sparsity"].mean())
        yes.append(bool(apart.mean() >= -error and share < 2.0))
        short = str(name).partition(",")[0]
        kept = float(part[part["method"] == "l1inf"]["kept"].mean())
        words.append(f"{short}: {folds['l1inf'].mean():.1f} % with {kept:.0f} features ({share:.1f} %), "
                     f"{NAMES[str(rival)]} {folds[rival].mean():.1f} %")  # fmt: skip
        default = part[part["method"] == "default"]
        ours.append(f"{short}: {default['accuracy'].mean():.1f} % with {default['kept'].mean():.0f} features")
    outcome = by_share(yes)
    return Verdict(
        outcome,
        "; ".join(words) + ".",
        "; ".join(ours) + ".",
        "" if outcome == HOLDS else "A number of features chosen for each table in place of one radius for all.",
        {"tables on which it holds": float(sum(yes)), "tables": float(len(yes))},
    )


EXPERIMENT = Experiment(
    id="table:biology",
    title="Biological tables",
    place="sections 1 and 5",
    claim="On biological data a tiny part (below 2 %) of the features is enough, and l1,inf is the better regulariser.",
    rule="For each table, over the same folds: with l1,inf at radius 0.1 the accuracy is not below the better of no "
    "projection and l1 by more than one standard error of the paired difference, and less than 2 % of the features are "
    "kept. Holds if so on all tables, in part if on half of them or more.",
    cells=cells,
    draw=draw,
    judge=judge,
    table=accuracy_table,
    needs="tables: --data FILE, or FILE:COLUMN with the labels' column, once for each",
)
