"""The figures as files, by matplotlib: for papers, for print, and for readers without scripts."""

import io
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from normball.report.palette import COLOURS, MATPLOTLIB_SYMBOLS, turn
from normball.report.text import short

__all__ = ["FIGURES", "draw", "image"]

RANKED, BOXES = 25, 9
MANY_POINTS = 2000  # as vectors they would make a file that nobody can open

_STYLE: Any = {
    "font.size": 9,
    "font.family": ["DejaVu Sans"],
    "svg.fonttype": "none",  # text stays text: it can be edited, and any script is shown by the viewer's own fonts
    "svg.hashsalt": "normball",
    "text.parse_math": False,  # a name with two dollar signs is a name
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.edgecolor": "#666666",
    "legend.frameon": False,
    "image.cmap": "RdBu_r",
}

Data = dict[str, Any]


@contextmanager
def _styled() -> Iterator[None]:
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def draw(name: str, data: Data) -> Figure | None:
    """One of `FIGURES` from the data of the page; None where the study has nothing for it."""
    with _styled():
        figure = FIGURES[name](data)
        if figure is not None:
            engine = figure.get_layout_engine()
            if engine is not None:  # laid out once, for all the files
                engine.execute(figure)
            figure.set_layout_engine("none")
        return figure


def image(figure: Figure, kind: str) -> bytes:
    """Return the figure as the bytes of an SVG or PNG file; the same each time."""
    buffer = io.BytesIO()
    with _styled():
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        figure.savefig(buffer, format=kind, dpi=200, metadata=metadata)
    return buffer.getvalue()


def _label(name: Any, limit: int = 24) -> str:
    text = "".join(c for c in short(name, limit) if unicodedata.category(c) != "Cf")  # marks for which fonts have boxes
    return f" {text}" if text.startswith("_") else text  # matplotlib hides legend entries that begin so


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _per_cent(axis: Any) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))


def _legend(axes: Axes, **options: Any) -> None:
    axes.legend(fontsize=8, **options)


def _array(values: list[Any]) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def methods(data: Data) -> Figure | None:
    rows = data["methods"]
    figure, axes = _canvas(6.0, 0.9 + 0.4 * len(rows))
    for place, row in enumerate(rows):
        mean, low, high = (_array([row[key]])[0] for key in ("mean", "low", "high"))
        colour = COLOURS[0] if place == 0 else "#555555"
        axes.plot([low, high], [place, place], color=colour, linewidth=2)
        axes.plot(mean, place, marker="o" if place == 0 else "s", color=colour)
    axes.axvline(data["chance"], color="#999999", linestyle="--", linewidth=1)
    axes.set_yticks(range(len(rows)), [_label(row["title"], 40) for row in rows])
    axes.set(xlabel="accuracy (dashed: guessing the most frequent class)", ylim=(len(rows) - 0.4, -0.6))
    _per_cent(axes.xaxis)
    return figure


def latent(data: Data) -> Figure | None:
    if len(data["latent"]) < 2:
        return None
    figure, axes = _canvas(6.0, 4.5)
    x, y = (_array(axis["values"]) for axis in data["latent"][:2])
    label, predicted = (np.array(data["samples"][key]) for key in ("label", "predicted"))
    raster = len(x) > MANY_POINTS
    for i, name in enumerate(data["classes"]):
        mine = label == i
        axes.scatter(x[mine], y[mine], s=22, color=COLOURS[i % 8], marker=MATPLOTLIB_SYMBOLS[turn(i)], alpha=0.85,
                     linewidths=0, label=_label(name), rasterized=raster)  # fmt: skip
    wrong = label != predicted
    if wrong.any():
        axes.scatter(x[wrong], y[wrong], s=48, color="black", marker="x", linewidths=1.2, label="misclassified",
                     rasterized=raster)  # fmt: skip
    axes.set(xlabel=_label(data["latent"][0]["title"], 60), ylabel=_label(data["latent"][1]["title"], 60))
    _legend(axes)
    return figure


