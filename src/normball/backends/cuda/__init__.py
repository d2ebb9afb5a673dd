"""Tensors that do not lie on the CPU: Triton kernels where Triton and the device allow, else plain torch operations.

Nothing here waits for the device, so that a projection can be captured in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from normball.backends.cuda import plain

__all__ = ["project_l1inf"]


@cache
def _triton() -> ModuleType | None:
    """The kernels, if Triton can be imported and is new enough to launch blocks that wait for each other."""
    try:
        import triton

        from normball.backends.cuda import launch
    except ImportError:
        return None
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    return launch if version >= (3, 3) else None


def _kernels_for(Y: Tensor) -> ModuleType | None:
    """Return the kernels if they run where `Y` lies."""
    kernels = _triton()
    if kernels is None:
        return None
    if Y.device.type == "cuda":
        return kernels if torch.version.hip is None and _capability(Y.device) >= (8, 0) else None
    return kernels if kernels.INTERPRETED else None


@cache
def _capability(device: torch.device) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)


def project_l1inf(
    Y: Tensor,
    X: Tensor,
    radius: Tensor,
    axis: Sequence[int],
    batch_axis: Sequence[int],
    start: tuple[Tensor, Tensor] | None,
) -> tuple[Tensor, Tensor]:
    """Project `Y` into `X`; return the caps in the dtype of `Y`, and theta."""
    groups = [a for a in range(Y.ndim) if a not in axis and a not in batch_axis]
    order = [*batch_axis, *groups, *axis]
    sizes = [[Y.shape[a] for a in axes] for axes in (batch_axis, groups, axis)]
    shape = [torch.Size(size).numel() for size in sizes]
    place = _places([*batch_axis, *groups])
    mu = Y.new_zeros(sizes[0] + sizes[1]).permute(place)
    theta = Y.new_zeros(sizes[0], dtype=torch.float64)
    if Y.numel():
        # As (problem, group, member); a copy only where the axes cannot be told as one.
        source = Y.permute(order).reshape(shape)
        target = _writable(X.permute(order), shape, source)
        radii = radius.reshape(-1) if radius.ndim else radius
        begin = None
        if start is not None:
            begin = start[0].permute(_places(place)).reshape(shape[:2]), start[1].reshape(shape[0]).to(Y.device)
        kernels = _kernels_for(Y)
        done = None if kernels is None else kernels.project_l1inf(source, target, radii, begin)
        if done is None:
            done = plain.caps(source, radii.to(Y.device).broadcast_to(shape[0]))
            target.copy_(plain.clip(source, done[0]))
        mu, theta = done[0].reshape(sizes[0] + sizes[1]).permute(place), done[1].reshape(theta.shape)
        if target.untyped_storage().data_ptr() != X.untyped_storage().data_ptr():
            X.permute(order).copy_(target.reshape([n for size in sizes for n in size]))
    return mu, theta


def _places(order: Sequence[int]) -> list[int]:
    """Return where each of some axes, taken in rising order, stands in `order`."""
    return sorted(range(len(order)), key=order.__getitem__)


def _writable(X: Tensor, shape: list[int], source: Tensor) -> Tensor:
    """Return `X` in that shape, or scratch memory if it has no such view, or lies across the source."""
    try:
        target = X.view(shape)
    except RuntimeError:
        return torch.empty_like(source)
    same = target.data_ptr() == source.data_ptr() and target.stride() == source.stride()
    apart = target.untyped_storage().data_ptr() != source.untyped_storage().data_ptr()
    return target if same or apart else torch.empty_like(source)
