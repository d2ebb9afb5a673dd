"""From what the units found to the record of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import roc_auc_score

from normball.estimators import nogueira
from normball.selection.results import OURS, Study
from normball.selection.statistics import adjusted, univariate
from normball.selection.units import Data, Unit

__all__ = ["assembled"]

Floats = npt.NDArray[np.float64]

SHOWN = 200  # features whose values the record holds


def assembled(
    data: Data,
    names: list[str],
    samples: list[str],
    notes: list[str],
    settings: dict[str, Any],
    found: Mapping[Unit, dict[str, Any]],
    model: Any,
    seconds: dict[str, float],
) -> Study:
    """Put the record together; nothing here depends on the order in which the units came."""
    by_fold = {unit: found[unit] for unit in sorted(unit for unit in found if unit[0] == "fold")}
    final = found["final",]
    scores = _scores(data, by_fold)
    predictions = _predictions(data, samples, by_fold)
    selections = np.zeros((len(by_fold), len(names)), bool)
    for row, each in zip(selections, by_fold.values(), strict=True):
        row[each["chosen"]] = True
    features, order = _features(data, names, selections, final, model)
    stable = nogueira(selections) if len(selections) > 1 else None
    shown = order[: min(int(features["selected"].sum()), SHOWN)]
    latent = pd.DataFrame(final["latent"], columns=[f"z{k}" for k in range(len(data.classes))])
    permuted = sorted(unit for unit in found if unit[0] == "permutation")
    gaps = int(sum(np.isnan(row).sum() for row in data.X))
    filled = [f"{gaps} missing values filled, by what the training part says ({settings['impute']})"] if gaps else []
    logs = sorted({each["log"].split(",")[0] for each in by_fold.values()} | {final["log"].split(",")[0]})
    taken = final["log"] if len(logs) == 1 else f"{final['log']} for the final model; the folds differ"
    return Study(
        settings=settings,
        n_samples=len(samples),
        n_features=len(names),
        classes=list(data.classes),
        notes=[*map(str, notes), *filled, f"log={settings['log']}: {taken}"],
        scores=scores,
        predictions=predictions,
        features=features,
        path=_path(final, scores),
        latent=pd.concat([predictions[["sample", "label", "predicted"]], latent], axis=1),
        losses=pd.DataFrame(final["losses"]),
        values=pd.DataFrame(data.X[:, shown], index=samples, columns=[names[k] for k in shown]),
        stability={
            "index": np.nan if stable is None else stable.value,
            "low": np.nan if stable is None else stable.low,
            "high": np.nan if stable is None else stable.high,
        },
        permutations=[float(found[unit]["accuracy"]) for unit in permuted],
        seconds=seconds | _seconds(found),
        model=model,
    )


def _seconds(found: Mapping[Unit, dict[str, Any]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for unit, each in found.items():
        if unit[0] != "fold":
            name = "final model" if unit[0] == "final" else "permutations"
            total[name] = total.get(name, 0.0) + each["seconds"]
            continue
        for name, method in each["methods"].items():
            total[name] = total.get(name, 0.0) + method["seconds"]
    return total


def _auc(y: npt.NDArray[np.intp], proba: Floats) -> float:
    if len(np.unique(y)) < proba.shape[1]:
        return float("nan")
    if proba.shape[1] == 2:
        return float(roc_auc_score(y, proba[:, 1]))
    total = proba.sum(1, keepdims=True)
    return float(roc_auc_score(y, proba / np.where(total > 0, total, 1.0), multi_class="ovr"))


def _scores(data: Data, by_fold: Mapping[Unit, dict[str, Any]]) -> pd.DataFrame:
    rows = []
    for (_, repeat, fold), each in by_fold.items():
        y = data.y[each["test"]]
        for name, method in each["methods"].items():
            proba = np.array(method["proba"])
            guess = proba.argmax(1)
            rows.append(
                {
                    "method": name,
                    "repeat": repeat,
                    "fold": fold,
                    "accuracy": float((guess == y).mean()),
                    "balanced_accuracy": float(np.mean([(guess[y == k] == k).mean() for k in np.unique(y)])),
                    "auc": _auc(y, proba),
                    "n_features": method["n_features"],
                    "seconds": method["seconds"],
                }
            )
    return pd.DataFrame(rows)


def _predictions(data: Data, samples: list[str], by_fold: Mapping[Unit, dict[str, Any]]) -> pd.DataFrame:
    total, count = np.zeros((len(samples), len(data.classes))), np.zeros(len(samples))
    for each in by_fold.values():
        total[each["test"]] += np.array(each["methods"][OURS]["proba"])
        count[each["test"]] += 1
    proba = total / count[:, None]
    classes = np.array(data.classes, dtype=object)
    return pd.DataFrame(
        {
            "sample": samples,
            "label": classes[data.y],
            "predicted": classes[proba.argmax(1)],
            "confidence": proba.max(1),
            **{f"p:{name}": proba[:, k] for k, name in enumerate(data.classes)},
        }
    )


def _features(
    data: Data, names: list[str], selections: npt.NDArray[np.bool_], final: dict[str, Any], model: Any
) -> tuple[pd.DataFrame, npt.NDArray[np.intp]]:
    """Return the table of the features, best first, and their columns in this order."""
    log = model["log"]
    logged = univariate(_Blocks(data.X, log.of) if log.taken_ else data.X, data.y, len(data.classes))
    read = logged if not log.taken_ else univariate(data.X, data.y, len(data.classes))
    importance = np.zeros((len(data.classes), len(names)))
    importance[:, final["chosen"]] = final["importance"]
    selected = np.zeros(len(names), bool)
    selected[final["chosen"]] = True
    frequency = selections.mean(0)
    overall = importance.mean(0)
    order = np.lexsort((logged["p"], -overall, -frequency, ~selected))
    with_gaps = np.nan_to_num(logged["mean"], nan=-np.inf)
    table = pd.DataFrame(
        {
            "feature": names,
            "selected": selected,
            "frequency": frequency,
            "importance": overall,
            "direction": np.array(data.classes, dtype=object)[with_gaps.argmax(0)],
            "effect": logged["effect"],
            "p_value": logged["p"],
            "q_value": adjusted(logged["p"]),
            **{f"importance:{name}": importance[k] for k, name in enumerate(data.classes)},
            **{f"mean:{name}": read["mean"][k] for k, name in enumerate(data.classes)},
        }
    ).iloc[order]
    table.insert(1, "rank", np.arange(1, len(names) + 1))
    return table.reset_index(drop=True), order


class _Blocks:
    """A table of which blocks of columns can be asked for, transformed on the way."""

    def __init__(self, X: Any, transform: Any) -> None:
        self._X, self._transform, self.shape = X, transform, X.shape

    def __getitem__(self, which: Any) -> Any:
        return self._transform(self._X[which])


def _path(final: dict[str, Any], scores: pd.DataFrame) -> pd.DataFrame:
    columns = ["n_features", "radius", "theta", "accuracy", "error", "chosen"]
    chosen = len(final["chosen"])
    if not final["path"]:  # nothing was tried: the one point is what the outer folds saw
        mine = scores[scores["method"] == OURS]["accuracy"]
        error = float(mine.std(ddof=1) / np.sqrt(len(mine))) if len(mine) > 1 else np.nan
        row = [chosen, final["radius"], final["theta"], float(mine.mean()), error, True]
        return pd.DataFrame([row], columns=columns)
    tried = pd.DataFrame(final["path"]).rename(columns={"standard_error": "error"})
    best = tried.sort_values(["n_features", "accuracy"], kind="stable").groupby("n_features").tail(1).copy()
    best["chosen"] = best["n_features"] == chosen
    return best[columns].reset_index(drop=True)