def path(data: Data) -> Figure | None:
    table = data["path"]
    if len(table["n_features"]) < 2:  # it was given: there is no path
        return None
    by_radius = all(value is not None and value > 0 for value in table["radius"])
    x = _array(table["radius" if by_radius else "n_features"])
    figure = Figure(figsize=(6.0, 4.5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    chosen = np.array(table["chosen"], dtype=bool)
    accuracy, count = _array(table["accuracy"]), _array(table["n_features"])
    upper.errorbar(x, accuracy, _array(table["error"]), color=COLOURS[0], marker="o", markersize=4, capsize=2)
    upper.plot(x[chosen], accuracy[chosen], "D", color=COLOURS[1], markersize=8, label="chosen")
    lower.plot(x, count, color=COLOURS[2], marker="s", markersize=4)
    lower.plot(x[chosen], count[chosen], "D", color=COLOURS[1], markersize=8)
    lower.set(xscale="log", yscale="log", xlabel="radius" if by_radius else "number of features", ylabel="features")
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for axis in (lower.xaxis, lower.yaxis):
        axis.set_major_formatter(plain)
        axis.set_minor_formatter(NullFormatter())
    upper.set_ylabel("inner accuracy")
    _per_cent(upper.yaxis)
    _legend(upper)
    return figure


def ranking(data: Data) -> Figure | None:
    table = data["features"]
    shown = [i for i in range(min(RANKED, len(table["feature"]))) if table["selected"][i] or table["frequency"][i]]
    if not shown:
        return None
    figure = Figure(figsize=(6.5, 1.0 + 0.2 * len(shown)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    direction = [table["direction"][i] for i in shown]
    colours = [COLOURS[i % 8] if i >= 0 else "#777777" for i in direction]
    rows = np.arange(len(shown))
    left.barh(rows, _array([table["importance"][i] for i in shown]), color=colours)
    right.barh(rows, _array([table["frequency"][i] for i in shown]), color=colours)
    left.set_yticks(rows, [_label(table["feature"][i]) for i in shown])
    left.invert_yaxis()
    left.set_xlabel("importance")
    right.set(xlabel="selected in … of the runs", xlim=(0, 1.02))
    _per_cent(right.xaxis)
    seen = sorted({i for i in direction if i >= 0})
    handles = [
        mpl.patches.Patch(color=COLOURS[i % 8], label="higher in " + _label(data["classes"][i], 20)) for i in seen
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=8)
    return figure


def heatmap(data: Data) -> Figure | None:
    values = data["values"]
    if not values["z"]:
        return None
    z = np.array(values["z"], dtype=float)
    figure = Figure(figsize=(7.0, 1.6 + 0.16 * len(z)), layout="constrained")
    strip, axes = figure.subplots(2, 1, sharex=True, height_ratios=(0.25, 0.16 * len(z) + 0.3))
    label = np.array(data["samples"]["label"])[values["heat_samples"]]
    colours = np.array([mpl.colors.to_rgb(COLOURS[i % 8]) for i in label])
    strip.imshow(colours[None], aspect="auto", interpolation="nearest")
    drawn = axes.imshow(z, aspect="auto", vmin=-3, vmax=3, interpolation="nearest")
    for each in (strip, axes):
        each.grid(False)
        each.set_xticks([])
    strip.set_yticks([])
    for spine in (*strip.spines.values(), *axes.spines.values()):
        spine.set_visible(False)
    axes.set_yticks(range(len(z)), [_label(values["feature"][i]) for i in values["heat_features"]], fontsize=7)
    axes.set_xlabel("samples, clustered within their class")
    figure.colorbar(drawn, ax=axes, label="standard deviations from the mean", shrink=min(1.0, 12 / len(z) + 0.3))
    handles = [mpl.patches.Patch(color=COLOURS[i % 8], label=_label(data["classes"][i])) for i in sorted(set(label))]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=8)
    return figure


def boxes(data: Data) -> Figure | None:
    values = data["values"]
    count = min(BOXES, len(values["feature"]))
    if not count:
        return None
    rows = -(-count // 3)
    figure = Figure(figsize=(7.0, 2.2 * rows), layout="constrained")
    grid = figure.subplots(rows, 3, squeeze=False).ravel()
    label = np.array(data["samples"]["label"])
    jitter = np.random.default_rng(0)
    for place, axes in enumerate(grid):
        if place >= count:
            axes.set_visible(False)
            continue
        column = _array(values["columns"][place])
        for i in range(len(data["classes"])):
            mine = column[(label == i) & np.isfinite(column)]
            if not len(mine):
                continue
            axes.boxplot(mine, positions=[i], widths=0.6, showfliers=False, medianprops={"color": "black"})
            axes.scatter(i + jitter.uniform(-0.18, 0.18, len(mine)), mine, s=7, color=COLOURS[i % 8], alpha=0.7,
                         marker=MATPLOTLIB_SYMBOLS[turn(i)], linewidths=0, rasterized=len(label) > 100)  # fmt: skip
        axes.set_xticks(range(len(data["classes"])), [_label(name, 12) for name in data["classes"]], fontsize=8,
                        rotation=0 if len(data["classes"]) < 4 else 30)  # fmt: skip
        axes.set_title(_label(values["feature"][place], 28), fontsize=9)
    return figure


def confusion(data: Data) -> Figure | None:
    counts = np.array(data["confusion"])
    share = counts / counts.sum(1, keepdims=True).clip(1)
    size = 1.8 + 0.6 * len(counts)
    figure, axes = _canvas(size + 0.6, size)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for i, row in enumerate(counts):
        for j, value in enumerate(row):
            axes.text(j, i, str(value), ha="center", va="center", color="white" if share[i, j] > 0.55 else "black")
    names = [_label(name, 16) for name in data["classes"]]
    axes.set_xticks(range(len(names)), names, rotation=0 if len(names) < 3 else 35)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="predicted class", ylabel="true class")
    axes.grid(False)
    return figure


def roc(data: Data) -> Figure | None:
    if not data["roc"]:
        return None
    figure, axes = _canvas(4.5, 4.2)
    styles = ("-", "--", "-.", ":")
    for i, curve in enumerate(data["roc"]):
        place = data["classes"].index(curve["name"])
        axes.plot(_array(curve["x"]), _array(curve["y"]), color=COLOURS[place % 8], linestyle=styles[turn(i) % 4],
                  label=f"{_label(curve['name'])}, area {curve['auc']:.2f}")  # fmt: skip
    axes.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=1)
    axes.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    _legend(axes, loc="lower right")
    return figure


def calibration(data: Data) -> Figure | None:
    bins = data["calibration"]
    if bins is None:
        return None
    figure, axes = _canvas(4.5, 4.2)
    x, y, low, high = (_array(bins[key]) for key in ("x", "y", "low", "high"))
    axes.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=1)
    axes.errorbar(x, y, [(y - low).clip(0), (high - y).clip(0)], color=COLOURS[0], marker="o", capsize=2)
    axes.set(xlabel="stated confidence", ylabel="share that is right", ylim=(-0.02, 1.02))
    axes.set_xlim(max(0.0, float(x.min()) - 0.05), 1.02)
    _per_cent(axes.xaxis)
    _per_cent(axes.yaxis)
    return figure


def losses(data: Data) -> Figure | None:
    if not data["losses"]:
        return None
    figure, axes = _canvas(6.0, 3.5)
    for i, curve in enumerate(data["losses"]):
        axes.plot(curve["epoch"], _array(curve["loss"]), color=COLOURS[i % 8], label=_label(curve["stage"]))
        if "validation" in curve:
            axes.plot(curve["epoch"], _array(curve["validation"]), color=COLOURS[i % 8], linestyle="--",
                      label=f"{_label(curve['stage'])}, held out")  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="epoch", ylabel="loss")
    _legend(axes)
    return figure


def permutations(data: Data) -> Figure | None:
    if not data["permutations"]:
        return None
    figure, axes = _canvas(6.0, 3.5)
    axes.hist(_array(data["permutations"]), bins=min(30, max(5, len(data["permutations"]) // 5)), color="#999999")
    axes.axvline(data["accuracy"], color=COLOURS[1], linewidth=2, label="with the true labels")
    axes.set(xlabel="accuracy with shuffled labels", ylabel="shuffles")
    _per_cent(axes.xaxis)
    _legend(axes)
    return figure


FIGURES: dict[str, Callable[[Data], Figure | None]] = {
    function.__name__: function
    for function in (methods, latent, path, ranking, heatmap, boxes, confusion, roc, calibration, losses, permutations)
}
