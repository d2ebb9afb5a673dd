"""The exact algorithms in plain Python: slow, short, and to be read beside the papers.

Each module holds one algorithm, a function ``(Y, radius) -> (X, theta)`` of a float64 matrix whose columns are the
groups, in the letters of the paper: Z the sorted members, S their sums, k how many are clipped, mu the caps, theta the
amount that every column left alive gives up. ``oracle`` solves the same problem in exact rational arithmetic.

>>> import numpy as np
>>> sorted(METHODS)
['active_set', 'inverse_total_order', 'newton', 'semismooth_newton', 'total_order']
>>> project_l1inf(np.array([[3.0, -1.0], [2.0, 0.5]]), 2.0)
array([[ 1.875, -0.125],
       [ 1.875,  0.125]])
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normball.reference.active_set import active_set
from normball.reference.inverse_total_order import inverse_total_order
from normball.reference.newton import newton
from normball.reference.semismooth_newton import semismooth_newton
from normball.reference.total_order import total_order

__all__ = ["METHODS", "project_l1inf"]

METHODS: dict[str, Callable[[NDArray[np.float64], float], tuple[NDArray[np.float64], float]]] = {
    "newton": newton,
    "inverse_total_order": inverse_total_order,
    "total_order": total_order,
    "active_set": active_set,
    "semismooth_newton": semismooth_newton,
}


def project_l1inf(
    Y: ArrayLike, radius: float, axis: int | tuple[int, ...] = 0, method: str = "newton"
) -> NDArray[np.float64]:
    """Project a real array of any shape: the axes of the maximum are moved to the front, the rest are the groups.

    >>> project_l1inf([[[4.0, 0.25], [3.0, 0.25]]], 3.0, axis=(0, 1))
    array([[[3., 0.],
            [3., 0.]]])
    """
    Y = np.asarray(Y, dtype=np.float64)
    if Y.size == 0:
        return Y.copy()
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    front = tuple(range(len(axes)))
    moved = np.moveaxis(Y, axes, front)
    columns = moved.reshape(math.prod(moved.shape[: len(axes)]), -1)
    X, _ = METHODS[method](columns, float(radius))
    return np.moveaxis(X.reshape(moved.shape), front, axes)
