"""The box: arrays between two bounds."""

from __future__ import annotations

from typing import Any

from normball._dispatch import backend_for

__all__ = ["project_box"]


def project_box(Y: Any, lower: Any, upper: Any, *, out: Any = None, check_finite: bool = True) -> Any:
    r"""Project onto a box: the nearest array with every entry between its bounds.

    Solves, exactly,

    .. math:: \min_X \tfrac12 \|X - Y\|^2 \quad\text{subject to}\quad \text{lower} \le X \le \text{upper}.

    Parameters
    ----------
    Y : array_like
        float64, float32 or float16; integers are promoted to float64. Any strides; never modified, unless it is also
        `out`.
    lower, upper : float or array_like
        The bounds, infinite ones included, of shapes that broadcast to that of `Y`. A bound that the dtype of `Y` does
        not hold is rounded into the box.
    out : ndarray, optional
        Where to write, of the shape and dtype of the result. ``out=Y`` works in place.
    check_finite : bool
        Raise for NaN and infinity. Without the check, infinite entries are clipped and NaN remains.

    Returns
    -------
    ndarray
        A new array of the shape and dtype of `Y`, or `out`.

    Examples
    --------
    >>> import normball
    >>> normball.project_box([-3.0, 0.5, 4.0], 0.0, [1.0, 2.0, 3.0])
    array([0. , 0.5, 3. ])
    """
    return backend_for(Y).project_box(Y, lower, upper, out, check_finite)
