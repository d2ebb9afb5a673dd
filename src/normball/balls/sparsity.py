"""From a number of groups to a radius, and from one array to its projections at many radii."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from normball import _validate
from normball._dispatch import backend_for
from normball._validate import Axis
from normball.balls import BALLS
from normball.balls._ball import Ball
from normball.balls.l1inf import project_l1inf

__all__ = ["SPARSIFYING", "Groups", "radius_for_sparsity", "radius_path", "theta_leaving"]

# The names of the balls whose projection makes whole groups zero, or for l1 single entries.
SPARSIFYING = tuple(name for name, make in BALLS.items() if make(0.0).decided_by is not None)

_ABOVE = 0.01  # where theta stands between the largest norm that vanishes and the smallest that is kept
_TIE = 2.0**-40  # relative difference up to which norms are equal: sums are rounded


def theta_leaving(norms: Any, k: int) -> Any:
    """Theta that at least `k` norms of each row exceed: the rule for every request of a number of groups.

    Norms that tie with the k-th largest are kept as well. Zeros cannot be kept. Theta stands a little above the largest
    norm that vanishes, so that the groups that are kept lose little.

    Parameters
    ----------
    norms : ndarray or Tensor
        Numbers >= 0, in double precision; the last axis runs over the groups of a problem. Nothing here makes the host
        wait for a device.
    k : int
        At least 0.
    """
    xp = _namespace(norms)
    groups = norms.shape[-1]
    if groups == 0:
        return norms.sum(-1)
    if k == 0:
        return xp.amax(norms, -1)
    k = min(k, groups)
    kth = np.partition(norms, groups - k, -1)[..., groups - k] if xp is np else norms.topk(k, -1).values[..., -1]
    least = xp.amin(xp.where(norms > 0, norms, xp.inf), -1)
    high = xp.maximum(kth, xp.where(least < xp.inf, least, 0.0))
    low = xp.amax(xp.where(norms < high[..., None] * (1.0 - _TIE), norms, 0.0), -1)
    return low + _ABOVE * (high - low)


class Groups:
    """The groups of an array as a ball sees them.

    Parameters
    ----------
    Y, ball, batch_axis, threads
        As in `radius_for_sparsity`.
    check_finite : bool
        Raise for norms that are not finite, which makes the host wait for a device.

    Attributes
    ----------
    norms : ndarray or Tensor
        What theta is compared with: one row for each problem, on the device of the array.
    """

    def __init__(
        self,
        Y: Any,
        ball: Ball,
        batch_axis: Axis | None = None,
        threads: int | None = None,
        *,
        check_finite: bool = True,
    ) -> None:
        self._backend = backend_for(Y)
        self._ball, self._options = ball, (Y, ball.axis, batch_axis, threads)
        if ball.decided_by == "entry":
            values, self._along = self._backend.magnitudes(Y, ball.axis, batch_axis)
        else:
            values, self._along = self._backend.aggregate("", ball.decided_by, *self._options)
        self.norms = self._rows(values)
        if check_finite and not _namespace(values).isfinite(values).all():
            raise ValueError("Y: expected finite numbers with finite sums, got others")

    def _rows(self, values: Any) -> Any:
        """Return values of the groups with one row for each problem."""
        batch = values.ndim - len(self._along)
        moved = _namespace(values).moveaxis(values, self._along, tuple(range(batch, values.ndim)))
        return moved.reshape(*moved.shape[:batch], int(np.prod(moved.shape[batch:])))

    def radius_at(self, theta: Any) -> Any:
        """Return the radius of the ball whose projection has this theta."""
        if self._ball.name == "l1inf":
            Y, axis, batch_axis, threads = self._options
            return self._rows(self._backend.caps(Y, theta, axis, batch_axis, threads)).sum(-1)
        return (self.norms - theta[..., None]).clip(min=0.0).sum(-1)


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

    A group survives the l1,inf projection if and only if its l1 norm exceeds theta. So k groups survive while theta
    lies between the (k+1)-th and the k-th largest of these norms. The radius returned is that of a theta a hundredth of
    the way up from the lower norm to the higher one: the groups that are kept lose little. The same holds for l1,2 with
    lengths; for the bilevel projections with the norm inside a group; and for l1 with magnitudes, each entry being a
    group.

    Groups whose norms tie are kept together, so that at least the number asked for is kept. Groups that are zero in `Y`
    stay zero: asking for more groups than are non-zero keeps all that are.

    Parameters
    ----------
    Y : array_like
        As in `project_l1inf`.
    ball : {"l1", "l12", "l1inf", "bilevel_l1inf", "bilevel_l11", "bilevel_l12"} or Ball
        The ball to project onto. Of a ball given as a value, the axis counts and the radius does not.
    n_groups, zero_groups : int
        The number of groups to keep, or the number that become zero. Give one of the two.
    axis, batch_axis, threads
        As in the projection onto this ball. If `axis` is not given, it is that of the ball.

    Returns
    -------
    float or ndarray
        The radius; with batch axes, or for l1 with an `axis`, one for each problem.

    Raises
    ------
    ValueError
        If `Y` holds NaN or infinity, or if a number of groups is not between 0 and the number that there are.

    Examples
    --------
    >>> import numpy as np, normball
    >>> Y = np.random.default_rng(0).normal(size=(20, 50))
    >>> radius = normball.radius_for_sparsity(Y, n_groups=7)
    >>> X, info = normball.project_l1inf(Y, radius, return_info=True)
    >>> info.n_nonzero
    7
    """
    groups = Groups(Y, _ball_with(ball, axis, SPARSIFYING), batch_axis, threads)
    k = _wanted(n_groups, zero_groups, groups.norms.shape[-1])
    radius = _on_host(groups.radius_at(theta_leaving(groups.norms, k)))
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
    ball = _ball_with(ball, axis, tuple(BALLS))
    name, axis = ball.name, ball.axis
    if name == "l1inf":
        return _l1inf_path(Y, radii, axis, batch_axis, check_finite, threads, return_info)
    operator = {"bilevel_l12": "project_l12"}.get(name, name if name.startswith("bilevel") else f"project_{name}")
    return backend_for(Y).path(operator, Y, radii, axis, batch_axis, check_finite, threads, return_info)  # type: ignore[no-any-return]


def _ball_with(ball: str | Ball, axis: Axis | None, known: tuple[str, ...]) -> Ball:
    """Return a ball given by its name or as a value, with another axis if one is given."""
    name = ball.name if isinstance(ball, Ball) else ball
    if not isinstance(name, str) or name not in known:
        _validate.unknown("ball", ball, known)
    made = ball if isinstance(ball, Ball) else BALLS[name](0.0)
    return made if axis is None else dataclasses.replace(made, axis=axis)


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
        raise ValueError(
            f"n_groups: give exactly one of n_groups and zero_groups, got n_groups={n_groups} and "
            f"zero_groups={zero_groups}"
        )
    if n_groups is not None:
        return _validate.count("n_groups", n_groups, groups)
    return groups - _validate.count("zero_groups", zero_groups, groups)


def _namespace(values: Any) -> Any:
    """Return the module that computes on arrays of this kind; torch is there if there are tensors."""
    return np if isinstance(values, np.ndarray) else sys.modules["torch"]


def _on_host(values: Any) -> Any:
    return values.cpu().numpy() if hasattr(values, "cpu") else values
