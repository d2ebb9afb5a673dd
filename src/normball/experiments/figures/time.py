"""Figure 1, right: time against the radius."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from normball.experiments.claims import against_rivals, by_share, default_gain, wide
from normball.experiments.experiment import Experiment, Verdict
from normball.experiments.figures.radius import cells
from normball.experiments.projections import ALGORITHMS, COPY
from normball.experiments.style import line, log_axes, name_lines, panels

SPARSE = 0.4


def draw_times(data: Any) -> Figure:
    """Draw milliseconds against the radius, a panel for each size, with the sparsity where the claim begins."""
    sizes = list(dict.fromkeys(zip(data["members"], data["groups"], strict=True)))
    figure, axes = panels(len(sizes), 4.0)
    for each, (members, groups) in zip(axes, sizes, strict=True):
        part = data[(data["members"] == members) & (data["groups"] == groups)].sort_values("radius")
        for algorithm in (*ALGORITHMS, COPY):
            own = part[part["algorithm"] == algorithm]
            line(each, own["radius"], own["ms"], algorithm)
        log_axes(each, "xy")
        each.set_title(f"{members} x {groups}, uniform on [0, 1], one thread")
        each.set_ylabel("milliseconds")
        each.set_xlabel("radius")
        sparse = part[part["zeros"] >= SPARSE]["radius"].max()
        each.axvspan(part["radius"].min(), sparse, color="0.96", zorder=0)
        told = "grey: 40 % zero columns or more"
        each.text(0.03, 0.7, told, transform=each.transAxes, color="0.4", fontsize=10.5)
        name_lines(each)
    return figure


def judge(data: Any) -> Verdict:
    """See the rule."""
    table = wide(data, ["members", "groups", "radius", "zeros"])
    sparse = table[table["zeros"] >= SPARSE]
    wins, words, remedy, numbers = against_rivals(sparse)
    where = f"{wins.sum()} of {len(wins)} radii with at least 40 % zero columns"
    here = f"Faster than all three, or equal, at {where}: {words}."
    return Verdict(by_share(wins), here, default_gain(table), remedy, numbers)


EXPERIMENT = Experiment(
    id="fig:time",
    title="Time against the radius",
    place="Figure 1, right",
    claim="The proposed algorithm is faster than the best existing methods when the sparsity is at least 40 %.",
    rule="At each radius that leaves at least 40 % of the columns zero, the paper's algorithm is compared with the "
    "fastest of the algorithms of Chu et al., Bejar et al. and Quattoni et al.; medians within 5 % count as equal. "
    "Holds if it is never slower, in part if at half of the radii or more.",
    cells=cells,
    draw=draw_times,
    judge=judge,
)
