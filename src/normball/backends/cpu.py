"""NumPy arrays, and whatever becomes one, through the C++ core."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from normball import _core, _validate
from normball._info import ProjectionInfo
from normball.backends.family import aggregate, caps, magnitudes, norm, operate, path, project_box
from normball.backends.steps import DTYPES, can_write, group_shape, is_plain, new_like

__all__ = [
    "METHODS",
    "aggregate",
    "caps",
    "eps",
    "magnitudes",
    "norm",
    "norms",
    "operate",
    "path",
    "project_box",
    "project_l1inf",
]

METHODS = {
    name: code
    for code, name in enumerate(("newton", "inverse_total_order", "total_order", "active_set", "semismooth_newton"))
}

# The core writes the caps in the real dtype of the result; those of half precision in double.
_CAPS = {"e": "d", "f": "f", "d": "d", "F": "f", "D": "d"}


def project_l1inf(
    Y: Any,
    radius: Any,
    axis: _validate.Axis,
    batch_axis: _validate.Axis | None,
    method: str,
    out: npt.NDArray[Any] | None,
    check_finite: bool,
    threads: int | None,
    warm_start: ProjectionInfo | None,
    return_info: bool,
    radius_name: str = "radius",
    blank: bool = False,
) -> Any:
    """See `normball.project_l1inf`. `blank` says that `out` is zeros, as yet."""
    Y = _validate.array(Y)
    axes, batch = _validate.axes(Y.ndim, axis, batch_axis)
    batch_shape = group_shape(Y, ~batch) if batch else ()
    value, values = _validate.radius(radius, batch_shape, radius_name)
    if not isinstance(method, str) or method not in METHODS:
        _validate.unknown("method", method, tuple(METHODS))
    count = _validate.thread_count(threads)
    if out is not None:
        _validate.output(out, Y)
    dtype = Y.dtype.char
    theta: npt.NDArray[np.float64] | None = None
    mu: npt.NDArray[Any] | None = None
    old_theta = old_mu = None
    if return_info or warm_start is not None:
        groups = group_shape(Y, axes)
        if warm_start is not None:
            old_theta, old_mu = _validate.warm_start(warm_start, groups, batch_shape)
        if return_info:
            theta, mu = np.zeros(batch_shape), np.zeros(groups, _CAPS[dtype])

    X, blank = new_like(Y) if out is None else (out, blank)
    tally = (0, 0, 0.0, 0)
    if Y.size:
        source = Y if is_plain(Y) else Y.astype(Y.dtype.newbyteorder("="))
        fits = source is Y if out is None else can_write(X, source)
        target = X if fits else np.empty_like(source)
        result = _core.project_l1inf(
            source, target, DTYPES[dtype], axes, batch, value, values, METHODS[method], check_finite, count,
            theta, mu, old_theta, old_mu, blank and target is X,
        )  # fmt: skip
        if result is None:
            _validate.not_finite(Y)
        tally = result
        if target is not X:
            X[...] = target
    if theta is None or mu is None:
        return X
    info = ProjectionInfo(
        theta=theta if batch else float(theta),
        mu=mu if dtype != "e" else mu.astype(np.float16),
        clipped=tally[0],
        kept=tally[1],
        reads=tally[2],
        order_steps=tally[3] if method == "inverse_total_order" else None,
    )
    return X, info


def norms(
    Y: Any, axis: _validate.Axis, batch_axis: _validate.Axis | None, threads: int | None
) -> tuple[Any, Any]:
    """Sum of the group maxima and largest group sum: floats, or arrays of the batch shape."""
    Y = _validate.array(Y)
    axes, batch = _validate.axes(Y.ndim, axis, batch_axis)
    shape = group_shape(Y, ~batch) if batch else ()
    l1inf, linf1 = np.zeros(shape), np.zeros(shape)
    if Y.size:
        source = Y if is_plain(Y) else Y.astype(Y.dtype.newbyteorder("="))
        _core.norms(source, DTYPES[Y.dtype.char], axes, batch, _validate.thread_count(threads), l1inf, linf1)
    return (l1inf, linf1) if batch_axis is not None else (float(l1inf), float(linf1))


def eps(Y: Any) -> float:
    """Return the unit of rounding of the result of projecting `Y`."""
    dtype = np.asarray(Y).dtype
    return float(np.finfo(dtype if dtype.kind in "fc" else np.float64).eps)
