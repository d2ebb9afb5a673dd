"""The exact path: which features survive at which radius, read off one trained layer.

A feature survives a projection if and only if one number, its score, exceeds theta: for the l1,inf ball the l1 norm of
its column. So the features, in the order of their scores, are the path; and each number of features has a theta and
a radius of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from normball.balls import BALLS

__all__ = ["NORMS", "ball_of", "left", "ranked", "scores", "threshold"]

Floats = npt.NDArray[np.float64]


def _l1(A: Floats) -> Floats:
    return np.asarray(A.sum(0))


def _l2(A: Floats) -> Floats:
    return np.asarray(np.sqrt(np.square(A).sum(0)))


def _max(A: Floats) -> Floats:
    return np.asarray(A.max(0))


def _l1inf_radius(A: Floats, theta: float) -> float:
    # A cap is where the part of the column above it adds up to theta: the largest of these quotients.
    Z = -np.sort(-A, axis=0)
    k = np.arange(1, len(Z) + 1)[:, None]
    return float(np.maximum(((np.cumsum(Z, axis=0) - theta) / k).max(0), 0.0).sum())


def _shrunk(score: Callable[[Floats], Floats]) -> Callable[[Floats, float], float]:
    return lambda A, theta: float(np.maximum(score(A) - theta, 0.0).sum())


# For each norm: the score of a column, and the radius as a function of theta.
NORMS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats, float], float]]] = {
    "l1inf": (_l1, _l1inf_radius),
    "l12": (_l2, _shrunk(_l2)),
    "l1": (_max, lambda A, theta: float(np.maximum(A - theta, 0.0).sum())),
    "bilevel_l1inf": (_max, _shrunk(_max)),
    "bilevel_l11": (_l1, _shrunk(_l1)),
    "bilevel_l12": (_l2, _shrunk(_l2)),
}


def scores(W: npt.NDArray[Any], norm: str) -> Floats:
    """Return what theta is compared with, for each column of `W`."""
    return NORMS[norm][0](np.abs(W.astype(np.float64)))


def ranked(score: Floats) -> npt.NDArray[np.intp]:
    """Return the columns from the best to the worst; of equals, the first comes first."""
    return np.argsort(-score, kind="stable")


def threshold(W: npt.NDArray[Any], norm: str, count: int) -> tuple[float, float]:
    """Return theta and the radius of the ball whose projection of `W` leaves `count` columns.

    Any theta from the next score up to the last kept one would do; this one stands a little above the next, and so
    shrinks least. Where the two are equal no ball tells them apart, and all such columns go.
    """
    score, radius = NORMS[norm]
    A = np.abs(W.astype(np.float64))
    falling = np.sort(score(A))[::-1]
    count = min(count, len(falling))
    after = float(falling[count]) if count < len(falling) else 0.0
    theta = after + 0.01 * (float(falling[count - 1]) - after) if count else after
    return theta, radius(A, theta)


def left(W: npt.NDArray[Any], norm: str, radius: float) -> int:
    """Return how many columns of `W` the ball of a radius leaves: one at least, or it is an error."""
    count = int((np.abs(ball_of(norm, radius).project(W)).max(0) > 0).sum())
    if not count:
        raise ValueError(f"radius: expected one that leaves a feature, got {radius}, which leaves none")
    return count


def ball_of(norm: str, radius: Any) -> Any:
    """Return the ball of a name; its groups are columns."""
    return BALLS[norm](radius) if norm == "l1" else BALLS[norm](radius, axis=0)  # that of l1 is the whole matrix
