"""The projection in plain torch operations: no kernel of ours, no loop that asks the device whether to go on.

It sorts, so it is slow; it is what remains where Triton cannot run, and what its kernels are judged by.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["caps", "clip", "rounded_down"]

REFINEMENTS = 4  # Newton steps on theta; the first piece is found up to the rounding of long sums


def caps(Y: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Return the caps, in the dtype of `Y`, and theta of each problem of `Y`, which is (problem, group, member).

    The total order of Quattoni et al. (2009): with the members sorted, S_k the sum of the k greatest and Z_k the k-th,
    member k + 1 joins those clipped at theta = S_k - k Z_(k+1), and a group is zero from theta = S_n on. All these
    places are sorted; running sums of what changes there give theta on each piece between two of them.
    """
    problems, groups, members = Y.shape
    A = Y.abs().double()
    peak = A.amax((1, 2))
    finite = peak < torch.inf  # neither NaN nor infinity
    scale = torch.exp2(-torch.frexp(torch.where(finite, peak, 1.0)).exponent.double())
    scale = torch.where(peak > 0, scale, 1.0)
    A = A * scale[:, None, None]
    C = (radius * scale)[:, None]
    Z = A.sort(dim=2, descending=True).values
    S = Z.cumsum(2)
    k = torch.arange(1, members + 1, dtype=torch.float64, device=Y.device)
    # Sorting makes each row rise; rounding must not undo it, or the search below would go astray.
    joins = (S[..., :-1] - k[:-1] * Z[..., 1:]).clamp(min=0.0)
    events = torch.cat([joins, S[..., -1:]], 2).cummax(2).values
    joins = events[..., :-1].contiguous()

    inverse = 1.0 / k
    falls = torch.cat([inverse[1:] - inverse[:-1], -inverse[-1:]]).expand(groups, members)
    lines = S / k
    drops = torch.cat([lines[..., 1:] - lines[..., :-1], -lines[..., -1:]], 2)
    place = events.reshape(problems, -1).argsort(dim=1, stable=True)
    top = Z[..., 0].sum(1, keepdim=True) + _exclusive(drops.reshape(problems, -1).gather(1, place))
    bottom = groups + _exclusive(falls.reshape(1, -1).expand(problems, -1).gather(1, place))
    at = events.reshape(problems, -1).gather(1, place)
    solved = top - C <= bottom * at
    first = solved.to(torch.int8).argmax(1, keepdim=True)
    theta = ((top - C) / bottom).gather(1, first)
    theta = torch.where(solved.any(1, keepdim=True), theta, at[:, -1:]).clamp(min=0.0)
    theta = torch.minimum(theta, at[:, -1:])

    def lines_at(theta: Tensor) -> tuple[Tensor, Tensor]:
        count = torch.searchsorted(joins, theta[:, :, None].expand(problems, groups, 1).contiguous(), right=True)
        taken = S.gather(2, count)[..., 0]
        alive = S[..., -1] > theta
        weight = torch.where(alive, 1.0 / (count[..., 0].double() + 1.0), 0.0)
        return torch.where(alive, (taken - theta) * weight, 0.0), weight

    for _ in range(REFINEMENTS):
        mu, weight = lines_at(theta)
        slope = weight.sum(1, keepdim=True)
        step = (mu.sum(1, keepdim=True) - C) / slope
        theta = torch.where(slope > 0, theta + step, theta).clamp(min=0.0)
    mu = lines_at(theta)[0].clamp(min=0.0)
    # What rounding leaves is scaled away, so that the caps sum to the radius.
    total = mu.sum(1, keepdim=True)
    mu = torch.where(total > 0, mu * (C / total), mu)
    excess = mu.sum(1, keepdim=True)
    mu = torch.where(excess > C, mu * (C / excess) * (1 - 2.0**-52), mu)

    interior = Z[..., 0].sum(1, keepdim=True) <= C
    none = C == 0
    theta = torch.where(interior, 0.0, torch.where(none, S[..., -1].amax(1, keepdim=True), theta))
    mu = torch.where(interior, Z[..., 0], torch.where(none, 0.0, torch.minimum(mu, Z[..., 0])))
    bad = ~(finite & (radius >= 0))[:, None]
    theta = torch.where(bad, torch.nan, theta / scale[:, None])
    mu = torch.where(bad, torch.nan, mu / scale[:, None])
    return rounded_down(mu, Y.dtype), theta[:, 0]


def clip(Y: Tensor, mu: Tensor) -> Tensor:
    """Return `Y` clipped at its groups' caps."""
    cap = mu[:, :, None]
    return torch.clamp(Y, -cap, cap)


def rounded_down(caps: Tensor, dtype: torch.dtype) -> Tensor:
    """Return caps in `dtype`, rounded towards zero."""
    near = caps.to(dtype)
    above = near.to(caps.dtype) > caps
    # One unit towards zero: the bits of a positive float are ordered as integers are.
    bits = {8: torch.int64, 4: torch.int32, 2: torch.int16}[near.element_size()]
    return torch.where(above, (near.view(bits) - 1).view(dtype), near)


def _exclusive(changes: Tensor) -> Tensor:
    """Return the running sums of what came before each place."""
    return changes.cumsum(1) - changes
