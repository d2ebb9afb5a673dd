"""The three steps of the family on a sharded tensor: aggregate, threshold, write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from normball.backends import steps
from normball.backends.cuda.plain import rounded_down
from normball.backends.distributed import shard
from normball.backends.distributed.brackets import Table, settle
from normball.backends.distributed.layout import Layout

__all__ = ["INSIDE", "Call", "OutOfRangeError"]

INSIDE = 1.0 + 2.0 * float(np.finfo(np.float64).eps)  # norms are known to rounding


class OutOfRangeError(Exception):
    """Some aggregate is not finite, or may be too small to be one."""


@dataclass(frozen=True)
class Call:
    """What an operator is given: the part of this rank, (problem, group, member), and a radius for each problem."""

    layout: Layout
    A: Tensor
    radius: Tensor
    scaled: bool = False

    @property
    def each(self) -> Tensor:
        """The radius for each group."""
        return self.radius[:, None].expand(self.A.shape[:2])

    def sound(self, values: Tensor) -> Tensor:
        """Return numbers that are all finite; or NaN throughout each problem where one is not."""
        bad = self.layout.greatest_of_groups((~values.isfinite()).sum(1).double())
        if bool((bad > 0).any()) and not self.scaled:
            raise OutOfRangeError
        return torch.where(bad[:, None] > 0, torch.nan, values)

    def sums(self) -> Tensor:
        """Return the l1 norm of each group."""
        return self.sound(self.layout.total(shard.sums_and_peaks(self.A)[0]))

    def peaks(self) -> Tensor:
        """Return the largest magnitude of each group."""
        found = shard.sums_and_peaks(self.A)[1]
        return self.sound(self.layout.greatest(torch.nan_to_num(found, nan=torch.inf)))

    def lengths(self) -> Tensor:
        """Return the 2-norm of each group."""
        mine = shard.lengths(self.A)
        squares, some = self.layout.total(torch.stack([mine.square(), (mine > 0).double()]))
        small = (squares < 1e-280) & (some > 0)
        hidden = torch.where(small, torch.inf, squares) if not self.scaled else squares
        return torch.where(hidden.isfinite(), hidden, self.sound(hidden)).sqrt()

    def share_out(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Project the numbers of the groups onto the l1 ball: theta of each problem, and what is left of each group."""
        padded = values.new_zeros(values.shape[0], self.layout.most)
        padded[:, : values.shape[1]] = values
        everyone = self.layout.gather(padded.T, self.layout.most).cpu().numpy()
        rows = np.moveaxis(everyone, 2, 0).reshape(values.shape[0], -1)
        theta = steps.threshold(np.ascontiguousarray(rows), self.radius.cpu().numpy(), 1)
        theta = np.where(np.isinf(theta), rows.max(axis=1, initial=0.0), theta)
        found = torch.from_numpy(theta).to(values.device)
        return found, (values - found[:, None]).clamp(min=0.0)

    def thresholds(self, left: Tensor, *, signed: bool = False, below: bool = False) -> Tensor:
        """Return the place t of each group with ``sum(max(y - t, 0)) == left``, for magnitudes or signed values.

        Without signs it is 0 where there is not more than that. With `below` it is rounded such that no more is left.
        """
        goal = left.reshape(-1).cpu().numpy()
        rows = self.A.flatten(0, 1)
        rows = rows if signed else rows.abs()

        def read(which: Any, t: Any) -> tuple[Any, Any]:
            index = torch.from_numpy(which).to(rows.device)
            places = torch.from_numpy(np.ascontiguousarray(t)).to(rows.device)
            found = self.layout.total(shard.excess(rows[index], places)).cpu().numpy()
            return found[..., 0], found[..., 1]

        here = rows.amax(1).double() if rows.shape[1] else rows.new_full((len(rows),), -torch.inf, dtype=torch.float64)
        top = self.layout.greatest(here).cpu().numpy()
        if signed:  # the greatest alone loses all of it at the lower end
            low = top - goal
            f, k = (values[:, 0] for values in read(np.arange(len(low)), low[:, None]))
        else:
            low = np.zeros_like(top)
            f = self.layout.total(rows.sum(1, dtype=torch.float64)).cpu().numpy()
            k = np.full_like(f, self.layout.count)
        zero = np.zeros_like(top)
        table = Table(np.stack([low, top], 1), np.stack([f, zero], 1), np.stack([k, zero + 1.0], 1))
        live = np.flatnonzero(np.isfinite(f) & np.isfinite(goal) & (goal > 0) & (top > low))
        t = np.where(np.isfinite(f), np.where(goal > 0, low, top), np.nan)
        if len(live):
            part = Table(table.t[live], table.f[live], table.k[live])
            t[live] = settle(lambda which, at: read(live[which], at), part, theta=goal[live])[1]
        while below and len(live):  # one more look proves it, or says by how much it fails
            t[live] = np.nextafter(t[live], np.inf)
            f, k = (values[:, 0] for values in read(live, t[live, None]))
            over = f > goal[live] * INSIDE
            live, f, k = live[over], f[over], k[over]
            t[live] += (f - goal[live]) / np.maximum(k, 1.0)
        return torch.from_numpy(t).reshape(left.shape).to(left.device)

    # ---- writes: the part of this rank, by one number for each group ------------------------------------------------

    def clip(self, caps: Tensor) -> Tensor:
        """Clip each group."""
        bound = self.layout.beside(rounded_down(caps, self.layout.local.dtype))
        return torch.clamp(self.layout.local.detach(), -bound, bound)

    def shrink(self, taus: Tensor) -> Tensor:
        """Take so much of each magnitude."""
        Y = self.layout.local.detach()
        return (torch.sign(Y) * (Y.abs() - self.layout.beside(taus)).clamp(min=0.0)).to(Y.dtype)

    def scale(self, factors: Tensor) -> Tensor:
        """Multiply each group."""
        Y = self.layout.local.detach()
        return (Y * self.layout.beside(factors)).to(Y.dtype)
