r"""The l1,inf ball: matrices whose sum of group maxima is at most the radius.

.. math:: \|Y\|_{1,\infty} = \sum_{g} \max_{i} |Y_{ig}|
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from normball import _validate
from normball._dispatch import backend_for
from normball._info import ProjectionInfo
from normball._validate import Axis
from normball.balls._ball import Ball

__all__ = ["L1InfBall", "norm_l1inf", "project_l1inf", "project_l1inf_", "prox_l1inf"]


def project_l1inf(
    Y: Any,
    radius: Any,
    *,
    axis: Axis = 0,
    batch_axis: Axis | None = None,
    method: str = "newton",
    out: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    warm_start: ProjectionInfo | None = None,
    return_info: bool = False,
) -> Any:
    r"""Project onto the l1,inf ball: the nearest array whose sum of group maxima is at most the radius.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|_F^2 \quad\text{subject to}\quad \sum_g \max_i |X_{ig}| \le \text{radius}.

    Every group whose l1 norm is at most one number theta becomes zero; every other group is clipped at a cap of its
    own, chosen such that it loses exactly theta in l1 norm.

    Parameters
    ----------
    Y : array_like or Tensor
        float64, float32, float16 or complex (by modulus); integers are promoted to float64. A tensor: float64,
        float32, bfloat16 or float16, on the CPU or on CUDA. Any strides; never modified, unless it is also `out`.
    radius : float, array_like or Tensor
        At least 0; infinity is allowed. With batch axes, anything that broadcasts to the batch shape. A tensor may
        require a gradient.
    axis : int or tuple of int
        The axes that the maximum runs over, as in ``np.abs(Y).max(axis)``. What remains are the groups.
    batch_axis : int or tuple of int, optional
        Axes of independent problems.
    method : {"newton", "inverse_total_order", "total_order", "active_set", "semismooth_newton"}
        All are exact and agree to rounding. The others are here for comparison.
    out : ndarray or Tensor, optional
        Where to write, of the shape and dtype of the result. ``out=Y`` projects in place, as `project_l1inf_` does.
    check_finite : bool
        Raise for NaN and infinity. Without the check, a problem that holds any comes out as NaN. So it does on CUDA,
        where looking would make the host wait.
    threads : int, optional
        At most this many; the result does not depend on it. By default ``NORMBALL_NUM_THREADS``, else
        ``OMP_NUM_THREADS``, else all the CPUs that this process may use. Small arrays use one.
    warm_start : ProjectionInfo, optional
        The info of an earlier call on an array of the same shape. Only changes the speed: for the better where the
        arrays are much alike.
    return_info : bool
        Return ``(X, info)``.

    Returns
    -------
    ndarray or Tensor
        A new array of the shape and dtype of `Y`, or `out`.

    Notes
    -----
    ``norm_l1inf(X) <= radius * (1 + 4 * eps)`` in the dtype of X; a point of the ball comes back bit for bit; the bits
    are the same on every call and for any number of threads.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.array([[3.0, -0.5], [1.0, 0.5]])
    >>> normball.project_l1inf(Y, 1.0)
    array([[1., 0.],
           [1., 0.]])
    >>> X, info = normball.project_l1inf(Y, 2.0, return_info=True)
    >>> X
    array([[2., 0.],
           [1., 0.]])
    >>> info
    ProjectionInfo(theta=1, 1 of 2 groups non-zero, clipped=1, kept=1, reads=2.50)
    """
    return backend_for(Y).project_l1inf(
        Y, radius, axis, batch_axis, method, out, bool(check_finite), threads, warm_start, return_info
    )


def project_l1inf_(Y: Any, radius: Any, **options: Any) -> Any:
    """Project `Y` onto the l1,inf ball in place: ``project_l1inf(Y, radius, out=Y)``.

    Parameters are those of `project_l1inf`, and so is what it returns.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.array([[3.0, -0.5], [1.0, 0.5]])
    >>> normball.project_l1inf_(Y, 1.0) is Y
    True
    """
    _validate.in_place(Y)
    return project_l1inf(Y, radius, out=Y, **options)


def norm_l1inf(Y: Any, axis: Axis = 0, *, batch_axis: Axis | None = None, threads: int | None = None) -> Any:
    """Sum over the groups of the largest magnitude, in double precision.

    Parameters are those of `project_l1inf`. An array of the batch shape with batch axes, else a float.

    Examples
    --------
    >>> import normball
    >>> normball.norm_l1inf([[3.0, -0.5], [1.0, 0.5]])
    3.5
    """
    return backend_for(Y).norms(Y, axis, batch_axis, threads)[0]


def prox_l1inf(
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
    r"""Proximal operator of the l1,inf norm: what the projection onto the linf,1 ball takes away.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 + \text{scale} \cdot \sum_g \max_i |X_{ig}|.

    Every group is clipped to a cap of its own, chosen such that it loses `scale` in l1 norm; those that have no
    more than that to lose become zero. So this is `project_l1inf` with a given theta in place of a given radius.

    `scale` is at least 0; the other parameters are those of `project_l12`, and so is what it returns. The theta of its
    info is `scale`.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.array([[3.0, -0.5], [1.0, 0.5]])
    >>> normball.prox_l1inf(Y, 1.0)
    array([[2., 0.],
           [1., 0.]])
    """
    return backend_for(Y).operate(
        "prox_l1inf", Y, scale, axis, batch_axis, out, check_finite, threads, return_info
    )


@dataclass(frozen=True)
class L1InfBall(Ball):
    """The set of arrays with ``norm_l1inf(Y, axis) <= radius``, as a value.

    Examples
    --------
    >>> import normball
    >>> ball = normball.L1InfBall(2.0)
    >>> ball.norm([[3.0, -0.5], [1.0, 0.5]])
    3.5
    >>> ball.project([[3.0, -0.5], [1.0, 0.5]])
    array([[2., 0.],
           [1., 0.]])
    """

    axis: Axis = 0

    name = "l1inf"
    dual_name = "linf1"
    decided_by = "sum"
    projection = staticmethod(project_l1inf)
    norm_function = staticmethod(norm_l1inf)
