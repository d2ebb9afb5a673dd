"""The rest of the family on sharded tensors: aggregate, threshold, write.

Aggregates of groups that are cut are reduced, numbers of the groups that decide together are gathered, and each rank
writes its own part. Where groups are whole and each is a problem of its own, the ordinary operator does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from normball import _validate
from normball._info import OperatorInfo
from normball.backends import torch_checks, torch_family
from normball.backends.distributed import l1inf, shard
from normball.backends.distributed.call import INSIDE, Call, OutOfRangeError
from normball.backends.distributed.layout import Layout
from normball.backends.distributed.operators import check_output, local_radius, refuse_not_finite
from normball.backends.family import NORMS, OPERATORS
from normball.backends.torch_rules import others

__all__ = ["aggregate", "caps", "magnitudes", "norm", "operate", "path", "project_box"]


def _share(left: Tensor, lengths: Tensor) -> Tensor:
    return left / torch.where(lengths > 0, lengths, 1.0)


def _project_l1(call: Call) -> tuple[Tensor, Tensor]:
    sums = call.sums()
    inside = sums <= call.each * INSIDE
    taus = call.thresholds(torch.where(inside, torch.inf, call.each), below=True)
    taus = torch.where(inside, 0.0, taus) + 0.0 * sums
    return call.shrink(taus), taus


def _project_simplex(call: Call) -> tuple[Tensor, Tensor]:
    call.peaks()
    taus = call.thresholds(call.each, signed=True, below=True)
    Y = call.layout.local.detach()
    return (Y - call.layout.beside(taus)).clamp(min=0.0).to(Y.dtype), taus


def _project_l2(call: Call) -> tuple[Tensor, Tensor]:
    lengths = call.lengths()
    outside = lengths > call.each * INSIDE
    factors = torch.where(outside, _share(call.each, lengths), 1.0 + 0.0 * lengths)
    return call.scale(factors), torch.where(outside, lengths - call.each, 0.0 * lengths)


def _project_linf(call: Call) -> tuple[Tensor, Tensor]:
    peaks = call.peaks()
    over = (call.A.abs() - call.each[..., None]).clamp(min=0.0).sum(2, dtype=torch.float64)
    X = call.clip(call.each + 0.0 * peaks)
    return X, call.layout.total(torch.where(call.each.isinf(), 0.0, over))


def _project_l12(call: Call) -> tuple[Tensor, Tensor]:
    lengths = call.lengths()
    theta, left = call.share_out(lengths)
    return call.scale(torch.where(theta[:, None] == 0, 1.0, _share(left, lengths))), theta


def _bilevel_l1inf(call: Call) -> tuple[Tensor, Tensor]:
    theta, left = call.share_out(call.peaks())
    return call.clip(torch.where(theta[:, None] == 0, torch.inf, left)), theta


def _bilevel_l11(call: Call) -> tuple[Tensor, Tensor]:
    sums = call.sums()
    theta, left = call.share_out(sums)
    inside = theta[:, None] == 0
    taus = torch.where(inside, 0.0, call.thresholds(torch.where(inside, torch.inf, left), below=True))
    return call.shrink(taus + 0.0 * sums), theta


def _prox_l1inf(call: Call) -> tuple[Tensor, Tensor]:
    sums = call.sums()
    return call.clip(call.thresholds(torch.where(call.each.isinf(), 2.0 * sums, call.each)) + 0.0 * sums), call.radius


def _prox_l1(call: Call) -> tuple[Tensor, Tensor]:
    return call.shrink(call.each + 0.0 * call.peaks()), call.radius


def _prox_l12(call: Call) -> tuple[Tensor, Tensor]:
    lengths = call.lengths()
    left = _share((lengths - call.each).clamp(min=0.0), lengths)
    return call.scale(torch.where(call.each == 0, 1.0 + 0.0 * lengths, left)), call.radius


def _prox_linf1(call: Call) -> tuple[Tensor, Tensor]:
    found = l1inf.solve(call.layout, call.radius, None)
    if bool(found.theta.isnan().any()) and not call.scaled:
        raise OutOfRangeError
    return call.shrink(found.mu), found.theta


FORMULAS: dict[str, Callable[[Call], tuple[Tensor, Tensor]]] = {
    "project_l1": _project_l1,
    "project_simplex": _project_simplex,
    "project_l2": _project_l2,
    "project_linf": _project_linf,
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
    "prox_linf1": _prox_linf1,
}
_TOGETHER = ("project_l12", "bilevel_l1inf", "bilevel_l11", "prox_linf1")  # the groups of a problem decide together
_ALONE = ("project_linf1", "project_linf2")  # theta is of each group


def operate(
    name: str,
    Y: DTensor,
    radius: Any,
    axis: _validate.Axis | None,
    batch_axis: _validate.Axis | None,
    out: DTensor | None,
    check_finite: bool,
    threads: int | None,
    return_info: bool,
    weights: Any = None,
) -> Any:
    """Apply the operator of this name: see the function of the same name in `normball`."""
    torch_checks.tensor(Y)
    members, batch = torch_family._axes(name, Y, axis, batch_axis)
    what = "scale" if name.startswith("prox") else "radius"
    C = torch_checks.radius(radius, Y, [Y.shape[a] for a in batch], what)
    if torch.is_grad_enabled() and (Y.requires_grad or C.requires_grad) and out is None:
        raise ValueError(
            f"Y: expected a sharded tensor without gradient in {name}, got one that requires it; use torch.no_grad(), "
            "or project_l1inf, which has a derivative"
        )
    if out is not None:
        check_output(out, Y, C)
    layout = Layout(Y, members, batch)
    each = local_radius(layout, C)
    if name == "project_simplex":
        _validate.finite_radius(each.cpu().numpy())
    if weights is not None or (not layout.cut and name not in _TOGETHER):
        X, theta = _as_one(name, layout, each, threads, check_finite, weights)
    else:
        X, theta = _apply(name, layout, each, check_finite)
    if out is not None:
        out.to_local().detach().copy_(X)
        torch.autograd.graph.increment_version(out)
    result = layout.result(X) if out is None else out
    if not return_info:
        return result
    mu = _aggregated(OPERATORS[name][1], Layout(layout.result(X), members, batch))
    told = layout.of_groups(theta) if name in _ALONE else layout.of_problems(theta)
    return result, OperatorInfo(told, layout.of_groups(mu), None)


def _apply(name: str, layout: Layout, each: Tensor, check_finite: bool) -> tuple[Tensor, Tensor]:
    """Return the part of this rank, and theta."""
    if not layout.Y.numel():
        shape = (layout.problems, layout.here) if name in _ALONE else (layout.problems,)
        return layout.local.detach().clone(), each.new_zeros(shape)
    try:
        X, theta = FORMULAS[name](Call(layout, layout.view, each))
    except OutOfRangeError:
        X, theta = _rescaled(name, layout, each)
        if check_finite and bool(theta.isnan().any()):
            refuse_not_finite(layout)
    # Theta of each group where groups are problems of their own, else of each problem.
    return X, theta if name in _ALONE or theta.ndim == 1 else theta.amax(1)


def _rescaled(name: str, layout: Layout, each: Tensor) -> tuple[Tensor, Tensor]:
    """Apply the operator to numbers of the middle of the range; NaN throughout what is not finite."""
    unit = shard.unit_for(layout.greatest_of_problems(shard.sums_and_peaks(layout.view)[1]))
    wide = layout.result(layout.local.detach().double() * unit)
    small = Layout(wide, layout.members, layout.batch)
    X, theta = FORMULAS[name](Call(small, small.view, each * unit, scaled=True))
    return shard.unscaled(X, unit).to(layout.local.dtype), theta / unit


def _as_one(
    name: str, layout: Layout, each: Tensor, threads: int | None, check_finite: bool, weights: Any
) -> tuple[Tensor, Tensor]:
    """Apply the ordinary operator to the part of this rank, whose groups are whole."""
    heavy = None
    if weights is not None:
        if layout.cut:
            wanted = "Replicate() in the place of each Shard of a member axis"
            raise ValueError(
                f"Y: expected vectors that are whole on a rank where there are weights, got {layout.placements}; call "
                f"Y.redistribute with {wanted} first"
            )
        heavy = torch.as_tensor(weights, dtype=torch.float64, device=layout.local.device)
        heavy = heavy.broadcast_to(layout.Y.shape).contiguous()
        heavy = layout.part_of(heavy, range(layout.Y.ndim))
    shape = [layout.local.shape[a] for a in layout.batch]
    X, info = torch_family.operate(
        name, layout.local.detach(), each.reshape(shape), tuple(layout.members), tuple(layout.batch) or None, None,
        check_finite, threads, True, heavy,
    )  # fmt: skip
    theta = torch.as_tensor(info.theta)
    if not layout.local.numel():
        return X, each.new_zeros((layout.problems, layout.here) if name in _ALONE else (layout.problems,))
    if name in _ALONE:
        kept = others(layout.Y.ndim, layout.members)
        theta = theta.permute([kept.index(a) for a in (*layout.batch, *layout.groups)])
        return X, theta.reshape(layout.problems, layout.here)
    return X, theta.reshape(-1)


def _aggregated(kind: str, layout: Layout) -> Tensor:
    """Return the sum, the peak or the 2-norm of each of this rank's groups, in double precision."""
    call = Call(layout, layout.view, layout.view.new_zeros(layout.problems, dtype=torch.float64), scaled=True)
    return {"sum": call.sums, "peak": call.peaks, "norm2": call.lengths}[kind]()


