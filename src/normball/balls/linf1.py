r"""The linf,1 ball, dual to l1,inf: matrices whose largest group sum is at most the radius.

.. math:: \|Y\|_{\infty,1} = \max_g \sum_i |Y_{ig}|
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from normball._dispatch import backend_for
from normball._validate import Axis
from normball.balls._ball import Ball

__all__ = ["LInf1Ball", "norm_linf1", "project_linf1", "prox_linf1"]


def project_linf1(
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
    r"""Project onto the linf,1 ball: the nearest array none of whose group sums exceeds the radius.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 \quad\text{subject to}\quad \max_g \sum_i |X_{ig}| \le \text{radius}.

    Each group is projected onto an l1 ball of its own.

    Parameters are those of `project_l12`, and so is what it returns. The theta of its info is the threshold of each
    group.

    Examples
    --------
    >>> import normball
    >>> normball.project_linf1([[3.0, -0.5], [1.0, 0.5]], 2.0)
    array([[ 2. , -0.5],
           [ 0. ,  0.5]])
    """
    return backend_for(Y).operate(
        "project_linf1", Y, radius, axis, batch_axis, out, check_finite, threads, return_info
    )


def norm_linf1(Y: Any, axis: Axis = 0, *, batch_axis: Axis | None = None, threads: int | None = None) -> Any:
    """Largest over the groups of the sum of the magnitudes, in double precision: the dual norm of `norm_l1inf`.

    Parameters are those of `project_l1inf`. An array of the batch shape with batch axes, else a float.

    Examples
    --------
    >>> import normball
    >>> normball.norm_linf1([[3.0, -0.5], [1.0, 0.5]])
    4.0
    """
    return backend_for(Y).norms(Y, axis, batch_axis, threads)[1]


def prox_linf1(
    Y: Any,
    scale: Any,
    axis: Axis = 0,
    *,
    batch_axis: Axis | None = None,
    out: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    return_info: bool = False,
) -> Any:
    r"""Proximal operator of the linf,1 norm: what the projection onto the l1,inf ball takes away.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 + \text{scale} \cdot \max_g \sum_i |X_{ig}|.

    Every group is shrunk towards zero by the cap that it has in the l1,inf projection onto radius `scale`.

    `scale` is at least 0; the other parameters are those of `project_l12`, and so is what it returns. The theta of its
    info is that of this projection.

    Examples
    --------
    >>> import normball
    >>> normball.prox_linf1([[3.0, -0.5], [1.0, 0.5]], 1.0)
    array([[ 2. , -0.5],
           [ 0. ,  0.5]])
    """
    return backend_for(Y).operate(
        "prox_linf1", Y, scale, axis, batch_axis, out, check_finite, threads, return_info
    )


@dataclass(frozen=True)
class LInf1Ball(Ball):
    """The set of arrays with ``norm_linf1(Y, axis) <= radius``, as a value.

    Examples
    --------
    >>> import normball
    >>> normball.LInf1Ball(2.0).project([[3.0, -0.5], [1.0, 0.5]])
    array([[ 2. , -0.5],
           [ 0. ,  0.5]])
    """

    axis: Axis = 0

    name = "linf1"
    dual_name = "l1inf"
    projection = staticmethod(project_linf1)
    norm_function = staticmethod(norm_linf1)
