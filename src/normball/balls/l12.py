r"""The l1,2 ball, that of the group lasso: matrices whose sum of group lengths is at most the radius.

.. math:: \|Y\|_{1,2} = \sum_g \sqrt{\sum_i |Y_{ig}|^2}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from normball._dispatch import backend_for
from normball._validate import Axis
from normball.balls._ball import Ball

__all__ = ["L12Ball", "norm_l12", "project_l12", "prox_l12"]


def project_l12(
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
    r"""Project onto the l1,2 ball: the nearest array whose sum of group lengths is at most the radius.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 \quad\text{subject to}\quad \sum_g \|X_g\|_2 \le \text{radius}.

    Every group is shortened by one length, theta; those that are not longer become zero. Groups keep their direction.

    Parameters
    ----------
    Y : array_like
        float64, float32, float16 or complex (by modulus); integers are promoted to float64. Any strides; never
        modified, unless it is also `out`.
    radius : float or array_like
        At least 0; infinity is allowed. With batch axes, anything that broadcasts to the batch shape.
    axis : int or tuple of int
        The axes that the inner norm runs over, as in ``np.abs(Y).max(axis)``. What remains are the groups.
    batch_axis : int or tuple of int, optional
        Axes of independent problems.
    out : ndarray, optional
        Where to write, of the shape and dtype of the result. ``out=Y`` works in place.
    check_finite : bool
        Raise for NaN and infinity. Without the check, a problem that holds any comes out as NaN.
    threads : int, optional
        At most this many; the result does not depend on it. The default is that of `project_l1inf`.
    return_info : bool
        Return ``(X, info)``, with an `OperatorInfo`; its theta is that length.

    Returns
    -------
    ndarray
        A new array of the shape and dtype of `Y`, or `out`.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.array([[3.0, -0.5], [4.0, 0.5]])
    >>> X, info = normball.project_l12(Y, 2.5, return_info=True)
    >>> X
    array([[1.5, 0. ],
           [2. , 0. ]])
    >>> info
    OperatorInfo(theta=2.5, 1 of 2 groups non-zero, reads=1.50)
    """
    return backend_for(Y).operate(
        "project_l12", Y, radius, axis, batch_axis, out, check_finite, threads, return_info
    )


def norm_l12(Y: Any, axis: Axis = 0, *, batch_axis: Axis | None = None, threads: int | None = None) -> Any:
    """Sum over the groups of their Euclidean lengths, in double precision.

    Parameters are those of `project_l12`. An array of the batch shape with batch axes, else a float.

    Examples
    --------
    >>> import normball
    >>> normball.norm_l12([[3.0, -0.6], [4.0, 0.8]])
    6.0
    """
    return backend_for(Y).norm("l12", Y, axis, batch_axis, threads)


def prox_l12(
    Y: Any,
    scale: Any,
    *,
    axis: Axis = 0,
    batch_axis: Axis | None = None,
    out: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    return_info: bool = False,
) -> Any:
    r"""Proximal operator of the l1,2 norm: group soft thresholding.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 + \text{scale} \cdot \sum_g \|X_g\|_2.

    Every group is shortened by `scale`, or becomes zero where it is not longer than that.

    `scale` is at least 0; the other parameters are those of `project_l12`, and so is what it returns. The theta of its
    info is `scale`.

    Examples
    --------
    >>> import normball
    >>> normball.prox_l12([[3.0, -0.5], [4.0, 0.5]], 2.5)
    array([[1.5, 0. ],
           [2. , 0. ]])
    """
    return backend_for(Y).operate(
        "prox_l12", Y, scale, axis, batch_axis, out, check_finite, threads, return_info
    )


@dataclass(frozen=True)
class L12Ball(Ball):
    """The set of arrays with ``norm_l12(Y, axis) <= radius``, as a value.

    Examples
    --------
    >>> import normball
    >>> ball = normball.L12Ball(2.5)
    >>> ball.project([[3.0, -0.5], [4.0, 0.5]])
    array([[1.5, 0. ],
           [2. , 0. ]])
    >>> ball.dual
    LInf2Ball(radius=2.5, axis=0)
    """

    axis: Axis = 0

    name = "l12"
    dual_name = "linf2"
    decided_by = "norm2"
    projection = staticmethod(project_l12)
    norm_function = staticmethod(norm_l12)
