"""Figure 4: J, the steps along the total order, against the sparsity."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from normball.experiments.experiment import FAILS, HOLDS, IN_PART, Cell, Experiment, Setting, Verdict
from normball.experiments.projections import order
from normball.experiments.style import BLUE, GREEN, ORANGE, PINK, VERMILION, name_lines, panels

ZEROS = [0.999, 0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.01, 0.0]
COLOURS = {"uniform": VERMILION, "normal": BLUE, "lognormal": GREEN, "cauchy": ORANGE, "geometric": PINK}


def cells(setting: Setting) -> list[Cell]:
    """Take the paper's matrices with three seeds, and other distributions beyond."""
    size = 300 if setting.quick else 1000
    return [
        order(members=size, groups=size, distribution=distribution, seed=seed, zeros=ZEROS)
        for distribution in COLOURS
        for seed in range(3)
    ]


def draw(data: Any) -> Figure:
    """Above the paper's matrices, below all the distributions."""
    figure, axes = panels(2, 3.4)
    means = data.groupby(["distribution", "zeros"])["J_percent"].mean()
    for name, colour in COLOURS.items():
        own = means[name].sort_index()
        for each in axes if name == "uniform" else axes[1:]:
            each.plot(100 * own.index, own, color=colour, marker="o", markersize=4, label=name)
    axes[0].axhline(3.0, color="0.4", linewidth=1, linestyle=":")
    axes[0].text(99, 3.06, "the paper: slightly above 3 % where none is zero", color="0.3", fontsize=11)
    axes[0].set_title(f"{data['members'][0]} x {data['groups'][0]}, uniform on [0, 1]")
    axes[1].set_title("Beyond the paper: other distributions")
    for each in axes:
        each.set_xlabel("zero columns, %")
        each.set_ylabel("J, % of nm")
        each.set_ylim(0)
        each.invert_xaxis()
    name_lines(axes[1])
    return figure


def judge(data: Any) -> Verdict:
    """See the rule."""
    uniform = data[data["distribution"] == "uniform"]
    sparse = float(uniform[uniform["zeros"] >= 0.99]["J_percent"].max())
    per_seed = uniform[uniform["zeros"] == 0.0].groupby("seed")["J_percent"].max()
    full = float(per_seed.mean())
    yes = [sparse <= 0.1, 3.0 <= full <= 4.0]
    others = data[data["zeros"] == 0.0].groupby("distribution")["J_percent"].mean().drop("uniform")
    beyond = ", ".join(f"{name} {value:.3g} %" for name, value in others.items())
    return Verdict(
        HOLDS if all(yes) else IN_PART if any(yes) else FAILS,
        f"J is {sparse:.3f} % of nm at 99 % zero columns, and {full:.2f} % where the last zero column has just gone "
        f"(seeds: {per_seed.min():.2f} to {per_seed.max():.2f}). At the same point of other distributions: {beyond}.",
        "The default follows no total order and has no J: it reads the matrix a few times instead.",
        ""
        if all(yes)
        else "Where the last column survives is decided by the smallest of the column sums, so the figure moves with "
        "the seed, the distribution and the size; a larger radius raises J up to all of nm.",
        {"J at 99 % zero columns, %": sparse, "J at no zero column, %": full},
    )


EXPERIMENT = Experiment(
    id="fig:J",
    title="The constant J against the sparsity",
    place="Figure 4",
    claim="J is next to zero when all the columns are zero, and slightly above 3 % of nm when none is.",
    says="J slightly above 3 % of nm at sparsity 0.",
    rule="On uniform values, over three seeds: at most 0.1 % where 99 % or more of the columns are zero; and from 3 "
    "to 4 % on average at the smallest radius that leaves no zero column. Holds if both are so, in part if one is.",
    cells=cells,
    draw=draw,
    judge=judge,
)
