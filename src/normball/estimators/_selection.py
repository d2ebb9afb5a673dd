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
TOLERANCE = 0.01  # of accuracy
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
    """Pick the fewest features that are hardly worse than the best, and their head.

    Hardly worse, alone and together with its neighbours on the path, which are nearly the same features: by no more
    than one standard error of the paired difference, both being judged on the same held-out samples, and by no more
    than `TOLERANCE`, because a standard error of few samples is large. The heads in `slow` are tried at the number of
    features that the others chose, and taken if they are better there.
    """
    folds = list(folds)
    held = np.concatenate([fold.held_out for fold in folds])
    w = weight[held] / weight[held].sum()
    samples = weight[np.unique(held)].sum()  # a sample that was held out many times is one sample
    quick = [head for head in heads if head not in slow] or list(heads)

    def tried(head: str, count: int) -> Floats:
        return np.concatenate([fold.correct(head, count) for fold in folds]).astype(np.float64)

    def near(judged: dict[tuple[int, str], Floats], key: tuple[int, str], best: tuple[int, str]) -> bool:
        loss = judged[best] - judged[key]
        mean = float(w @ loss)
        error = np.sqrt(max(float(w @ np.square(loss)) - mean * mean, 0.0) / samples)
        return bool(mean <= min(error, TOLERANCE))

    hits: dict[tuple[int, str], Floats] = {}
    worse = 0
    for count in counts:
        for head in quick:
            if head != "gaussian" or count <= GAUSSIAN_LIMIT or len(quick) == 1:
                hits[count, head] = tried(head, count)
        best = _best(hits, w)
        worse = 0 if any(near(hits, key, best) for key in hits if key[0] == count) else worse + 1
        if worse >= PATIENCE and best[0] < count:
            break
    smooth = _smoothed(hits)
    best = _best(smooth, w)
    count = min(key[0] for key in smooth if near(smooth, key, best) and near(hits, key, best))
    accuracy = {key: float(w @ hit) for key, hit in hits.items()}
    head = max((key for key in smooth if key[0] == count), key=lambda key: float(w @ smooth[key]))[1]
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


def _best(judged: dict[tuple[int, str], Floats], w: Floats) -> tuple[int, str]:
    return max(judged, key=lambda key: (float(w @ judged[key]), -key[0]))


def _smoothed(hits: dict[tuple[int, str], Floats]) -> dict[tuple[int, str], Floats]:
    """Return the mean of each number of features, taken twice, and of its neighbours on the path, for each head."""
    smooth = {}
    for name in {key[1] for key in hits}:
        counts = sorted(key[0] for key in hits if key[1] == name)
        for place, count in enumerate(counts):
            around = [count, *counts[max(place - 1, 0) : place + 2]]
            smooth[count, name] = np.asarray(np.mean([hits[k, name] for k in around], axis=0))
    return {key: smooth[key] for key in hits}
