"""The picture: ratio to a copy against the share of zero groups, one panel for each layout and dtype."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.harness import Record
from benchmarks.matrices import DTYPES, LAYOUTS, POINTS

# The colours of Okabe and Ito, told apart in every kind of colour vision; the markers tell them apart in none.
STYLES = {
    "newton": ("#0072B2", "o", "newton (default)"),
    "semismooth_newton": ("#E69F00", "s", "semismooth_newton (Chu et al.)"),
    "active_set": ("#009E73", "^", "active_set (Bejar et al.)"),
    "inverse_total_order": ("#D55E00", "D", "inverse_total_order (Perez et al.)"),
    "total_order": ("#CC79A7", "v", "total_order (Quattoni et al.)"),
}


def draw(records: list[Record], folder: Path, stem: str, distribution: str = "normal") -> list[Path]:
    """One figure for each size, as SVG and PNG; returns the SVG files."""
    chosen = [
        r for r in records if r["kind"] == "time" and r["case"] == "projection" and r["distribution"] == distribution
    ]
    written = []
    for members, groups in dict.fromkeys((r["members"], r["groups"]) for r in chosen):
        path = folder / f"{stem}-{members}x{groups}"
        _figure([r for r in chosen if (r["members"], r["groups"]) == (members, groups)], members, groups, path)
        written.append(path.with_suffix(".svg"))
    return written


def _figure(records: list[Record], members: int, groups: int, path: Path) -> None:
    ticks = [str(p) for p in POINTS if any(r["point"] == str(p) for r in records)]
    sparse = sum(tick.endswith("%") for tick in ticks)
    with plt.rc_context({"font.size": 10, "svg.hashsalt": "normball", "svg.fonttype": "path"}):
        figure, axes = plt.subplots(2, 2, figsize=(10.5, 7.6), sharex=True, sharey=True, layout="constrained")
        for row, layout in enumerate(LAYOUTS):
            for column, dtype in enumerate(DTYPES):
                panel = axes[row, column]
                for method, (colour, marker, label) in STYLES.items():
                    cells = {
                        r["point"]: r["ratio"]
                        for r in records
                        if (r["layout"], r["dtype"], r["method"]) == (layout, dtype, method)
                    }
                    at = [i for i, tick in enumerate(ticks) if tick in cells]
                    for part in ([i for i in at if i < sparse], [i for i in at if i >= sparse]):
                        panel.plot(
                            part, [cells[ticks[i]] for i in part], color=colour, marker=marker, label=label,
                            markersize=6, linewidth=2.6 if method == "newton" else 1.4,
                            zorder=4 if method == "newton" else 3,
                        )  # fmt: skip
                panel.axhline(1.0, color="black", linewidth=1.2, linestyle=(0, (4, 2)), label="a copy", zorder=2)
                if 0 < sparse < len(ticks):
                    panel.axvline(sparse - 0.5, color="0.75", linewidth=0.8)
                panel.set_yscale("log")
                panel.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda v, _: f"{v:g}"))
                panel.grid(axis="y", color="0.9", linewidth=0.8)
                panel.spines[["top", "right"]].set_visible(False)
                panel.set_title(f"{dtype}, groups {layout}", loc="left", fontsize=10.5)
                panel.set_xticks(range(len(ticks)), [tick.removeprefix("r=") for tick in ticks])
        figure.supylabel("time, in copies of the matrix (log scale)")
        for panel in axes[1]:
            panel.set_xlabel("zero groups in the result  |  radius as a part of the norm")
        drawn = {h.get_label(): h for panel in axes.flat for h in panel.get_lines() if len(h.get_xdata())}
        names = [label for _, _, label in STYLES.values() if label in drawn] + ["a copy"]
        figure.legend([drawn[n] for n in names], names, loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle(f"Projecting {members} x {groups} (members x groups), one thread, cold", fontsize=12)
        for suffix in (".svg", ".png"):
            metadata = {"Date": None} if suffix == ".svg" else None
            figure.savefig(path.with_suffix(suffix), dpi=130, metadata=metadata)
        plt.close(figure)
