"""The judge: the projection in exact rational arithmetic, and the optimality conditions as a number.

It shares nothing with the algorithms beside it. Every float is an integer multiple of one power of two, so sums and
breakpoints are Python integers and theta is a fraction: the answer is the true one, rounded once at the end.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Axes = int | tuple[int, ...]


class ExactCaps:
    """The exact theta and caps of a matrix A >= 0 whose columns are groups, for any radius below its norm.

    >>> theta, mu = ExactCaps(np.array([[3.0, 1.0], [2.0, 0.5]])).solve(2.0)
    >>> theta, mu
    (Fraction(5, 4), [Fraction(15, 8), Fraction(1, 8)])
    """

    def __init__(self, A: NDArray[np.float64]) -> None:
        mantissa, exponent = np.frexp(A)
        lowest = int(exponent[A > 0].min(initial=exponent.max(initial=0)))
        self.unit = Fraction(2) ** (lowest - 53)
        self.sums: list[list[int]] = []  # per column: the sum of its k greatest, k = 1 .. n
        self.joins: list[list[int]] = []  # per column: the theta above which its k-th greatest is clipped
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        shift = np.where(A > 0, exponent - lowest, 0)
        for column, by in zip(whole.T.tolist(), shift.T.tolist(), strict=True):
            Z = sorted((w << s for w, s in zip(column, by, strict=True)), reverse=True)
            S = list(accumulate(Z))
            self.sums.append(S)
            self.joins.append([s - k * z for k, (s, z) in enumerate(zip(S, Z, strict=True), 1)])
        self.breakpoints = sorted({t for column in self.joins for t in column} | {S[-1] for S in self.sums})

    def solve(self, radius: float) -> tuple[Fraction, list[Fraction]]:
        """Theta and the caps; the radius must be positive and below the norm."""
        C = Fraction(radius) / self.unit
        # g falls: the last breakpoint where it still reaches the radius opens theta's linear piece.
        first_below = bisect_left(self.breakpoints, True, key=lambda t: self._cap_sum(t) < C)
        piece = self.breakpoints[first_below - 1]
        active = [j for j, S in enumerate(self.sums) if S[-1] > piece]
        k = {j: bisect_right(self.joins[j], piece) for j in active}
        by_count: dict[int, tuple[int, int]] = {}
        for j in active:
            total, columns = by_count.get(k[j], (0, 0))
            by_count[k[j]] = (total + self.sums[j][k[j] - 1], columns + 1)
        top = sum((Fraction(total, count) for count, (total, _) in by_count.items()), Fraction(0))
        bottom = sum((Fraction(columns, count) for count, (_, columns) in by_count.items()), Fraction(0))
        theta = (top - C) / bottom
        mu = [Fraction(0)] * len(self.sums)
        for j in active:
            mu[j] = (self.sums[j][k[j] - 1] - theta) / k[j] * self.unit
        return theta * self.unit, mu

    def _cap_sum(self, theta: int) -> Fraction:
        """g(theta) = sum_j mu_j(theta)."""
        by_count: dict[int, int] = {}
        for S, joins in zip(self.sums, self.joins, strict=True):
            if S[-1] > theta:
                k = bisect_right(joins, theta)
                by_count[k] = by_count.get(k, 0) + S[k - 1] - theta
        return sum((Fraction(total, k) for k, total in by_count.items()), Fraction(0))


def project_l1inf(Y: ArrayLike, radius: float, axis: Axes = 0) -> tuple[NDArray[Any], float]:
    """Project a real or complex array; return X, rounded once to double precision, and theta.

    >>> project_l1inf([[3.0, -1.0], [2.0, 0.5]], 2.0)
    (array([[ 1.875, -0.125],
           [ 1.875,  0.125]]), 1.25)
    """
    Y = np.asarray(Y)
    Y = Y.astype(np.complex128 if Y.dtype.kind == "c" else np.float64)
    columns = _as_columns(Y, axis)
    A = np.abs(columns)
    if _exceeds(A.max(axis=0, initial=0.0), radius) <= 0:
        return Y, 0.0
    if radius == 0.0:
        return np.zeros_like(Y), max(math.fsum(column) for column in A.T)
    theta, mu = ExactCaps(A).solve(radius)
    caps = np.array([float(cap) for cap in mu])
    return _clip(Y, np.expand_dims(caps.reshape(_group_shape(Y, axis)), _axes(Y, axis))), _as_float(theta)


def kkt_residual(Y: ArrayLike, X: ArrayLike, radius: float, axis: Axes = 0) -> float:
    """How far X is from being the projection of Y: the greatest violation of the optimality conditions.

    Everything is told as the distance that a cap would have to move to put it right, measured against ``max |Y|``:
    an excess ``sum_i (|Y_ij| - |X_ij|)`` that differs from theta is spread over the members clipped, a sum of caps that
    differs from the radius over the groups alive. A point inside the ball must come back as it was.

    >>> Y = np.array([[3.0, -1.0], [2.0, 0.5]])
    >>> kkt_residual(Y, [[1.875, -0.125], [1.875, 0.125]], 2.0)
    0.0
    >>> round(kkt_residual(Y, [[1.5, -0.5], [1.5, 0.5]], 2.0), 3)  # on the sphere, but not the nearest point
    0.167
    """
    Y, X = np.asarray(Y), np.asarray(X)
    if Y.shape != X.shape:
        raise ValueError(f"X must have the shape of Y, {Y.shape}, got {X.shape}")
    if Y.size == 0:
        return 0.0
    if not np.isfinite(X).all():
        return math.inf
    wide = np.complex128 if Y.dtype.kind == "c" else np.float64
    Y, X = _as_columns(Y.astype(wide), axis), _as_columns(X.astype(wide), axis)
    interior = _exceeds(np.abs(Y).max(axis=0), radius) <= 0
    if interior and np.array_equal(X, Y):
        return 0.0

    down = int(np.frexp(np.abs(Y).max())[1])  # a power of two brings the largest entry near 1, without rounding
    Y, X, C = _scaled(Y, -down), _scaled(X, -down), math.ldexp(radius, -down)
    A, B = np.abs(Y), np.abs(X)
    scale = float(A.max())
    if interior:
        return float(np.abs(X - Y).max()) / scale if scale > 0 else math.inf

    mu = B.max(axis=0)
    entries = np.abs(X - _clip(Y, mu)).max() / scale
    alive = mu > 0
    norm = abs(math.fsum(mu) - C) / max(int(np.count_nonzero(alive)), 1) / scale
    if not alive.any():
        return float(max(entries, norm))
    excess = np.sum((A - B).astype(np.longdouble), axis=0)
    k = np.maximum(np.count_nonzero(mu < A, axis=0), 1)
    theta = np.sum(excess[alive] / k[alive]) / np.sum(1.0 / k[alive])  # columns with few members clipped tell it best
    common = np.abs(excess[alive] - theta) / k[alive] / scale
    wrongly_zero = [_cap(A[:, j], float(theta)) / scale for j in np.flatnonzero(~alive & (excess > theta))]
    return float(max(entries, norm, common.max(), *wrongly_zero, max(0.0, -float(theta)) / scale))


def _cap(y: NDArray[np.float64], theta: float) -> float:
    """Return the cap that a group should have, for one that has none though its l1 norm exceeds theta."""
    S = np.cumsum(-np.sort(-y), dtype=np.longdouble)
    return float(np.max((S - theta) / np.arange(1, y.size + 1)))


def _clip(Y: NDArray[Any], mu: NDArray[np.float64]) -> NDArray[Any]:
    if Y.dtype.kind != "c":
        clipped: NDArray[Any] = np.copysign(np.minimum(np.abs(Y), mu), Y)
        return clipped
    A = np.abs(Y)
    return np.where(mu < A, Y * (mu / np.where(A > 0, A, 1.0)), Y)


def _as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:  # the sums of a group may exceed the largest float
        return math.inf


def _exceeds(peaks: NDArray[np.float64], radius: float) -> int:
    """Return the sign of ``sum(peaks) - radius``, without rounding or overflow."""
    if math.isinf(radius):
        return -1
    try:
        rounded = math.fsum([*peaks.ravel().tolist(), -radius])  # correctly rounded, so of the right sign
        return (rounded > 0) - (rounded < 0)
    except OverflowError:
        gap = sum((Fraction(peak) for peak in peaks.ravel().tolist()), -Fraction(radius))
        return (gap > 0) - (gap < 0)


def _scaled(Y: NDArray[Any], exponent: int) -> NDArray[Any]:
    if Y.dtype.kind == "c":
        scaled = np.empty_like(Y)
        scaled.real, scaled.imag = np.ldexp(Y.real, exponent), np.ldexp(Y.imag, exponent)
        return scaled
    return np.asarray(np.ldexp(Y, exponent))


def _axes(Y: NDArray[Any], axis: Axes) -> tuple[int, ...]:
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(sorted(a % Y.ndim for a in axes))


def _group_shape(Y: NDArray[Any], axis: Axes) -> tuple[int, ...]:
    return tuple(size for a, size in enumerate(Y.shape) if a not in _axes(Y, axis))


def _as_columns(Y: NDArray[Any], axis: Axes) -> NDArray[Any]:
    axes = _axes(Y, axis)
    moved = np.moveaxis(Y, axes, range(len(axes)))
    return moved.reshape(math.prod(Y.shape[a] for a in axes), math.prod(_group_shape(Y, axis)))