def norm(
    name: str,
    Y: DTensor,
    axis: _validate.Axis | None,
    batch_axis: _validate.Axis | None,
    threads: int | None,
    weights: Any = None,
) -> Tensor:
    """Return the norm of this name, in double precision."""
    torch_checks.tensor(Y)
    kind, outer = NORMS[name]
    members, batch = torch_family._axes(name if outer is None else "", Y, axis, batch_axis)
    layout = Layout(Y, members, batch)
    if weights is not None:
        heavy = torch.as_tensor(weights, dtype=torch.float64, device=layout.local.device)
        heavy = heavy.broadcast_to(Y.shape).contiguous()
        heavier = layout.local.detach() * layout.part_of(heavy, range(Y.ndim))
        layout = Layout(layout.result(heavier), members, batch)
    values = _aggregated(kind, layout)
    if outer is None:
        return layout.of_problems(values.reshape(-1))
    if outer == "sum":
        return layout.of_problems(layout.total_of_groups(values.sum(1)))
    most = values.amax(1) if values.shape[1] else values.sum(1)
    return layout.of_problems(layout.greatest_of_groups(most))


def aggregate(
    name: str,
    kind: str,
    Y: DTensor,
    axis: _validate.Axis | None,
    batch_axis: _validate.Axis | None,
    threads: int | None,
) -> tuple[Any, tuple[int, ...]]:
    """Return the sum, the peak or the 2-norm of each group, gathered; and which of the axes left are not batch axes."""
    torch_checks.tensor(Y)
    members, batch = torch_family._axes(name, Y, axis, batch_axis)
    layout = Layout(Y, members, batch)
    values = layout.of_groups(_aggregated(kind, layout)).full_tensor()
    kept = [a for a in range(Y.ndim) if a not in members]
    return values, tuple(i for i, a in enumerate(kept) if a not in batch)


