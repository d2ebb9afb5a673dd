"""Every check of an argument, and every error message.

A message names the argument, what was expected and what came.
"""

from __future__ import annotations

import math
import operator
import os
import reprlib
from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from normball._info import ProjectionInfo

__all__ = [
    "array",
    "axes",
    "ball",
    "bounds",
    "count",
    "finite_radius",
    "in_place",
    "level_axes",
    "not_finite",
    "output",
    "radius",
    "radius_of_norm",
    "real",
    "thread_count",
    "tolerance",
    "unknown",
    "vector_axes",
    "warm_start",
    "weights",
]

Axis = int | Sequence[int]

_MOST_THREADS = 1024
_SUPPORTED = frozenset("efdFD")  # float16, float32, float64, complex64, complex128


def array(Y: Any, name: str = "Y") -> npt.NDArray[Any]:
    """Return `Y` as an ndarray of a supported dtype: integers become float64, as in NumPy's own means and quotients."""
    if type(Y) is not np.ndarray:
        if isinstance(Y, np.ma.MaskedArray):
            raise TypeError(f"{name}: expected an array without a mask, got a masked array; fill it first")
        by_dlpack = hasattr(Y, "__dlpack__") and not hasattr(Y, "__array__")
        try:
            Y = np.from_dlpack(Y) if by_dlpack else np.asarray(Y)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: expected an array of numbers, got {_brief(Y)}: {error}") from None
    if Y.dtype.char not in _SUPPORTED:
        if Y.dtype.kind not in "biu":
            raise TypeError(
                f"{name}: expected an array of numbers (float16, 32, 64, complex or integer), got {Y.dtype}"
            )
        Y = Y.astype(np.float64)
    if Y.ndim == 0:
        raise ValueError(f"{name}: expected at least one dimension, got a scalar")
    return Y  # type: ignore[no-any-return]


def _brief(value: Any) -> str:
    return f"{type(value).__name__} {reprlib.repr(value)}"


def axes(ndim: int, axis: Axis, batch_axis: Axis | None) -> tuple[int, int]:
    """Return the member and the batch axes as bit masks."""
    if type(axis) is int and batch_axis is None:
        if -ndim <= axis < ndim:
            return 1 << (axis % ndim), 0
        _bad_axis("axis", axis, ndim)
    members = _mask("axis", axis, ndim)
    if members == 0:
        raise ValueError("axis: expected at least one axis, got an empty tuple")
    batch = 0 if batch_axis is None else _mask("batch_axis", batch_axis, ndim)
    if members & batch:
        raise ValueError(f"batch_axis: expected axes other than axis={axis}, got {batch_axis}")
    return members, batch


def vector_axes(ndim: int, axis: Axis | None, batch_axis: Axis | None) -> tuple[int, int]:
    """Return the axes of a vector and those of independent problems as bit masks: all that one is not, the other is."""
    everything = (1 << ndim) - 1
    if axis is None:
        batch = 0 if batch_axis is None else _mask("batch_axis", batch_axis, ndim)
        if batch == everything:
            raise ValueError(f"batch_axis: expected to leave an axis for the vectors, got all {ndim}")
        return everything & ~batch, batch
    members, batch = axes(ndim, axis, batch_axis)
    if batch_axis is not None and members | batch != everything:
        raise ValueError(
            f"batch_axis: expected all the axes other than axis={axis} of an array of {ndim} dimensions, or None, "
            f"got {batch_axis}"
        )
    return members, everything & ~members


def _indices(name: str, axis: Axis) -> tuple[int, ...]:
    try:
        return tuple(map(operator.index, axis)) if isinstance(axis, Sequence) else (operator.index(axis),)
    except TypeError:
        raise TypeError(f"{name}: expected an int or a tuple of ints, got {axis!r}") from None


def _mask(name: str, axis: Axis, ndim: int) -> int:
    mask = 0
    for index in _indices(name, axis):
        if not -ndim <= index < ndim:
            _bad_axis(name, axis, ndim)
        bit = 1 << (index % ndim)
        if mask & bit:
            raise ValueError(f"{name}: expected each axis once, got {axis!r} for an array of {ndim} dimensions")
        mask |= bit
    return mask


def _bad_axis(name: str, axis: Any, ndim: int) -> NoReturn:
    raise ValueError(
        f"{name}: expected axes between {-ndim} and {ndim - 1} for an array of {ndim} dimensions, got {axis!r}"
    )


