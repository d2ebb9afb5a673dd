"""Logistic regression with an l1 penalty on wide tables: solved on few columns, and right for all of them.

At the solution most columns are zero, and a column may stay zero as long as its gradient is small. So the solver sees
the columns that might not be zero; then the gradients of all the others are looked at, and those that are too large
join. What comes out solves the problem with all the columns, and no second table is made.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from normball.estimators._rows import moments

__all__ = ["L1Model", "l1_path"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

FIRST = 64  # columns that the solver sees at once, beside those that are not zero
MORE = 64  # columns that join at a time
SLACK = 1e-3  # of the largest gradient that a zero column may have


@dataclass(frozen=True)
class L1Model:
    """One against the rest: for each class a coefficient for each of some columns, and an intercept."""

    columns: Indices
    coef: Floats
    intercept: Floats

    def proba(self, X: Any, rows: Any = slice(None)) -> Floats:
        """Return the probabilities for some rows, as scikit-learn's one-against-the-rest does."""
        each = expit(np.asarray(X[:, self.columns][rows], dtype=np.float64) @ self.coef.T + self.intercept)
        if each.shape[1] == 1:
            return np.hstack([1.0 - each, each])
        total = each.sum(1, keepdims=True)
        return np.asarray(np.where(total > 0, each / np.where(total > 0, total, 1.0), 1.0 / each.shape[1]))


class _Problem:
    """A table, some of its rows, standardised by their own moments."""

    def __init__(self, X: Any, rows: Indices) -> None:
        self.X, self.rows = X, rows
        self.mean, self.scale = moments(X, rows, np.ones(len(X)))

    def gradient(self, residual: Floats) -> Floats:
        whole = np.zeros(len(self.X), self.X.dtype)
        whole[self.rows] = residual
        return np.asarray((whole @ self.X - self.mean * residual.sum()) / self.scale, dtype=np.float64)

    def columns(self, which: Indices) -> Floats:
        part = self.X[:, which][self.rows].astype(np.float64)
        return np.asarray((part - self.mean[which]) / self.scale[which])


def _solve(problem: _Problem, target: npt.NDArray[np.bool_], C: float, warm: Indices) -> tuple[Indices, Floats, float]:
    """Return the columns that are not zero, their coefficients and the intercept."""
    steep = np.abs(problem.gradient(target - target.mean()))
    work = np.union1d(warm, np.argsort(-steep, kind="stable")[:FIRST])
    while True:
        Z = problem.columns(work)
        # A wide intercept column is hardly penalised.
        model = LogisticRegression(
            C=C, l1_ratio=1.0, solver="liblinear", intercept_scaling=10.0, max_iter=200, tol=1e-4, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(Z, target)
        coef, intercept = model.coef_[0], float(model.intercept_[0])
        steep = C * np.abs(problem.gradient(target - expit(Z @ coef + intercept)))
        steep[work] = 0.0
        wrong = np.flatnonzero(steep > 1.0 + SLACK)
        if not len(wrong):
            used = coef != 0.0
            return work[used], coef[used], intercept
        work = np.union1d(work, wrong[np.argsort(-steep[wrong], kind="stable")[:MORE]])


def l1_path(X: Any, y: Indices, classes: int, rows: Indices, strengths: Sequence[float]) -> list[L1Model]:
    """Fit to some rows, for each strength: multiples of the least C that leaves a coefficient."""
    problem = _Problem(X, rows)
    targets = [y[rows] == k for k in ((1,) if classes == 2 else range(classes))]
    found: list[list[tuple[Indices, Floats, float]]] = []
    for target in targets:
        least = 1.0 / max(float(np.abs(problem.gradient(target - target.mean())).max()), 1e-12)
        warm = np.zeros(0, np.intp)
        found.append([])
        for strength in strengths:
            found[-1].append(_solve(problem, target, strength * least, warm))
            warm = found[-1][-1][0]
    models = []
    for solved in zip(*found, strict=True):
        columns = np.unique(np.concatenate([used for used, _, _ in solved]))
        coef = np.zeros((len(targets), len(columns)))
        for row, (used, values, _) in zip(coef, solved, strict=True):
            row[np.searchsorted(columns, used)] = values
        coef /= problem.scale[columns]
        intercept = np.array([value for _, _, value in solved]) - coef @ problem.mean[columns]
        models.append(L1Model(columns, coef, intercept))
    return models
