"""What a rank can say of its own part: aggregates, excesses over thresholds, caps; on any device."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from normball.backends import cpu

__all__ = ["caps_at", "caps_for", "counts_above", "excess", "lengths", "sums_and_peaks", "unit_for", "unscaled"]

_CHUNK = 1 << 22  # entries that are held in double precision at a time


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


def excess(A: Tensor, t: Tensor) -> Tensor:
    """Return what the rows of `A` exceed each of their places in `t` by, and how many entries do: (row, place, 2)."""
    found = t.new_zeros(*t.shape, 2)
    step = max(_CHUNK // max(A.shape[1], 1), 1)
    for start in range(0, len(A) if A.shape[1] else 0, step):
        part = A[start : start + step].double()
        for place in range(t.shape[1]):
            over = (part - t[start : start + step, place, None]).clamp_(min=0.0)
            found[start : start + step, place, 0] = over.sum(1)
            found[start : start + step, place, 1] = torch.count_nonzero(over, 1)
    return found


def counts_above(A: Tensor, mu: Tensor) -> Tensor:
    """Return how many magnitudes along the last axis exceed each cap; 0 where the cap is 0."""
    return torch.where(mu > 0, (A.abs() > mu[..., None]).sum(-1), 0).double()


def caps_for(A: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Return the caps and theta of the l1,inf projection of this part alone, (problem, group, member)."""
    from normball.backends import torch_op

    if A.numel() == 0:
        return A.new_zeros(A.shape[:2], dtype=torch.float64), A.new_zeros(A.shape[0], dtype=torch.float64)
    _, info = torch_op.project_l1inf(A, radius, 2, 0, "newton", None, False, None, None, True)
    return info.mu.double(), info.theta


def caps_at(A: Tensor, theta: Tensor) -> Tensor:
    """Return the caps at which each group would lose the theta of its problem, 0 where it has no more than that."""
    if A.numel() == 0:
        return A.new_zeros(A.shape[:2], dtype=torch.float64)
    if _by_core(A):
        return torch.from_numpy(cpu.caps(_array(A), theta.numpy(), 2, 0, None))
    mu = A.new_zeros(A.shape[:2], dtype=torch.float64)
    wide = A.abs().double()
    while True:  # Newton's method from the left: the caps only grow, through finitely many pieces
        over = (wide - mu[..., None]).clamp_(min=0.0)
        count = torch.count_nonzero(over, -1).clamp(min=1)
        step = (over.sum(-1) - theta[:, None]) / count
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