def radius(
    value: Any, batch_shape: tuple[int, ...], name: str = "radius"
) -> tuple[float, npt.NDArray[np.float64] | None]:
    """Return the radius as a float, or as a contiguous float64 array with one entry for each problem."""
    if type(value) is float or type(value) is int:
        if not value >= 0:
            raise ValueError(f"{name}: expected a number >= 0, got {reprlib.repr(value)}")
        try:
            return float(value), None
        except OverflowError:
            raise ValueError(f"{name}: expected a number that a float holds, got {reprlib.repr(value)}") from None
    try:
        values = np.asarray(value)
        if values.dtype.kind not in "biuf":
            raise TypeError
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected a real number or an array of them, got {_brief(value)}") from None
    if not (values >= 0).all():
        worst = values[~(values >= 0)].flat[0]
        raise ValueError(f"{name}: expected numbers >= 0, got {worst}")
    if values.ndim == 0:
        return float(values), None
    try:
        values = np.ascontiguousarray(np.broadcast_to(values, batch_shape))
    except ValueError:
        raise ValueError(
            f"{name}: expected a number or a shape that broadcasts to the batch {batch_shape}, got {values.shape}"
        ) from None
    return math.nan, values


def ball(radius_: Any, axis: Axis | None) -> None:
    """Raise for a radius or an axis that no array can have. A radius may also be a tensor, or a schedule."""
    if isinstance(radius_, list | tuple | np.ndarray):
        radius(radius_, np.shape(radius_))
    elif radius_ is None or isinstance(radius_, int | float | str | np.generic):
        radius(radius_, ())
    if axis is not None:
        _indices("axis", axis)


def radius_of_norm(value: Any, norm: Any) -> Any:
    """Return a radius that compares with the norm of an array: many of them need as many norms."""
    value = np.asarray(value) if isinstance(value, list | tuple) else value
    if getattr(value, "ndim", 0) > 0 and getattr(norm, "ndim", 0) == 0:
        raise ValueError(f"batch_axis: expected the axes that radii of shape {tuple(value.shape)} are for, got None")
    return value


def tolerance(name: str, value: Any) -> float:
    """Return a tolerance as a float."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected a real number, got {_brief(value)}") from None
    if not number >= 0:
        raise ValueError(f"{name}: expected a number >= 0, got {number}")
    return number


def output(out: Any, Y: npt.NDArray[Any]) -> None:
    """Raise unless the projection of `Y` can be written to `out`."""
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise TypeError(f"out: expected an ndarray without a mask, got {type(out).__name__}")
    if out is not Y:
        if out.shape != Y.shape:
            raise ValueError(f"out: expected shape {Y.shape}, got {out.shape}")
        if out.dtype != Y.dtype:
            raise TypeError(f"out: expected dtype {Y.dtype}, got {out.dtype}")
    if not out.flags.writeable:
        raise ValueError("out: expected a writable array, got a read-only one")
    if not out.flags.forc and out.size > _places(out):
        raise ValueError(f"out: expected an array whose entries do not share memory, got strides {out.strides}")


def in_place(Y: Any) -> None:
    """Raise unless `Y` may be an array, or a tensor, that a projection can be written to."""
    if not hasattr(Y, "dtype"):
        raise TypeError(f"Y: expected an array or a tensor to write to, got {_brief(Y)}")
    if isinstance(Y, np.ndarray) and Y.dtype.kind in "biu":
        raise TypeError(f"Y: expected an array of floating-point numbers to write to, got {Y.dtype}")


def _places(out: npt.NDArray[Any]) -> int:
    """Return how many entries there is room for from the first to the last in memory."""
    reach = sum((n - 1) * abs(step) for n, step in zip(out.shape, out.strides, strict=True))
    return 1 + int(reach) // out.itemsize


def not_finite(Y: npt.NDArray[Any]) -> NoReturn:
    """Raise for an array that holds NaN or infinity, and say where."""
    bad = ~np.isfinite(Y)
    first = tuple(int(i[0]) for i in np.nonzero(bad))
    count = np.count_nonzero(bad)
    raise ValueError(f"Y: expected finite numbers, got {Y[first]} at index {first} ({count} such entries in all)")


def warm_start(info: Any, shape: tuple[int, ...], batch_shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return theta and caps of an earlier projection, as contiguous arrays: float64, or the caps in float32."""
    if not isinstance(info, ProjectionInfo):
        raise TypeError(f"warm_start: expected the ProjectionInfo of an earlier call, got {type(info).__name__}")
    theta = np.ascontiguousarray(info.theta, dtype=np.float64)
    if np.shape(info.mu) != shape or theta.size != math.prod(batch_shape):
        raise ValueError(f"warm_start: expected an info of groups of shape {shape}, got {np.shape(info.mu)}")
    mu = np.ascontiguousarray(info.mu)
    return theta, mu if mu.dtype.char == "f" and mu.dtype.isnative else mu.astype(np.float64, copy=False)


