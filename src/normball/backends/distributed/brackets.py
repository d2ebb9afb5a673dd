"""Caps of groups that no one holds whole, from few looks at them.

For one group, ``f(t) = sum(max(|y| - t, 0))`` is convex, falling and piecewise linear, and its cap solves ``f(t) ==
theta``. A look gives `f` and its slope, the count of members above `t`, at several places in every group at once; it
is dear, for each is a collective. Between two places the chord lies above `f` and the tangents below: so they bound
each cap for a given theta, the bounds of all the caps bound theta, and the next look need only go between the bounds.
The gap between chord and tangents falls as the square of the distance: three looks are the rule.

Nothing ends by a tolerance: a group is settled when no member lies between its bounds, for then its piece of `f` is
known; or when rounding is all that is between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["POINTS", "Table", "per_problem", "settle"]

Reals = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Read = Callable[[Rows, Reals], tuple[Reals, Reals]]

POINTS = 8  # places in each group at one look
_NOISE = 2.0**-51  # rounding of `f`, as a part of it
_PATIENCE = 4  # looks that bring the bounds no closer, after which only rounding can be left


@dataclass
class Table:
    """What is known of each group: places in rising order, `f` there, and the count of members above."""

    t: Reals
    f: Reals
    k: Reals

    def between(self, theta: Reals) -> tuple[Rows, Rows]:
        """Return the last place of each row where `f` exceeds theta, and the one after it."""
        last = self.t.shape[1] - 2
        left = np.clip((self.f > theta[:, None]).sum(1) - 1, 0, last)
        return left, left + 1

    def _at(self, place: Rows) -> tuple[Reals, Reals, Reals]:
        row = np.arange(len(place))
        return self.t[row, place], self.f[row, place], self.k[row, place]

    def low(self, theta: Reals) -> tuple[Reals, Reals]:
        """Return a lower bound of each cap by the tangents, and minus its derivative by theta."""
        left, right = self.between(theta)
        (ta, fa, ka), (tb, fb, kb) = self._at(left), self._at(right)
        steep, flat = 1.0 / np.maximum(ka, 1.0), 1.0 / np.maximum(kb, 1.0)
        first = ta + (fa - theta) * steep
        second = np.where(kb > 0, tb - (theta - fb) * flat, ta)
        dead = theta >= self.f[:, 0]
        value = np.where(dead, self.t[:, 0], np.maximum(first, second))
        slope = np.where(dead, 0.0, np.where(first >= second, steep, flat))
        return value, np.where(ka > 0, slope, 0.0)

    def up(self, theta: Reals) -> tuple[Reals, Reals]:
        """Return an upper bound of each cap by the chord, and minus its derivative by theta."""
        left, right = self.between(theta)
        (ta, fa, _), (tb, fb, _) = self._at(left), self._at(right)
        slope = np.divide(tb - ta, fa - fb, out=np.zeros_like(ta), where=fa > fb)
        dead = theta >= self.f[:, 0]
        value = np.where(dead, self.t[:, 0], np.minimum(ta + (fa - theta) * slope, tb))
        return value, np.where(dead, 0.0, slope)

    def narrowed(self, low: Reals, up: Reals) -> tuple[Table, npt.NDArray[np.bool_]]:
        """Return the two places around each range, and whether no member lies between them."""
        last = self.t.shape[1] - 1
        a = np.clip((self.t <= low[:, None]).sum(1) - 1, 0, last - 1)
        b = np.maximum(last + 1 - (self.t >= up[:, None]).sum(1), a + 1).clip(max=last)
        ends = [np.stack(pair, 1) for pair in zip(self._at(a), self._at(b), strict=True)]
        found = Table(*ends)
        return found, found.k[:, 0] == found.k[:, 1]

    def with_points(self, rows: Rows, t: Reals, f: Reals, k: Reals) -> Table:
        """Return the two ends of each row with what a look has found between them in some rows."""
        wide = []
        for old, new in ((self.t, t), (self.f, f), (self.k, k)):
            fill = np.repeat(old[:, 1:], t.shape[1], axis=1)
            fill[rows] = new
            wide.append(np.concatenate([old[:, :1], fill, old[:, 1:]], 1))
        order = np.argsort(wide[0], axis=1, kind="stable")
        return Table(*(np.take_along_axis(values, order, 1) for values in wide))


def per_problem(values: Reals, problem: Rows, problems: int) -> Reals:
    """Return the sum of the rows of each problem; with rounding that does not grow with their number."""
    order = np.argsort(problem, kind="stable")
    starts = np.searchsorted(problem[order], np.arange(problems))
    total = np.zeros(problems)
    full = np.append(starts[1:], len(order)) > starts
    if full.any():
        total[full] = np.add.reduceat(values[order].astype(np.longdouble), starts[full])
    return total


def _root(
    bound: Callable[[Reals], tuple[Reals, Reals]], problem: Rows, radius: Reals, start: Reals
) -> Reals:
    """Solve ``sum(bound(theta)) == radius`` in each problem by Newton's method from the left: the sum is convex."""
    theta = start.copy()
    while True:
        value, slope = bound(theta[problem])
        excess = per_problem(value, problem, len(radius)) - radius
        total = per_problem(slope, problem, len(radius))
        step = np.divide(excess, total, out=np.zeros_like(excess), where=(total > 0) & (excess > 0))
        step = np.where(step > 2.0**-52 * theta, step, 0.0)
        if not step.any():
            return theta
        theta = theta + step


def settle(
    read: Read, table: Table, *, theta: Reals | None = None, problem: Any = None, radius: Any = None
) -> tuple[Reals, Reals, Reals]:
    """Return theta, caps and counts of all the rows: for a theta of each row, or a radius of each problem.

    `read(rows, t)` looks at places, one array of them for each of the rows; it returns `f` and the counts there. The
    rows of a look are among those of the last, in order, and their places between those of the last.
    """
    seek = theta is None
    lowest = np.zeros(len(radius)) if seek else np.zeros(0)
    best, patience = np.inf, _PATIENCE
    least, most = table.t[:, 0], table.t[:, -1]
    while True:
        if seek:
            lowest = _root(table.low, problem, radius, lowest)
            highest = _root(table.up, problem, radius, lowest)
            down, above = lowest[problem], highest[problem]
        else:
            assert theta is not None
            down = above = theta
        low, up = table.low(above)[0], table.up(down)[0]
        up = np.maximum(up, low)
        counts = table.k[np.arange(len(low)), table.between(down)[0]]
        noise = _NOISE * (np.abs(up) + down / np.maximum(counts, 1.0))
        low, up = np.maximum(low - noise, least), np.minimum(up + noise, most)  # each look inside the last
        least, most = low, up
        table, free = table.narrowed(low, up)
        open_ = np.flatnonzero(~free & (up - low > 2.0 * noise))
        width = float((up - low)[open_].sum())
        patience = _PATIENCE if width < 0.75 * best else patience - 1
        best = min(best, width)
        if not len(open_) or not patience:
            break
        steps = np.linspace(0.0, 1.0, POINTS)
        t = low[open_, None] + (up - low)[open_, None] * steps
        table = table.with_points(open_, t, *read(open_, t))
    mu = table.low(down)[0]
    left = table.between(down)[0]
    return (lowest if seek else down), mu, np.where(mu > 0, table.k[np.arange(len(mu)), left], 0.0)
