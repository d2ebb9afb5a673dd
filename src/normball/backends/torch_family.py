"""The rest of the family on tensors.

On the CPU, where no gradient is asked for, the core does the work, without a copy. Elsewhere the same operators are
written in torch operations, in double precision; these are differentiable as they stand, in every mode, and the
derivative is the exact one, because sorting decides only which entries count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from normball import _validate
from normball._info import OperatorInfo
from normball.backends import cpu, cuda, torch_checks
from normball.backends.family import NORMS, OPERATORS, VECTORS
from normball.backends.torch_rules import expand, others, result_like

__all__ = ["aggregate", "caps", "magnitudes", "norm", "operate", "path", "project_box"]


@dataclass(frozen=True)
class Problem:
    """What an operator is given: the tensor in double precision, its axes, and the radius of each problem."""

    Y: Tensor
    members: list[int]
    batch: list[int]
    radius: Tensor  # of the batch shape
    weights: Tensor | None

    @property
    def C(self) -> Tensor:
        """The radius, to be compared with `Y`."""
        return expand(self.radius.broadcast_to([self.Y.shape[a] for a in self.batch]), self.Y.ndim, self.batch)

    def over_groups(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Project the numbers of the groups onto the l1 ball: theta of the problem, and what is left of each."""
        groups = others(self.Y.ndim, self.batch)
        theta = torch.where(values.sum(groups, keepdim=True) <= self.C, 0.0, threshold(values, self.C, groups))
        return theta, (values - theta).clamp(min=0.0)


def threshold(values: Tensor, C: Tensor, axes: Sequence[int], weights: Tensor | None = None) -> Tensor:
    """Return the theta with ``sum(w * max(values - w * theta, 0)) == C`` along the axes, which are kept as ones."""
    last = list(range(values.ndim - len(axes), values.ndim))
    rows = values.movedim(list(axes), last).flatten(values.ndim - len(axes))
    wanted = C.expand([1 if a in axes else n for a, n in enumerate(values.shape)]).movedim(list(axes), last)
    wanted = wanted.reshape(*rows.shape[:-1], 1)
    if weights is None:
        Z = rows.sort(-1, descending=True).values
        thetas = (Z.cumsum(-1) - wanted) / torch.arange(1, Z.shape[-1] + 1, device=Z.device, dtype=Z.dtype)
        ratio = Z
    else:
        heavy = weights.expand(values.shape).movedim(list(axes), last).flatten(values.ndim - len(axes))
        order = (rows / heavy).argsort(-1, descending=True)
        Z, W = rows.gather(-1, order), heavy.gather(-1, order)
        thetas = ((W * Z).cumsum(-1) - wanted) / (W * W).cumsum(-1)
        thetas, ratio = torch.where(W > 0, thetas, -torch.inf), Z / W
    count = (ratio > thetas).sum(-1, keepdim=True).clamp(min=1)
    theta = thetas.gather(-1, count - 1)[..., 0]
    return expand(theta, values.ndim, others(values.ndim, axes))


