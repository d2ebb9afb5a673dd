"""Beyond the paper: the same projection on a GPU."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from normball.experiments.claims import by_share, span
from normball.experiments.cuda import available, on_gpu
from normball.experiments.experiment import HOLDS, Cell, Experiment, Setting, Verdict
from normball.experiments.style import BLUE, GREEN, GREY, log_axes, panels, same_width

COLOURS = {"GPU": (BLUE, "o"), "CPU": (GREEN, "^"), "copy on the GPU": (GREY, "|")}
ZEROS = (0.99, 0.5, 0.0)


def cells(setting: Setting) -> list[Cell]:
    """None without a GPU."""
    if not available():
        return []
    sizes = [(256, 256)] if setting.quick else [(1000, 1000), (1000, 10000), (10000, 1000), (4096, 4096)]
    return [on_gpu(members=n, groups=m, zeros=zeros, seed=0) for n, m in sizes for zeros in ZEROS]


def draw(data: Any) -> Figure:
    """Draw a panel for each sparsity, a row for each size."""
    figure, axes = panels(len(ZEROS), 2.4)
    sizes = [f"{n} x {m}" for n, m in dict.fromkeys(zip(data["members"], data["groups"], strict=True))]
    for each, zeros in zip(axes, ZEROS, strict=True):
        for name, (colour, marker) in COLOURS.items():
            own = data[(data["zeros"] == zeros) & (data["algorithm"] == name)]
            each.scatter(own["ms"], sizes, color=colour, marker=marker, s=70, label=name)
        each.invert_yaxis()
        log_axes(each, "x")
        each.set_title(f"{100 * zeros:g} % zero columns, float32")
    axes[-1].set_xlabel("milliseconds (log scale)")
    same_width(axes)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def judge(data: Any) -> Verdict:
    """See the rule."""
    table = data.pivot_table(index=["members", "groups", "zeros"], columns="algorithm", values="ms")
    gain = (table["CPU"] / table["GPU"]).to_numpy()
    copies = (table["GPU"] / table["copy on the GPU"]).to_numpy()
    outcome = by_share(gain >= 1.0)
    return Verdict(
        outcome,
        "The paper has no program for GPUs.",
        f"The GPU takes {span(copies)} copies there, and is {span(gain)} times as fast as the CPU with all its "
        "threads.",
        "" if outcome == HOLDS else "Larger matrices: a small one does not fill a GPU.",
        {"least gain over the CPU": float(gain.min()), "most copies": float(copies.max())},
    )


EXPERIMENT = Experiment(
    id="fig:gpu",
    title="On a GPU",
    place="beyond the paper",
    claim="Ours, not the paper's: a matrix that lies on a GPU is projected there faster than on the CPU.",
    rule="Holds if the median of replays is below the CPU's with all its threads at every size and sparsity, in part "
    "if at half of them or more. Both results are compared first.",
    cells=cells,
    draw=draw,
    judge=judge,
    needs="a machine with CUDA",
)
