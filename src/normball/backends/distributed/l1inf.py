"""The l1,inf projection of a sharded tensor.

Groups that are whole on a rank: each rank knows the caps of its groups for any theta, and Newton's method needs no more
of them than their sum and the slope of it. Groups that are cut: see `brackets`. In both cases what is decided, is
decided by reduced values, which all ranks have alike; so they stay together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from normball.backends.distributed import shard
from normball.backends.distributed.brackets import Table, per_problem, settle
from normball.backends.distributed.layout import Layout

__all__ = ["Solution", "solve"]

Reals = npt.NDArray[np.float64]

_INSIDE = 1.0 + 2.0 * float(np.finfo(np.float64).eps)  # norms are known to rounding
_SMALL = 2.0**-900  # below, quotients of sums may vanish
_NEAR = (0.1, 0.01, 0.001)  # where to look around earlier caps, as parts of them
_PATIENCE = 8  # steps that bring the sum of the caps no closer, after which only rounding can be left


@dataclass
class Solution:
    """Caps of this rank's groups, (problem, group), and theta of its problems; NaN where something is not finite."""

    mu: Tensor
    theta: Tensor


def solve(layout: Layout, radius: Tensor, start: Solution | None) -> Solution:
    """Return the solution; the caps are not yet rounded to the dtype of the tensor."""
    A = layout.view
    C = radius.double().cpu().numpy()
    if not layout.problems or not layout.Y.numel():
        return Solution(A.new_zeros(A.shape[:2], dtype=torch.float64), A.new_zeros(A.shape[0], dtype=torch.float64))
    method = _Cut if layout.cut else _Whole
    found = method(layout, A, C).solve(start)
    if found is not None:
        return found
    # Sums that overflow or vanish, or something that is not finite: the same by way of numbers near 1.
    peaks = layout.greatest_of_problems(shard.sums_and_peaks(A)[1])
    finite, unit = peaks < torch.inf, shard.unit_for(peaks)
    scaled = torch.where(finite[:, None, None], A.double() * unit, 0.0)
    with np.errstate(over="ignore"):
        found = method(layout, scaled, C * float(unit)).solve(None, scaled=True)
    assert found is not None
    bad = torch.where(finite, 0.0, torch.nan)
    return Solution(shard.unscaled(found.mu, unit) + bad[:, None], found.theta / unit + bad)


def _out_of_range(total: Reals) -> bool:
    return bool((~np.isfinite(total) | ((total > 0) & (total < _SMALL))).any())


