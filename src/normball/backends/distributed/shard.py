"""What a rank can say of its own part: aggregates, excesses over thresholds, caps; on any device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from normball import _validate
from normball.backends import cpu
from normball.backends.steps import Steps

__all__ = [
    "Looks",
    "caps_at",
    "caps_for",
    "counts_above",
    "excess",
    "lengths",
    "sums_and_peaks",
    "unit_for",
    "unscaled",
]


def _by_core(A: Tensor) -> bool:
    return A.device.type == "cpu"


def _array(A: Tensor) -> npt.NDArray[np.generic]:
    return (A.float() if A.dtype == torch.bfloat16 else A).resolve_neg().numpy()


def sums_and_peaks(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum and the peak of the magnitudes along the last axis, in double precision."""
    if A.numel() == 0:
        zero = A.new_zeros(A.shape[:-1], dtype=torch.float64)
        return zero, zero.clone()
    if _by_core(A):
        source = _array(A)
        sums, peaks = (cpu.aggregate("", kind, source, -1, None, None)[0] for kind in ("sum", "peak"))
        return torch.from_numpy(sums), torch.from_numpy(peaks)
    return A.abs().sum(-1, dtype=torch.float64), A.abs().amax(-1).double()


def lengths(A: Tensor) -> Tensor:
    """Return the 2-norms along the last axis, in double precision."""
    if A.numel() == 0:
        return A.new_zeros(A.shape[:-1], dtype=torch.float64)
    if _by_core(A):
        return torch.from_numpy(cpu.aggregate("", "norm2", _array(A), -1, None, None)[0])
    found: Tensor = torch.linalg.vector_norm(A, dim=-1, dtype=torch.float64)
    return found


