"""How many features, and which head: inner cross-validation over the exact path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax
from sklearn.model_selection import StratifiedKFold, check_cv

__all__ = ["Choice", "Fold", "choose", "grid", "splits"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

GRID = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
EVERY = 1024  # features, up to which all of them are tried too
PATIENCE = 3  # numbers of features in a row that are worse than the best before by two standard errors: the path ends
ENOUGH = 64  # but not before so many: of few features the next ones may do harm where the many help
TOLERANCE = (0.01, 0.02)  # of log-likelihood, for each sample: what one standard error counts for, at least and at most
FLOOR = -3.0  # a sample's log-likelihood at worst: no single one shall decide
TEMPERATURES = np.geomspace(0.25, 16.0, 13)
GAUSSIAN_LIMIT = 512  # features; its time grows with their cube


@dataclass(frozen=True)
class Fold:
    """One inner fold: the rows held out, and the log-probabilities there of a head with the first `count` features."""

    held_out: Indices
    log_proba: Callable[[str, int], Floats]


@dataclass(frozen=True)
class Choice:
    """What was chosen, and all that was tried."""

    count: int
    head: str
    path: dict[str, list[Any]]


def grid(features: int, limit: int | None = None) -> list[int]:
    """Return the numbers of features to try."""
    top = features if limit is None else min(features, limit)
    return [k for k in GRID if k < top] + ([top] if top <= EVERY else [])


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


class _Judge:
    """What was tried, for each number of features and head: right answers, and log-likelihoods, sample by sample."""

    def __init__(self, folds: Iterable[Fold], y: Indices, weight: Floats) -> None:
        self._folds = list(folds)
        held = np.concatenate([fold.held_out for fold in self._folds])
        self._y = y[held]
        self.weight = weight[held] / weight[held].sum()
        self.samples = weight[np.unique(held)].sum()  # a sample that was held out many times is one sample
        self.hits: dict[tuple[int, str], Floats] = {}
        self.likelihood: dict[tuple[int, str], Floats] = {}

    def hear(self, count: int, head: str) -> None:
        """Try a head."""
        P = np.concatenate([fold.log_proba(head, count) for fold in self._folds])
        self.hits[count, head] = (P.argmax(1) == self._y).astype(np.float64)
        # One temperature for all samples: a head is not judged by how sure of itself it is, which regularisation and
        # the number of features change, but by what it knows.
        P = np.maximum(P, -50.0)
        each = np.arange(len(P))
        tempered = [log_softmax(t * P, axis=1)[each, self._y] for t in TEMPERATURES]
        self.likelihood[count, head] = np.maximum(max(tempered, key=self.mean), FLOOR)

    def mean(self, values: Floats) -> float:
        """Return the weighted mean."""
        return float(self.weight @ values)

    def apart(self, better: Floats, worse: Floats) -> tuple[float, float]:
        """Return the mean difference on the same samples, and its standard error."""
        mean = self.mean(better - worse)
        return mean, float(np.sqrt(max(self.mean(np.square(better - worse)) - mean * mean, 0.0) / self.samples))

    def near(self, values: Floats, best: Floats) -> bool:
        """Whether values are worse than the best by no more than one standard error, within the tolerance."""
        mean, error = self.apart(best, values)
        return mean <= min(max(error, TOLERANCE[0]), TOLERANCE[1])

    def best(self, judged: dict[tuple[int, str], Floats], head: str) -> tuple[int, str]:
        """Return where a head is best; of equals, with the fewest features."""
        return max((key for key in judged if key[1] == head), key=lambda key: (self.mean(judged[key]), -key[0]))


def choose(
    folds: Iterable[Fold],
    counts: Sequence[int],
    heads: Sequence[str],
    y: Indices,
    weight: Floats,
    slow: Sequence[str] = (),
) -> Choice:
    """Pick a head, and the fewest features with which it is hardly worse than at its best.

    The heads stand from the simple to the others; one is left for the next if that gives more right answers, by more
    than one standard error of the paired difference, each where it is best. The number of features is judged by the
    log-likelihood of the held-out samples, which tells more than right and wrong where they are few: the fewest that
    are worse than the best by no more than one standard error, within `TOLERANCE`, alone and together with their
    neighbours on the path, which are nearly the same features; and all between them and the best are so too, for
    among many small numbers one may do well by chance. The heads in `slow` are tried at that number only.
    """
    judge = _Judge(folds, y, weight)
    hits, likelihood = judge.hits, judge.likelihood
    quick = [head for head in heads if head not in slow] or list(heads)
    worse = 0
    for count in counts:
        for head in quick:
            if head != "gaussian" or count <= GAUSSIAN_LIMIT or len(quick) == 1:
                judge.hear(count, head)
        best = {head: judge.best(likelihood, head) for head in quick}
        lost = [judge.apart(likelihood[best[key[1]]], likelihood[key]) for key in likelihood if key[0] == count]
        worse = worse + 1 if all(mean > 2.0 * error for mean, error in lost) else 0
        if worse >= PATIENCE and count >= ENOUGH:
            break

    smooth = _smoothed(hits)
    head = quick[0]
    for other in quick[1:]:
        mean, error = judge.apart(smooth[judge.best(smooth, other)], smooth[judge.best(smooth, head)])
        head = other if mean > error else head
    smooth = _smoothed(likelihood)
    top = judge.best(smooth, head)
    count = top[0]
    for key in sorted((key for key in smooth if key[1] == head and key[0] < count), reverse=True):
        if not (judge.near(smooth[key], smooth[top]) and judge.near(likelihood[key], likelihood[top])):
            break
        count = key[0]
    for other in heads:
        if other not in quick:
            judge.hear(count, other)
            mean, error = judge.apart(hits[count, other], hits[count, head])
            head = other if mean > error else head

    path: dict[str, list[Any]] = {
        name: [] for name in ("n_features", "head", "accuracy", "standard_error", "log_likelihood")
    }
    for key in sorted(hits):
        accuracy = judge.mean(hits[key])
        path["n_features"].append(key[0])
        path["head"].append(key[1])
        path["accuracy"].append(accuracy)
        path["standard_error"].append(float(np.sqrt(max(accuracy * (1.0 - accuracy), 0.0) / judge.samples)))
        path["log_likelihood"].append(judge.mean(likelihood[key]))
    return Choice(count, head, path)


def _smoothed(judged: dict[tuple[int, str], Floats]) -> dict[tuple[int, str], Floats]:
    """Return the mean of each number of features, taken twice, and of its neighbours on the path, for each head."""
    smooth = {}
    for name in {key[1] for key in judged}:
        counts = sorted(key[0] for key in judged if key[1] == name)
        for place, count in enumerate(counts):
            around = [count, *counts[max(place - 1, 0) : place + 2]]
            smooth[count, name] = np.asarray(np.mean([judged[k, name] for k in around], axis=0))
    return {key: smooth[key] for key in judged}
