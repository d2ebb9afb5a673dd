"""What every ball can do, so that the file of a ball holds only what is its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from normball import _validate
from normball._dispatch import backend_for
from normball._validate import Axis

__all__ = ["Ball", "Rule"]


class Rule:
    """A radius that is computed anew for each projection, as those of `normball.nn` are."""

    def check(self, ball: Ball) -> None:
        """Raise unless this can be the radius of the ball."""

    def radius(self, step: float, Y: Any, ball: Ball) -> Any:
        """Return the radius of the ball for the projection of `Y` at a step."""
        raise NotImplementedError


@dataclass(frozen=True)
class Ball:
    """A set of arrays as a value: those whose norm is at most the radius. The base of all the balls.

    Parameters
    ----------
    radius : float, array_like or Tensor
        At least 0. One for each problem goes with the `batch_axis` of `project`, `norm` and `contains`.
    axis : int, tuple of int or None
        The axes that the inner norm runs over; None, where the ball has one norm only, for all of them.
    """

    radius: Any
    axis: Axis | None = None

    name: ClassVar[str] = ""
    dual_name: ClassVar[str] = ""
    decided_by: ClassVar[str | None] = None  # group norm that theta is compared with: sum, norm2, peak; or each entry
    projection: ClassVar[Callable[..., Any]]
    norm_function: ClassVar[Callable[..., Any]]

    def __post_init__(self) -> None:
        _validate.ball(self.radius, self.axis)
        if isinstance(self.radius, Rule):
            self.radius.check(self)

    def project(self, Y: Any, **options: Any) -> Any:
        """Nearest point of the ball; options are those of the function that projects onto it."""
        return type(self).projection(Y, self.radius, axis=self.axis, **options)

    def __call__(self, Y: Any, **options: Any) -> Any:
        """Nearest point of the ball: the same as `project`."""
        return self.project(Y, **options)

    def norm(self, Y: Any, **options: Any) -> Any:
        """Norm that the ball bounds; one for each vector, where an axis was given and the ball has no groups.

        Options are those of the function that computes it.
        """
        return type(self).norm_function(Y, self.axis, **options)

    def contains(self, Y: Any, *, rtol: float | None = None, atol: float = 0.0, **options: Any) -> bool:
        """Whether ``norm(Y) <= radius * (1 + rtol) + atol``; by default within four units of rounding of Y's dtype."""
        rtol, atol = self._tolerances(Y, rtol, atol)
        norm = self.norm(Y, **options)
        radius = _validate.radius_of_norm(self.radius, norm)
        inside = norm <= radius * (1.0 + rtol) + atol
        return inside if isinstance(inside, bool) else bool(inside.all())

    def _tolerances(self, Y: Any, rtol: float | None, atol: float) -> tuple[float, float]:
        if rtol is None:
            rtol = 4.0 * backend_for(Y).eps(Y)
        return _validate.tolerance("rtol", rtol), _validate.tolerance("atol", atol)

    @property
    def dual(self) -> Ball:
        """Ball of the dual norm, of the same radius: what this projection leaves is the prox of that norm."""
        from normball.balls import BALLS

        if not self.dual_name:
            raise TypeError(f"{type(self).__name__}: expected the ball of a norm, got a set that has no dual norm")
        return BALLS[self.dual_name](self.radius, self.axis)
