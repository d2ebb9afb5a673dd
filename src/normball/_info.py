"""What a projection can tell about itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ProjectionInfo"]


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
        mask = self.mu > 0
        return np.asarray(mask) if isinstance(mask, np.bool_) else mask

    @property
    def n_nonzero(self) -> int:
        """Number of the groups that are not zero."""
        return int((self.mu > 0).sum())

    def __repr__(self) -> str:
        single = isinstance(self.theta, float) or self.theta.ndim == 0
        theta = f"{float(self.theta):.6g}" if single else f"<{math.prod(self.theta.shape)} values>"
        counts = "" if self.clipped is None else f", clipped={self.clipped}, kept={self.kept}, reads={self.reads:.2f}"
        steps = "" if self.order_steps is None else f", order_steps={self.order_steps}"
        groups = math.prod(self.mu.shape)
        return f"ProjectionInfo(theta={theta}, {self.n_nonzero} of {groups} groups non-zero{counts}{steps})"
