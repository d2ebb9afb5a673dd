"""The l1,inf projection of a sharded tensor as the other backends offer it: checks, info, derivative."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from normball import _validate
from normball._info import ProjectionInfo
from normball.backends import torch_checks, torch_op
from normball.backends.cpu import METHODS
from normball.backends.cuda.plain import rounded_down
from normball.backends.distributed import shard
from normball.backends.distributed.l1inf import Solution, solve
from normball.backends.distributed.layout import Layout
from normball.backends.torch_rules import others

__all__ = ["check_output", "eps", "local_radius", "norms", "project_l1inf", "refuse_not_finite"]


def project_l1inf(
    Y: DTensor,
    radius: Any,
    axis: _validate.Axis,
    batch_axis: _validate.Axis | None,
    method: str,
    out: DTensor | None,
    check_finite: bool,
    threads: int | None,
    warm_start: ProjectionInfo | None,
    return_info: bool,
    radius_name: str = "radius",
) -> Any:
    """See `normball.project_l1inf`. There is one method for sharded tensors; the others stand for the same result."""
    if not isinstance(method, str) or method not in METHODS:
        _validate.unknown("method", method, tuple(METHODS))
    torch_checks.tensor(Y)
    members, batch = torch_checks.axes(Y.ndim, axis, batch_axis)
    C = torch_checks.radius(radius, Y, [Y.shape[a] for a in batch], radius_name)
    if out is not None:
        check_output(out, Y, C)
    layout = Layout(Y, members, batch)
    start = None if warm_start is None else _start(layout, warm_start)
    if out is None and torch.is_grad_enabled() and (Y.requires_grad or C.requires_grad):
        X, mu, theta = _Differentiable.apply(Y, C, layout, start, check_finite)  # type: ignore[no-untyped-call]
    else:
        found = _solved(layout, C, start, check_finite)
        mu, theta = found.mu, found.theta
        cap = layout.beside(mu)
        if out is None:
            X = layout.result(torch.clamp(layout.local.detach(), -cap, cap))
        else:
            X = out
            torch.clamp(layout.local.detach(), -cap, cap, out=out.to_local().detach())
            torch.autograd.graph.increment_version(out)
    if not return_info:
        return X
    return X, ProjectionInfo(layout.of_problems(theta), layout.of_groups(mu), None, None, None)


def _solved(layout: Layout, C: Tensor, start: Solution | None, check_finite: bool) -> Solution:
    """Return the solution, the caps in the dtype of the tensor."""
    if not (layout.cut or layout.spread):
        return _alone(layout, C, start, check_finite)
    found = solve(layout, local_radius(layout, C), start)
    if check_finite and bool(found.theta.isnan().any()):
        refuse_not_finite(layout)
    dtype = layout.local.dtype
    mu = found.mu
    if dtype == torch.float64:
        # A few units in the last place, for sums of sums of caps are rounded more than once.
        mu = torch.where(found.theta[:, None] > 0, mu * (1.0 - 2.0**-51), mu)
    return Solution(rounded_down(mu, dtype), found.theta)


def _alone(layout: Layout, C: Tensor, start: Solution | None, check_finite: bool) -> Solution:
    """Return the solution where this rank has all of its problems: that of the ordinary projection, to the bit."""
    kept = others(layout.Y.ndim, layout.members)
    order = [kept.index(a) for a in (*layout.batch, *layout.groups)]
    info = None
    if start is not None:
        shape = [layout.local.shape[kept[i]] for i in order]
        mu = start.mu.reshape(shape).permute([order.index(i) for i in range(len(order))])
        theta = start.theta.reshape([layout.local.shape[a] for a in layout.batch])
        info = ProjectionInfo(theta, mu.contiguous(), None, None, None)
    radius = local_radius(layout, C).reshape([layout.local.shape[a] for a in layout.batch])
    _, told = torch_op.project_l1inf(
        layout.local.detach(), radius, tuple(layout.members), tuple(layout.batch) or None, "newton", None, check_finite,
        None, info, True,
    )  # fmt: skip
    return Solution(told.mu.permute(order).reshape(layout.problems, layout.here), told.theta.reshape(-1))


def local_radius(layout: Layout, C: Tensor) -> Tensor:
    """Return the radius of each of this rank's problems."""
    shape = [layout.Y.shape[a] for a in layout.batch]
    whole = C.detach().to(layout.local.device).broadcast_to(shape)
    return layout.part_of(whole.contiguous(), layout.batch).reshape(-1) if shape else whole.reshape(1)


def refuse_not_finite(layout: Layout) -> None:
    """Raise, on every rank alike, for a tensor that holds NaN or infinity."""
    here = int((~layout.local.detach().isfinite()).sum())
    raise ValueError(f"Y: expected finite numbers, got NaN or infinity ({here} such entries on this rank)")


def check_output(out: Any, Y: DTensor, C: Tensor) -> None:
    """Raise unless the projection of `Y` can be written to `out`."""
    if not isinstance(out, DTensor):
        raise TypeError(f"out: expected a DTensor, as Y, got {type(out).__name__}")
    torch_checks.output(out, Y, C)
    if out.device_mesh != Y.device_mesh or tuple(out.placements) != tuple(Y.placements):
        raise ValueError(f"out: expected the mesh and the placements {Y.placements} of Y, got {out.placements}")


