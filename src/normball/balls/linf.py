r"""The linf ball: vectors of bounded magnitudes.

.. math:: \|y\|_\infty = \max_i |y_i|
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from normball._dispatch import backend_for
from normball._validate import Axis
from normball.balls._ball import Ball

__all__ = ["LinfBall", "norm_linf", "project_linf", "prox_linf"]


def project_linf(
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
    r"""Project onto the linf ball: the nearest vector whose magnitudes are at most the radius.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 \quad\text{subject to}\quad \max_i |X_i| \le \text{radius}.

    Every entry is clipped.

    Parameters are those of `project_l1`, and so is what it returns. The theta of its info is the l1 norm that was lost.

    Examples
    --------
    >>> import normball
    >>> normball.project_linf([3.0, -4.0, 0.5], 2.5)
    array([ 2.5, -2.5,  0.5])
    """
    return backend_for(Y).operate(
        "project_linf", Y, radius, axis, batch_axis, out, check_finite, threads, return_info
    )


def norm_linf(Y: Any, axis: Axis | None = None, *, batch_axis: Axis | None = None, threads: int | None = None) -> Any:
    """Largest magnitude.

    Parameters are those of `project_linf`. An array with one entry for each vector where `axis` or `batch_axis` is
    given, else a float.

    Examples
    --------
    >>> import normball
    >>> normball.norm_linf([3.0, -4.0])
    4.0
    """
    return backend_for(Y).norm("linf", Y, axis, batch_axis, threads)


def prox_linf(
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
    r"""Proximal operator of the linf norm.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 + \text{scale} \cdot \max_i |X_i|.

    Every entry is clipped to one cap, chosen such that the vector loses `scale` in l1 norm; it becomes zero where it
    has no more than that to lose.

    `scale` is at least 0; the other parameters are those of `project_l1`, and so is what it returns. The theta of its
    info is `scale`.

    Examples
    --------
    >>> import normball
    >>> normball.prox_linf([3.0, -4.0, 0.5], 2.0)
    array([ 2.5, -2.5,  0.5])
    """
    return backend_for(Y).operate(
        "prox_linf", Y, scale, axis, batch_axis, out, check_finite, threads, return_info
    )


@dataclass(frozen=True)
class LinfBall(Ball):
    """The set of vectors with ``norm_linf(Y, axis) <= radius``, as a value.

    Examples
    --------
    >>> import normball
    >>> normball.LinfBall(2.5).project([3.0, -4.0, 0.5])
    array([ 2.5, -2.5,  0.5])
    """

    name = "linf"
    dual_name = "l1"
    projection = staticmethod(project_linf)
    norm_function = staticmethod(norm_linf)
