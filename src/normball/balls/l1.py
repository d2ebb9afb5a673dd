r"""The l1 ball: vectors whose magnitudes add up to at most the radius.

.. math:: \|y\|_1 = \sum_i |y_i|
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from normball._dispatch import backend_for
from normball._validate import Axis
from normball.balls._ball import Ball

__all__ = ["L1Ball", "norm_l1", "project_l1", "prox_l1"]


def project_l1(
    Y: Any,
    radius: Any,
    *,
    axis: Axis | None = None,
    weights: Any = None,
    batch_axis: Axis | None = None,
    out: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    return_info: bool = False,
) -> Any:
    r"""Project onto the l1 ball: the nearest vector whose magnitudes add up to at most the radius.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 \quad\text{subject to}\quad \sum_i w_i |X_i| \le \text{radius}.

    Every entry is shrunk towards zero by one threshold, theta, times its weight; those that are smaller become zero.
    Linear time, no sort.

    Parameters
    ----------
    Y : array_like
        float64, float32, float16 or complex (by modulus); integers are promoted to float64. Any strides; never
        modified, unless it is also `out`.
    radius : float or array_like
        At least 0; infinity is allowed. With several vectors, anything that broadcasts to one number for each.
    axis : int or tuple of int, optional
        The axes of one vector, as in ``np.abs(Y).sum(axis)``; all that remain count the vectors. By default all the
        axes that are not batch axes: the whole array is one vector.
    batch_axis : int or tuple of int, optional
        The same from the other side: the axes that count the vectors.
    weights : array_like, optional
        Of the weighted l1 ball: finite, at least 0, of a shape that broadcasts to that of `Y`. All 1 by default.
    out : ndarray, optional
        Where to write, of the shape and dtype of the result. ``out=Y`` works in place.
    check_finite : bool
        Raise for NaN and infinity. Without the check, a problem that holds any comes out as NaN.
    threads : int, optional
        At most this many; the result does not depend on it. The default is that of `project_l1inf`.
    return_info : bool
        Return ``(X, info)``, with an `OperatorInfo`; its theta is that threshold.

    Returns
    -------
    ndarray
        A new array of the shape and dtype of `Y`, or `out`.

    Examples
    --------
    >>> import numpy as np, normball
    >>> normball.project_l1([3.0, -1.0, 0.5], 2.0)
    array([2., 0., 0.])
    >>> normball.project_l1([[3.0, -1.0], [0.5, 1.5]], [2.0, 1.0], axis=1)
    array([[2., 0.],
           [0., 1.]])
    >>> normball.project_l1([3.0, 2.0], 3.0, weights=[1.0, 2.0])
    array([2.2, 0.4])
    """
    return backend_for(Y).operate(
        "project_l1", Y, radius, axis, batch_axis, out, check_finite, threads, return_info, weights
    )


def norm_l1(
    Y: Any,
    axis: Axis | None = None,
    *,
    weights: Any = None,
    batch_axis: Axis | None = None,
    threads: int | None = None,
) -> Any:
    """Sum of the magnitudes, each times its weight, in double precision.

    Parameters are those of `project_l1`. An array with one entry for each vector where `axis` or `batch_axis` is given,
    else a float.

    Examples
    --------
    >>> import normball
    >>> normball.norm_l1([3.0, -1.0, 0.5])
    4.5
    """
    return backend_for(Y).norm("l1", Y, axis, batch_axis, threads, weights)


def prox_l1(
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
    r"""Proximal operator of the l1 norm: soft thresholding.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 + \text{scale} \cdot \sum_i |X_i|.

    Every entry is shrunk towards zero by `scale`.

    `scale` is at least 0; the other parameters are those of `project_l1`, and so is what it returns. The theta of its
    info is `scale`.

    Examples
    --------
    >>> import normball
    >>> normball.prox_l1([3.0, -1.0, 0.5], 0.75)
    array([ 2.25, -0.25,  0.  ])
    """
    return backend_for(Y).operate(
        "prox_l1", Y, scale, axis, batch_axis, out, check_finite, threads, return_info
    )


@dataclass(frozen=True)
class L1Ball(Ball):
    """The set of vectors with ``norm_l1(Y, axis) <= radius``, as a value.

    Examples
    --------
    >>> import normball
    >>> normball.L1Ball(2.0).project([3.0, -1.0, 0.5])
    array([2., 0., 0.])
    >>> normball.L1Ball(2.0).dual
    LinfBall(radius=2.0, axis=None)
    """

    name = "l1"
    dual_name = "linf"
    decided_by = "entry"
    projection = staticmethod(project_l1)
    norm_function = staticmethod(norm_l1)
