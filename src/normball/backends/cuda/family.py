"""The rest of the family on a GPU: one pass that adds up, theta, one pass that writes.

The host is never asked. What does not fit the device all at once is left to the torch operations.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

__all__ = ["operate"]


def operate(kernels: ModuleType, name: str, Y: Tensor, X: Tensor, C: Tensor) -> Tensor | None:
    """Apply an operator to `Y`, (problem, group, member), into `X`; return theta, or None where it is not for here.

    `C` is the radius of each problem, in double precision. Theta has the shape (problem,), or that of the groups where
    each of them is a problem of its own.
    """
    if Y.shape[0] > kernels.MOST_PROBLEMS or name not in _WAYS:
        return None
    return _WAYS[name](kernels, Y, X, C)


def _sound(values: Tensor, C: Tensor) -> Tensor:
    """Whether the numbers of each problem are finite and its radius is one."""
    return (values.sum(1) < torch.inf) & (C >= 0)


def _peaks(Y: Tensor) -> Tensor:
    peaks: Tensor = torch.linalg.vector_norm(Y, torch.inf, dim=2)
    return peaks.double()


def _lengths(kernels: ModuleType, Y: Tensor) -> Tensor:
    squares: Tensor = kernels.totals(Y, square=True)
    return squares.sqrt()


def _scale(kernels: ModuleType, Y: Tensor, X: Tensor, C: Tensor, lengths: Tensor, left: Tensor) -> None:
    """Shorten every group to the length that is left of it."""
    share = torch.where(left < lengths, left / lengths, 1.0)
    kernels.write("scale", Y, X, torch.where(_sound(lengths, C)[:, None], share, torch.nan))


def _project_l2(kernels: ModuleType, Y: Tensor, X: Tensor, C: Tensor) -> Tensor:
    lengths = _lengths(kernels, Y)
    _scale(kernels, Y, X, C, lengths, torch.minimum(lengths, C[:, None]))
    return (lengths - C[:, None]).clamp(min=0.0)


def _prox_l12(kernels: ModuleType, Y: Tensor, X: Tensor, C: Tensor) -> Tensor:
    lengths = _lengths(kernels, Y)
    _scale(kernels, Y, X, C, lengths, (lengths - C[:, None]).clamp(min=0.0))
    return C


def _prox_l1(kernels: ModuleType, Y: Tensor, X: Tensor, C: Tensor) -> Tensor:
    sound = _sound(_peaks(Y), C)
    kernels.write("shrink", Y, X, torch.where(sound, C, torch.nan)[:, None].expand(Y.shape[:2]).contiguous())
    return C


def _project_l12(kernels: ModuleType, Y: Tensor, X: Tensor, C: Tensor) -> Tensor | None:
    lengths = _lengths(kernels, Y)
    left = torch.empty_like(lengths)
    theta: Tensor | None = kernels.project_l1(lengths, left, C)
    if theta is not None:
        _scale(kernels, Y, X, C, lengths, left)
    return theta


def _bilevel_l1inf(kernels: ModuleType, Y: Tensor, X: Tensor, C: Tensor) -> Tensor | None:
    peaks = _peaks(Y)
    left = torch.empty_like(peaks)
    theta: Tensor | None = kernels.project_l1(peaks, left, C)
    if theta is not None:
        kernels.write("clip", Y, X, torch.where(theta[:, None] == 0, torch.inf, left))
    return theta


def _each(kernels: ModuleType, Y: Tensor, X: Tensor, radii: Tensor) -> Tensor | None:
    """Project each group onto an l1 ball of its own; return theta of each."""
    rows = Y.reshape(-1, Y.shape[2])
    target = X.view(rows.shape) if X.is_contiguous() else torch.empty_like(rows, memory_format=torch.contiguous_format)
    theta: Tensor | None = kernels.project_l1(rows, target, radii.reshape(-1))
    if theta is None:
        return None
    if not X.is_contiguous():
        X.copy_(target.view(X.shape))
    return theta.view(Y.shape[:2])


def _project_l1(kernels: ModuleType, Y: Tensor, X: Tensor, C: Tensor) -> Tensor | None:
    return _each(kernels, Y, X, C[:, None].expand(Y.shape[:2]))


def _prox_l1inf(kernels: ModuleType, Y: Tensor, X: Tensor, C: Tensor) -> Tensor | None:
    inside = torch.empty_like(Y, memory_format=torch.contiguous_format)
    if _project_l1(kernels, Y, inside, C) is None:
        return None
    torch.sub(Y, inside, out=X)
    return C


def _project_simplex(kernels: ModuleType, Y: Tensor, X: Tensor, C: Tensor) -> Tensor | None:
    # No entry below the greatest less the radius survives; moved there, all that counts is not negative.
    shift = (Y.amax(2) - C[:, None]).double()
    shift = torch.where(Y.isfinite().all(2), shift, torch.nan)
    above = (Y.double() - shift[:, :, None]).clamp(min=0.0)
    inside = torch.empty_like(above)
    theta = _project_l1(kernels, above, inside, C)
    if theta is None:
        return None
    X.copy_(inside)
    return theta + shift


def _bilevel_l11(kernels: ModuleType, Y: Tensor, X: Tensor, C: Tensor) -> Tensor | None:
    sums = kernels.totals(Y, square=False)
    left = torch.empty_like(sums)
    theta: Tensor | None = kernels.project_l1(sums, left, C)
    if theta is None or _each(kernels, Y, X, torch.where(theta[:, None] == 0, torch.inf, left)) is None:
        return None
    return theta


_WAYS = {
    "project_l1": _project_l1,
    "project_simplex": _project_simplex,
    "project_l2": _project_l2,
    "project_l12": _project_l12,
    "project_linf1": _project_l1,
    "project_linf2": _project_l2,
    "bilevel_l1inf": _bilevel_l1inf,
    "bilevel_l11": _bilevel_l11,
    "prox_l1": _prox_l1,
    "prox_l2": _prox_l12,
    "prox_linf": _prox_l1inf,
    "prox_l1inf": _prox_l1inf,
    "prox_l12": _prox_l12,
}
