"""The simplex: vectors of entries that are not negative and add up to the radius."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from normball import _validate
from normball._dispatch import backend_for
from normball._validate import Axis
from normball.balls._ball import Ball
from normball.balls.l1 import norm_l1

__all__ = ["SimplexBall", "project_simplex"]


def project_simplex(
    Y: Any,
    radius: Any,
    *,
    axis: Axis | None = None,
    batch_axis: Axis | None = None,
    out: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    return_info: bool = False,
) -> Any:
    r"""Project onto the simplex: the nearest vector of entries >= 0 that add up to the radius.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 \quad\text{subject to}\quad X \ge 0,\ \sum_i X_i = \text{radius}.

    Every entry loses one number, theta, of either sign; those that would become negative are zero. Linear time, no
    sort. What is in the simplex to a few units of rounding comes back as it is.

    Parameters are those of `project_l1`, and so is what it returns, for real numbers. The theta of its info is that
    number.

    Examples
    --------
    >>> import normball
    >>> normball.project_simplex([0.25, -1.0, 0.5], 1.0)
    array([0.375, 0.   , 0.625])
    >>> normball.project_simplex([[3.0, 1.0], [0.0, 0.5]], 1.0, axis=1)
    array([[1.  , 0.  ],
           [0.25, 0.75]])
    """
    return backend_for(Y).operate(
        "project_simplex", Y, radius, axis, batch_axis, out, check_finite, threads, return_info
    )


@dataclass(frozen=True)
class SimplexBall(Ball):
    """The set of vectors of entries >= 0 that add up to the radius, as a value. It is no ball of a norm.

    Examples
    --------
    >>> import normball
    >>> simplex = normball.SimplexBall(1.0)
    >>> simplex.project([0.25, -1.0, 0.5])
    array([0.375, 0.   , 0.625])
    >>> simplex.contains([0.5, 0.5]), simplex.contains([0.5, 0.25]), simplex.contains([1.5, -0.5])
    (True, False, False)
    """

    name = "simplex"
    projection = staticmethod(project_simplex)
    norm_function = staticmethod(norm_l1)

    def contains(self, Y: Any, *, rtol: float | None = None, atol: float = 0.0, **options: Any) -> bool:
        """Whether no entry is below ``-atol`` and the sum is the radius, to ``radius * rtol + atol``."""
        rtol, atol = self._tolerances(Y, rtol, atol)
        values = Y if hasattr(Y, "dtype") else np.asarray(Y)
        norm = self.norm(values, **options)
        radius = _validate.radius_of_norm(self.radius, norm)
        near = abs(norm - radius) <= radius * rtol + atol
        return bool((near if isinstance(near, bool) else near.all()) and (values >= -atol).all())
