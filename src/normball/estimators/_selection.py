"""How many features, and which head: inner cross-validation over the exact path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, check_cv

__all__ = ["Choice", "Fold", "choose", "grid", "splits"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

GRID = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
PATIENCE = 3  # numbers of features in a row that are clearly worse than the best before: the path ends there
GAUSSIAN_LIMIT = 512  # features; its time grows with their cube


@dataclass(frozen=True)
class Fold:
    """One inner fold: the rows held out, and the right answers a head gives there with the first `count` features."""

    held_out: Indices
    correct: Callable[[str, int], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Choice:
    """What was chosen, and all that was tried."""

    count: int
    head: str
    path: dict[str, list[Any]]


def grid(features: int, limit: int | None = None) -> list[int]:
    """Return the numbers of features to try."""
    top = features if limit is None else min(features, limit)
    return [k for k in GRID if k < top] + ([top] if top <= GRID[-1] else [])


def splits(cv: Any, y: Indices, seed: int) -> list[tuple[Indices, Indices]]:
    """Return the inner splits: five stratified folds, unless told."""
    if cv is None or isinstance(cv, int):
        members = np.bincount(y)
        if members.max() < 2:
            raise ValueError(
                "y: expected a class with at least two samples, to cross-validate the number of features and the head;"
                f" got {len(y)} samples of {len(members)} classes. Give n_features_to_select a number and head a name"
            )
        folds = 5 if cv is None else cv
        folds = max(2, min(folds, int(members.max())))
        cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # it is then absent from some folds
        return list(check_cv(cv, y, classifier=True).split(np.zeros((len(y), 1)), y))


def choose(
    folds: Iterable[Fold], counts: Sequence[int], heads: Sequence[str], weight: Floats, slow: Sequence[str] = ()
) -> Choice:
    """Pick the fewest features that are not worse than the best by more than one standard error, and their head.

    The standard error is that of the paired difference: both are judged on the same held-out samples. The heads in
    `slow` are tried at the number of features that the others chose, and taken if they are better there.
    """
    folds = list(folds)
    held = np.concatenate([fold.held_out for fold in folds])
    w = weight[held] / weight[held].sum()
    quick = [head for head in heads if head not in slow] or list(heads)

    def tried(head: str, count: int) -> Floats:
        return np.concatenate([fold.correct(head, count) for fold in folds]).astype(np.float64)

    samples = weight[np.unique(held)].sum()  # a sample that was held out many times is one sample

    hits: dict[tuple[int, str], Floats] = {}
    accuracy: dict[tuple[int, str], float] = {}

    def best() -> tuple[int, str]:
        return max(accuracy, key=lambda key: (accuracy[key], -key[0]))

    def near(key: tuple[int, str]) -> bool:
        loss = hits[best()] - hits[key]
        mean = float(w @ loss)
        error = np.sqrt(max(float(w @ np.square(loss)) - mean * mean, 0.0) / samples)
        return bool(mean <= error)

    worse = 0
    for count in counts:
        for head in quick:
            if head != "gaussian" or count <= GAUSSIAN_LIMIT or len(quick) == 1:
                hits[count, head] = tried(head, count)
                accuracy[count, head] = float(w @ hits[count, head])
        worse = 0 if any(near(key) for key in hits if key[0] == count) else worse + 1
        if worse >= PATIENCE and best()[0] < count:
            break
    count = min(key[0] for key in hits if near(key))
    head = max((key for key in hits if key[0] == count), key=accuracy.__getitem__)[1]
    for other in heads:
        if other not in quick:
            accuracy[count, other] = float(w @ tried(other, count))
            if accuracy[count, other] > accuracy[count, head]:
                head = other
    path: dict[str, list[Any]] = {"n_features": [], "head": [], "accuracy": [], "standard_error": []}
    for (k, name), value in sorted(accuracy.items()):
        path["n_features"].append(k)
        path["head"].append(name)
        path["accuracy"].append(value)
        path["standard_error"].append(float(np.sqrt(max(value * (1.0 - value), 0.0) / samples)))
    return Choice(count, head, path)
