"""Tensors: the projections as torch operators, differentiable, traceable, and without a copy on the CPU.

One functional operator for all balls, `normball::project`, and two that write into an argument. What differs from ball
to ball stands in `torch_rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from normball import _validate
from normball._info import ProjectionInfo
from normball.backends import torch_checks
from normball.backends.cpu import METHODS
from normball.backends.torch_family import aggregate, caps, magnitudes, norm, operate, path, project_box
from normball.backends.torch_rules import RULES, others, result_like

__all__ = [
    "aggregate",
    "caps",
    "eps",
    "magnitudes",
    "norm",
    "norms",
    "operate",
    "path",
    "project_box",
    "project_l1inf",
]


def project_l1inf(
    Y: Tensor,
    radius: Any,
    axis: _validate.Axis,
    batch_axis: _validate.Axis | None,
    method: str,
    out: Tensor | None,
    check_finite: bool,
    threads: int | None,
    warm_start: ProjectionInfo | None,
    return_info: bool,
    radius_name: str = "radius",
) -> Any:
    """See `normball.project_l1inf`."""
    torch_checks.tensor(Y)
    watched = traced(Y)
    alone = not watched and (out is not None or not differentiated(Y, radius))
    if alone and Y.is_cpu:
        # What is no tensor is left to the checks of arrays: a training step has no time to spare for two sets of them.
        if isinstance(radius, Tensor):
            _, batch = torch_checks.axes(Y.ndim, axis, batch_axis)
            radius = torch_checks.radius(radius, Y, [Y.shape[a] for a in batch], radius_name)
        if out is not None:
            torch_checks.output(out, Y, radius)
        X, blank = result_like(Y) if out is None else (out, False)
        told = RULES["l1inf"].host(Y, X, radius, axis, batch_axis, method, check_finite, threads, warm_start,
                                   return_info, radius_name, blank)  # fmt: skip
        if out is not None:
            torch.autograd.graph.increment_version(out)
        return (X, told) if return_info else X
    if not isinstance(method, str) or method not in METHODS:
        _validate.unknown("method", method, tuple(METHODS))
    axes, batch = torch_checks.axes(Y.ndim, axis, batch_axis)
    known = torch_checks.number if alone else torch_checks.radius
    radius = known(radius, Y, [Y.shape[a] for a in batch], radius_name)
    if threads is not None:
        threads = _validate.thread_count(threads)
    start = None if warm_start is None else torch_checks.warm_start(warm_start, Y, axes, batch)
    if out is not None:
        torch_checks.output(out, Y, radius)
    arguments = (radius, "l1inf", axes, batch, method, check_finite, threads)
    begin = start or (None, None)
    if alone:
        X = torch.empty_like(Y, requires_grad=False) if out is None else out
        mu, theta = _write(Y, X, *arguments, *begin)
        if out is not None:
            torch.autograd.graph.increment_version(out)
    elif out is Y:
        X = out
        mu, theta = torch.ops.normball.project_in_place(Y, *arguments, *begin)
    elif out is not None:
        X = out
        mu, theta = torch.ops.normball.project_into(Y, out, *arguments, *begin)
    elif watched:
        X, mu, theta = torch.ops.normball.project(Y, *arguments, *begin)
    else:
        X, mu, theta = _Differentiable.apply(Y, *arguments, *begin)  # type: ignore[no-untyped-call]
    return (X, ProjectionInfo(theta.detach(), mu.detach(), None, None, None)) if return_info else X


def norms(
    Y: Tensor, axis: _validate.Axis, batch_axis: _validate.Axis | None, threads: int | None
) -> tuple[Tensor, Tensor]:
    """Sum of the group maxima and largest group sum, for each problem; differentiable."""
    torch_checks.tensor(Y)
    axes, batch = torch_checks.axes(Y.ndim, axis, batch_axis)
    rest = others(Y.ndim, batch)
    if Y.numel() == 0:
        zero = Y.double().sum(rest)
        return zero, zero
    A = Y.abs()
    sums = A.sum(axes, keepdim=True, dtype=torch.float64)
    return A.amax(axes, keepdim=True).sum(rest, dtype=torch.float64), sums.amax(rest)


def eps(Y: Tensor) -> float:
    """Return the unit of rounding of the dtype of `Y`."""
    return torch.finfo(Y.dtype).eps


def traced(Y: Tensor) -> bool:
    """Whether something other than plain execution looks on, so that the call must be one that it knows."""
    return (
        torch.compiler.is_compiling()
        or type(Y) not in (Tensor, torch.nn.Parameter)
        or Y.is_meta
        or is_in_torch_dispatch_mode()
    )


def differentiated(Y: Tensor, radius: Any) -> bool:
    """Whether a derivative may be asked for, or one of torch's function transforms is at work."""
    return (
        (torch.is_grad_enabled() and (Y.requires_grad or getattr(radius, "requires_grad", False)))
        or torch._C._are_functorch_transforms_active()
        or torch.autograd.forward_ad._current_level >= 0
    )


def _write(
    Y: Tensor,
    X: Tensor,
    radius: Any,
    ball: str,
    axis: Sequence[int],
    batch_axis: Sequence[int],
    method: str,
    check_finite: bool,
    threads: int | None,
    warm_mu: Tensor | None,
    warm_theta: Tensor | None,
    blank: bool = False,
) -> tuple[Tensor, Tensor]:
    """Project `Y` into `X`, which may be zeros as yet; return the caps and theta."""
    if Y.is_cpu:
        info = None if warm_mu is None else ProjectionInfo(warm_theta, warm_mu, None, None, None)
        told = RULES[ball].host(
            Y, X, radius, axis, batch_axis, method, check_finite, threads, info, True, "radius", blank
        )
        return told.mu, told.theta
    start = None if warm_mu is None or warm_theta is None else (warm_mu, warm_theta)
    return RULES[ball].device(Y, X, radius, axis, batch_axis, start)


