"""From a number of groups to a radius, and from one array to its projections at many radii."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from normball import _validate
from normball._dispatch import backend_for
from normball._validate import Axis
from normball.balls._ball import Ball
from normball.balls.l1inf import project_l1inf

__all__ = ["radius_for_sparsity", "radius_path"]

# What decides whether a group survives: its sum, its length or its peak. For l1 each entry is a group.
_DECIDES = {
    "l1inf": "sum",
    "l12": "norm2",
    "bilevel_l1inf": "peak",
    "bilevel_l11": "sum",
    "bilevel_l12": "norm2",
    "l1": "entry",
}


def radius_for_sparsity(
    Y: Any,
    ball: str | Ball = "l1inf",
    *,
    n_groups: int | None = None,
    zero_groups: int | None = None,
    axis: Axis | None = None,
    batch_axis: Axis | None = None,
    threads: int | None = None,
) -> Any:
    r"""Radius of the ball onto which `Y` projects with a given number of non-zero groups.

    A group survives the l1,inf projection exactly where its l1 norm exceeds theta, so k groups survive while theta lies
    between the (k+1)-th and the k-th largest of these norms. The radius returned is that of the theta halfway between
    the two, so that rounding does not change the count. The same holds for l1,2 with lengths; for the bilevel
    projections with what they share out; and for l1 with magnitudes, each entry being a group.

    Parameters
    ----------
    Y : array_like
        As in `project_l1inf`.
    ball : {"l1inf", "l12", "bilevel_l1inf", "bilevel_l11", "bilevel_l12", "l1"} or Ball
        What is to be projected onto. Of a ball given as a value, the axis counts and the radius does not.
    n_groups, zero_groups : int
        How many groups are to be left, or how many are to become zero. One of the two.
    axis, batch_axis, threads
        As in `project_l1inf`, where `axis` is that of the ball if it is not given; for l1 it is not used.

    Returns
    -------
    float or ndarray
        The radius; with batch axes one for each problem.

    Raises
    ------
    ValueError
        Where groups tie, so that no radius leaves just so many; the message tells the counts on either side.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.random.default_rng(0).normal(size=(20, 50))
    >>> radius = normball.radius_for_sparsity(Y, n_groups=7)
    >>> X, info = normball.project_l1inf(Y, radius, return_info=True)
    >>> info.n_nonzero
    7
    """
    name, axis = _told(ball, axis, tuple(_DECIDES))
    backend = backend_for(Y)
    if _DECIDES[name] == "entry":
        values, along = backend.magnitudes(Y, batch_axis)
    else:
        values, along = backend.aggregate("", _DECIDES[name], Y, axis, batch_axis, threads)
    values = np.asarray(values)
    if not np.isfinite(values).all():
        raise ValueError("Y: expected finite numbers with finite sums, got others")
    groups = values.size // max(1, int(np.prod([n for a, n in enumerate(values.shape) if a not in along])))
    k = _wanted(n_groups, zero_groups, groups)
    rows = np.moveaxis(values, along, range(values.ndim - len(along), values.ndim))
    rows = rows.reshape(*rows.shape[: values.ndim - len(along)], groups)
    theta = _between(rows, k)
    if name == "l1inf" and k > 0:
        caps = np.asarray(backend.caps(Y, theta, axis, batch_axis, threads))
        radius = caps.sum(axis=along)
    else:
        radius = np.maximum(rows - theta[..., None], 0.0).sum(axis=-1)
    return radius if radius.ndim else float(radius)


def radius_path(
    Y: Any,
    radii: Iterable[Any],
    ball: str | Ball = "l1inf",
    *,
    axis: Axis | None = None,
    batch_axis: Axis | None = None,
    check_finite: bool = True,
    threads: int | None = None,
    return_info: bool = False,
) -> Iterator[Any]:
    """Project one array at many radii, one after another, for little more than one read and one write each.

    What a read tells of the groups serves all the radii; for l1,inf each projection starts from the last. So give the
    radii in order, rising or falling. The results are those of the projections themselves, to rounding.

    Parameters
    ----------
    Y : array_like
        As in `project_l1inf`.
    radii : iterable of float
        Any number of them.
    ball : str or Ball
        A name of `normball.balls.BALLS`, or a ball, whose axis counts and whose radius does not.
    axis, batch_axis, check_finite, threads, return_info
        As in the projection onto this ball.

    Yields
    ------
    ndarray
        The projection for each radius in turn; or ``(X, info)``.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.array([[3.0, -0.5], [1.0, 0.5]])
    >>> for X in normball.radius_path(Y, [1.0, 2.0]):
    ...     print(X.tolist())
    [[1.0, 0.0], [1.0, 0.0]]
    [[2.0, 0.0], [1.0, 0.0]]
    """
    from normball.balls import BALLS

    name, axis = _told(ball, axis, tuple(BALLS))
    if name == "l1inf":
        return _l1inf_path(Y, radii, axis, batch_axis, check_finite, threads, return_info)
    operator = {"bilevel_l12": "project_l12"}.get(name, name if name.startswith("bilevel") else f"project_{name}")
    return backend_for(Y).path(operator, Y, radii, axis, batch_axis, check_finite, threads, return_info)  # type: ignore[no-any-return]


def _told(ball: str | Ball, axis: Axis | None, known: tuple[str, ...]) -> tuple[str, Any]:
    """Return the name of a ball and the axis to use: the one given, else the ball's own."""
    from normball.balls import BALLS

    name = ball.name if isinstance(ball, Ball) else ball
    if not isinstance(name, str) or name not in known:
        _validate.unknown("ball", ball, known)
    if axis is None:
        axis = (ball if isinstance(ball, Ball) else BALLS[name](0.0)).axis
    return name, axis


def _l1inf_path(Y: Any, radii: Iterable[Any], axis: Any, *options: Any) -> Iterator[Any]:
    batch_axis, check_finite, threads, return_info = options
    info = None
    for radius in radii:
        X, info = project_l1inf(
            Y, radius, axis=axis, batch_axis=batch_axis, check_finite=check_finite, threads=threads, warm_start=info,
            return_info=True,
        )  # fmt: skip
        yield (X, info) if return_info else X


def _wanted(n_groups: Any, zero_groups: Any, groups: int) -> int:
    if (n_groups is None) == (zero_groups is None):
        raise ValueError(f"n_groups: expected it or zero_groups, got n_groups={n_groups} and zero_groups={zero_groups}")
    if n_groups is not None:
        return _validate.count("n_groups", n_groups, groups)
    return groups - _validate.count("zero_groups", zero_groups, groups)


def _between(rows: Any, k: int) -> Any:
    """Return a number that just k entries of each row exceed: halfway between two, where possible."""
    groups = rows.shape[-1]
    if k == 0:
        return rows.max(axis=-1, initial=0.0)
    ordered = np.partition(rows, [max(groups - k - 1, 0), groups - k], axis=-1)
    high = ordered[..., groups - k]
    low = ordered[..., groups - k - 1] if k < groups else np.zeros_like(high)
    if not (low < high).all():
        at = np.unravel_index(int(np.argmin(low < high)), low.shape)
        tied = rows[at]
        fewer, more = int(np.sum(tied > high[at])), int(np.sum(tied >= high[at])) if high[at] > 0 else groups
        other = f"{fewer} or {more}" if high[at] > 0 else f"at most {fewer}"
        raise ValueError(f"n_groups: expected a number that no ties forbid, such as {other}, got {k}")
    return low + (high - low) / 2
