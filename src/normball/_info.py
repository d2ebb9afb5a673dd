"""What a projection can tell about itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["OperatorInfo", "ProjectionInfo"]


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionInfo:
    """How a projection came out; pass it back as ``warm_start`` to make the next one faster.

    Attributes
    ----------
    theta : float, ndarray or Tensor
        The dual scalar: the l1 norm that every non-zero group has lost. 0 for a point of the ball. An array of the
        batch shape when there are batch axes. For a tensor, a tensor on its device.
    mu : ndarray or Tensor
        The cap of each group, shaped as ``np.abs(Y).max(axis)``, in the real dtype of the result. For real input
        ``X == sign(Y) * min(|Y|, mu)``, exactly.
    clipped, kept : int
        Entries of non-zero groups that were cut down to the cap, and those left as they were. None, as is `reads`,
        where they were not counted: on CUDA, under autograd, and inside a traced program.
    reads : float
        Reads of the matrix from memory, in whole matrices, the one made while writing included.
    order_steps : int or None
        The ``J`` of the paper: steps along the total order. Only for ``method="inverse_total_order"``.
    """

    theta: Any
    mu: Any
    clipped: int | None
    kept: int | None
    reads: float | None
    order_steps: int | None = None

    @property
    def nonzero(self) -> Any:
        """Mask of the groups that are not zero."""
        return _nonzero(self.mu)

    @property
    def n_nonzero(self) -> int:
        """Number of the groups that are not zero. Where they are sharded, every rank must ask."""
        return _count(self.mu)

    def __repr__(self) -> str:
        theta = _shown(self.theta)
        counts = "" if self.clipped is None else f", clipped={self.clipped}, kept={self.kept}, reads={self.reads:.2f}"
        steps = "" if self.order_steps is None else f", order_steps={self.order_steps}"
        return f"ProjectionInfo(theta={theta}, {_told(self.mu)}{counts}{steps})"


@dataclass(frozen=True, eq=False, repr=False)
class OperatorInfo:
    """What decided the result of one of the other projections, or of a proximal operator.

    Attributes
    ----------
    theta : float, ndarray or Tensor
        The dual scalar: what every non-zero vector or group has lost, 0 where nothing was. Each function says in which
        norm. A float for a single problem, else an array with one entry for each.
    mu : ndarray or Tensor
        The norm that is left to each vector or group, in double precision, shaped as ``np.abs(Y).max(axis)``.
    reads : float
        Reads of the array from memory, in whole arrays, the one made while writing included. None where they were not
        counted, for a tensor on CUDA or under autograd.
    """

    theta: Any
    mu: Any
    reads: float | None

    @property
    def nonzero(self) -> Any:
        """Mask of the groups that are not zero."""
        return _nonzero(self.mu)

    @property
    def n_nonzero(self) -> int:
        """Number of the groups that are not zero. Where they are sharded, every rank must ask."""
        return _count(self.mu)

    def __repr__(self) -> str:
        reads = "" if self.reads is None else f", reads={self.reads:.2f}"
        return f"OperatorInfo(theta={_shown(self.theta)}, {_told(self.mu)}{reads})"


def _nonzero(mu: Any) -> Any:
    mask = mu != 0  # NaN, of a problem that was not finite, is not zero
    return np.asarray(mask) if isinstance(mask, np.bool_) else mask


def _count(mu: Any) -> int:
    count = (mu != 0).sum()
    return int(count.full_tensor() if hasattr(count, "full_tensor") else count)


def _told(mu: Any) -> str:
    groups = math.prod(mu.shape)
    if hasattr(mu, "full_tensor"):  # counting would make other ranks wait, and printing is often done by one
        return f"{groups} groups, sharded"
    return f"{_count(mu)} of {groups} groups non-zero"


def _shown(theta: Any) -> str:
    single = isinstance(theta, float) or theta.ndim == 0
    return f"{float(theta):.6g}" if single else f"<{math.prod(theta.shape)} values>"
