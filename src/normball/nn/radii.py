"""Radii that are not a number: schedules over the steps, and the number of groups to keep.

Any of them may stand where a ball takes its radius, as in ``L1InfBall(CosineSchedule(10.0, 1.0, steps=1000))``.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from normball.balls import Ball
from normball.balls._ball import Rule
from normball.balls.sparsity import Groups, theta_leaving

__all__ = ["CosineSchedule", "CubicSchedule", "LinearSchedule", "NGroups", "Rule", "Schedule", "at_step"]


@dataclass(frozen=True)
class Schedule(Rule):
    """A number that moves from `start` to `end` over `steps` steps, and stays there."""

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            value = getattr(self, name)
            if not (_is_real(value) and 0 <= value < math.inf):
                raise ValueError(f"{name}: expected a finite number >= 0, got {value!r}")
        if not (_is_whole(self.steps) and self.steps >= 0):
            raise ValueError(f"steps: expected an int >= 0, got {self.steps!r}")

    def __call__(self, step: float) -> float:
        """Return the number at a step."""
        part = min(max(step / self.steps, 0.0), 1.0) if self.steps > 0 else 1.0
        return self.end + (self.start - self.end) * self.left(part)

    def left(self, part: float) -> float:
        """Return the share of the way that is left when this part of the steps is done."""
        raise NotImplementedError

    def radius(self, step: float, Y: Any, ball: Ball) -> float:
        """Return the number at a step."""
        return self(step)


@dataclass(frozen=True)
class LinearSchedule(Schedule):
    """A number that moves evenly from `start` to `end`.

    Parameters
    ----------
    start, end : float
        The number at the first step, and the number from the end of the schedule on. Both at least 0.
    steps : int
        The number of steps after which `end` is reached: steps of the optimizer in `constrain`, forward passes in
        `parametrize`. `DoubleDescent` projects once, at the end.

    Examples
    --------
    >>> from normball.nn import LinearSchedule
    >>> [LinearSchedule(10.0, 2.0, steps=4)(step) for step in (0, 1, 2, 4, 9)]
    [10.0, 8.0, 6.0, 2.0, 2.0]
    """

    def left(self, part: float) -> float:
        """See `Schedule`."""
        return 1.0 - part


@dataclass(frozen=True)
class CosineSchedule(Schedule):
    """A number that moves from `start` to `end` along half a cosine: slowly, fast, slowly.

    Parameters
    ----------
    start, end : float
        The number at the first step, and the number from the end of the schedule on. Both at least 0.
    steps : int
        The number of steps after which `end` is reached: steps of the optimizer in `constrain`, forward passes in
        `parametrize`. `DoubleDescent` projects once, at the end.

    Examples
    --------
    >>> from normball.nn import CosineSchedule
    >>> [round(CosineSchedule(10.0, 2.0, steps=4)(step), 3) for step in (0, 1, 2, 4)]
    [10.0, 8.828, 6.0, 2.0]
    """

    def left(self, part: float) -> float:
        """See `Schedule`."""
        return 0.5 * (1.0 + math.cos(math.pi * part))


@dataclass(frozen=True)
class CubicSchedule(Schedule):
    """A number that moves from `start` to `end` fast at first and slowly at the end, as the cube of what is left.

    Parameters
    ----------
    start, end : float
        The number at the first step, and the number from the end of the schedule on. Both at least 0.
    steps : int
        The number of steps after which `end` is reached: steps of the optimizer in `constrain`, forward passes in
        `parametrize`. `DoubleDescent` projects once, at the end.

    Examples
    --------
    >>> from normball.nn import CubicSchedule
    >>> [CubicSchedule(10.0, 2.0, steps=4)(step) for step in (0, 2, 4)]
    [10.0, 3.0, 2.0]
    """

    def left(self, part: float) -> float:
        """See `Schedule`."""
        return (1.0 - part) ** 3


@dataclass(frozen=True)
class NGroups(Rule):
    """The radius that keeps a number of groups, for every ball whose projection makes groups zero.

    These are the l1,inf and l1,2 balls and the bilevel ones; and the l1 ball, where each entry is a group. The radius
    is that of `normball.radius_for_sparsity`, computed anew for each projection: groups that tie are kept together, so
    that at least the number asked for is kept; groups that are zero stay zero.

    Parameters
    ----------
    n : int, float or schedule
        An int >= 1 counts groups. A float in (0, 1] is a share of the groups of the parameter, rounded to a number of
        groups, but at least one. A schedule whose two ends lie in (0, 1] is a schedule of shares; any other counts
        groups.

    Examples
    --------
    >>> import torch, normball
    >>> from normball.nn import NGroups, constrain
    >>> model = torch.nn.Linear(20, 5)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> constraint = constrain(model, optimizer, {"weight": normball.L1InfBall(NGroups(0.25))})
    >>> constraint.project()
    >>> int(model.weight.any(0).sum())
    5
    """

    n: int | float | Schedule

    def __post_init__(self) -> None:
        expected = "expected an int >= 1, a share of the groups in (0, 1], or a schedule between two of either"
        if not (isinstance(self.n, Schedule) or _is_real(self.n)):
            raise TypeError(f"n: {expected}, got {self.n!r}")
        if isinstance(self.n, Schedule):
            counts = min(self.n.start, self.n.end) >= 1
        else:
            counts = _is_whole(self.n) and self.n >= 1
        if not (counts or self._of_shares):
            raise ValueError(f"n: {expected}, got {self.n!r}")

    @property
    def _of_shares(self) -> bool:
        if isinstance(self.n, Schedule):
            return 0 < self.n.start <= 1 and 0 < self.n.end <= 1
        return not _is_whole(self.n) and 0 < self.n <= 1

    def check(self, ball: Ball) -> None:
        """Raise for a ball whose projection makes no groups zero."""
        if ball.decided_by is None:
            raise TypeError(
                f"radius: expected a number or a schedule for {type(ball).__name__}, whose projection makes no groups "
                f"zero, got {self!r}"
            )

    def count(self, step: float, groups: int) -> int:
        """Return how many of the groups to keep at a step."""
        n = self.n(step) if isinstance(self.n, Schedule) else self.n
        return max(round(float(n) * groups if self._of_shares else float(n)), 1)

    def radius(self, step: float, Y: Tensor, ball: Ball) -> Tensor:
        """Return the radius for `Y`, on its device: a device is not waited for."""
        groups = Groups(Y, ball, check_finite=Y.is_cpu)
        found: Tensor = groups.radius_at(theta_leaving(groups.norms, self.count(step, groups.norms.shape[-1])))
        return found


def at_step(ball: Ball, step: float, Y: Tensor) -> Ball:
    """Return the ball with a number for its radius, from which no gradient flows."""
    radius = ball.radius
    if isinstance(radius, Rule):
        return dataclasses.replace(ball, radius=radius.radius(step, Y.detach(), ball))
    if isinstance(radius, Tensor):
        return dataclasses.replace(ball, radius=radius.detach())
    return ball


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