def thread_count(threads: Any) -> int:
    """Return the number of threads to use: the argument, else what the environment allows."""
    if threads is None:
        return _default_threads()
    try:
        count = operator.index(threads)
    except TypeError:
        raise TypeError(f"threads: expected a positive int or None, got {threads!r}") from None
    if count < 1:
        raise ValueError(f"threads: expected a positive int or None, got {count}")
    return min(count, _MOST_THREADS)


@cache
def _default_threads() -> int:
    own = os.environ.get("NORMBALL_NUM_THREADS", "").strip()
    if own:
        if not own.isdecimal() or int(own) < 1:
            raise ValueError(f"NORMBALL_NUM_THREADS: expected a positive int, got {own!r}")
        return min(int(own), _MOST_THREADS)
    # What process pools set for their workers, so that they do not crowd one another out.
    shared = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if shared.isdecimal() and int(shared) > 0:
        return min(int(shared), _MOST_THREADS)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def unknown(name: str, value: Any, known: Sequence[str]) -> NoReturn:
    """Raise for a choice that is not among the known ones."""
    raise ValueError(f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}")


def finite_radius(radii: npt.NDArray[np.float64]) -> None:
    """Raise for a radius that no vector can have."""
    if np.isinf(radii).any():
        raise ValueError("radius: expected a finite number, got inf")


def real(Y: npt.NDArray[Any]) -> None:
    """Raise for complex numbers, which have no order."""
    if Y.dtype.kind == "c":
        raise TypeError(f"Y: expected real numbers, got {Y.dtype}")


def weights(value: Any, Y: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the weights as a float64 array of the shape of `Y`."""
    try:
        values = np.asarray(value)
        if values.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise TypeError(f"weights: expected an array of real numbers, got {value!r}") from None
    values = values.astype(np.float64)
    if not (np.isfinite(values) & (values >= 0)).all():
        worst = values[~(np.isfinite(values) & (values >= 0))].flat[0]
        raise ValueError(f"weights: expected finite numbers >= 0, got {worst}")
    try:
        return np.broadcast_to(values, Y.shape)
    except ValueError:
        raise ValueError(f"weights: expected a shape that broadcasts to {Y.shape}, got {values.shape}") from None


def bounds(lower: Any, upper: Any, Y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the bounds of a box as arrays that broadcast to `Y`, in double precision."""
    found = []
    for name, value in (("lower", lower), ("upper", upper)):
        try:
            values = np.asarray(value)
            if values.dtype.kind not in "biuf":
                raise TypeError
        except (TypeError, ValueError):
            raise TypeError(f"{name}: expected a real number or an array of them, got {value!r}") from None
        values = values.astype(np.float64)
        if np.isnan(values).any():
            raise ValueError(f"{name}: expected numbers, got nan")
        try:
            np.broadcast_to(values, Y.shape)
        except ValueError:
            raise ValueError(f"{name}: expected a shape that broadcasts to {Y.shape}, got {values.shape}") from None
        found.append(values)
    if (found[0] > found[1]).any():
        raise ValueError("upper: expected numbers that are not below lower, got smaller ones")
    return found[0], found[1]


def level_axes(
    Y: Any, norms: Sequence[str], level_axes: Sequence[Axis], known: Sequence[str]
) -> list[tuple[int, ...]]:
    """Return the axes of each level of a norm of norms: together they are all the axes of `Y`, each once."""
    ndim = array(Y).ndim
    for norm in norms:
        if norm not in known:
            unknown("norms", norm, known)
    if len(norms) != len(level_axes) or not norms:
        raise ValueError(f"axes: expected one entry for each of the {len(norms)} norms, got {len(level_axes)}")
    masks = [_mask("axes", axis, ndim) for axis in level_axes]
    if sum(masks) != (1 << ndim) - 1 or 0 in masks:
        raise ValueError(f"axes: expected each of the {ndim} axes of Y once, got {tuple(level_axes)}")
    return [tuple(axis for axis in range(ndim) if mask >> axis & 1) for mask in masks]


def count(name: str, value: Any, most: int) -> int:
    """Return a number of groups between 0 and `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an int between 0 and {most}, got {value!r}") from None
    if not 0 <= number <= most:
        raise ValueError(f"{name}: expected an int between 0 and {most}, got {number}")
    return number
