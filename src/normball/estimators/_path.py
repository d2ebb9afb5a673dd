"""The exact path: which features survive at which radius, read off one trained layer.

A feature survives a projection if and only if one number, its score, exceeds theta: for the l1,inf ball the l1 norm of
its column. So the features, in the order of their scores, are the path; and each number of features has a theta and
a radius of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from normball._dispatch import backend_for
from normball.balls import BALLS
from normball.balls.sparsity import SPARSIFYING as NORMS
from normball.balls.sparsity import Groups, theta_leaving

__all__ = ["NORMS", "ball_of", "left", "ranked", "scores", "threshold"]

Floats = npt.NDArray[np.float64]


def scores(W: npt.NDArray[Any], norm: str) -> Floats:
    """Return what theta is compared with, for each column of `W`: of single entries, the largest of the column."""
    kind = BALLS[norm](0.0).decided_by
    values: Floats = backend_for(W).aggregate("", "peak" if kind == "entry" else kind, W, 0, None, None)[0]
    return values


def ranked(score: Floats) -> npt.NDArray[np.intp]:
    """Return the columns from the best to the worst; of equals, the first comes first."""
    return np.argsort(-score, kind="stable")


def threshold(W: npt.NDArray[Any], norm: str, count: int) -> tuple[float, float]:
    """Return theta and the radius of the ball whose projection of `W` leaves at least `count` columns."""
    theta = theta_leaving(scores(W, norm), count)
    return float(theta), float(Groups(W, ball_of(norm, 0.0)).radius_at(theta))


def left(W: npt.NDArray[Any], norm: str, radius: float) -> int:
    """Return how many columns of `W` the ball of a radius leaves: one at least, or it is an error."""
    count = int((np.abs(ball_of(norm, radius).project(W)).max(0) > 0).sum())
    if not count:
        raise ValueError(f"radius: expected one that leaves a feature, got {radius}, which leaves none")
    return count


def ball_of(norm: str, radius: Any) -> Any:
    """Return the ball of a name; its groups are columns."""
    return BALLS[norm](radius) if norm == "l1" else BALLS[norm](radius, axis=0)  # that of l1 is the whole matrix