class _Whole:
    """Every group lies whole on one rank."""

    def __init__(self, layout: Layout, A: Tensor, C: Reals) -> None:
        self.layout, self.A, self.C = layout, A, C

    def _sum(self, *values: Tensor) -> Reals:
        """Add up numbers of the problems over the ranks: one collective."""
        packed = torch.stack([value.double() for value in values])
        return np.asarray(self.layout.total_of_groups(packed).cpu().numpy())

    def _tensor(self, values: Reals) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.A.device)

    def _lines(self, theta: Reals, start: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the caps of this rank's groups at a theta, and how many members are above each."""
        mu = shard.caps_at(self.A, self._tensor(theta), start)
        return mu, shard.counts_above(self.A, mu)

    def solve(self, start: Solution | None, scaled: bool = False) -> Solution | None:
        C = self.C
        sums, peaks = shard.sums_and_peaks(self.A)
        known = [peaks.sum(1), sums.sum(1)]
        theta, mu, k = np.zeros(len(C)), peaks, torch.zeros_like(peaks)
        if start is not None:
            theta = start.theta.double().cpu().numpy().reshape(-1)
            theta = np.where(np.isfinite(theta), theta, 0.0)
            mu, k = self._lines(theta, start.mu.double())
            known += [mu.sum(1), _slope(k)]
        found = self._sum(*known)
        norm = found[0]
        if _out_of_range(found[1]) and not scaled:
            return None
        none = C == 0
        inside = (norm <= C * _INSIDE) & ~none
        open_ = ~inside & ~none
        C = np.where(open_, C, 0.0)
        # A start that is no use: at theta 0 nothing is clipped, beyond the greatest sum everything is.
        warm = start is not None and bool(((theta > 0) & (found[3] > 0))[open_].all())
        if warm:
            G, S = found[2], found[3]
        elif open_.any():
            # Each rank projects its part onto its share of the radius: tangents to each rank's part of the sum of the
            # caps, whose sum bounds it from below; so does its root theta.
            share = self._tensor(np.where(open_, C / np.where(norm > 0, norm, 1.0), 0.0)) * known[0]
            part, theirs = shard.caps_for(self.A, torch.where(self._tensor(open_), share, torch.inf))
            slope = _slope(shard.counts_above(self.A, part))
            top, S = self._sum(slope * theirs, slope)
            theta = np.divide(top, S, out=np.zeros_like(top), where=S > 0)
            mu, k = self._lines(np.where(open_, theta, 0.0), part)
            G, S = self._sum(mu.sum(1), _slope(k))
        best, patience = np.full(len(C), np.inf), np.full(len(C), _PATIENCE)
        todo = open_.copy()
        shift = np.zeros(len(C))
        while todo.any():
            step = np.divide(G - C, S, out=np.zeros_like(G), where=todo & (S > 0))
            shift = np.where(todo, step, shift)
            miss = np.abs(G - C)
            patience = np.where(miss < best, _PATIENCE, patience - 1)
            best = np.minimum(best, miss)
            todo &= (np.abs(step) > 2.0**-52 * theta) & (patience > 0)
            if not todo.any():
                break
            # A step back, from a start too far, may fall below 0, where nothing is clipped and there is no slope.
            theta = np.where(todo, np.maximum(theta + step, theta / 16.0), theta)
            before = k
            # A problem that is done is evaluated where it was, and gives the same, to rounding.
            mu, k = self._lines(theta, mu)
            G, S, changed = self._sum(mu.sum(1), _slope(k), (k != before).sum(1))
            shift = np.where(todo, np.divide(G - C, S, out=np.zeros_like(G), where=S > 0), shift)
            todo &= changed > 0
        by = self._tensor(shift)[:, None] / k.clamp(min=1.0)
        mu = torch.where(self._tensor(open_)[:, None], torch.where(k > 0, (mu - by).clamp(min=0.0), 0.0), peaks)
        theta = np.where(open_, np.maximum(theta + shift, 0.0), 0.0)
        mu = torch.where(self._tensor(none)[:, None], 0.0, mu)
        if none.any():
            theta = np.where(none, self.layout.greatest_of_problems(sums).cpu().numpy(), theta)
        return Solution(mu, self._tensor(theta))


def _slope(k: Tensor) -> Tensor:
    return torch.where(k > 0, 1.0 / k.clamp(min=1.0), 0.0).sum(1)


class _Cut:
    """Ranks hold parts of the same groups. All of them come to know the aggregates of all groups, but no member."""

    def __init__(self, layout: Layout, A: Tensor, C: Reals) -> None:
        self.layout, self.A, self.C = layout, A, C
        self.length = len(C) * layout.most  # rows of a rank, of whom the last may have fewer groups
        rows = np.arange(layout.ranks * self.length)
        self.problem = (rows % self.length) // layout.most
        self.first = layout.place * self.length
        self.looks = shard.Looks(A.flatten(0, 1))

    def _all(self, values: Tensor) -> Reals:
        """Return (problem, group, ...) values of all the ranks, as rows."""
        padded = values.new_zeros(values.shape[0], self.layout.most, *values.shape[2:])
        padded[:, : values.shape[1]] = values
        flat = padded.reshape(self.length, *values.shape[2:])
        found = self.layout.gather(flat, self.length)
        return np.asarray(found.reshape(-1, *values.shape[2:]).cpu().numpy())

    def _mine(self, rows: Any) -> Tensor:
        """Return the (problem, group) values of this rank from those of all rows."""
        part = rows[self.first : self.first + self.length].reshape(len(self.C), self.layout.most)
        return torch.from_numpy(np.ascontiguousarray(part[:, : self.layout.here])).to(self.A.device)

    def _read(self, rows: Any, t: Reals) -> tuple[Reals, Reals]:
        """Look at some rows: one collective over those who hold parts of them, one to tell those who do not."""
        owner = rows // self.length
        mine = rows[owner == self.layout.place] - self.first
        problem, group = mine // self.layout.most, mine % self.layout.most
        index = torch.from_numpy(problem * self.layout.here + group)
        places = torch.from_numpy(np.ascontiguousarray(t[owner == self.layout.place])).to(self.A.device)
        found = self.layout.total(self.looks(index, places))
        counts = np.bincount(owner, minlength=self.layout.ranks)
        told = self.layout.gather(found, int(counts.max())).cpu().numpy()
        all_ = np.concatenate([told[rank, :count] for rank, count in enumerate(counts)])
        return all_[..., 0], all_[..., 1]

    def solve(self, start: Solution | None, scaled: bool = False) -> Solution | None:
        if start is not None and not (self.C == 0).any():
            found = self._from(start)
            if found is not None:
                return found
        return self._afresh(scaled)

    def _afresh(self, scaled: bool) -> Solution | None:
        local_sums, local_peaks = shard.sums_and_peaks(self.A)
        both = torch.stack([self.layout.total(local_sums), self.layout.greatest(local_peaks)], 2)
        sums, peaks = np.moveaxis(self._all(both), 1, 0)
        if _out_of_range(per_problem(sums, self.problem, len(self.C))) and not scaled:
            return None
        zero = np.zeros_like(sums)
        table = Table(
            np.stack([zero, peaks], 1), np.stack([sums, zero], 1),
            np.stack([zero + self.layout.count, zero + 1.0], 1),
        )  # fmt: skip
        norm = per_problem(peaks, self.problem, len(self.C))
        none = self.C == 0
        inside = (norm <= self.C * _INSIDE) & ~none
        open_ = ~inside & ~none
        theta, mu = np.zeros(len(self.C)), np.where(none[self.problem], 0.0, peaks)
        if open_.any():
            self._settle(table, open_, theta, mu)
        for problem in np.flatnonzero(none):
            theta[problem] = sums[self.problem == problem].max()
        return Solution(self._mine(mu), torch.from_numpy(theta).to(self.A.device))

    def _settle(self, table: Table, open_: Any, theta: Reals, mu: Reals) -> None:
        """Solve the open problems, and write theta and caps where they belong."""
        rows = np.flatnonzero(open_[self.problem] & (table.f[:, 0] > 0))
        number = np.cumsum(open_) - 1
        problem = number[self.problem[rows]]
        part = Table(table.t[rows], table.f[rows], table.k[rows])
        found, caps, k = settle(
            lambda which, t: self._read(rows[which], t), part, problem=problem, radius=self.C[open_]
        )
        theta[open_] = found
        self._finish(caps, k, problem, self.C[open_])
        mu[open_[self.problem]] = 0.0
        mu[rows] = caps

    @staticmethod
    def _finish(mu: Reals, k: Reals, problem: Any, C: Reals) -> None:
        """Share out what the caps miss of the radius, as a change of theta would."""
        excess = per_problem(mu, problem, len(C)) - C
        slope = per_problem(np.divide(1.0, k, out=np.zeros_like(k), where=k > 0), problem, len(C))
        step = np.divide(excess, slope, out=np.zeros_like(slope), where=slope > 0)
        np.maximum(mu - np.divide(step[problem], k, out=np.zeros_like(k), where=k > 0), 0.0, out=mu)

    def _from(self, start: Solution) -> Solution | None:
        """Look first around earlier caps; None where that does not tell that the point is outside the ball."""
        old = start.mu.double()
        around = torch.tensor([0.0, *(1.0 - x for x in _NEAR), 1.0, *(1.0 + x for x in reversed(_NEAR))])
        t = old[..., None] * around.to(old)
        flat = t.flatten(0, 1)
        alive = torch.nonzero(old.reshape(-1) > 0)[:, 0]
        # Groups that were zero are asked for their sum alone.
        rows = self.A.flatten(0, 1)
        found = torch.cat([
            shard.sums_and_peaks(self.A)[0].reshape(-1), self.looks(alive.cpu(), flat[alive, 1:]).reshape(-1)
        ])  # fmt: skip
        found = self.layout.total(found)
        sums = found[: len(rows)].reshape(old.shape)
        looks = sums.new_zeros(*t.shape, 2)
        looks[..., 0] = sums[..., None]
        looks[..., 1] = self.layout.count
        looks.flatten(0, 1)[alive, 1:] = found[len(rows) :].reshape(len(alive), t.shape[2] - 1, 2)
        everyone = self._all(torch.cat([t[..., None], looks], 3))
        t_, f, k = np.moveaxis(everyone, 2, 0)
        if _out_of_range(per_problem(f[:, 0], self.problem, len(self.C))):
            return None
        # No member lies beyond the last place by more than all of them do together.
        end = np.where(t_[:, -1:] > 0, t_[:, -1:] + f[:, -1:], f[:, :1])
        zero = np.zeros_like(end)
        table = Table(*(np.concatenate(pair, 1) for pair in ((t_, end), (f, zero), (k, zero))))
        least, _ = table.low(np.zeros(len(f)))
        if (per_problem(least, self.problem, len(self.C)) <= self.C * _INSIDE).any():
            return None
        theta, mu = np.zeros(len(self.C)), np.zeros(len(f))
        self._settle(table, np.ones(len(self.C), bool), theta, mu)
        return Solution(self._mine(mu), torch.from_numpy(theta).to(self.A.device))
