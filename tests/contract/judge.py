"""The verdict on one result, and how close is close enough."""

from __future__ import annotations

import math

import numpy as np

from .registry import Axes, Case


def members(Y: np.ndarray, axis: Axes) -> int:
    axes = (axis,) if isinstance(axis, int) else axis
    return math.prod(Y.shape[a] for a in axes)


def eps(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).eps)


def rounding(dtype: np.dtype, members: int) -> float:
    """The error allowed, as a part of the largest entry: a few units in the last place of the result's own dtype, and
    in double precision what sums of that many members lose, whose rounding is that of a random walk."""
    return 4 * eps(dtype) + (4 + math.sqrt(members)) * eps(np.dtype(np.float64))


def assert_close(
    case: Case, X: np.ndarray, expected: np.ndarray, Y: np.ndarray, axis: Axes = 0, *, note: str = ""
) -> None:
    """X equals the expected result of projecting Y, to rounding at the scale of Y."""
    inside = members(Y, axis) if case.groups else Y.size
    allowed = rounding(X.dtype, inside) * float(np.abs(Y.astype(expected.dtype)).max(initial=0.0))
    if case.ball == "bilevel_l11":  # each radius is a difference of sums, which are rounded
        sums = np.abs(Y).astype(np.longdouble).sum(axis=axis)  # which may be beyond the largest double
        allowed += float(2 * eps(np.dtype(np.float64)) * sums.max(initial=0.0))
    allowed += float(np.finfo(X.dtype).smallest_subnormal)
    worst = float(np.abs(X.astype(expected.dtype) - expected).max(initial=0.0))
    assert worst <= allowed, f"{note}: off by {worst:.3g}, allowed {allowed:.3g}"


def assert_feasible(case: Case, X: np.ndarray, radius: float, axis: Axes = 0, *, note: str = "") -> None:
    norm = case.wide_norm(X, axis)
    bound = np.longdouble(radius) * (1 + 4 * np.longdouble(eps(X.dtype)))
    assert norm <= bound, f"{note}: norm {norm!r} above radius {radius!r} by {norm / radius - 1:.3g}"


def assert_optimal(case: Case, Y: np.ndarray, X: np.ndarray, radius: float, axis: Axes = 0, *, note: str = "") -> None:
    """X is the projection of Y: of its shape and dtype, inside the ball, and with the optimality conditions met."""
    note = f"{case} {Y.dtype} {Y.shape} axis={axis} radius={radius!r} {note}"
    assert type(X) is np.ndarray, note
    assert (X.shape, X.dtype) == (Y.shape, Y.dtype), note
    assert_feasible(case, X, radius, axis, note=note)
    scale = float(np.abs(Y.astype(np.result_type(Y.dtype, np.float64))).max(initial=0.0))
    unit = float(np.finfo(Y.dtype).smallest_subnormal) / scale if scale > 0 else 0.0
    residual = case.kkt(Y, X, radius, axis)
    # Below the normal numbers a cap is rounded down by up to one unit, and so is each of the others.
    inside = members(Y, axis) if case.groups else Y.size
    allowed = rounding(Y.dtype, inside) + unit * (X.size // max(members(X, axis), 1))
    assert residual <= allowed, f"{note}: KKT residual {residual:.3g}, allowed {allowed:.3g}"


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
