"""What one would otherwise write: the projections of the family in plain NumPy, with a sort. Groups are columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def threshold(values: Array, radius: Any) -> Any:
    """Sort, cumulate, find the last entry above its line: for each column."""
    Z = np.sort(values, axis=0)[::-1]
    k = np.arange(1, len(Z) + 1, dtype=np.float64).reshape(-1, *[1] * (Z.ndim - 1))
    lines = (np.cumsum(Z, axis=0, dtype=np.float64) - radius) / k
    last = np.count_nonzero(lines < Z, axis=0) - 1
    return np.take_along_axis(lines, np.expand_dims(last, 0), axis=0)[0]


def _shrink(Y: Array, tau: Any) -> Array:
    return np.sign(Y) * np.maximum(np.abs(Y) - np.asarray(tau).astype(Y.dtype), 0)


def project_l1(Y: Array, radius: float) -> Array:
    return _shrink(Y, threshold(np.abs(Y).ravel(), radius))


def project_simplex(Y: Array, radius: float) -> Array:
    return np.maximum(Y - threshold(Y.ravel(), radius).astype(Y.dtype), 0)


def project_l2(Y: Array, radius: float) -> Array:
    return Y * Y.dtype.type(min(radius / np.linalg.norm(Y.ravel()), 1.0))


def project_linf(Y: Array, radius: float) -> Array:
    return np.clip(Y, -radius, radius)


def project_l12(Y: Array, radius: float) -> Array:
    lengths = np.linalg.norm(Y, axis=0)
    theta = threshold(lengths, radius)
    return Y * (np.maximum(lengths - theta, 0) / lengths).astype(Y.dtype)


def project_linf1(Y: Array, radius: float) -> Array:
    A = np.abs(Y)
    return _shrink(Y, np.where(A.sum(axis=0) > radius, threshold(A, radius), 0.0))


def project_linf2(Y: Array, radius: float) -> Array:
    return Y * np.minimum(radius / np.linalg.norm(Y, axis=0), 1.0).astype(Y.dtype)


def bilevel_l1inf(Y: Array, radius: float) -> Array:
    peaks = np.abs(Y).max(axis=0)
    caps = np.maximum(peaks - threshold(peaks, radius), 0).astype(Y.dtype)
    return np.clip(Y, -caps, caps)


def bilevel_l11(Y: Array, radius: float) -> Array:
    A = np.abs(Y)
    sums = A.sum(axis=0)
    left = np.maximum(sums - threshold(sums, radius), 0)
    alive = left > 0
    X = np.zeros_like(Y)
    X[:, alive] = _shrink(Y[:, alive], threshold(A[:, alive], left[alive]))
    return X


PLAIN: dict[str, Callable[[Array, float], Array]] = {
    "l1": project_l1,
    "simplex": project_simplex,
    "l2": project_l2,
    "linf": project_linf,
    "l12": project_l12,
    "linf1": project_linf1,
    "linf2": project_linf2,
    "bilevel_l1inf": bilevel_l1inf,
    "bilevel_l11": bilevel_l11,
    "bilevel_l12": project_l12,
}
