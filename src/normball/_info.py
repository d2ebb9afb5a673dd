"""What a projection can tell about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OperatorInfo", "ProjectionInfo"]


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionInfo:
    """How a projection came out; pass it back as ``warm_start`` to make the next one faster.

    Attributes
    ----------
    theta : float or ndarray
        The dual scalar: the l1 norm that every non-zero group has lost. 0 for a point of the ball. An array of the
        batch shape when there are batch axes.
    mu : ndarray
        The cap of each group, shaped as ``np.abs(Y).max(axis)``, in the real dtype of the result. For real input
        ``X == sign(Y) * min(|Y|, mu)``, exactly.
    clipped, kept : int
        Entries of non-zero groups that were cut down to the cap, and those left as they were.
    reads : float
        Reads of the matrix from memory, in whole matrices, the one made while writing included.
    order_steps : int or None
        The ``J`` of the paper: steps along the total order. Only for ``method="inverse_total_order"``.
    """

    theta: float | npt.NDArray[np.float64]
    mu: npt.NDArray[Any]
    clipped: int
    kept: int
    reads: float
    order_steps: int | None = None

    @property
    def nonzero(self) -> npt.NDArray[np.bool_]:
        """Mask of the groups that are not zero."""
        return np.asarray(self.mu > 0)

    @property
    def n_nonzero(self) -> int:
        """Number of the groups that are not zero."""
        return int(np.count_nonzero(self.mu > 0))

    def __repr__(self) -> str:
        theta = f"{self.theta:.6g}" if isinstance(self.theta, float) else f"<{self.theta.size} values>"
        steps = "" if self.order_steps is None else f", order_steps={self.order_steps}"
        return (
            f"ProjectionInfo(theta={theta}, {self.n_nonzero} of {self.mu.size} groups non-zero, "
            f"clipped={self.clipped}, kept={self.kept}, reads={self.reads:.2f}{steps})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class OperatorInfo:
    """What decided the result of one of the other projections, or of a proximal operator.

    Attributes
    ----------
    theta : float or ndarray
        The dual scalar: what every non-zero vector or group has lost, 0 where nothing was. Each function says in which
        norm. A float for a single problem, else an array with one entry for each.
    mu : ndarray
        The norm that is left to each vector or group, in double precision, shaped as ``np.abs(Y).max(axis)``.
    reads : float
        Reads of the array from memory, in whole arrays, the one made while writing included.
    """

    theta: Any
    mu: Any
    reads: float

    @property
    def nonzero(self) -> Any:
        """Mask of the groups that are not zero."""
        return np.asarray(self.mu > 0)

    @property
    def n_nonzero(self) -> int:
        """Number of the groups that are not zero."""
        return int(np.count_nonzero(self.mu > 0))

    def __repr__(self) -> str:
        theta = f"{self.theta:.6g}" if isinstance(self.theta, float) else f"<{self.theta.size} values>"
        groups = f"{self.n_nonzero} of {self.mu.size} groups non-zero"
        return f"OperatorInfo(theta={theta}, {groups}, reads={self.reads:.2f})"
