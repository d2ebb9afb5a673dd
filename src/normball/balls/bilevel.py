r"""Bilevel and multilevel projections: into the ball of a mixed norm, but not to its nearest point.

M. Barlaud, G. Perez and J.-P. Marmorat, *Linear time bi-level l1,inf projection; application to feature selection and
sparsification of auto-encoders* (2024): take the norm of each group, project these numbers onto the l1 ball, then
project each group onto the ball whose radius is what is left of its number. Every step is linear and the groups
are independent of each other; the result lies in the ball and is sparse by groups, but it is **not the Euclidean
projection**, unless the inner norm is the 2-norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from normball import _validate
from normball._dispatch import backend_for, is_sharded
from normball._info import OperatorInfo
from normball._validate import Axis
from normball.balls._ball import Ball
from normball.balls.l1 import norm_l1
from normball.balls.l1inf import norm_l1inf
from normball.balls.l12 import norm_l12, project_l12

__all__ = ["BilevelBall", "bilevel_l1inf", "bilevel_l11", "bilevel_l12", "multilevel", "norm_multilevel"]

NORMS = ("l1", "l2", "linf")


def bilevel_l1inf(
    Y: Any,
    radius: Any,
    *,
    axis: Axis = 0,
    batch_axis: Axis | None = None,
    out: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    return_info: bool = False,
) -> Any:
    r"""Bilevel l1,inf projection: the maxima of the groups are projected onto the l1 ball, then the groups are clipped.

    Every group whose largest magnitude is at most one number, theta, becomes zero; every other is clipped at its
    largest magnitude less theta. The result is in the l1,inf ball, but it is **not its nearest point**: that is
    `project_l1inf`, which costs more and tends to leave more groups.

    Parameters are those of `project_l12`, and so is what it returns. The theta of its info is that number.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.array([[3.0, -0.5], [1.0, 0.5]])
    >>> normball.bilevel_l1inf(Y, 2.0)
    array([[2., 0.],
           [1., 0.]])
    """
    return backend_for(Y).operate(
        "bilevel_l1inf", Y, radius, axis, batch_axis, out, check_finite, threads, return_info
    )


def bilevel_l11(
    Y: Any,
    radius: Any,
    *,
    axis: Axis = 0,
    batch_axis: Axis | None = None,
    out: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    return_info: bool = False,
) -> Any:
    r"""Bilevel l1,1 projection: the l1 norms of the groups are projected onto the l1 ball, then each group on its own.

    Sparse by groups and inside them. The result is in the l1 ball, but it is **not its nearest point**: that is
    `project_l1`, which knows of no groups.

    Parameters are those of `project_l12`, and so is what it returns. The theta of its info is the l1 norm that every
    non-zero group has lost.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.array([[3.0, -0.5], [1.0, 0.5]])
    >>> normball.bilevel_l11(Y, 2.0)
    array([[2., 0.],
           [0., 0.]])
    """
    return backend_for(Y).operate("bilevel_l11", Y, radius, axis, batch_axis, out, check_finite, threads, return_info)


def bilevel_l12(Y: Any, radius: Any, **options: Any) -> Any:
    """Bilevel l1,2 projection: the lengths of the groups are projected onto the l1 ball, then the groups are scaled.

    It coincides with the Euclidean projection onto the l1,2 ball: this is `project_l12` under another name.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.array([[3.0, -0.5], [4.0, 0.5]])
    >>> np.array_equal(normball.bilevel_l12(Y, 2.5), normball.project_l12(Y, 2.5))
    True
    """
    return project_l12(Y, radius, **options)


def multilevel(
    Y: Any,
    radius: Any,
    norms: Sequence[str],
    axes: Sequence[Axis],
    *,
    out: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    return_info: bool = False,
) -> Any:
    r"""Multilevel projection of a tensor, for a norm of norms: each level shares out what the level above leaves it.

    With ``norms=("l1", "linf", "l2")`` and ``axes=(0, 1, 2)`` the norm is the sum over axis 0 of the largest over
    axis 1 of the lengths along axis 2. Norms are taken from the last to the first, then projected from the first to the
    last: onto the ball of the first norm with `radius`, and then the numbers of each level onto balls whose radii are
    what the level above has become. In the ball of the norm, but in general **not its nearest point**.

    Parameters
    ----------
    Y : array_like
        As in `project_l12`.
    radius : float
        At least 0; infinity is allowed.
    norms : sequence of {"l1", "l2", "linf"}
        Outermost first, as in the names of the balls: ``("l1", "linf")`` is `bilevel_l1inf`.
    axes : sequence of int or tuple of int
        The axes that each norm runs over; every axis of `Y` belongs to one of them.
    out, check_finite, threads, return_info
        As in `project_l12`. The theta of the info is that of the outermost projection.

    Returns
    -------
    ndarray
        A new array of the shape and dtype of `Y`, or `out`.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.array([[[3.0, 4.0], [1.0, 0.0]], [[0.3, 0.4], [0.6, 0.8]]])
    >>> normball.multilevel(Y, 2.5, ("l1", "linf", "l2"), (0, 1, 2))
    array([[[1.5, 2. ],
            [1. , 0. ]],
    <BLANKLINE>
           [[0. , 0. ],
            [0. , 0. ]]])
    """
    levels = _levels(Y, norms, axes, threads)
    backend = backend_for(Y)
    theta: Any = 0.0
    left: Any = radius
    reads: float | None = 0.0
    for number, (values, norm, axis) in enumerate(reversed(levels)):
        last = number == len(levels) - 1
        X, info = backend.operate(
            f"project_{norm}", values, left, axis, None, out if last else None, check_finite, threads, True
        )
        theta = info.theta if number == 0 else theta
        left, reads = X, info.reads
    mu = info.mu
    theta = float(theta) if getattr(theta, "ndim", 0) == 0 else theta
    reads = None if reads is None else reads + len(levels) - 1
    return (X, OperatorInfo(theta, mu, reads)) if return_info else X


def norm_multilevel(Y: Any, norms: Sequence[str], axes: Sequence[Axis], *, threads: int | None = None) -> float:
    """Norm of norms that `multilevel` bounds, in double precision.

    Parameters are those of `multilevel`.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.array([[[3.0, 4.0], [1.0, 0.0]], [[0.3, 0.4], [0.6, 0.8]]])
    >>> normball.norm_multilevel(Y, ("l1", "linf", "l2"), (0, 1, 2))
    6.0
    """
    values, norm, axis = _levels(Y, norms, axes, threads)[-1]
    return float(backend_for(values).norm(norm, values, axis, None, threads))


def _levels(
    Y: Any, norms: Sequence[str], axes: Sequence[Axis], threads: int | None
) -> list[tuple[Any, str, tuple[int, ...]]]:
    """Return, innermost first, the numbers of each level, and which norm to take of them along which axes."""
    backend = backend_for(Y)
    if is_sharded(Y):
        raise TypeError(
            "Y: expected a tensor that is not sharded in multilevel, got a DTensor; redistribute it to Replicate(), or "
            "use bilevel_l1inf, bilevel_l11 or bilevel_l12"
        )
    places = _validate.level_axes(Y, norms, axes, NORMS)
    levels, remaining, values = [], sorted(a for axis in places for a in axis), Y
    for norm, place in zip(reversed(norms), reversed(places), strict=True):
        axis = tuple(remaining.index(a) for a in place)
        levels.append((values, norm, axis))
        if len(levels) < len(norms):
            values = backend.norm(norm, values, axis, None, threads)
            remaining = [a for a in remaining if a not in place]
    return levels


@dataclass(frozen=True)
class BilevelBall(Ball):
    """The ball of a mixed norm, with the bilevel projection into it, as a value.

    Parameters
    ----------
    radius, axis
        As in every ball of groups.
    inner : {"linf", "l1", "l2"}
        The norm inside a group: that of `bilevel_l1inf`, `bilevel_l11` or `bilevel_l12`.

    Examples
    --------
    >>> import normball
    >>> ball = normball.BilevelBall(2.0)
    >>> ball.project([[3.0, -0.5], [1.0, 0.5]])
    array([[2., 0.],
           [1., 0.]])
    >>> normball.BilevelBall(2.0, inner="l1").dual
    LinfBall(radius=2.0, axis=None)
    """

    axis: Axis = 0
    inner: str = "linf"

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name in `normball.balls.BALLS`."""
        return f"bilevel_l1{self.inner.removeprefix('l')}"

    @property
    def decided_by(self) -> str:  # type: ignore[override]
        """The norm of a group that theta is compared with."""
        return {"linf": "peak", "l1": "sum", "l2": "norm2"}[self.inner]

    def __post_init__(self) -> None:
        if self.inner not in _INNER:
            _validate.unknown("inner", self.inner, tuple(_INNER))
        super().__post_init__()

    def project(self, Y: Any, **options: Any) -> Any:
        """Point of the ball that the bilevel projection gives: near, but in general not the nearest."""
        return _INNER[self.inner][0](Y, self.radius, axis=self.axis, **options)

    def norm(self, Y: Any, **options: Any) -> Any:
        """Norm that the ball bounds."""
        return norm_l1(Y, **options) if self.inner == "l1" else _INNER[self.inner][1](Y, self.axis, **options)

    @property
    def dual(self) -> Ball:
        """Ball of the dual norm, of the same radius."""
        from normball.balls import BALLS

        return BALLS[_INNER[self.inner][2]](self.radius, None if self.inner == "l1" else self.axis)


_INNER: dict[str, tuple[Any, Any, str]] = {
    "linf": (bilevel_l1inf, norm_l1inf, "linf1"),
    "l1": (bilevel_l11, norm_l1, "linf"),
    "l2": (bilevel_l12, norm_l12, "linf2"),
}