def _l1(Y: Tensor, C: Tensor, axes: list[int], weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    A = Y.abs()
    w = 1.0 if weights is None else weights
    inside = (w * A).sum(axes, keepdim=True) <= C
    theta = torch.where(inside, 0.0, threshold(A, C, axes, weights))
    return torch.where(inside, Y, torch.sign(Y) * (A - w * theta).clamp(min=0.0)), theta


def _project_l1(p: Problem) -> tuple[Tensor, Tensor]:
    return _l1(p.Y, p.C, p.members, p.weights)


def _project_simplex(p: Problem) -> tuple[Tensor, Tensor]:
    theta = threshold(p.Y, p.C, p.members)
    return (p.Y - theta).clamp(min=0.0), theta


def _lengths(p: Problem) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(p.Y, dim=p.members, keepdim=True)
    return lengths


def _share(left: Tensor, lengths: Tensor) -> Tensor:
    return left / torch.where(lengths > 0, lengths, 1.0)


def _project_l2(p: Problem) -> tuple[Tensor, Tensor]:
    lengths = _lengths(p)
    outside = lengths > p.C
    return torch.where(outside, p.Y * _share(p.C, lengths), p.Y), torch.where(outside, lengths - p.C, 0.0)


def _project_linf(p: Problem) -> tuple[Tensor, Tensor]:
    X = torch.where(p.Y.abs() > p.C, torch.sign(p.Y) * p.C, p.Y)
    return X, (p.Y - X).abs().sum(p.members, keepdim=True)


def _project_l12(p: Problem) -> tuple[Tensor, Tensor]:
    lengths = _lengths(p)
    theta, left = p.over_groups(lengths)
    return torch.where(theta == 0, p.Y, p.Y * _share(left, lengths)), theta


def _bilevel_l1inf(p: Problem) -> tuple[Tensor, Tensor]:
    theta, left = p.over_groups(p.Y.abs().amax(p.members, keepdim=True))
    clipped = torch.where(p.Y.abs() > left, torch.sign(p.Y) * left, p.Y)
    return torch.where(theta == 0, p.Y, clipped), theta


def _bilevel_l11(p: Problem) -> tuple[Tensor, Tensor]:
    theta, left = p.over_groups(p.Y.abs().sum(p.members, keepdim=True))
    return torch.where(theta == 0, p.Y, _l1(p.Y, left, p.members)[0]), theta


def _prox_l1(p: Problem) -> tuple[Tensor, Tensor]:
    return torch.sign(p.Y) * (p.Y.abs() - p.C).clamp(min=0.0), p.C


def _prox_l12(p: Problem) -> tuple[Tensor, Tensor]:
    lengths = _lengths(p)
    return torch.where(p.C == 0, p.Y, p.Y * _share((lengths - p.C).clamp(min=0.0), lengths)), p.C


def _prox_l1inf(p: Problem) -> tuple[Tensor, Tensor]:
    return p.Y - _l1(p.Y, p.C, p.members)[0], p.C


FORMULAS: dict[str, Callable[[Problem], tuple[Tensor, Tensor]]] = {
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
}


def operate(
    name: str,
    Y: Tensor,
    radius: Any,
    axis: _validate.Axis | None,
    batch_axis: _validate.Axis | None,
    out: Tensor | None,
    check_finite: bool,
    threads: int | None,
    return_info: bool,
    weights: Any = None,
) -> Any:
    """Apply the operator of this name: see the function of the same name in `normball`."""
    torch_checks.tensor(Y)
    members, batch = _axes(name, Y, axis, batch_axis)
    what = "scale" if name.startswith("prox") else "radius"
    C = torch_checks.radius(radius, Y, [Y.shape[a] for a in batch], what)
    if out is not None:
        torch_checks.output(out, Y, C)
    if _by_core(Y, C) and not isinstance(weights, Tensor):
        return _host(name, Y, C, axis, batch_axis, out, check_finite, threads, return_info, weights)
    if name == "prox_linf1":
        from normball.backends import torch_op

        X, info = torch_op.project_l1inf(
            Y, radius, axis, batch_axis, "newton", None, check_finite, threads, None, True, what  # type: ignore[arg-type]
        )  # fmt: skip
        result, theta = Y - X, info.theta
    else:
        result, theta = _by_kernels(name, Y, C, members, batch, weights) or _formula(
            name, Y, C, members, batch, check_finite, weights
        )
    if out is not None:
        with torch.no_grad():
            result = out.copy_(result)
    if not return_info:
        return result
    mu = _aggregate(OPERATORS[name][1], result.detach().double(), members)
    return result, OperatorInfo(theta.detach(), mu, None)


def _by_kernels(
    name: str, Y: Tensor, C: Tensor, members: list[int], batch: list[int], weights: Any
) -> tuple[Tensor, Tensor] | None:
    """Return the result and theta by the kernels of the device, if there are any and no one wants a derivative."""
    from normball.backends.torch_op import differentiated, traced

    if Y.device.type == "cpu" or weights is not None or traced(Y) or differentiated(Y, C):
        return None
    X = torch.empty_like(Y, requires_grad=False)
    theta = cuda.operate(name, Y.detach(), X, _on_device(C.detach(), Y), members, batch)
    return None if theta is None else (X, theta)


def _on_device(C: Tensor, Y: Tensor) -> Tensor:
    """Return the radius where `Y` is; a number is filled in there, which a CUDA graph can record, unlike a copy."""
    if C.device == Y.device or C.numel() != 1 or C.requires_grad:
        return C.to(Y.device)
    return torch.full(C.shape, float(C), dtype=C.dtype, device=Y.device)


def _formula(
    name: str, Y: Tensor, C: Tensor, members: list[int], batch: list[int], check_finite: bool, weights: Any
) -> tuple[Tensor, Tensor]:
    if Y.numel() == 0:
        return Y.clone(), Y.new_zeros([Y.shape[a] for a in batch], dtype=torch.float64)
    rest = others(Y.ndim, batch)
    # No look at the values where it would make the host wait, or where there are none.
    watched = (
        type(Y) in (Tensor, torch.nn.Parameter)
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
    )
    if check_finite and watched and Y.device.type == "cpu" and not Y.isfinite().all():
        _validate.not_finite(Y.detach().double().numpy())
    heavy = None if weights is None else torch.as_tensor(weights, dtype=torch.float64, device=Y.device)
    wide = Y.double()
    problem = Problem(wide, members, batch, _on_device(C, Y) if watched else C.to(Y.device), heavy)
    X, theta = FORMULAS[name](problem)
    sound = wide.abs().amax(rest, keepdim=True).isfinite() & (problem.C >= 0)
    X = torch.where(sound, X, torch.nan).to(Y.dtype)
    # Theta of each group where groups are problems of their own, else of each problem.
    return X, theta.amax(members if name in cuda.EACH_GROUP_ALONE else rest)


def _host(
    name: str,
    Y: Tensor,
    C: Tensor,
    axis: _validate.Axis | None,
    batch_axis: _validate.Axis | None,
    out: Tensor | None,
    check_finite: bool,
    threads: int | None,
    return_info: bool,
    weights: Any,
) -> Any:
    X, blank = result_like(Y) if out is None else (out, False)
    done = cpu.operate(
        name, Y.detach().numpy(), C.numpy(), axis, batch_axis, X.detach().numpy(), check_finite, threads, return_info,
        weights, blank,
    )  # fmt: skip
    if out is not None:
        torch.autograd.graph.increment_version(out)
    if not return_info:
        return X
    info = done[1]
    return X, OperatorInfo(torch.as_tensor(info.theta, dtype=torch.float64), torch.as_tensor(info.mu), info.reads)


def _by_core(Y: Tensor, C: Tensor) -> bool:
    """Whether the core may do it: on the CPU, in a dtype of NumPy's, and no one wants a derivative."""
    from normball.backends.torch_op import differentiated, traced

    if traced(Y) or differentiated(Y, C):
        return False
    return Y.device.type == "cpu" and Y.dtype != torch.bfloat16 and not Y.is_neg()


def _axes(
    name: str, Y: Tensor, axis: _validate.Axis | None, batch_axis: _validate.Axis | None
) -> tuple[list[int], list[int]]:
    if name in VECTORS:
        members, batch = _validate.vector_axes(Y.ndim, axis, batch_axis)
    else:
        members, batch = _validate.axes(Y.ndim, axis, batch_axis)  # type: ignore[arg-type]
    return [a for a in range(Y.ndim) if members >> a & 1], [a for a in range(Y.ndim) if batch >> a & 1]


def _aggregate(kind: str, Y: Tensor, axes: list[int]) -> Tensor:
    if kind == "norm2":
        lengths: Tensor = torch.linalg.vector_norm(Y, dim=axes)
        return lengths
    A = Y.abs()
    return A.sum(axes) if kind == "sum" or Y.numel() == 0 else A.amax(axes)


def norm(
    name: str,
    Y: Tensor,
    axis: _validate.Axis | None,
    batch_axis: _validate.Axis | None,
    threads: int | None,
    weights: Any = None,
) -> Tensor:
    """Return the norm of this name, in double precision; differentiable."""
    torch_checks.tensor(Y)
    kind, outer = NORMS[name]
    members, batch = _axes(name if outer is None else "", Y, axis, batch_axis)
    wide = Y.double()
    if weights is not None:
        wide = wide * torch.as_tensor(weights, dtype=torch.float64, device=Y.device)
    values = _aggregate(kind, wide, members)
    if outer is None:
        return values
    kept = others(Y.ndim, members)
    groups = [i for i, a in enumerate(kept) if a not in batch]
    return values.sum(groups) if outer == "sum" or values.numel() == 0 else values.amax(groups)


def aggregate(
    name: str, kind: str, Y: Tensor, axis: _validate.Axis | None, batch_axis: _validate.Axis | None, threads: int | None
) -> tuple[Tensor, tuple[int, ...]]:
    """Return the sum, the peak or the 2-norm of each group, and which of the axes left are not batch axes."""
    torch_checks.tensor(Y)
    Y = Y.detach()
    if _by_core(Y, Y):
        values, along = cpu.aggregate(name, kind, Y.numpy(), axis, batch_axis, threads)
        return torch.from_numpy(values), along
    members, batch = _axes(name, Y, axis, batch_axis)
    kept = others(Y.ndim, members)
    return _aggregate(kind, Y.double(), members), tuple(i for i, a in enumerate(kept) if a not in batch)


def magnitudes(
    Y: Tensor, axis: _validate.Axis | None, batch_axis: _validate.Axis | None
) -> tuple[Tensor, tuple[int, ...]]:
    """Return the magnitude of every entry, and which of the axes are not batch axes."""
    torch_checks.tensor(Y)
    axes, _ = _validate.vector_axes(Y.ndim, axis, batch_axis)
    return Y.detach().abs().double(), tuple(a for a in range(Y.ndim) if axes >> a & 1)


def caps(
    Y: Tensor, theta: Any, axis: _validate.Axis, batch_axis: _validate.Axis | None, threads: int | None
) -> Tensor:
    """Return the cap at which each group would lose theta, 0 where it has no more than that to lose."""
    torch_checks.tensor(Y)
    Y = Y.detach()
    if _by_core(Y, Y):
        return torch.from_numpy(cpu.caps(Y.numpy(), theta.numpy(), axis, batch_axis, threads))
    members, _ = _axes("prox_l1inf", Y, axis, batch_axis)
    clipped = operate("prox_l1inf", Y.double(), theta, axis, batch_axis, None, False, threads, False)
    return _aggregate("peak", clipped, members)


def path(
    name: str,
    Y: Tensor,
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


def project_box(Y: Tensor, lower: Any, upper: Any, out: Tensor | None, check_finite: bool) -> Tensor:
    """See `normball.project_box`."""
    torch_checks.tensor(Y)
    low, high = (torch.as_tensor(bound, dtype=Y.dtype, device=Y.device) for bound in (lower, upper))
    if out is not None:
        torch_checks.output(out, Y, low)
    X = Y.clamp(low, high)
    return X if out is None else out.copy_(X)
