"""What the reference algorithms share: the easy cases before the search, and the clipping after it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def without_search(Y: Matrix, radius: float) -> tuple[Matrix, float] | None:
    """Return the projection and its theta where they need no search, else None.

    A point inside the ball is its own projection, with theta = 0. Onto radius 0 everything goes, and theta is the
    smallest number that no group's l1 norm exceeds.

    >>> without_search(np.array([[1.0], [-2.0]]), 2.0)
    (array([[ 1.],
           [-2.]]), 0.0)
    >>> without_search(np.array([[1.0], [-2.0]]), 1.0) is None
    True
    """
    A = np.abs(Y)
    if A.max(axis=0, initial=0.0).sum() <= radius:
        return Y.copy(), 0.0
    if radius == 0.0:
        return np.zeros_like(Y), float(A.sum(axis=0).max())
    return None


def clip(Y: Matrix, mu: Matrix) -> Matrix:
    """X_ij = sign(Y_ij) min(|Y_ij|, mu_j): the last line of every algorithm.

    >>> clip(np.array([[3.0, -4.0], [1.0, 5.0]]), np.array([2.0, 4.5]))
    array([[ 2. , -4. ],
           [ 1. ,  4.5]])
    """
    X: Matrix = np.copysign(np.minimum(np.abs(Y), mu), Y)
    return X
