r"""The linf,2 ball, dual to l1,2: matrices whose longest group is no longer than the radius.

.. math:: \|Y\|_{\infty,2} = \max_g \sqrt{\sum_i |Y_{ig}|^2}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from normball._dispatch import backend_for
from normball._validate import Axis
from normball.balls._ball import Ball

__all__ = ["LInf2Ball", "norm_linf2", "project_linf2"]


def project_linf2(
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
    r"""Project onto the linf,2 ball: the nearest array none of whose groups is longer than the radius.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 \quad\text{subject to}\quad \max_g \|X_g\|_2 \le \text{radius}.

    Each group is projected onto an l2 ball of its own.

    Parameters are those of `project_l12`, and so is what it returns. The theta of its info is the length that each
    group has lost.

    Examples
    --------
    >>> import normball
    >>> normball.project_linf2([[3.0, -0.5], [4.0, 0.5]], 2.5)
    array([[ 1.5, -0.5],
           [ 2. ,  0.5]])
    """
    return backend_for(Y).operate(
        "project_linf2", Y, radius, axis, batch_axis, out, check_finite, threads, return_info
    )


def norm_linf2(Y: Any, axis: Axis = 0, *, batch_axis: Axis | None = None, threads: int | None = None) -> Any:
    """Largest over the groups of their Euclidean lengths, in double precision: the dual norm of `norm_l12`.

    Parameters are those of `project_linf2`. An array of the batch shape with batch axes, else a float.

    Examples
    --------
    >>> import normball
    >>> normball.norm_linf2([[3.0, -0.6], [4.0, 0.8]])
    5.0
    """
    return backend_for(Y).norm("linf2", Y, axis, batch_axis, threads)


@dataclass(frozen=True)
class LInf2Ball(Ball):
    """The set of arrays with ``norm_linf2(Y, axis) <= radius``, as a value.

    Examples
    --------
    >>> import normball
    >>> normball.LInf2Ball(2.5).norm([[3.0, -0.6], [4.0, 0.8]])
    5.0
    """

    axis: Axis = 0

    name = "linf2"
    dual_name = "l12"
    projection = staticmethod(project_linf2)
    norm_function = staticmethod(norm_linf2)
