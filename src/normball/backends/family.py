"""The family of operators on NumPy arrays, each put together from the steps of `steps.py`.

An operator is a function of a `Call`: it has the result written and returns theta. `operate` prepares the call, in one
way for all of them, and deals with what is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from normball import _core, _validate
from normball._info import OperatorInfo
from normball.backends.steps import DTYPES, Array, Reals, Steps, group_shape, new_like, threshold

__all__ = ["OPERATORS", "aggregate", "caps", "magnitudes", "norm", "operate", "path", "project_box"]


class NotFiniteError(Exception):
    """Some aggregate is NaN or infinite: so is an entry, or finite ones add up to more than a double holds."""


@dataclass(frozen=True)
class Call:
    """What an operator is given."""

    steps: Steps
    radius: Reals  # or scale: one for each problem, of the batch shape
    batch: int  # the batch axes, as a bit mask over those of the groups
    unchecked: bool = False  # make NaN what holds NaN, instead of raising
    explains: bool = False  # theta is wanted, even if it takes another read

    @property
    def each(self) -> Reals:
        """The radius for each group."""
        shape = self.steps.shape
        inner = [n if self.batch >> axis & 1 else 1 for axis, n in enumerate(shape)]
        return np.broadcast_to(self.radius.reshape(inner), shape)

    def aggregate(self, kind: str) -> Reals:
        """One number for each group."""
        return self.sound(self.steps.aggregate(kind))

    def sound(self, values: Reals) -> Reals:
        """Return numbers that are all finite; or NaN throughout each problem where one is not."""
        bad = ~np.isfinite(values)
        if not bad.any():
            return values
        if not self.unchecked:
            raise NotFiniteError
        others = tuple(axis for axis in range(values.ndim) if not self.batch >> axis & 1)
        return np.where(bad.any(axis=others, keepdims=True), np.nan, values)

    def thresholds(self, radii: Reals, write: str, *, signed: bool = False) -> Reals:
        """Solve for each group and write."""
        taus, finite = self.steps.thresholds(radii, write, signed=signed)
        if not finite:
            if not self.unchecked:
                raise NotFiniteError
            taus, _ = self.steps.thresholds(radii, signed=signed, unchecked=True)
            taus = np.where(np.isnan(self.sound(np.where(np.isinf(taus), 0.0, taus))), np.nan, taus)
            self.steps.write(write, taus, tiny=self.steps.tiny(radii))
        return taus

    def share_out(self, values: Reals) -> tuple[Reals, Reals, Reals]:
        """Project the numbers of the groups onto the l1 ball: theta, what is left of each, and where theta is 0."""
        theta = threshold(values, self.radius, self.batch)
        peak = values.max(axis=self._groups, initial=0.0)
        theta = np.where(np.isinf(theta), peak, theta)
        by = self.for_groups(theta)
        return theta, np.maximum(values - by, 0.0), np.broadcast_to(by == 0, values.shape)

    @property
    def _groups(self) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.steps.shape)) if not self.batch >> axis & 1)

    def for_groups(self, theta: Reals) -> Reals:
        """Theta of its problem, for each group."""
        return np.expand_dims(theta, self._groups)


# ---- what the balls need ------------------------------------------------------------------------------------------


def _project_l1(call: Call) -> Reals:
    # What is lost where the radius is 0; read before the result may be written over it.
    peaks = call.steps.aggregate("peak") if (call.radius == 0).any() else np.inf
    return np.minimum(call.thresholds(call.each, "shrink"), peaks)


def _project_simplex(call: Call) -> Reals:
    steps = call.steps
    members = tuple(axis for axis in range(steps.Y.ndim) if steps.axes >> axis & 1)
    peaks = steps.Y.max(axis=members).astype(np.float64) if (call.radius == 0).any() else np.inf
    return np.minimum(call.thresholds(call.each, "shift", signed=True), peaks)


def _lengths(call: Call) -> tuple[Call, Reals, float]:
    """Return the lengths of the groups, and a call with its radius in the same unit, which is returned as well."""
    lengths = call.aggregate("norm2")
    if not 0 < lengths.max(initial=0.0) < _SHORT:
        return call, lengths, 1.0
    # The lengths are subnormal, and would be too coarse.
    steps = call.steps
    longer = Steps(steps.Y * _UP, steps.Y, steps.axes, steps.threads).aggregate("norm2")
    with np.errstate(over="ignore"):
        return replace(call, radius=call.radius * _UP), longer, _UP


def _rounded_in(factors: Reals) -> Reals:
    """Return factors that are not too large where they are subnormal, and so rounded by much."""
    short = (factors > 0) & (factors < _SHORT)
    return np.where(short, np.nextafter(factors, 0.0), factors) if short.any() else factors


def _project_l2(call: Call) -> Reals:
    tiny = call.steps.tiny(call.radius)
    call, lengths, unit = _lengths(call)
    with np.errstate(over="ignore"):
        outside = lengths > call.each * _INSIDE
    factors = _rounded_in(np.divide(call.each, lengths, out=np.ones_like(lengths), where=outside))
    call.steps.write("scale", np.where(np.isnan(lengths), np.nan, factors), tiny=tiny)
    return np.where(outside, lengths - np.where(outside, call.each, 0.0), lengths * 0) / unit


def _project_linf(call: Call) -> Reals:
    peaks = call.aggregate("peak")
    sums = call.steps.aggregate("sum") if call.explains else peaks
    call.steps.write("clip", np.where(np.isnan(peaks), np.nan, call.each))
    return np.where(peaks > call.each, sums - call.steps.left("sum"), 0.0 * peaks) if call.explains else peaks


def _project_l12(call: Call) -> Reals:
    tiny = call.steps.tiny(call.radius)
    call, lengths, unit = _lengths(call)
    theta, left, untouched = call.share_out(lengths)
    factors = _rounded_in(np.divide(left, lengths, out=np.zeros_like(lengths), where=lengths > 0))
    factors = np.where(np.isnan(left), np.nan, np.where(untouched, 1.0, factors))
    call.steps.write("scale", factors, tiny=tiny)
    return theta / unit


def _bilevel_l1inf(call: Call) -> Reals:
    theta, left, untouched = call.share_out(call.aggregate("peak"))
    call.steps.write("clip", np.where(untouched, np.inf, left))
    return theta


def _bilevel_l11(call: Call) -> Reals:
    theta, left, untouched = call.share_out(call.aggregate("sum"))
    left = np.where(untouched, np.inf, left)
    if np.isnan(left).any():
        taus, _ = call.steps.thresholds(np.where(np.isnan(left), 1.0, left), unchecked=True)
        call.steps.write("shrink", np.where(np.isnan(left), np.nan, taus))
    else:
        call.steps.thresholds(left, "shrink")
    return theta


# ---- proximal operators: what the projection onto the ball of the dual norm takes away -----------------------------


def _prox_l1inf(call: Call) -> Reals:
    call.thresholds(call.each, "clip")
    return call.radius


def _prox_l1(call: Call) -> Reals:
    peaks = call.aggregate("peak")
    call.steps.write("shrink", np.where(np.isnan(peaks), np.nan, call.each))
    return call.radius


def _prox_linf1(call: Call) -> Reals:
    mu, theta = call.steps.caps_l1inf(call.radius, call.batch, call.unchecked)
    if mu is None:
        raise NotFiniteError
    call.steps.write("shrink", mu)
    return theta


def _prox_l12(call: Call) -> Reals:
    call, lengths, unit = _lengths(call)
    left = np.maximum(lengths - call.each, 0.0)
    factors = np.divide(left, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    call.steps.write("scale", np.where(np.isnan(lengths), np.nan, np.where(call.each == 0, 1.0, factors)))
    return call.radius / unit


OPERATORS: dict[str, tuple[Callable[[Call], Reals], str]] = {
    # The function, and the norm inside a group.
    "project_l1": (_project_l1, "sum"),
    "project_simplex": (_project_simplex, "sum"),
    "project_l2": (_project_l2, "norm2"),
    "project_linf": (_project_linf, "peak"),
    "project_l12": (_project_l12, "norm2"),
    "project_linf1": (_project_l1, "sum"),
    "project_linf2": (_project_l2, "norm2"),
    "bilevel_l1inf": (_bilevel_l1inf, "peak"),
    "bilevel_l11": (_bilevel_l11, "sum"),
    "prox_l1": (_prox_l1, "sum"),
    "prox_l2": (_prox_l12, "norm2"),
    "prox_linf": (_prox_l1inf, "peak"),
    "prox_l1inf": (_prox_l1inf, "peak"),
    "prox_l12": (_prox_l12, "norm2"),
    "prox_linf1": (_prox_linf1, "sum"),
}
# Operators on vectors: each slice along the axes is a problem of its own.
VECTORS = frozenset(
    f"{what}{of}"
    for what, of in product(("project_", "prox_", ""), ("l1", "l2", "linf"))
) | {"project_simplex"}
# Norms: inside a group, and over the groups.
NORMS: dict[str, tuple[str, str | None]] = {
    "l1": ("sum", None),
    "l2": ("norm2", None),
    "linf": ("peak", None),
    "l12": ("norm2", "sum"),
    "linf2": ("norm2", "max"),
}

_INSIDE = 1.0 + 2.0 * float(np.finfo(np.float64).eps)  # norms are known to rounding
_DOWN = 2.0**-100  # keeps the sums of the largest floats finite
_UP, _SHORT = 2.0**200, 1e-290


def operate(
    name: str,
    Y: Any,
    radius: Any,
    axis: _validate.Axis | None,
    batch_axis: _validate.Axis | None,
    out: npt.NDArray[Any] | None,
    check_finite: bool,
    threads: int | None,
    return_info: bool,
    weights: Any = None,
    blank: bool = False,
) -> Any:
    """Apply the operator of this name: see the function of the same name in `normball`. `blank`: `out` is zeros."""
    Y = _validate.array(Y)
    axes, batch = _axes(name, Y, axis, batch_axis)
    radii = _radii(name, radius, group_shape(Y, ~batch))
    heavy = None if weights is None else _validate.weights(weights, Y)
    count = _validate.thread_count(threads)
    if out is not None:
        _validate.output(out, Y)
    X, blank = new_like(Y) if out is None else (out, blank)
    steps = Steps(Y, X, axes, count, blank)
    call = Call(steps, radii, _batch_of_groups(axes, batch, Y.ndim), not check_finite, return_info)
    theta = _apply(name, call, heavy)
    return (X, _info(name, call, theta)) if return_info else X


def path(
    name: str,
    Y: Any,
    radii: Iterable[Any],
    axis: _validate.Axis | None,
    batch_axis: _validate.Axis | None,
    check_finite: bool,
    threads: int | None,
    return_info: bool,
) -> Iterator[Any]:
    """Apply the operator with one radius after another. What one read tells of the groups serves them all."""
    Y = _validate.array(Y)
    axes, batch = _axes(name, Y, axis, batch_axis)
    steps = Steps(Y, Y, axes, _validate.thread_count(threads))
    for radius in radii:
        X, blank = new_like(Y)
        steps.write_to(X, blank)
        steps.reads = 0.0
        each = _radii(name, radius, group_shape(Y, ~batch))
        call = Call(steps, each, _batch_of_groups(axes, batch, Y.ndim), not check_finite, return_info)
        theta = _apply(name, call)
        yield (X, _info(name, call, theta)) if return_info else X


def _apply(name: str, call: Call, weights: Array | None = None) -> Reals:
    """Have the result written; return theta."""
    steps, function = call.steps, OPERATORS[name][0]
    if steps.Y.size == 0:
        return np.zeros(call.radius.shape)
    try:
        theta = function(call) if weights is None else _project_weighted(call, weights)
    except NotFiniteError:
        if not np.isfinite(steps.Y).all():
            _validate.not_finite(steps.Y)
        # Finite entries whose sums are not: the whole problem is made smaller.
        small = Steps(steps.Y * _DOWN, np.empty_like(steps.Y), steps.axes, steps.threads)
        with np.errstate(over="ignore"):
            theta = function(replace(call, steps=small, radius=call.radius * _DOWN)) / _DOWN
        steps.put(small.finish() / _DOWN)
    steps.finish()
    return theta


def _info(name: str, call: Call, theta: Reals) -> OperatorInfo:
    theta = np.array(theta, dtype=np.float64)
    mu = call.steps.left(OPERATORS[name][1])
    return OperatorInfo(float(theta) if theta.ndim == 0 else theta, mu, call.steps.reads)


def _radii(name: str, radius: Any, shape: tuple[int, ...]) -> Reals:
    value, values = _validate.radius(radius, shape, "scale" if name.startswith("prox") else "radius")
    radii = np.full(shape, value) if values is None else values
    if name == "project_simplex":
        _validate.finite_radius(radii)
    return radii


def norm(
    name: str,
    Y: Any,
    axis: _validate.Axis | None,
    batch_axis: _validate.Axis | None,
    threads: int | None,
    weights: Any = None,
) -> Any:
    """Return the norm of this name: a float, or an array where there are several problems."""
    kind, outer = NORMS[name]
    if weights is not None:
        Y = _validate.array(Y)
        Y = np.abs(Y).astype(np.float64) * _validate.weights(weights, Y)
    values, groups = aggregate(name if outer is None else "", kind, Y, axis, batch_axis, threads)
    if outer == "sum":
        values = values.sum(axis=groups)
    elif outer == "max":
        values = values.max(axis=groups, initial=0.0)
    return values if values.ndim else float(values)


def aggregate(
    name: str, kind: str, Y: Any, axis: _validate.Axis | None, batch_axis: _validate.Axis | None, threads: int | None
) -> tuple[Reals, tuple[int, ...]]:
    """Return the sum, the peak or the 2-norm of each group, and which of the axes left are not batch axes."""
    Y = _validate.array(Y)
    axes, batch = _axes(name, Y, axis, batch_axis)
    values = Steps(Y, Y, axes, _validate.thread_count(threads)).aggregate(kind)
    inner = _batch_of_groups(axes, batch, Y.ndim)
    return values, tuple(a for a in range(values.ndim) if not inner >> a & 1)


def magnitudes(
    Y: Any, axis: _validate.Axis | None, batch_axis: _validate.Axis | None
) -> tuple[Reals, tuple[int, ...]]:
    """Return the magnitude of every entry, and which of the axes are not batch axes."""
    Y = _validate.array(Y)
    axes, _ = _validate.vector_axes(Y.ndim, axis, batch_axis)
    return np.abs(Y).astype(np.float64), tuple(a for a in range(Y.ndim) if axes >> a & 1)


def project_box(Y: Any, lower: Any, upper: Any, out: Array | None, check_finite: bool) -> Array:
    """See `normball.project_box`."""
    Y = _validate.array(Y)
    _validate.real(Y)
    low, high = _validate.bounds(lower, upper, Y)
    if out is not None:
        _validate.output(out, Y)
    if check_finite and not np.isfinite(Y).all():
        _validate.not_finite(Y)
    native = Y.dtype.newbyteorder("=")
    with np.errstate(over="ignore"):
        a, b = low.astype(native), high.astype(native)
    a = np.where(a < low, np.nextafter(a, native.type(np.inf)), a)  # a bound that is not in the dtype: into the box
    b = np.where(b > high, np.nextafter(b, native.type(-np.inf)), b)
    X = np.empty_like(Y, subok=False) if out is None else out
    return np.clip(Y, a, b, out=X)


def caps(Y: Any, theta: Any, axis: _validate.Axis, batch_axis: _validate.Axis | None, threads: int | None) -> Reals:
    """Return the cap at which each group would lose theta, 0 where it has no more than that to lose."""
    Y = _validate.array(Y)
    axes, batch = _axes("prox_l1inf", Y, axis, batch_axis)
    if Y.size == 0:
        return np.zeros(group_shape(Y, axes))
    steps = Steps(Y, Y, axes, _validate.thread_count(threads))
    each = _radii("prox_l1inf", theta, group_shape(Y, ~batch))
    taus = steps.thresholds(Call(steps, each, _batch_of_groups(axes, batch, Y.ndim)).each)[0]
    return np.minimum(taus, steps.aggregate("peak")) if np.isinf(taus).any() else taus  # infinite where theta is 0


def _axes(
    name: str, Y: Array, axis: _validate.Axis | None, batch_axis: _validate.Axis | None
) -> tuple[int, int]:
    if name == "project_simplex":
        _validate.real(Y)
    if name in VECTORS:
        return _validate.vector_axes(Y.ndim, axis, batch_axis)
    return _validate.axes(Y.ndim, axis, batch_axis)  # type: ignore[arg-type]


def _batch_of_groups(axes: int, batch: int, ndim: int) -> int:
    """Return the batch axes as a bit mask over the axes that remain of the groups."""
    groups = [axis for axis in range(ndim) if not axes >> axis & 1]
    return sum(1 << i for i, axis in enumerate(groups) if batch >> axis & 1)


def _project_weighted(call: Call, weights: Array) -> Reals:
    """Project onto the weighted l1 ball, by way of copies with the vectors in rows."""
    steps = call.steps
    members = [axis for axis in range(steps.Y.ndim) if steps.axes >> axis & 1]
    last = range(steps.Y.ndim - len(members), steps.Y.ndim)
    native = steps.Y.dtype.newbyteorder("=")

    def rows(array: Array, dtype: Any) -> Array:
        moved = np.moveaxis(array, members, last)
        length = math.prod(moved.shape[i] for i in last)
        return np.ascontiguousarray(moved.reshape(-1, length), dtype=dtype)

    Y, W = rows(steps.Y, native), rows(weights, np.float64)
    X, taus = np.empty_like(Y), np.zeros(len(Y))
    radii = np.ascontiguousarray(call.each, dtype=np.float64).ravel()
    finite = _core.weighted_thresholds(Y, X, W, DTYPES[native.char], not call.unchecked, radii, taus)
    if not finite and not call.unchecked:
        raise NotFiniteError
    shape = np.moveaxis(steps.Y, members, last).shape
    steps.put(np.moveaxis(X.reshape(shape), last, members))
    return taus.reshape(steps.shape)
