"""The checks of `_validate`, for arguments that are tensors: the same messages."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from normball import _validate
from normball._info import ProjectionInfo

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def tensor(Y: Tensor) -> None:
    """Raise unless `Y` is a dense tensor of a supported dtype."""
    if Y.layout != torch.strided:
        raise TypeError(f"Y: expected a dense tensor, got layout {Y.layout}")
    if Y.is_nested:
        raise TypeError("Y: expected a dense tensor, got a nested one")
    if Y.dtype not in DTYPES:
        raise TypeError(f"Y: expected a tensor of float64, float32, bfloat16 or float16, got {Y.dtype}")
    if Y.ndim == 0:
        raise ValueError("Y: expected at least one dimension, got a scalar")


def axes(ndim: int, axis: _validate.Axis, batch_axis: _validate.Axis | None) -> tuple[list[int], list[int]]:
    """Return the member and the batch axes, in order."""
    members, batch = _validate.axes(ndim, axis, batch_axis)
    if type(axis) is int and batch == 0:
        return [axis % ndim], []
    return [a for a in range(ndim) if members >> a & 1], [a for a in range(ndim) if batch >> a & 1]


def radius(value: Any, Y: Tensor, batch_shape: list[int], name: str) -> Tensor:
    """Return the radius as a float64 tensor of the batch shape, or of no dimension if it is one number."""
    if not isinstance(value, Tensor):
        number, numbers = _validate.radius(value, tuple(batch_shape), name)
        known: Tensor = torch.tensor(number if numbers is None else numbers, dtype=torch.float64)
        return known
    if value.is_complex() or value.layout != torch.strided:
        raise TypeError(f"{name}: expected real numbers, got {value.dtype}, {value.layout}")
    if value.ndim and value.device != Y.device:
        raise ValueError(f"{name}: expected a tensor on {Y.device}, as Y, got one on {value.device}")
    wide: Tensor = value.double()
    if wide.ndim == 0:
        return wide
    try:
        return wide.broadcast_to(batch_shape)
    except RuntimeError:
        raise ValueError(
            f"{name}: expected a number or a shape that broadcasts to the batch {tuple(batch_shape)}, "
            f"got {tuple(value.shape)}"
        ) from None


def number(value: Any, Y: Tensor, batch_shape: list[int], name: str) -> float | Tensor:
    """Return the radius as a float where it is one number that the host knows, else as `radius` does."""
    if isinstance(value, Tensor):
        return radius(value, Y, batch_shape, name)
    one, each = _validate.radius(value, tuple(batch_shape), name)
    return one if each is None else torch.from_numpy(each)


def output(out: Any, Y: Tensor, radius: Any) -> None:
    """Raise unless the projection of `Y` can be written to `out`."""
    if not isinstance(out, Tensor):
        raise TypeError(f"out: expected a tensor, got {type(out).__name__}")
    if out is not Y:
        if out.shape != Y.shape:
            raise ValueError(f"out: expected shape {tuple(Y.shape)}, got {tuple(out.shape)}")
        if out.dtype != Y.dtype:
            raise TypeError(f"out: expected dtype {Y.dtype}, got {out.dtype}")
        if out.device != Y.device:
            raise ValueError(f"out: expected a tensor on {Y.device}, as Y, got one on {out.device}")
        if out.layout != torch.strided:
            raise TypeError(f"out: expected a dense tensor, got layout {out.layout}")
    if torch.is_grad_enabled() and (Y.requires_grad or out.requires_grad or getattr(radius, "requires_grad", False)):
        name = "Y" if Y.requires_grad else "out" if out.requires_grad else "radius"
        raise ValueError(
            f"{name}: expected a tensor without gradient where the result is written in place, got one that requires "
            "it; use torch.no_grad(), or the result of a call without out="
        )


def warm_start(info: Any, Y: Tensor, axis: list[int], batch_axis: list[int]) -> tuple[Tensor, Tensor]:
    """Return the caps and theta of an earlier projection, on the device of `Y`."""
    if not isinstance(info, ProjectionInfo):
        raise TypeError(f"warm_start: expected the ProjectionInfo of an earlier call, got {type(info).__name__}")
    mu, theta = torch.as_tensor(info.mu), torch.as_tensor(info.theta, dtype=torch.float64)
    groups = tuple(n for a, n in enumerate(Y.shape) if a not in axis)
    batch = tuple(Y.shape[a] for a in batch_axis)
    if tuple(mu.shape) != groups or tuple(theta.shape) != batch:
        raise ValueError(f"warm_start: expected an info of groups of shape {groups}, got {tuple(mu.shape)}")
    if mu.device != Y.device:
        raise ValueError(f"warm_start: expected an info on {Y.device}, as Y, got one on {mu.device}")
    return mu, theta


def host_start(info: Any) -> Any:
    """Return the info of an earlier projection with arrays for tensors; the rest is for the checks of arrays."""
    mu = getattr(info, "mu", None)
    if not isinstance(mu, Tensor):
        return info
    if not mu.is_cpu:
        raise ValueError(f"warm_start: expected an info on cpu, as Y, got one on {mu.device}")
    if mu.dtype is torch.bfloat16:  # which NumPy does not know
        mu = mu.float()
    theta = info.theta.numpy() if isinstance(info.theta, Tensor) else info.theta
    return ProjectionInfo(theta, mu.numpy(), None, None, None)