def _start(layout: Layout, info: Any) -> Solution:
    """Return an earlier solution as this rank needs it."""
    if not isinstance(info, ProjectionInfo):
        raise TypeError(f"warm_start: expected the ProjectionInfo of an earlier call, got {type(info).__name__}")
    kept = others(layout.Y.ndim, layout.members)
    groups = tuple(layout.Y.shape[a] for a in kept)
    if tuple(info.mu.shape) != groups:
        raise ValueError(f"warm_start: expected an info of groups of shape {groups}, got {tuple(info.mu.shape)}")
    model = layout.of_groups(layout.view.new_zeros(layout.problems, layout.here))
    mu = info.mu
    if not isinstance(mu, DTensor):
        mu = layout.part_of(torch.as_tensor(mu).to(layout.local.device), kept)
    else:
        mu = (mu if mu.placements == model.placements else mu.redistribute(placements=model.placements)).to_local()
    order = [kept.index(a) for a in (*layout.batch, *layout.groups)]
    theta = info.theta
    if isinstance(theta, DTensor):
        theta = theta.to_local()
    elif layout.batch:
        theta = layout.part_of(torch.as_tensor(theta).to(layout.local.device), layout.batch)
    theta = torch.as_tensor(theta, dtype=torch.float64).reshape(-1)
    return Solution(mu.permute(order).reshape(layout.problems, layout.here), theta)


class _Differentiable(torch.autograd.Function):
    """The projection with its derivative, which costs two collectives at most: see `torch_rules`."""

    @staticmethod
    def forward(
        ctx: Any, Y: DTensor, C: Tensor, layout: Layout, start: Solution | None, check_finite: bool
    ) -> Any:
        found = _solved(layout, C, start, check_finite)
        cap = layout.beside(found.mu)
        X = layout.result(torch.clamp(layout.local.detach(), -cap, cap))
        ctx.layout, ctx.found, ctx.radius = layout, found, C
        ctx.mark_non_differentiable(found.mu, found.theta)
        ctx.save_for_backward(Y)
        return X, found.mu, found.theta

    @staticmethod
    def backward(ctx: Any, grad: DTensor, *_: Any) -> Any:
        (Y,) = ctx.saved_tensors  # raises where it was changed in place since
        layout: Layout = ctx.layout
        mu, theta = ctx.found.mu, ctx.found.theta
        incoming = grad.redistribute(placements=layout.placements) if grad.placements != layout.placements else grad
        V = incoming.to_local()
        y, cap = Y.to_local().detach(), layout.beside(mu)
        sign = torch.where((y.abs() > cap) & (cap > 0), torch.sign(y), 0.0)
        passes = (sign == 0) & ((cap > 0) | (layout.beside(theta[:, None].expand_as(mu)) == 0))
        inner = Layout(layout.result(sign * V), layout.members, layout.batch).view
        both = torch.stack([inner.sum(2, dtype=torch.float64), _counts(layout, sign)])
        a, k = layout.total(both)
        each = torch.where(k > 0, 1.0 / k.clamp(min=1.0), 0.0)
        pulled, slope = layout.total_of_groups(torch.stack([(a * each).sum(1), each.sum(1)]))
        mean = torch.where(slope > 0, pulled / slope.clamp(min=torch.finfo(torch.float64).tiny), 0.0)
        change = layout.beside(((a - mean[:, None]) * each).to(V.dtype))
        into_Y = layout.result(torch.where(passes, V, sign * change))
        into_C = None
        if ctx.needs_input_grad[1]:
            by_problem = layout.of_problems(mean)
            full = by_problem.full_tensor() if isinstance(by_problem, DTensor) else by_problem
            into_C = full.sum_to_size(ctx.radius.shape).to(ctx.radius)
        return into_Y, into_C, None, None, None


def _counts(layout: Layout, sign: Tensor) -> Tensor:
    inner = Layout(layout.result(sign), layout.members, layout.batch).view
    return (inner != 0).sum(2).double()


def norms(
    Y: DTensor, axis: _validate.Axis, batch_axis: _validate.Axis | None, threads: int | None
) -> tuple[Tensor, Tensor]:
    """Sum of the group maxima and largest group sum, for each problem."""
    torch_checks.tensor(Y)
    layout = Layout(Y, *torch_checks.axes(Y.ndim, axis, batch_axis))
    sums, peaks = shard.sums_and_peaks(layout.view)
    peaks, sums = layout.greatest(peaks), layout.total(sums)
    most = layout.greatest_of_groups(sums.amax(1) if sums.shape[1] else sums.sum(1))
    return layout.of_problems(layout.total_of_groups(peaks.sum(1))), layout.of_problems(most)


def eps(Y: DTensor) -> float:
    """Return the unit of rounding of the dtype of `Y`."""
    return torch.finfo(Y.dtype).eps
