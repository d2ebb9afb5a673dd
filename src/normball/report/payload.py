"""The record of a study as the JSON that the page reads: short, bounded, and the same each time."""

from dataclasses import astuple
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from normball.report.curves import calibration, confusion, heat_order, latent_axes, roc_curves, standardised
from normball.report.palette import COLOURS, SYMBOLS
from normball.report.summary import Summary
from normball.report.text import clean
from normball.selection.results import Study

__all__ = ["HEAT_FEATURES", "TABLE_ROWS", "payload"]

TABLE_ROWS = 25_000  # of the feature table; the rest is in features.csv
CELLS = 250_000  # values of chosen features, for box plots and the heat map
SAMPLES = 5_000  # drawn one by one
HEAT_FEATURES, HEAT_SAMPLES = 60, 600  # more columns than that a screen does not show


def payload(study: Study, summary: Summary) -> dict[str, Any]:
    """All that the scripts of the page need, in one structure."""
    names = [str(name) for name in study.classes]
    index = {name: i for i, name in enumerate(names)}
    labels = study.predictions["label"].astype(str)
    predicted = study.predictions["predicted"].astype(str)
    shown = _shown(labels.to_numpy(), predicted.to_numpy())
    predictions = study.predictions.iloc[shown]
    bins = calibration(study)
    return {
        "classes": [clean(name) for name in names],
        "colours": COLOURS,
        "symbols": SYMBOLS,
        "samples": {
            "name": [clean(name) for name in predictions["sample"]],
            "label": [index.get(label, -1) for label in labels.iloc[shown]],
            "predicted": [index.get(label, -1) for label in predicted.iloc[shown]],
            "confidence": _numbers(predictions["confidence"], 3),
            "left_out": study.n_samples - len(shown),
        },
        "latent": _latent(study, predictions["sample"]),
        "methods": [
            {"title": clean(m.method), **{end: _number(getattr(m.accuracy, end)) for end in ("mean", "low", "high")}}
            for m in summary.methods
        ],
        "chance": _number(summary.chance),
        "path": _path(study.path),
        "features": _features(study, names),
        "values": _values(study, predictions["sample"], labels.iloc[shown].to_numpy()),
        "confusion": confusion(study).tolist(),
        "roc": [
            {"name": clean(name), "x": _numbers(x), "y": _numbers(y), "auc": _number(auc)}
            for name, x, y, auc in map(astuple, roc_curves(study))
        ],
        "calibration": None if bins is None else {
            "x": _numbers(bins.confidence), "y": _numbers(bins.right), "low": _numbers(bins.low),
            "high": _numbers(bins.high), "n": bins.count.tolist(), "error": _number(bins.error),
        },
        "losses": _losses(study.losses),
        "permutations": _numbers(study.permutations),
        "accuracy": _number(summary.ours.accuracy.mean),
    }  # fmt: skip


def _number(value: Any, digits: int = 4) -> float | None:
    """Significant digits are what a reader sees; more would only make the page larger."""
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None


def _numbers(values: Any, digits: int = 4) -> list[float | int | None]:
    out: list[float | int | None] = []
    for value in np.asarray(values, dtype=np.float64).tolist():
        number = _number(value, digits)
        out.append(int(number) if number is not None and number.is_integer() and abs(number) < 1e15 else number)
    return out


def _shown(labels: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """All samples if they are not too many; else every wrong one that fits, and an even choice of the others."""
    if len(labels) <= SAMPLES:
        return np.arange(len(labels))
    wrong = np.flatnonzero(labels != predicted)[: SAMPLES // 2]
    right = np.flatnonzero(labels == predicted)
    return np.sort(np.concatenate([wrong, right[_even(len(right), SAMPLES - len(wrong))]]))


def _even(count: int, most: int) -> npt.NDArray[np.int64]:
    """Places spread evenly over a list, all of them if they are not too many."""
    return np.arange(count) if count <= most else np.unique(np.linspace(0, count - 1, most).round().astype(int))


def _latent(study: Study, samples: pd.Series) -> list[dict[str, Any]]:
    place = pd.Index(study.latent["sample"]).get_indexer(samples)
    axes = latent_axes(study)
    return [
        {"title": clean(axis.title), "values": _numbers(np.where(place < 0, np.nan, axis.values[place]))}
        for axis in axes
    ]


def _path(path: pd.DataFrame) -> dict[str, Any]:
    table = path.sort_values("n_features", kind="stable")
    columns: dict[str, Any] = {name: _numbers(table[name], 6) for name in ("n_features", "radius", "accuracy", "error")}
    columns["chosen"] = [bool(each) for each in table["chosen"]]
    return columns


def _features(study: Study, names: list[str]) -> dict[str, Any]:
    table = study.features.iloc[:TABLE_ROWS]
    index = {name: i for i, name in enumerate(names)}
    columns: dict[str, Any] = {
        "feature": [clean(name) for name in table["feature"]],
        "rank": _numbers(table["rank"], 9),
        "selected": [int(bool(each)) for each in table["selected"]],
        "frequency": _numbers(table["frequency"], 3),
        "importance": _numbers(table["importance"]),
        "direction": [index.get(str(name), -1) for name in table["direction"]],
        "effect": _numbers(table["effect"], 3),
        "p_value": _numbers(table["p_value"], 3),
        "q_value": _numbers(table["q_value"], 3),
        "means": [_numbers(table[f"mean:{name}"]) for name in names],
        "total": len(study.features),
    }
    return columns


def _values(study: Study, samples: pd.Series, labels: npt.NDArray[Any]) -> dict[str, Any]:
    """Values of the chosen features, by column, and the rows and columns of the heat map."""
    most = max(20, CELLS // max(1, len(samples)))
    table = study.values.reindex(samples).iloc[:, :most]
    logarithms = study.model is not None and study.model["log"].taken_
    if logarithms:  # as the model sees them; on the scale of intensities a few samples would hide all others
        table = pd.DataFrame(study.model["log"].of(table.to_numpy()), table.index, table.columns)
    heat = standardised(table.iloc[:, :HEAT_FEATURES])
    classes = {str(name): i for i, name in enumerate(study.classes)}
    by_class = np.argsort([classes[label] for label in labels], kind="stable")
    kept = by_class[_even(len(labels), HEAT_SAMPLES)]
    order, features = heat_order(heat[kept], labels[kept])
    kept = kept[order]
    return {
        "feature": [clean(name) for name in table.columns],
        "unit": "value, log2" if logarithms else "value",
        "row": pd.Index(study.features["feature"]).get_indexer(table.columns).tolist(),
        "columns": [_numbers(table.iloc[:, i]) for i in range(table.shape[1])],
        "heat_samples": kept.tolist(),
        "heat_features": features,
        "z": [_numbers(row, 2) for row in heat[kept][:, features].T],
    }


def _losses(losses: pd.DataFrame) -> list[dict[str, Any]]:
    curves = []
    for stage, part in losses.groupby("stage", sort=False):
        curve = {"stage": clean(stage), "epoch": _numbers(part["epoch"], 9), "loss": _numbers(part["loss"])}
        if "validation" in part and part["validation"].notna().any():
            curve["validation"] = _numbers(part["validation"])
        curves.append(curve)
    return curves
