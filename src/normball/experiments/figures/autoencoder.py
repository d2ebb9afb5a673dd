"""Table 1: accuracy and column sparsity without a projection, with l1 and with l1,inf."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from normball.experiments.experiment import FAILS, HOLDS, IN_PART, Cell, Experiment, Setting, Verdict
from normball.experiments.figures.theta import SMALL
from normball.experiments.fits import METHODS, NAMES, STATED, VARIANTS, Synthetic, accuracy_table, fits
from normball.experiments.style import BLACK, BLUE, GREEN, ORANGE, PINK, VERMILION, panels

PAPER = {"none": (86.6, 2.0), "l1": (89.1, 1.8), "l1inf": (92.77, 1.8)}
COLOURS = dict(zip(METHODS, ("0.35", ORANGE, VERMILION, PINK, BLUE, GREEN), strict=True))


def cells(setting: Setting) -> list[Cell]:
    """Fit by every method on the stated data and on the variants."""
    if setting.quick:
        return [
            *fits(SMALL, list(METHODS), 2),
            *fits(Synthetic(SMALL.features, 1.2, False, SMALL.samples, SMALL.informative), list(PAPER), 1),
        ]
    others = [method for method in METHODS if method != "masked"]
    variants = [cell for table in VARIANTS for cell in fits(table, others, 2)]
    return [*fits(STATED, list(METHODS), 4), *variants]


def draw(data: Any) -> Figure:
    """Draw a panel for each data, a row for each method, a mark for each seed; the paper's numbers as stars."""
    names = list(dict.fromkeys(data["data"]))
    figure, axes = panels(len(names), 2.5)
    rows = list(METHODS)
    for each, name in zip(axes, names, strict=True):
        part = data[data["data"] == name]
        for method in [m for m in rows if m in set(part["method"])]:
            own = part[part["method"] == method]["accuracy"]
            place = rows.index(method)
            each.scatter(own, [place] * len(own), color=COLOURS[method], alpha=0.55, s=28)
            each.scatter(own.mean(), place, color=COLOURS[method], marker="|", s=340, linewidths=3)
        for method, (value, _) in PAPER.items():
            each.scatter(value, rows.index(method), marker="*", s=95, color=BLACK, zorder=4)
        each.set_yticks(range(len(rows)), [NAMES[method] for method in rows], fontsize=11)
        each.margins(y=0.14)
        each.invert_yaxis()
        each.set_xlim(45, 101)
        each.set_title(name)
    axes[-1].set_xlabel("accuracy on test samples, %  (★ the paper, | mean)")
    return figure


def gaps(data: Any, name: str) -> dict[str, float]:
    """Return our mean accuracy less the paper's, for each of its methods."""
    means = data[data["data"] == name].groupby("method")["accuracy"].mean()
    return {method: float(means[method] - value) for method, (value, _) in PAPER.items()}


def judge(data: Any) -> Verdict:
    """See the rule."""
    stated = data["data"].iloc[0]
    own = data[data["data"] == stated]
    means, apart = own.groupby("method")["accuracy"].mean(), gaps(data, stated)
    sparsity = float(own[own["method"] == "l1inf"]["column_sparsity"].mean())
    ordered = bool(means["none"] < min(means["l1"], means["l1inf"]) and means["l1inf"] >= means["l1"] - 1.0)
    same = all(abs(apart[method]) <= 2 * spread for method, (_, spread) in PAPER.items())
    sparse = abs(sparsity - 99.6) <= 0.2
    outcome = HOLDS if ordered and same and sparse else IN_PART if ordered or same else FAILS
    tried = {name: gaps(data, name) for name in dict.fromkeys(data["data"])}
    nearest = min(tried, key=lambda name: float(np.abs(list(tried[name].values())).max()))
    shown = ", ".join(f"{NAMES[m]} {PAPER[m][0] + gap:.1f}" for m, gap in tried[nearest].items())
    remedy = (
        f"Of the data tried, the paper's accuracies are nearest on {nearest}: {shown}. On raw data the generator "
        "gives the informative features away by their larger variance; and the published scripts choose the best "
        "epoch on the test part and scale before the split, which is not done here."
    )
    default = own[own["method"] == "default"]
    kept = own[own["method"] == "l1inf"]
    return Verdict(
        outcome,
        f"On the stated data {means['none']:.1f} / {means['l1']:.1f} / {means['l1inf']:.1f} % for none, l1 and "
        f"l1,inf, where the paper has 86.6 / 89.1 / 92.8; {sparsity:.2f} % of the columns are zero (99.6). Of the "
        f"{kept['kept'].mean():.0f} features kept {kept['informative_kept'].mean():.0f} are informative. The order "
        f"{'is the same' if ordered else 'is another'}; the accuracies {'are' if same else 'are not'}.",
        f"{default['accuracy'].mean():.1f} % with {default['kept'].mean():.0f} features, "
        f"{default['informative_kept'].mean():.0f} of them informative.",
        "" if outcome == HOLDS else remedy,
        {f"{NAMES[method]}: points from the paper's accuracy": gap for method, gap in apart.items()}
        | {"zero columns of l1,inf, %": sparsity},
    )


EXPERIMENT = Experiment(
    id="table:autoencoder",
    title="Accuracy and sparsity of the autoencoder",
    place="Table 1",
    claim="The l1,inf projection improves the accuracy by 6 points over no projection, and over l1, while using only "
    "0.4 % of the features.",
    says="Accuracy 86.60 ± 2.0 without a projection, 89.1 ± 1.8 with l1, 92.77 ± 1.8 with l1,inf; column sparsity 0, "
    "81.94 and 99.6 %.",
    rule="Three questions on the stated data, means over seeds: is the order none < l1, none < l1,inf, and l1,inf not "
    "below l1 by more than a point; is each accuracy within two of the paper's standard deviations; are the zero "
    "columns of l1,inf within 0.2 points of 99.6 %? Holds if all are so; in part if the order or the accuracies are.",
    cells=cells,
    draw=draw,
    judge=judge,
    table=accuracy_table,
)
