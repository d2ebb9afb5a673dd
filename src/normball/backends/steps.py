"""The three steps that every operator of the family is made of, on NumPy arrays.

`Steps.aggregate` gives one number for each group, `Steps.thresholds` finds what each must lose to meet a radius, and
`Steps.write` makes the result from one number for each group. A group is all that the axes of the call leave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from normball import _core

__all__ = ["DTYPES", "FRESH_BYTES", "Steps", "can_write", "group_shape", "is_plain", "new_like", "threshold"]

Array = npt.NDArray[Any]
Reals = npt.NDArray[np.float64]

DTYPES = {char: code for code, char in enumerate("efdFD")}
AGGREGATES = {"sum": 0, "peak": 1, "norm2": 2}
WRITES = {"shrink": 0, "shift": 1, "scale": 2, "clip": 3}

# From this size on, memory comes from the system anew each time, as zeros that cost nothing until they are touched.
FRESH_BYTES = 1 << 25

# Below these, entries of a result may be subnormal, and must then be rounded towards zero to stay inside a ball.
_TINY = {"f": 1e-30, "F": 1e-30, "d": 1e-290, "D": 1e-290}


class Steps:
    """One array, where its result goes, which axes are inside a group, and whether the result is zeros as yet."""

    def __init__(self, Y: Array, X: Array, axes: int, threads: int, blank: bool = False) -> None:
        self.Y, self.axes, self.threads = Y, axes, threads
        self.shape = group_shape(Y, axes)
        self.dtype = DTYPES[Y.dtype.char]
        self.reads = 0.0
        self._source = Y if is_plain(Y) else Y.astype(Y.dtype.newbyteorder("="))
        self._known: dict[str, Reals] = {}
        self.write_to(X, blank)

    def write_to(self, X: Array, blank: bool) -> None:
        """Choose where the result goes."""
        self._result = X
        self._target = X if can_write(X, self._source) else np.empty_like(self._source)
        self._blank = blank and self._target is X

    def aggregate(self, kind: str) -> Reals:
        """Return the sum, the peak or the 2-norm of each group; NaN or infinity where a group holds such an entry."""
        if kind not in self._known:
            self.reads += 1.0
            self._known[kind] = self._aggregate(self._source, kind)
        return self._known[kind]

    def left(self, kind: str) -> Reals:
        """Return the same of the result."""
        return self._aggregate(self._target, kind)

    def _aggregate(self, array: Array, kind: str) -> Reals:
        values = np.zeros(self.shape)
        if array.size:
            _core.aggregate(array, self.dtype, self.axes, AGGREGATES[kind], self.threads, values)
        return values

    def thresholds(
        self, radii: Reals, write: str | None = None, *, signed: bool = False, unchecked: bool = False
    ) -> tuple[Reals, bool]:
        """Return what each group must lose, and whether all is finite; write the result if it is, and if asked to.

        Nothing is solved where something is not finite; unless unchecked, when only that group is NaN.
        """
        taus = np.zeros(self.shape)
        radii = _plain(np.broadcast_to(radii, self.shape))
        finite, reads = _core.thresholds(
            self._source, None if write is None else self._target, self.dtype, self.axes, WRITES[write or "shrink"],
            signed, self.tiny(radii), not unchecked, self.threads, radii, taus, self._known.get("sum"), self._blank,
        )  # fmt: skip
        self._blank = self._blank and write is None
        self.reads += reads + (finite and write is not None)
        return taus, finite

    def caps_l1inf(self, radii: Reals, batch: int, unchecked: bool) -> tuple[Reals | None, Reals]:
        """Return the caps and theta of the l1,inf projection; no caps where something is not finite, unless unchecked.

        `batch` is a bit mask over the axes of the groups.
        """
        left = [axis for axis in range(self.Y.ndim) if not self.axes >> axis & 1]
        over = sum(1 << axis for i, axis in enumerate(left) if batch >> i & 1)
        radii = _plain(radii)
        theta, mu = np.zeros(radii.shape), np.zeros(self.shape)
        found = _core.project_l1inf(
            self._source, None, self.dtype, self.axes, over, 0.0, radii, 0, not unchecked, self.threads, theta, mu,
            None, None, False,
        )  # fmt: skip
        if found is None:
            return None, theta
        self.reads += found[2]
        return mu, theta

    def write(self, kind: str, parameters: Reals, *, tiny: bool = False) -> None:
        """Clip, shrink, shift or scale each group by its number; NaN makes a group NaN."""
        parameters = _plain(np.broadcast_to(parameters, self.shape))
        dead = np.isinf(parameters) if kind in ("shrink", "shift") else parameters == 0
        self.reads += 1.0 - np.count_nonzero(dead) / max(dead.size, 1)
        _core.write(
            self._source, self._target, self.dtype, self.axes, WRITES[kind], tiny, self.threads, parameters, self._blank
        )
        self._blank = False

    def tiny(self, radii: Reals) -> bool:
        """Whether entries may be subnormal in a result of such a radius."""
        limit = _TINY.get(self.Y.dtype.char, 0.0)
        return bool(((radii > 0) & (radii < limit)).any())

    def put(self, X: Array) -> None:
        """Take a result that was made elsewhere."""
        self._target[...] = X
        self.reads += 2.0

    def finish(self) -> Array:
        """Return the result, where it was asked for."""
        if self._target is not self._result:
            self._result[...] = self._target
        return self._result


def threshold(values: Reals, radii: Reals, kept: int) -> Reals:
    """Return tau with ``sum(max(values - tau, 0)) = radius``, over all the axes of `values` but those in `kept`.

    NaN where a value is not finite; infinite where the radius is 0.
    """
    everything = (1 << values.ndim) - 1
    taus = np.zeros(group_shape(values, everything & ~kept))
    radii = _plain(radii)
    _core.thresholds(values, None, DTYPES["d"], everything & ~kept, 0, False, False, False, 1, radii, taus, None, False)
    return taus


def _plain(values: Reals) -> Reals:
    return np.asarray(values, dtype=np.float64, order="C")


def group_shape(Y: Array, dropped: int) -> tuple[int, ...]:
    """Return the shape without the axes of a bit mask."""
    return tuple([n for axis, n in enumerate(Y.shape) if not dropped >> axis & 1])


def new_like(Y: Array) -> tuple[Array, bool]:
    """Return an array for a result, and whether it is known to be zeros."""
    if Y.nbytes < FRESH_BYTES or not Y.flags.forc:
        return np.empty_like(Y, subok=False), False
    return np.zeros(Y.shape, Y.dtype, order="C" if Y.flags.c_contiguous else "F"), True


def is_plain(Y: Array) -> bool:
    """Whether the core can address `Y`: native byte order, aligned, strides in whole elements."""
    flags = Y.flags
    if not (Y.dtype.isnative and flags.aligned):
        return False
    return flags.forc or not any(stride % Y.itemsize for stride in Y.strides)


def can_write(X: Array, source: Array) -> bool:
    """Whether the core can write `X` while it reads a plain `source`: apart from it, or in the very same place."""
    if X is source:
        return True
    if not is_plain(X):
        return False
    if (X.base is None and source.base is None) or not np.may_share_memory(X, source):
        return True  # two arrays that own their memory have none in common; to ask that first is quicker
    return X.ctypes.data == source.ctypes.data and X.strides == source.strides
