"""The rest of the family by the textbook: sort, cumulate, compare; in extended precision where the machine has it.

Each projection is a function ``(Y, radius, axis) -> (X, theta)`` of one problem, each norm one ``(Y, axis) -> norm``.
Axes are those of the inner norm; vectors, which have one norm only, take the whole array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAMILY", "Reference", "threshold"]

Axes = int | tuple[int, ...]
Array = NDArray[Any]
Wide = np.longdouble


@dataclass(frozen=True)
class Reference:
    """One ball by the textbook."""

    project: Callable[[Array, float, Axes], tuple[Array, Any]]
    norm: Callable[[Array, Axes], Any]
    groups: bool = True  # else the axis means nothing
    euclidean: bool = True  # the result is the nearest point


def threshold(values: Array, radius: Any) -> Any:
    """Return tau with ``sum(max(values - tau, 0)) = radius``, for each column: the textbook's way, with a sort.

    >>> float(threshold(np.array([3.0, -1.0, 0.5]), 2.0))
    1.0
    """
    Z = -np.sort(-values.astype(Wide), axis=0)
    k = np.arange(1, len(Z) + 1).reshape(-1, *[1] * (Z.ndim - 1))
    # Among all lines through the k largest the true one is the highest.
    return ((np.cumsum(Z, axis=0) - np.asarray(radius, dtype=Wide)) / k).max(axis=0)


def _wide(Y: Array) -> Array:
    return np.asarray(Y).astype(np.clongdouble if np.asarray(Y).dtype.kind == "c" else Wide)


def _rounded(X: Array) -> Array:
    return X.astype(np.complex128 if X.dtype.kind == "c" else np.float64)


def _shrunk(Y: Array, tau: Any) -> Array:
    """Return Y, each entry shorter by tau."""
    A = np.abs(Y)
    return Y * np.where(tau < A, (A - tau) / np.where(A > 0, A, 1), 0)


def _clipped(Y: Array, cap: Any) -> Array:
    A = np.abs(Y)
    return np.where(cap < A, Y * (cap / np.where(A > 0, A, 1)), Y)


def _length(Y: Array, axis: Axes | None) -> Any:
    return np.sqrt(np.sum(np.abs(Y) ** 2, axis=axis, keepdims=axis is not None))


def _onto_l1(A: Array, radius: Any) -> Any:
    """Return the thresholds that take columns of numbers >= 0 onto l1 balls."""
    return np.where(A.sum(axis=0) > radius, np.maximum(threshold(A, radius), 0), 0) if A.size else Wide(0)


def _as_columns(Y: Array, axis: Axes) -> tuple[Array, Callable[[Array], Array]]:
    """Return Y with its groups as columns, and what brings such a matrix back."""
    axes = (axis,) if isinstance(axis, int) else axis
    front = range(len(axes))
    moved = np.moveaxis(Y, axes, front)
    columns = moved.reshape(int(np.prod(moved.shape[: len(axes)])), -1)
    return columns, lambda X: np.moveaxis(X.reshape(moved.shape), front, axes)


def project_l1(Y: Array, radius: float, axis: Axes = 0) -> tuple[Array, Any]:
    """Shrink every entry by one threshold.

    >>> project_l1(np.array([3.0, -1.0, 0.5]), 2.0)[0]
    array([ 2., -0.,  0.])
    """
    Y = _wide(Y)
    tau = _onto_l1(np.abs(Y).ravel(), radius)
    return _rounded(_shrunk(Y, tau)), float(tau)


def project_simplex(Y: Array, radius: float, axis: Axes = 0) -> tuple[Array, Any]:
    """Lower every entry by one number, to zero at most.

    >>> project_simplex(np.array([0.25, -1.0, 0.5]), 1.0)
    (array([0.375, 0.   , 0.625]), -0.125)
    """
    Y = _wide(Y)
    tau = threshold(Y.ravel(), radius)
    return _rounded(np.maximum(Y - tau, 0)), float(tau)


def project_l2(Y: Array, radius: float, axis: Axes = 0) -> tuple[Array, Any]:
    """Scale to the radius.

    >>> project_l2(np.array([3.0, 4.0]), 2.5)
    (array([1.5, 2. ]), 2.5)
    """
    Y = _wide(Y)
    length = _length(Y, None)
    return _rounded(Y * (radius / length) if length > radius else Y), float(max(length - radius, 0))


def project_linf(Y: Array, radius: float, axis: Axes = 0) -> tuple[Array, Any]:
    """Clip every entry.

    >>> project_linf(np.array([3.0, -0.5]), 1.0)
    (array([ 1. , -0.5]), 2.0)
    """
    Y = _wide(Y)
    X = _clipped(Y, Wide(radius))
    return _rounded(X), float(np.sum(np.abs(Y)) - np.sum(np.abs(X)))


def project_l12(Y: Array, radius: float, axis: Axes = 0) -> tuple[Array, Any]:
    """Shorten every group by one length.

    >>> project_l12(np.array([[3.0, 0.5], [4.0, 0.5]]), 2.5)
    (array([[1.5, 0. ],
           [2. , 0. ]]), 2.5)
    """
    Y = _wide(Y)
    lengths = _length(Y, axis)
    theta = _onto_l1(lengths.ravel(), radius)
    left = np.maximum(lengths - theta, 0) / np.where(lengths > 0, lengths, 1)
    return _rounded(Y * left if theta > 0 else Y), float(theta)


def project_linf1(Y: Array, radius: float, axis: Axes = 0) -> tuple[Array, Any]:
    """Project every group onto an l1 ball of its own.

    >>> project_linf1(np.array([[3.0, -0.5], [1.0, 0.5]]), 2.0)[0]
    array([[ 2. , -0.5],
           [ 0. ,  0.5]])
    """
    Y = _wide(Y)
    columns, back = _as_columns(Y, axis)
    taus = _onto_l1(np.abs(columns), radius)
    return _rounded(back(_shrunk(columns, taus))), taus.astype(np.float64).reshape(_group_shape(Y, axis))[()]


def project_linf2(Y: Array, radius: float, axis: Axes = 0) -> tuple[Array, Any]:
    """Project every group onto an l2 ball of its own.

    >>> project_linf2(np.array([[3.0, -0.5], [4.0, 0.5]]), 2.5)[0]
    array([[ 1.5, -0.5],
           [ 2. ,  0.5]])
    """
    Y = _wide(Y)
    lengths = _length(Y, axis)
    X = Y * np.where(lengths > radius, Wide(radius) / np.where(lengths > 0, lengths, 1), 1)
    with np.errstate(over="ignore"):  # a length may be beyond the largest double
        taus = np.maximum(lengths - radius, 0).astype(np.float64)
    return _rounded(X), taus.reshape(_group_shape(Y, axis))[()]


def _group_shape(Y: Array, axis: Axes) -> tuple[int, ...]:
    return np.empty(Y.shape, dtype=bool).any(axis=axis).shape


def bilevel_l1inf(Y: Array, radius: float, axis: Axes = 0) -> tuple[Array, Any]:
    """Project the maxima onto the l1 ball, then clip the groups to them.

    >>> bilevel_l1inf(np.array([[3.0, -0.5], [1.0, 0.5]]), 2.0)[0]
    array([[ 2., -0.],
           [ 1.,  0.]])
    """
    Y = _wide(Y)
    peaks = np.abs(Y).max(axis=axis, keepdims=True)
    theta = _onto_l1(peaks.ravel(), radius)
    return _rounded(_clipped(Y, np.maximum(peaks - theta, 0))), float(theta)


def bilevel_l11(Y: Array, radius: float, axis: Axes = 0) -> tuple[Array, Any]:
    """Project the sums onto the l1 ball, then the groups onto l1 balls of these radii.

    >>> bilevel_l11(np.array([[3.0, -0.5], [1.0, 0.5]]), 2.0)[0]
    array([[ 2., -0.],
           [ 0.,  0.]])
    """
    columns, back = _as_columns(_wide(Y), axis)
    sums = np.abs(columns).sum(axis=0)
    theta = _onto_l1(sums, radius)
    taus = _onto_l1(np.abs(columns), np.maximum(sums - theta, 0) if theta > 0 else sums)
    return _rounded(back(_shrunk(columns, taus))), float(theta)


def _norm(inner: Callable[..., Any], outer: Callable[..., Any]) -> Callable[[Array, Axes], Any]:
    def norm(Y: Array, axis: Axes = 0) -> Any:
        return outer(inner(np.abs(_wide(Y)), axis)) if np.asarray(Y).size else Wide(0)

    return norm


def _sum(A: Array, axis: Axes) -> Any:
    return np.sum(A, axis=axis)


def _two(A: Array, axis: Axes) -> Any:
    return np.sqrt(np.sum(A * A, axis=axis))


def _top(A: Array, axis: Axes) -> Any:
    return np.max(A, axis=axis, initial=0)


def _all(inner: Callable[..., Any]) -> Callable[[Array, Axes], Any]:
    def norm(Y: Array, axis: Axes = 0) -> Any:
        return inner(np.abs(_wide(Y)), tuple(range(np.asarray(Y).ndim)))

    return norm


FAMILY: dict[str, Reference] = {
    "l1": Reference(project_l1, _all(_sum), groups=False),
    "simplex": Reference(project_simplex, _all(_sum), groups=False),
    "l2": Reference(project_l2, _all(_two), groups=False),
    "linf": Reference(project_linf, _all(_top), groups=False),
    "l12": Reference(project_l12, _norm(_two, np.sum)),
    "linf1": Reference(project_linf1, _norm(_sum, np.max)),
    "linf2": Reference(project_linf2, _norm(_two, np.max)),
    "bilevel_l1inf": Reference(bilevel_l1inf, _norm(_top, np.sum), euclidean=False),
    "bilevel_l11": Reference(bilevel_l11, _all(_sum), euclidean=False),
    "bilevel_l12": Reference(project_l12, _norm(_two, np.sum)),
}