def _chunks(A: Tensor) -> Iterator[slice]:
    """Cut rows into parts that stay in the cache, on the CPU; elsewhere, that are not too many."""
    step = max((1 << 16 if _by_core(A) else 1 << 24) // max(A.shape[1], 1), 1)
    for start in range(0, len(A) if A.shape[1] else 0, step):
        yield slice(start, start + step)


def excess(A: Tensor, t: Tensor) -> Tensor:
    """Return what the rows of `A` exceed each of their places in `t` by, and how many entries do: (row, place, 2)."""
    found = t.new_zeros(*t.shape, 2)
    for part in _chunks(A):
        wide = A[part].double()
        for place in range(t.shape[1]):
            over = (wide - t[part, place, None]).clamp_(min=0.0)
            found[part, place, 0] = over.sum(1)
            found[part, place, 1] = over.sign_().sum(1)
    return found


class Looks:
    """The same for magnitudes of the rows of a part, look after look, each inside the last: what lies outside is known.

    Of the entries beyond the last of a row's places it keeps the excess and the count there, of those below the first
    nothing: so that all looks but the first have little to read. A look that goes elsewhere starts afresh.
    """

    def __init__(self, A: Tensor) -> None:
        self._A = A
        self._rows = torch.arange(0)  # of the last look, its first and last places, and what it found at the last
        self._low: Tensor
        self._top: Tensor
        self._beyond: Tensor
        self._values: Tensor  # between the first and the last

    def __call__(self, rows: Tensor, t: Tensor) -> Tensor:
        """Look at some rows, in order, at places in rising order."""
        known = self._known(rows, t)
        if known is None:
            values = self._A[rows.to(self._A.device)].abs()
            found = excess(values, t)
        else:
            values, top, beyond = self._values[known], self._top[known], self._beyond[known]
            found = excess(values, t)
            found[..., 0] += beyond[:, None, 0] + beyond[:, None, 1] * (top[:, None] - t)
            found[..., 1] += beyond[:, None, 1]
        self._rows, self._low, self._top, self._beyond = rows, t[:, 0], t[:, -1], found[:, -1].clone()
        self._values = _between(values, self._low, self._top)
        return found

    def _known(self, rows: Tensor, t: Tensor) -> Tensor | None:
        """Return where the rows of the last look are these rows; None where it does not tell of them."""
        if not len(self._rows):
            return None
        place = torch.searchsorted(self._rows, rows).clamp(max=len(self._rows) - 1)
        if not torch.equal(self._rows[place], rows):
            return None
        place = place.to(self._A.device)
        inside = (t[:, 0] >= self._low[place]) & (t[:, -1] <= self._top[place])
        return place if bool(inside.all()) else None


def _between(values: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the entries of each row in ``(low, high]``, side by side; rows that have fewer are filled with less."""
    if not values.numel():
        return values.double()
    kept = torch.cat([(values[p] > low[p, None]) & (values[p] <= high[p, None]) for p in _chunks(values)])
    row, column = torch.nonzero(kept, as_tuple=True)
    count = torch.bincount(row, minlength=len(values))
    first = torch.cumsum(count, 0) - count
    side = values.new_full((len(values), int(count.max())), -torch.inf, dtype=torch.float64)
    side[row, torch.arange(len(row), device=row.device) - first[row]] = values[row, column].double()
    return side


def counts_above(A: Tensor, mu: Tensor) -> Tensor:
    """Return how many magnitudes along the last axis exceed each cap; 0 where the cap is 0."""
    rows, caps = A.flatten(0, 1), mu.flatten(0, 1)
    counts = torch.zeros_like(caps)
    for part in _chunks(rows):
        counts[part] = (rows[part].abs() > caps[part, None]).to(rows.dtype).sum(1, dtype=torch.float64)
    return torch.where(caps > 0, counts, 0.0).reshape(mu.shape)


def caps_for(A: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Return the caps and theta of the l1,inf projection of this part alone, (problem, group, member)."""
    if A.numel() == 0:
        return A.new_zeros(A.shape[:2], dtype=torch.float64), A.new_zeros(A.shape[0], dtype=torch.float64)
    if _by_core(A):
        source = _array(A)
        steps = Steps(source, source, 0b100, _validate.thread_count(None))
        mu, theta = steps.caps_l1inf(radius.numpy(), 0b01, unchecked=True)
        assert mu is not None
        return torch.from_numpy(mu), torch.from_numpy(theta)
    from normball.backends import torch_op

    _, info = torch_op.project_l1inf(A, radius, 2, 0, "newton", None, False, None, None, True)
    return info.mu.double(), info.theta


def caps_at(A: Tensor, theta: Tensor, start: Tensor | None = None) -> Tensor:
    """Return the caps at which each group would lose the theta of its problem, 0 where it has no more than that.

    Elsewhere than on the CPU, caps for a theta nearby are a good `start`.
    """
    if A.numel() == 0:
        return A.new_zeros(A.shape[:2], dtype=torch.float64)
    if _by_core(A):
        return torch.from_numpy(cpu.caps(_array(A), theta.numpy(), 2, 0, None))
    mu = A.new_zeros(A.shape[:2], dtype=torch.float64) if start is None else start
    wide = A.abs().double()
    first = True
    while True:  # Newton's method: after one step from anywhere, the caps only grow, through finitely many pieces
        over = (wide - mu[..., None]).clamp_(min=0.0)
        left = over.sum(-1)
        count = over.sign_().sum(-1)
        step = (left - theta[:, None]) / count.clamp(min=1.0)
        if first:
            mu, first = torch.where(count > 0, (mu + step).clamp(min=0.0), 0.0), False
            continue
        step = torch.where(step > 2.0**-52 * mu, step, 0.0)
        if not bool((step > 0).any()):
            return mu
        mu = mu + step


def unit_for(peaks: Tensor) -> Tensor:
    """Return the power of two that brings the greatest of the finite peaks near 1."""
    top = torch.where(peaks.isfinite(), peaks, 0.0).amax() if peaks.numel() else peaks.new_zeros(())
    unit = torch.exp2(-torch.frexp(top).exponent.double().clamp(min=-1000.0))
    return torch.where(top > 0, unit, 1.0)


def unscaled(X: Tensor, unit: Tensor) -> Tensor:
    """Divide by a power of two, towards zero where that is not exact."""
    near = X / unit
    return torch.where((near * unit).abs() > X.abs(), torch.nextafter(near, torch.zeros_like(near)), near)
