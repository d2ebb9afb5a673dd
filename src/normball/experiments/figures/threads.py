"""Beyond the paper: more threads than one."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from normball.experiments.claims import by_share, join
from normball.experiments.experiment import HOLDS, NOT_MEASURED, Cell, Experiment, Setting, Verdict
from normball.experiments.projections import COPY, thread_counts, threads
from normball.experiments.style import BLACK, BLUE, GREEN, VERMILION, name_lines, panels

BUSY = 0.25  # CPUs; beyond, more threads only share what is left
COLOURS = {0.99: BLUE, 0.5: GREEN, 0.0: VERMILION}


def cells(setting: Setting) -> list[Cell]:
    """One matrix beyond the caches, at three sparsities."""
    size = 1000 if setting.quick else 4096
    return [
        threads(members=size, groups=size, zeros=zeros, dtype="float64", seed=0, counts=thread_counts())
        for zeros in COLOURS
    ]


def _gains(data: Any) -> dict[float, Any]:
    found = {}
    for zeros, part in data[data["algorithm"] != COPY].groupby("zeros", sort=False):
        own = part.set_index("threads")["ms"]
        found[float(zeros)] = own[1] / own
    return found


def draw(data: Any) -> Figure:
    """How many times as fast as one thread."""
    figure, (axes,) = panels(1, 4.0)
    for zeros, gain in _gains(data).items():
        label = f"{100 * zeros:g} % zero columns"
        axes.plot(gain.index, gain, color=COLOURS[zeros], marker="o", label=label)
    most = int(data["threads"].max())
    axes.plot([1, most], [1, most], color=BLACK, linewidth=1, linestyle=":", label="ideal")
    axes.set_xticks(sorted(set(data["threads"])))
    axes.set_xlabel("threads")
    axes.set_ylabel("times as fast as one")
    axes.set_title(f"The default, {data['members'].iloc[0]} x {data['groups'].iloc[0]}, float64")
    name_lines(axes)
    return figure


def judge(data: Any) -> Verdict:
    """See the rule."""
    gains = _gains(data)
    most = int(data["threads"].max())
    if most == 1:
        return Verdict(NOT_MEASURED, "", "One CPU: nothing to compare.", "Run it on more CPUs.")
    busy = float(data["busy"].max())
    if busy > BUSY:
        return Verdict(
            NOT_MEASURED,
            "",
            f"Other programs used {busy:.2f} of the {most} CPUs meanwhile: what more threads gain cannot be said.",
            "Run it on an idle machine: --only fig:threads --retime.",
            {"CPUs used by others": busy},
        )
    last = {zeros: float(gain.iloc[-1]) for zeros, gain in gains.items()}
    words = join([f"{value:.2f} at {100 * zeros:g} % zero columns" for zeros, value in last.items()])
    outcome = by_share([value >= 1.4 for value in last.values()])
    remedy = "" if outcome == HOLDS else "It would hold on a quiet machine with memory faster than one core can use."
    return Verdict(
        outcome,
        "The paper allowed no parallelism; its algorithm walks one heap, step by step.",
        f"With {most} threads the default is {words} times as fast as with one; the bits are the same.",
        remedy,
        {f"gain at {100 * zeros:g} % zero columns": value for zeros, value in last.items()},
    )


EXPERIMENT = Experiment(
    id="fig:threads",
    title="Threads",
    place="beyond the paper, which allowed none",
    claim="Ours, not the paper's: all the CPUs of a machine project faster than one, to the same bits.",
    rule="Holds if with all the CPUs the default is at least 1.4 times as fast as with one at each sparsity, in part "
    "if at half of them or more. A result with other bits would stop the run. Where other programs use more than a "
    "quarter of a CPU there is no verdict.",
    cells=cells,
    draw=draw,
    judge=judge,
)
