r"""The l2 ball: vectors of bounded Euclidean length.

.. math:: \|y\|_2 = \sqrt{\sum_i |y_i|^2}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from normball._dispatch import backend_for
from normball._validate import Axis
from normball.balls._ball import Ball

__all__ = ["L2Ball", "norm_l2", "project_l2", "prox_l2"]


def project_l2(
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
    r"""Project onto the l2 ball: the nearest vector whose length is at most the radius.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 \quad\text{subject to}\quad \|X\|_2 \le \text{radius}.

    The vector is scaled. Squares neither overflow nor vanish.

    Parameters are those of `project_l1`, and so is what it returns. The theta of its info is the length that was lost.

    Examples
    --------
    >>> import normball
    >>> normball.project_l2([3.0, -4.0], 2.5)
    array([ 1.5, -2. ])
    """
    return backend_for(Y).operate(
        "project_l2", Y, radius, axis, batch_axis, out, check_finite, threads, return_info
    )


def norm_l2(Y: Any, axis: Axis | None = None, *, batch_axis: Axis | None = None, threads: int | None = None) -> Any:
    """Euclidean length, in double precision.

    Parameters are those of `project_l2`. An array with one entry for each vector where `axis` or `batch_axis` is
    given, else a float.

    Examples
    --------
    >>> import normball
    >>> normball.norm_l2([3.0, -4.0])
    5.0
    """
    return backend_for(Y).norm("l2", Y, axis, batch_axis, threads)


def prox_l2(
    Y: Any,
    scale: Any,
    *,
    axis: Axis | None = None,
    batch_axis: Axis | None = None,
    out: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    return_info: bool = False,
) -> Any:
    r"""Proximal operator of the l2 norm.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 + \text{scale} \cdot \|X\|_2.

    The vector is shortened by `scale`, or becomes zero where it is not longer than that.

    `scale` is at least 0; the other parameters are those of `project_l1`, and so is what it returns. The theta of its
    info is `scale`.

    Examples
    --------
    >>> import normball
    >>> normball.prox_l2([3.0, -4.0], 2.5)
    array([ 1.5, -2. ])
    """
    return backend_for(Y).operate(
        "prox_l2", Y, scale, axis, batch_axis, out, check_finite, threads, return_info
    )


@dataclass(frozen=True)
class L2Ball(Ball):
    """The set of vectors with ``norm_l2(Y, axis) <= radius``, as a value.

    Examples
    --------
    >>> import normball
    >>> normball.L2Ball(2.5).project([3.0, -4.0])
    array([ 1.5, -2. ])
    """

    name = "l2"
    dual_name = "l2"
    projection = staticmethod(project_l2)
    norm_function = staticmethod(norm_l2)
