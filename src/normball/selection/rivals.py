"""The simple methods that an honest tool runs beside its own, each tuned inside the training part alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from normball.selection._l1 import l1_path
from normball.selection.statistics import univariate

__all__ = ["RIVALS", "Rival"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Splits = list[tuple[Indices, Indices]]

STRENGTHS = (1.5, 2.5, 4.0, 7.0, 12.0, 25.0)
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
PENALTIES = (0.1, 1.0)
TREES = 200
LEAVES = (1, 5)


@dataclass(frozen=True)
class Rival:
    """A fitted rival: the probabilities of the classes, and how many features it reads."""

    proba: Callable[[Any], Floats]
    n_features: int


def _right(proba: Floats, y: Indices) -> float:
    return float((proba.argmax(1) == y).mean())


def _l1(X: Any, y: Indices, classes: int, splits: Splits, seed: int) -> Rival:
    hits = np.zeros(len(STRENGTHS))
    for train, held_out in splits:
        models = l1_path(X, y, classes, train, STRENGTHS)
        hits += [_right(model.proba(X, held_out), y[held_out]) for model in models]
    best = int(hits.argmax())  # of equals the first, with the fewest features
    model = l1_path(X, y, classes, np.arange(len(y)), STRENGTHS[: best + 1])[-1]
    return Rival(model.proba, len(model.columns))


def _logistic(C: float) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=300))


def _aligned(model: Any, X: Floats, classes: int) -> Floats:
    """Probabilities with a column for each class, of a model that may not have seen all of them."""
    proba = np.zeros((len(X), classes))
    proba[:, model.classes_] = model.predict_proba(X)
    return proba


def _anova(X: Any, y: Indices, classes: int, splits: Splits, seed: int) -> Rival:
    counts = [k for k in COUNTS if k < X.shape[1]] or [X.shape[1]]

    def best_columns(rows: Any) -> Indices:
        return np.argsort(-univariate(X, y, classes, rows)["F"], kind="stable")[: counts[-1]]

    hits = np.zeros((len(counts), len(PENALTIES)))
    for train, held_out in splits:
        order = best_columns(train)
        A, B = (np.asarray(X[:, order][rows], np.float64) for rows in (train, held_out))
        for i, k in enumerate(counts):
            for j, C in enumerate(PENALTIES):
                model = _logistic(C).fit(A[:, :k], y[train])
                hits[i, j] += _right(_aligned(model, B[:, :k], classes), y[held_out])
    number, penalty = divmod(int(hits.argmax()), len(PENALTIES))
    chosen = best_columns(slice(None))[: counts[number]]
    model = _logistic(PENALTIES[penalty]).fit(np.asarray(X[:, chosen], np.float64), y)
    return Rival(lambda B: _aligned(model, np.asarray(B[:, chosen], np.float64), classes), len(chosen))


def _forest(X: Any, y: Indices, classes: int, splits: Splits, seed: int) -> Rival:
    tried = [
        RandomForestClassifier(
            TREES // 2, min_samples_leaf=leaf, oob_score=True, random_state=seed, warm_start=True
        ).fit(X, y)
        for leaf in LEAVES
    ]
    forest = max(tried, key=lambda each: each.oob_score_)
    forest.set_params(n_estimators=TREES, oob_score=False).fit(X, y)  # the better one, with as many trees again
    return Rival(lambda B: _aligned(forest, B, classes), int((forest.feature_importances_ > 0).sum()))


# By the name that reports show. Each is given a table without gaps, labels as numbers, their number, inner splits and a
# seed.
RIVALS: dict[str, Callable[[Any, Indices, int, Splits, int], Rival]] = {
    "L1 logistic": _l1,
    "ANOVA + logistic": _anova,
    "random forest": _forest,
}
