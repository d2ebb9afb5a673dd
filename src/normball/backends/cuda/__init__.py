"""Tensors that do not lie on the CPU: Triton kernels where Triton and the device allow, else plain torch operations.

Nothing here waits for the device, so that a projection can be captured in a CUDA graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache, lru_cache
from itertools import pairwise
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from normball.backends.cuda import family, plain

__all__ = ["has_kernels", "operate", "project_l1inf", "tangent_l1inf"]


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
    told: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Project `Y` into `X`; return the caps in the dtype of `Y`, and theta.

    Without batch axes these can be written to `told`, contiguous tensors, which may be those of the start.
    """
    order, shape, caps_shape, theta_shape, place = _layout(tuple(Y.shape), tuple(axis), tuple(batch_axis))
    if Y.numel() == 0:
        return Y.new_zeros(caps_shape).permute(place), Y.new_zeros(theta_shape, dtype=torch.float64)
    turned = place != sorted(place)  # the axes of the caps, where batch axes do not come first
    begin = None
    if start is not None:
        old = start[0].permute(sorted(range(len(place)), key=place.__getitem__)) if turned else start[0]
        begin = old.contiguous(), start[1].to(Y.device)
        if batch_axis:
            begin = begin[0].reshape(shape[:2]), begin[1].reshape(shape[0])
    if told is None:
        mu = torch.empty(caps_shape, dtype=Y.dtype, device=Y.device)
        theta = torch.empty(theta_shape, dtype=torch.float64, device=Y.device)
    else:
        mu, theta = told
    with _current(Y.device):
        source, y_strides = Y, _strides(Y.shape, Y.stride(), tuple(axis), tuple(batch_axis))
        if not y_strides:  # a copy, where the axes cannot be told as one
            source = Y.permute(order).reshape(shape)
            y_strides = source.stride()
        target, x_strides = X, _strides(X.shape, X.stride(), tuple(axis), tuple(batch_axis))
        if not x_strides or (X is not source and not _apart(X, source)):
            target = torch.empty(shape, dtype=X.dtype, device=X.device)
            x_strides = target.stride()
        kernels = _kernels_for(Y)
        task = (source, target, mu, theta, tuple(shape), y_strides, x_strides, radius, begin)
        if kernels is None or not kernels.project_l1inf(kernels.Task(*task)):
            source, to = source.as_strided(shape, y_strides), target.as_strided(shape, x_strides)
            radii = torch.as_tensor(radius, dtype=torch.float64, device=Y.device).reshape(-1).broadcast_to(shape[0])
            caps, thetas = plain.caps(source, radii)
            mu.copy_(caps.view(caps_shape))
            theta.copy_(thetas.view(theta_shape))
            to.copy_(plain.clip(source, caps))
        if target is not X:
            X.permute(order).copy_(target.reshape([Y.shape[a] for a in order]))
    return mu.permute(place) if turned else mu, theta


def tangent_l1inf(
    Y: Tensor, mu: Tensor, theta: Tensor, V: Tensor, axis: Sequence[int], batch_axis: Sequence[int]
) -> tuple[Tensor, Tensor] | None:
    """Return the Jacobian times `V` and the derivative by the radius times `V`; None where the kernels cannot."""
    kernels = _kernels_for(Y)
    if kernels is None or batch_axis or Y.numel() == 0 or Y.dtype == torch.float64:
        return None
    order, (_, *shape), *_ = _layout(tuple(Y.shape), tuple(axis), ())
    X = torch.empty_like(Y, dtype=V.dtype, requires_grad=False)
    three = [Y, V, X]
    strides = [_strides(T.shape, T.stride(), tuple(axis), ()) for T in three]
    if not all(strides):  # copies, where the axes cannot be told as one
        three = [T.permute(order).reshape(shape) for T in three]
        strides = [(0, *T.stride()) for T in three]
    with _current(Y.device):
        mean = kernels.tangent_l1inf(*three, mu.contiguous(), theta, tuple(shape), tuple(strides))
    if three[2] is not X:
        X.permute(order).copy_(three[2].reshape([Y.shape[a] for a in order]))
    return X, mean


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


def has_kernels(Y: Tensor) -> bool:
    """Whether the kernels run where `Y` lies."""
    return _kernels_for(Y) is not None


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


@lru_cache(maxsize=1024)
def _strides(
    shape: tuple[int, ...], strides: tuple[int, ...], axis: tuple[int, ...], batch_axis: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the strides of an array seen as (problem, group, member); nothing where it cannot be seen so."""
    groups = tuple(a for a in range(len(shape)) if a not in axis and a not in batch_axis)
    found: list[int] = []
    size = 1
    for axes in (axis, groups, batch_axis):
        parts = [(shape[a], strides[a]) for a in axes if shape[a] > 1]
        if any(outer != inner * stride for (_, outer), (inner, stride) in pairwise(parts)):
            return ()
        found.insert(0, parts[-1][1] if parts else size)  # as in memory without gaps, where there is but one
        size *= math.prod(shape[a] for a in axes)
    return tuple(found)


def _apart(X: Tensor, Y: Tensor) -> bool:
    """Whether nothing written to one is read from the other, unless they are the same."""
    if X.data_ptr() == Y.data_ptr() and X.stride() == Y.stride():
        return True
    first, last = sorted((X.data_ptr(), Y.data_ptr())), X if X.data_ptr() < Y.data_ptr() else Y
    if first[0] + _span(tuple(last.shape), last.stride()) * last.itemsize <= first[1]:
        return True
    return X.untyped_storage().data_ptr() != Y.untyped_storage().data_ptr()


@lru_cache(maxsize=1024)
def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def _current(device: torch.device) -> Any:
    """Make a device the current one, which is what Triton launches on."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return _NOTHING
    return torch.cuda.device(device)


_NOTHING = nullcontext()


def _writable(X: Tensor, shape: list[int], source: Tensor) -> Tensor:
    """Return `X` in that shape, or scratch memory if it has no such view, or lies across the source."""
    try:
        target = X.view(shape)
    except RuntimeError:
        return torch.empty_like(source)
    return target if _apart(target, source) else torch.empty_like(source)
