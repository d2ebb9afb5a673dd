"""Radii that are not a number: schedules over the steps, and the number of groups that shall remain.

Any of them may stand where a ball takes its radius, as in ``L1InfBall(Cosine(10.0, 1.0, steps=1000))``.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from normball._dispatch import backend_for, is_sharded
from normball.balls.l1inf import L1InfBall

__all__ = ["Cosine", "Cubic", "Linear", "NGroups", "Rule", "Schedule", "at_step"]


@dataclass(frozen=True)
class Schedule:
    """A number that moves from `start` to `end` over `steps` projections, and stays there."""

    start: float
    end: float
    steps: int

    def __call__(self, step: int) -> float:
        """Return the number at a step."""
        part = min(max(step / self.steps, 0.0), 1.0) if self.steps > 0 else 1.0
        return self.end + (self.start - self.end) * self.left(part)

    def left(self, part: float) -> float:
        """Return the share of the way that is left when this part of the steps is done."""
        raise NotImplementedError


@dataclass(frozen=True)
class Linear(Schedule):
    """Evenly from `start` to `end`.

    Examples
    --------
    >>> from normball.nn import Linear
    >>> [Linear(10.0, 2.0, steps=4)(step) for step in (0, 1, 2, 4, 9)]
    [10.0, 8.0, 6.0, 2.0, 2.0]
    """

    def left(self, part: float) -> float:
        """See `Schedule`."""
        return 1.0 - part


@dataclass(frozen=True)
class Cosine(Schedule):
    """Along half a cosine: slow, fast, slow.

    Examples
    --------
    >>> from normball.nn import Cosine
    >>> [round(Cosine(10.0, 2.0, steps=4)(step), 3) for step in (0, 1, 2, 4)]
    [10.0, 8.828, 6.0, 2.0]
    """

    def left(self, part: float) -> float:
        """See `Schedule`."""
        return 0.5 * (1.0 + math.cos(math.pi * part))


@dataclass(frozen=True)
class Cubic(Schedule):
    """Fast at first and slow at the end, as the cube of what is left.

    Examples
    --------
    >>> from normball.nn import Cubic
    >>> [Cubic(10.0, 2.0, steps=4)(step) for step in (0, 2, 4)]
    [10.0, 3.0, 2.0]
    """

    def left(self, part: float) -> float:
        """See `Schedule`."""
        return (1.0 - part) ** 3


class Rule:
    """A radius that follows from the array itself, computed anew at each projection."""

    def radius(self, step: int, Y: Tensor, ball: Any) -> Tensor | float:
        """Return the radius of the ball for `Y` at a step."""
        raise NotImplementedError


@dataclass(frozen=True)
class NGroups(Rule):
    """The radius that leaves this many groups, a number or a schedule.

    A group survives the l1,inf projection if and only if its l1 norm exceeds theta. So the radius follows from theta
    between two of the sorted norms; it is computed anew at each projection.

    Examples
    --------
    >>> import torch, normball
    >>> from normball.nn.radii import NGroups, at_step
    >>> Y = torch.tensor([[3.0, 1.0, 0.5], [2.0, -1.0, 0.5]])
    >>> ball = at_step(normball.L1InfBall(NGroups(2)), 0, Y)
    >>> (ball.project(Y) != 0).any(0)
    tensor([ True,  True, False])
    """

    n: int | Schedule

    def radius(self, step: int, Y: Tensor, ball: Any) -> Tensor | float:
        """Return the radius for `Y`; on its device, for nothing here waits for it."""
        if not isinstance(ball, L1InfBall):
            raise TypeError(f"radius: NGroups is for L1InfBall, got {type(ball).__name__}")
        n = self.n(step) if isinstance(self.n, Schedule) else self.n
        if is_sharded(Y):
            return _radius_of_sharded(Y, max(round(n), 0), ball.axis)
        axes = sorted(a % Y.ndim for a in ((ball.axis,) if isinstance(ball.axis, int) else ball.axis))
        A = Y.detach().abs().double()
        A = A.movedim(axes, list(range(A.ndim - len(axes), A.ndim))).flatten(A.ndim - len(axes)).flatten(0, -2)
        n = max(round(n), 0)
        if n >= A.shape[0]:
            return math.inf
        norms, which = A.sum(1).topk(n + 1)
        # Just above the greatest norm that shall vanish: any theta up to the next would do, and this shrinks least.
        theta = norms[n] + 0.01 * (norms[n - 1] - norms[n]) if n else norms[0]
        Z = A[which[:n]].sort(1, descending=True).values
        k = torch.arange(1, Z.shape[1] + 1, device=Y.device)
        return ((Z.cumsum(1) - theta) / k).amax(1).clamp(min=0.0).sum()


def _radius_of_sharded(Y: Tensor, n: int, axis: Any) -> float:
    """Return the same radius from the l1 norms and the caps of the groups: all that is gathered."""
    backend = backend_for(Y)
    norms = np.sort(np.ravel(backend.aggregate("", "sum", Y.detach(), axis, None, None)[0]))[::-1]
    if n >= len(norms):
        return math.inf
    if n == 0:
        return 0.0
    theta = norms[n] + 0.01 * (norms[n - 1] - norms[n])
    return float(backend.caps(Y.detach(), float(theta), axis, None, None).sum())


def at_step(ball: Any, step: int, Y: Tensor) -> Any:
    """Return the ball with a number for its radius, from which no gradient flows."""
    radius = ball.radius
    if isinstance(radius, Schedule):
        return dataclasses.replace(ball, radius=radius(step))
    if isinstance(radius, Rule):
        return dataclasses.replace(ball, radius=radius.radius(step, Y.detach(), ball))
    if isinstance(radius, Tensor):
        return dataclasses.replace(ball, radius=radius.detach())
    return ball