def _empty_info(Y: Tensor, axis: Sequence[int], batch_axis: Sequence[int]) -> tuple[Tensor, Tensor]:
    groups = [Y.shape[a] for a in others(Y.ndim, axis)]
    return Y.new_empty(groups), Y.new_empty([Y.shape[a] for a in batch_axis], dtype=torch.float64)


@torch.library.custom_op("normball::project", mutates_args=())
def _op(
    Y: Tensor,
    radius: Tensor,
    ball: str,
    axis: Sequence[int],
    batch_axis: Sequence[int],
    method: str,
    check_finite: bool,
    threads: int | None,
    warm_mu: Tensor | None,
    warm_theta: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    X, blank = result_like(Y)
    return X, *_write(Y, X, radius, ball, axis, batch_axis, method, check_finite, threads, warm_mu, warm_theta, blank)


@_op.register_fake
def _(Y, radius, ball, axis, batch_axis, *_):  # type: ignore[no-untyped-def]
    return torch.empty_like(Y, requires_grad=False), *_empty_info(Y, axis, batch_axis)


@torch.library.custom_op("normball::project_into", mutates_args={"out"})
def _into(
    Y: Tensor,
    out: Tensor,
    radius: Tensor,
    ball: str,
    axis: Sequence[int],
    batch_axis: Sequence[int],
    method: str,
    check_finite: bool,
    threads: int | None,
    warm_mu: Tensor | None,
    warm_theta: Tensor | None,
) -> tuple[Tensor, Tensor]:
    return _write(Y, out, radius, ball, axis, batch_axis, method, check_finite, threads, warm_mu, warm_theta)


@_into.register_fake
def _(Y, out, radius, ball, axis, batch_axis, *_):  # type: ignore[no-untyped-def]
    return _empty_info(Y, axis, batch_axis)


@torch.library.custom_op("normball::project_in_place", mutates_args={"Y"})
def _in_place(
    Y: Tensor,
    radius: Tensor,
    ball: str,
    axis: Sequence[int],
    batch_axis: Sequence[int],
    method: str,
    check_finite: bool,
    threads: int | None,
    warm_mu: Tensor | None,
    warm_theta: Tensor | None,
) -> tuple[Tensor, Tensor]:
    return _write(Y, Y, radius, ball, axis, batch_axis, method, check_finite, threads, warm_mu, warm_theta)


@_in_place.register_fake
def _(Y, radius, ball, axis, batch_axis, *_):  # type: ignore[no-untyped-def]
    return _empty_info(Y, axis, batch_axis)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    Y, radius, ball, axis, batch_axis, *_ = inputs
    _, mu, theta = output
    ctx.mark_non_differentiable(mu, theta)
    ctx.save_for_backward(Y, mu, theta)
    ctx.save_for_forward(Y, mu, theta)
    ctx.ball, ctx.place = ball, (axis, batch_axis)
    ctx.radius_shape, ctx.radius_dtype = radius.shape, radius.dtype


def _backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
    Y, mu, theta = ctx.saved_tensors
    into_Y, into_radius = RULES[ctx.ball].tangent(Y, mu, theta, grad, *ctx.place)
    if not ctx.needs_input_grad[1]:
        return into_Y, *[None] * 9
    into_radius = into_radius.sum_to_size(ctx.radius_shape).to(ctx.radius_dtype)
    return into_Y, into_radius, *[None] * 8


def _batched(
    info: Any, in_dims: Any, Y: Tensor, radius: Tensor, ball: str, axis: Any, batch_axis: Any, *rest: Any
) -> Any:
    """One more batch axis, in front."""
    *options, warm_mu, warm_theta = rest
    dims = dict(zip(("Y", "radius", "mu", "theta"), (*in_dims[:2], *in_dims[-2:]), strict=True))

    def front(x: Any, dim: int | None) -> Any:
        return x if x is None else x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)

    radius = front(radius, dims["radius"])
    radius = radius.reshape(info.batch_size, *[1] * (len(batch_axis) + 1 - radius.ndim), *radius.shape[1:])
    Y = front(Y, dims["Y"])
    axis, batch_axis = [a + 1 for a in axis], [0, *(a + 1 for a in batch_axis)]
    radius = radius.expand([Y.shape[a] for a in batch_axis])
    start = front(warm_mu, dims["mu"]), front(warm_theta, dims["theta"])
    return torch.ops.normball.project(Y, radius, ball, axis, batch_axis, *options, *start), (0, 0, 0)


_op.register_autograd(_backward, setup_context=_save)
_op.register_vmap(_batched)


class _Differentiable(torch.autograd.Function):
    """The operator with forward mode, which operators registered from Python cannot have."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return torch.ops.normball.project(*arguments)

    setup_context = staticmethod(_save)
    backward = staticmethod(_backward)

    @staticmethod
    def jvp(ctx: Any, along_Y: Tensor | None, along_radius: Tensor | None, *_: Any) -> Any:
        Y, mu, theta = ctx.saved_tensors
        moved = torch.zeros_like(Y)
        if along_Y is not None:
            moved = RULES[ctx.ball].tangent(Y, mu, theta, along_Y, *ctx.place)[0]
        if along_radius is not None:
            change = along_radius.to(theta.dtype).expand(theta.shape)
            moved = moved + RULES[ctx.ball].push_radius(Y, mu, theta, change, *ctx.place)
        return moved, None, None
