"""A ranking that knows what it has: those features come next that tell most of what the ones before leave open."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from normball.estimators._heads import Linear
from normball.estimators._path import ranked
from normball.estimators._selection import GRID

__all__ = ["POOL", "Growth"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

POOL = 1024  # features, the best of the first layer, among which it looks
STRENGTH = 0.01  # of the linear model, as the C of scikit-learn: at 0 the ranking is that of single features

TOLERANCE = 1e-3  # of its fit: only the order of the gradients counts


class Growth:
    """The columns of a table in the order in which they come in, worked out as far as it is asked for.

    It starts from no columns, and goes on in the steps of the grid. In each, a linear model with a strong l2 penalty is
    fitted to the columns so far, and the gradient of its loss is taken for all the others, as if they stood there with
    weight zero; those whose gradient has the largest l1 norm over the classes come in. So a feature that repeats
    what is known comes late, however much it tells by itself.
    """

    def __init__(self, A: Floats, y: Indices, weight: Floats, classes: int) -> None:
        self._A, self._y, self._weight, self._classes = A, y, weight, classes
        self._order = np.zeros(0, np.intp)
        self._targets = np.eye(classes)[y]

    def first(self, count: int) -> Indices:
        """Return the first columns to come in."""
        for target in [*(k for k in GRID if len(self._order) < k < count), count]:
            if target > len(self._order):
                self._grow(target)
        return self._order[:count]

    def _grow(self, count: int) -> None:
        known = self._A[:, self._order]
        guess = self._weight @ self._targets / self._weight.sum()
        if known.shape[1]:
            made = Linear.fit(known, self._y, self._weight, self._classes, STRENGTH, TOLERANCE)
            guess = np.exp(made.log_proba(known))
        left = self._targets - guess
        score = np.abs(self._A.T @ (left * self._weight[:, None])).sum(1)
        score[self._order] = -1.0
        self._order = np.concatenate([self._order, ranked(score)[: count - len(self._order)]])
