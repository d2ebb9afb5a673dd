"""What the torch operator must know of each ball: how to project on each device, and the derivative.

A derivative is written once, as the product of the Jacobian with a tangent. The Jacobian of a projection onto a convex
set is symmetric, so the same product serves reverse mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from normball import _core, _validate
from normball._info import ProjectionInfo
from normball.backends import cpu, cuda, torch_checks
from normball.backends.cuda.plain import rounded_down
from normball.backends.steps import DTYPES

__all__ = ["RULES", "Rule", "Start", "expand", "others"]

Start = tuple[Tensor, Tensor] | None  # caps and theta of an earlier projection


@dataclass(frozen=True)
class Rule:
    """One ball.

    `host` and `device` project `Y` into `X`. The one returns an info, if it shall explain itself; the other the caps,
    in the dtype of `Y`, and theta in double precision. `tangent` returns the product of the Jacobian with `V`, and the
    product of the derivative by the radius with `V`; `push_radius` the derivative by the radius times a number.
    """

    host: Callable[..., Any]
    device: Callable[..., tuple[Tensor, Tensor]]
    tangent: Callable[..., tuple[Tensor, Tensor]]
    push_radius: Callable[..., Tensor]


def expand(values: Tensor, ndim: int, kept: Sequence[int]) -> Tensor:
    """Return `values`, whose axes are the axes `kept` of an array, shaped to broadcast against that array."""
    shape = [1] * ndim
    for axis, size in zip(kept, values.shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)


def others(ndim: int, axes: Sequence[int]) -> list[int]:
    """Return the axes that are not among `axes`."""
    return [a for a in range(ndim) if a not in axes]


def _l1inf_host(
    Y: Tensor,
    X: Tensor,
    radius: Any,
    axis: _validate.Axis,
    batch_axis: _validate.Axis | None,
    method: str,
    check_finite: bool,
    threads: int | None,
    start: ProjectionInfo | None,
    explains: bool,
    radius_name: str,
) -> ProjectionInfo | None:
    narrow = Y.dtype is torch.bfloat16  # which NumPy does not know
    Y = Y.resolve_neg()
    source = _array(Y.float() if narrow else Y)
    target = source if narrow or Y is X else _array(X)
    done = cpu.project_l1inf(
        source, _array(radius) if isinstance(radius, Tensor) else radius, axis, batch_axis, method, target,
        check_finite, threads, start if start is None else torch_checks.host_start(start), explains or narrow,
        radius_name,
    )  # fmt: skip
    if not (explains or narrow):
        return None
    told: ProjectionInfo = done[1]
    mu = torch.from_numpy(told.mu)
    if narrow:
        mu = rounded_down(mu, Y.dtype)
        cap = expand(mu, Y.ndim, others(Y.ndim, torch_checks.axes(Y.ndim, axis, None)[0]))
        torch.clamp(Y, -cap, cap, out=X)
    theta = torch.from_numpy(np.asarray(told.theta))
    return ProjectionInfo(theta, mu, told.clipped, told.kept, told.reads, told.order_steps)


def _array(T: Tensor) -> np.ndarray[Any, Any]:
    """Return the memory of a tensor as an array."""
    return (T.detach() if T.requires_grad else T).numpy()


def _l1inf_parts(
    Y: Tensor, mu: Tensor, theta: Tensor, axis: Sequence[int], batch_axis: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the signs of what is clipped, what passes, and the weights of each group and of the problem."""
    cap = expand(mu, Y.ndim, others(Y.ndim, axis))
    alive = cap > 0
    sign = torch.where((Y.abs() > cap) & alive, torch.sign(Y), 0.0)
    interior = expand(theta, Y.ndim, batch_axis) == 0
    passes = (sign == 0) & (alive | interior)
    wide = torch.promote_types(Y.dtype, torch.float32)
    count = (sign != 0).sum(list(axis), keepdim=True)
    each = torch.where(count > 0, 1.0 / count.clamp(min=1).to(wide), 0.0)
    whole = each.sum(others(Y.ndim, batch_axis), keepdim=True)
    return sign, passes, each, torch.where(whole > 0, 1.0 / whole.clamp(min=torch.finfo(wide).tiny), 0.0)


def _l1inf_tangent_host(
    Y: Tensor, mu: Tensor, theta: Tensor, V: Tensor, axis: Sequence[int], batch_axis: Sequence[int]
) -> tuple[Tensor, Tensor] | None:
    """Return the product by the core; None where it cannot."""
    if Y.dtype not in (torch.float32, torch.float64) or Y.numel() == 0:
        return None
    X = torch.empty_like(Y, requires_grad=False)
    along = V.detach().resolve_neg()
    if along.stride() != X.stride() or along.dtype != X.dtype:
        along = torch.empty_like(X).copy_(along)
    change = np.empty(tuple(theta.shape))
    old_theta, caps = (T.detach().contiguous().double().numpy() for T in (theta, mu))
    done = _core.tangent_l1inf(
        Y.detach().resolve_neg().numpy(), along.numpy(), X.numpy(), DTYPES["f" if Y.dtype == torch.float32 else "d"],
        sum(1 << a for a in axis), sum(1 << a for a in batch_axis), _validate.thread_count(None), old_theta, caps,
        change,
    )  # fmt: skip
    return (X, torch.from_numpy(change).to(theta.dtype)) if done else None


def _l1inf_tangent(
    Y: Tensor, mu: Tensor, theta: Tensor, V: Tensor, axis: Sequence[int], batch_axis: Sequence[int]
) -> tuple[Tensor, Tensor]:
    if not torch.is_grad_enabled() and _is_plain(Y) and _is_plain(V) and not torch.compiler.is_compiling():
        by_kernels = _l1inf_tangent_host if Y.device.type == "cpu" else cuda.tangent_l1inf
        done = by_kernels(Y, mu, theta, V, axis, batch_axis)
        if done is not None:
            return done
    # Within the piece of theta, a clipped entry is sign * mu_j with mu_j = (s_j - theta) / k_j. Hence its change is
    # sign * (a_j - abar) / k_j, where a_j is the change of s_j and abar that of theta, which keeps sum_j mu_j.
    sign, passes, each, share = _l1inf_parts(Y, mu, theta, axis, batch_axis)
    a = (sign * V).sum(list(axis), keepdim=True, dtype=each.dtype)
    abar = (a * each).sum(others(Y.ndim, batch_axis), keepdim=True) * share
    JV = torch.where(passes, V, sign * ((a - abar) * each).to(V.dtype))
    return JV, abar.reshape(theta.shape).to(theta.dtype)


def _l1inf_push_radius(
    Y: Tensor, mu: Tensor, theta: Tensor, change: Tensor, axis: Sequence[int], batch_axis: Sequence[int]
) -> Tensor:
    sign, _, each, share = _l1inf_parts(Y, mu, theta, axis, batch_axis)
    return sign * (each * share * expand(change, Y.ndim, batch_axis)).to(Y.dtype)


def _is_plain(T: Tensor) -> bool:
    """Whether a tensor has memory of its own: not under a transform, not traced, not batched by the old vmap."""
    return (
        type(T) in (Tensor, torch.nn.Parameter)
        and not torch._C._are_functorch_transforms_active()
        and not torch._C._functorch.is_legacy_batchedtensor(T)
    )


RULES = {"l1inf": Rule(_l1inf_host, cuda.project_l1inf, _l1inf_tangent, _l1inf_push_radius)}
