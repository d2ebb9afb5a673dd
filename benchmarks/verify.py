"""Whether a result is the projection, by the optimality conditions, in one pass over blocks that fit a cache.

The conditions are those of `normball.reference.oracle.kkt_residual`, which uses wider arithmetic on the whole matrix
and so takes too long here; in blocks, the sums are in double precision and the clip is compared exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 1 << 17  # elements


class WrongResultError(AssertionError):
    """A solver returned something that is not the projection."""


@dataclass(frozen=True)
class Verdict:
    residual: float  # how far a cap would have to move, over the largest entry
    zero_share: float


def verify(Y: npt.NDArray[Any], X: npt.NDArray[Any], radius: float) -> Verdict:
    """Check X, the projection of Y with its columns as groups; raise unless it is right to rounding."""
    n, m = Y.shape
    mu, loss, peak = np.empty(m), np.empty(m), np.empty(m)
    k = np.empty(m, dtype=np.int64)
    width = max(1, BLOCK // n)
    for start in range(0, m, width):
        block = slice(start, min(start + width, m))
        y, x = Y[:, block], X[:, block]
        caps = np.abs(x).max(axis=0)
        size = np.abs(y)
        if not np.array_equal(np.clip(y, -caps, caps), x):
            raise WrongResultError("an entry is neither the input nor its group's cap")
        mu[block] = caps
        peak[block] = size.max(axis=0)
        k[block] = np.count_nonzero(size > caps, axis=0)
        np.subtract(size, np.abs(x), out=size)
        # Along contiguous memory NumPy adds in pairs; down columns one by one, where tied values err all the same way.
        loss[block] = np.ascontiguousarray(size.T).sum(axis=1, dtype=np.float64)

    eps = float(np.finfo(Y.dtype).eps)
    total = math.fsum(mu)
    if total > radius * (1 + 4 * eps):
        raise WrongResultError(f"norm {total!r} exceeds the radius {radius!r}")
    alive = mu > 0
    weight = 1.0 / np.maximum(k[alive], 1)
    theta = float((loss[alive] * weight).sum() / weight.sum()) if alive.any() else float(loss.max())
    residual = (radius - total) / max(int(alive.sum()), 1)
    if alive.any():
        residual = max(residual, float((np.abs(loss[alive] - theta) * weight).max()))
    if not alive.all():  # two lower bounds on the cap that a zero group should have had
        residual = max(residual, float(((loss - theta) / n)[~alive].max()), float((peak - theta)[~alive].max()))
    residual /= float(peak.max())
    if not residual <= 8 * eps + (4 + math.sqrt(n)) * float(np.finfo(np.float64).eps):
        raise WrongResultError(f"optimality conditions violated by {residual:.2e} of the largest entry")
    return Verdict(residual, 1.0 - float(alive.mean()))
