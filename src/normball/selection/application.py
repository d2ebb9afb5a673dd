"""A saved model on new samples: columns matched by name, and a refusal where the answer would be nonsense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["Application", "apply_model", "few", "used_features"]

MISSING = 0.2  # of the features that a model uses may be filled in; beyond, it is another table
FAR = 10.0  # standard deviations from the mean of the training samples
FAR_SHARE = 0.1  # of the values, beyond which something must have been done to one of the tables
_ROWS = 256  # samples that are looked at in one go


@dataclass(frozen=True)
class Application:
    """What a model says of new samples.

    Attributes
    ----------
    predictions : DataFrame
        ``sample``, ``predicted``, ``confidence`` and ``p:<class>`` for each class; empty for a sample without a value
        in any feature that the model uses.
    missing : list of str
        Features that the model uses and the table lacks; filled by what the training samples say.
    unused : int
        Features of the training table that are lacking and do not matter.
    extra : list of str
        Columns of the table that the model does not know; left aside.
    warnings : list of str
        What should make one doubt.
    accuracy, chance : float or None
        The share of right predictions, and that of the most frequent class, among the samples that have a label; None
        if the table has no labels.
    """

    predictions: pd.DataFrame
    missing: list[str]
    unused: int
    extra: list[str]
    warnings: list[str]
    accuracy: float | None = None
    chance: float | None = None


def used_features(model: Any) -> list[str]:
    """Return the names of the features that a model uses: all that `read_table` need read of a new table."""
    return [str(name) for name in model.feature_names_in_[model[-1].get_support()]]


def few(names: Sequence[str], limit: int = 5) -> str:
    """Return the first of some names, shortened and quoted, and how many there are beside them."""
    shown = [name if len(name) <= 40 else f"{name[:37]}..." for name in names[:limit]]
    return ", ".join(map(repr, shown)) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def apply_model(model: Any, table: Any) -> Application:
    """Predict the classes of new samples.

    Parameters
    ----------
    model : Pipeline
        Of a study, or from `load_model`.
    table : Table
        With ``X``, ``feature_names`` and ``sample_ids``; columns in any order. If it has labels ``y``, the predictions
        are compared with them. ``normball.data.read_table(file, features=...)`` reads one that has other columns too,
        of which it needs ``model.feature_names_in_[model[-1].get_support()]`` alone.

    Returns
    -------
    Application
        The predictions, and what did not match.

    Raises
    ------
    ValueError
        Where no column matches, more than a fifth of the features in use are missing, or there is no value at all.
    """
    place = {str(name): j for j, name in enumerate(table.feature_names)}
    names = [str(name) for name in model.feature_names_in_]
    sae = model[-1]
    used = sae.get_support(indices=True)
    there = [k for k in used if names[k] in place]
    missing = [names[k] for k in used if names[k] not in place]
    if not there:
        raise ValueError(
            f"table: expected columns such as {few(missing, 3)}, got {few(list(place), 3)}: none of the"
            f" {len(used)} features that the model uses is there; are the samples in columns?"
        )
    if len(missing) > MISSING * len(used):
        raise ValueError(
            f"table: expected the {len(used)} features that the model uses, got {len(there)}; missing: {few(missing)}"
        )
    columns = [place[names[k]] for k in there]
    known = set(names)
    proba = np.full((len(table.X), len(sae.classes_)), np.nan)
    distances, values, empty = 0, 0, np.zeros(len(table.X), bool)
    for start in range(0, len(table.X), _ROWS):
        rows = slice(start, start + _ROWS)
        read = np.asarray(table.X[rows][:, columns], dtype=np.float32)
        part = np.full((len(read), len(names)), np.nan, np.float32)
        part[:, there] = read
        here = ~np.isnan(part[:, used])
        empty[rows] = ~here.any(1)
        ready = model[:-1].transform(part)
        distances += int((np.abs(sae._columns(ready)) > FAR)[here].sum())
        values += int(here.sum())
        proba[rows] = sae.predict_proba(ready)
    if empty.all():
        raise ValueError("table: expected values, got none in any of the features that the model uses")
    proba[empty] = np.nan
    warnings = []
    if empty.any():
        gone = [str(table.sample_ids[i]) for i in np.flatnonzero(empty)]
        warnings.append(f"{len(gone)} samples have no value in any feature in use, and no prediction: {few(gone)}")
    if distances > FAR_SHARE * values:
        warnings.append(
            f"{100 * distances / values:.0f} % of the values are more than {FAR:.0f} standard deviations from the"
            " training samples: other units, or logarithms taken in one table only? Do not trust these predictions"
        )
    classes = [str(name) for name in sae.classes_]
    best = np.array(classes, dtype=object)[np.nan_to_num(proba).argmax(1)]
    predicted = np.where(empty, "", best)
    predictions = pd.DataFrame(
        {
            "sample": [str(name) for name in table.sample_ids],
            "predicted": predicted,
            "confidence": proba.max(1),
            **{f"p:{name}": proba[:, k] for k, name in enumerate(classes)},
        }
    )
    seen = {**place, **dict.fromkeys(map(str, getattr(table, "aside", ())))}  # with the columns that were not read
    unused = sum(name not in seen for name in names) - len(missing)
    extra = [name for name in seen if name not in known]
    accuracy, chance = _judged(predicted, table, classes, warnings)
    return Application(predictions, missing, unused, extra, warnings, accuracy, chance)


def _judged(
    predicted: npt.NDArray[Any], table: Any, classes: list[str], warnings: list[str]
) -> tuple[float | None, float | None]:
    """Return accuracy and chance, where there are labels; warn of those that the model does not know."""
    if getattr(table, "y", None) is None:
        return None, None
    labels = np.array([str(label) for label in table.y], dtype=object)
    if len(labels) != len(predicted):
        raise ValueError(f"y: expected one label for each of {len(predicted)} samples, got {len(labels)}")
    labelled = labels != ""
    if not labelled.any():
        return None, None
    names, counts = np.unique(labels[labelled], return_counts=True)
    if strange := [name for name in names if name not in classes]:
        warnings.append(f"the model does not know the labels {few(strange)}; it knows {few(classes)}")
    right = predicted[labelled] == labels[labelled]
    return float(right.mean()), float(counts.max() / counts.sum())
