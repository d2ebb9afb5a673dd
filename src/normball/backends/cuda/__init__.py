"""Tensors that do not lie on the CPU: Triton kernels where Triton and the device allow, else plain torch operations.

Nothing here waits for the device, so that a projection can be captured in a CUDA graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from types import ModuleType

import torch
from torch import Tensor

from normball.backends.cuda import family, plain

__all__ = ["operate", "project_l1inf", "tangent_l1inf"]


@lru_cache(maxsize=1024)
def _layout(
    shape: tuple[int, ...], axis: tuple[int, ...], batch_axis: tuple[int, ...]
) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Return how to see an array as (problem, group, member).

    That is: the order of the axes, the three sizes, the shapes of the caps in that order and of theta, and where the
    axes of the caps belong.
    """
    groups = [a for a in range(len(shape)) if a not in axis and a not in batch_axis]
    sizes = [[shape[a] for a in axes] for axes in (batch_axis, groups, axis)]
    kept = [*batch_axis, *groups]
    place = sorted(range(len(kept)), key=kept.__getitem__)
    return [*kept, *axis], [math.prod(size) for size in sizes], sizes[0] + sizes[1], sizes[0], place


def project_l1inf(
    Y: Tensor,
    X: Tensor,
    radius: Tensor | float,
    axis: Sequence[int],
    batch_axis: Sequence[int],
    start: tuple[Tensor, Tensor] | None,
    explains: bool = True,
) -> tuple[Tensor, Tensor]:
    """Project `Y` into `X`; return the caps in the dtype of `Y`, and theta."""
    order, shape, caps_shape, theta_shape, place = _layout(tuple(Y.shape), tuple(axis), tuple(batch_axis))
    if Y.numel() == 0:
        return Y.new_zeros(caps_shape).permute(place), Y.new_zeros(theta_shape, dtype=torch.float64)
    # As (problem, group, member); a copy only where the axes cannot be told as one.
    source = Y.permute(order).reshape(shape)
    target = _writable(X.permute(order), shape, source)
    if isinstance(radius, float):
        radius = torch.tensor(radius, dtype=torch.float64)
    radii = radius.reshape(-1) if radius.ndim else radius
    begin = None
    if start is not None:
        old = start[0].permute(sorted(range(len(place)), key=place.__getitem__))
        begin = old.reshape(shape[:2]), start[1].reshape(shape[0]).to(Y.device)
    kernels = _kernels_for(Y)
    done = None if kernels is None else kernels.project_l1inf(source, target, radii, begin)
    if done is None:
        done = plain.caps(source, radii.to(Y.device).broadcast_to(shape[0]))
        target.copy_(plain.clip(source, done[0]))
    if target.untyped_storage().data_ptr() != X.untyped_storage().data_ptr():
        X.permute(order).copy_(target.reshape([Y.shape[a] for a in order]))
    return done[0].reshape(caps_shape).permute(place), done[1].reshape(theta_shape)


def tangent_l1inf(
    Y: Tensor, mu: Tensor, theta: Tensor, V: Tensor, axis: Sequence[int], batch_axis: Sequence[int]
) -> tuple[Tensor, Tensor] | None:
    """Return the Jacobian times `V` and the derivative by the radius times `V`; None where the kernels cannot."""
    kernels = _kernels_for(Y)
    if kernels is None or batch_axis or Y.numel() == 0 or Y.dtype == torch.float64:
        return None
    order, shape, *_ = _layout(tuple(Y.shape), tuple(axis), ())
    source, along = (T.permute(order).reshape(shape[1:]) for T in (Y, V))
    X, mean = kernels.tangent_l1inf(source, mu.reshape(-1), theta, along)
    back = sorted(range(Y.ndim), key=order.__getitem__)
    return X.reshape([Y.shape[a] for a in order]).permute(back), mean


def operate(
    name: str, Y: Tensor, X: Tensor, C: Tensor, axis: Sequence[int], batch_axis: Sequence[int]
) -> Tensor | None:
    """Apply an operator of the family to `Y`, into `X`; return theta, or None where the kernels cannot.

    `C` is the radius of each problem on the device. Theta has the shape of the batch, or of the groups where each of
    them is a problem of its own.
    """
    kernels = _kernels_for(Y)
    if kernels is None or Y.numel() == 0:
        return None
    order, shape, caps_shape, theta_shape, place = _layout(tuple(Y.shape), tuple(axis), tuple(batch_axis))
    source = Y.permute(order).reshape(shape)
    target = _writable(X.permute(order), shape, source)
    theta = family.operate(kernels, name, source, target, C.broadcast_to(theta_shape).reshape(shape[0]).contiguous())
    if theta is None:
        return None
    if target.untyped_storage().data_ptr() != X.untyped_storage().data_ptr():
        X.permute(order).copy_(target.reshape([Y.shape[a] for a in order]))
    return theta.reshape(caps_shape).permute(place) if name in EACH_GROUP_ALONE else theta.reshape(theta_shape)


EACH_GROUP_ALONE = ("project_linf1", "project_linf2")  # a problem of its own, with a theta of its own


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


def _writable(X: Tensor, shape: list[int], source: Tensor) -> Tensor:
    """Return `X` in that shape, or scratch memory if it has no such view, or lies across the source."""
    try:
        target = X.view(shape)
    except RuntimeError:
        return torch.empty_like(source)
    if target.untyped_storage().data_ptr() != source.untyped_storage().data_ptr():
        return target
    same = target.data_ptr() == source.data_ptr() and target.stride() == source.stride()
    return target if same else torch.empty_like(source)