def caps(Y: DTensor, theta: Any, axis: _validate.Axis, batch_axis: _validate.Axis | None, threads: int | None) -> Any:
    """Return the cap at which each group would lose theta, gathered."""
    torch_checks.tensor(Y)
    members, batch = torch_checks.axes(Y.ndim, axis, batch_axis)
    layout = Layout(Y, members, batch)
    each = local_radius(layout, torch_checks.radius(theta, Y, [Y.shape[a] for a in batch], "theta"))
    call = Call(layout, layout.view, each)
    return layout.of_groups(call.thresholds(call.each)).full_tensor()


def magnitudes(
    Y: DTensor, axis: _validate.Axis | None, batch_axis: _validate.Axis | None
) -> tuple[Any, tuple[int, ...]]:
    """Refuse: all the entries of a sharded tensor are not to be brought together unasked."""
    raise ValueError(
        "Y: expected a tensor that is not sharded where single entries are counted, got a DTensor; call "
        "Y.full_tensor() first, if it fits"
    )


def path(
    name: str,
    Y: DTensor,
    radii: Iterable[Any],
    axis: _validate.Axis | None,
    batch_axis: _validate.Axis | None,
    check_finite: bool,
    threads: int | None,
    return_info: bool,
) -> Iterator[Any]:
    """Apply the operator with one radius after another."""
    for radius in radii:
        yield operate(name, Y, radius, axis, batch_axis, None, check_finite, threads, return_info)


def project_box(Y: DTensor, lower: Any, upper: Any, out: DTensor | None, check_finite: bool) -> DTensor:
    """See `normball.project_box`."""
    torch_checks.tensor(Y)
    layout = Layout(Y, range(Y.ndim), [])
    if out is not None:
        check_output(out, Y, torch.zeros(()))

    def part(bound: Any) -> Tensor:
        whole = torch.as_tensor(bound, dtype=Y.dtype, device=Y.device).broadcast_to(Y.shape)
        return layout.part_of(whole.contiguous(), range(Y.ndim))

    X = torch_family.project_box(layout.local.detach(), part(lower), part(upper), None, check_finite)
    if out is None:
        return layout.result(X)
    out.to_local().detach().copy_(X)
    return out


