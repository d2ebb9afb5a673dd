"""The total order walked from its end, with one heap of columns and one lazily built heap per column.

Reference: G. Perez, L. Condat, M. Barlaud, "Near-linear time projection onto the l1,inf ball; application to sparse
neural networks", Algorithm 2.

The events are those of the total order, met with theta falling from infinity, where every column is zero:

    at theta = S_j                the zero column j comes alive, with all of its k_j = n members clipped,
    at theta = S_j - k_j Z_kj     the smallest member that column j still clips is set free.

The heap P holds each column's next event, greatest first. The paper applies an event and undoes it when theta shows
that it went too far; here theta is compared with the event before it is applied, which is the same test. The J events
applied are about the entries that the projection leaves alone, so that J is small when the result is sparse.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from normball.reference._problem import Matrix, clip, without_search


def inverse_total_order(Y: Matrix, radius: float) -> tuple[Matrix, float]:
    """Project the columns of Y, as one point, onto ``sum_j max_i |X_ij| <= radius``; return ``(X, theta)``.

    >>> inverse_total_order(np.array([[3.0, -1.0], [2.0, 0.5]]), 2.0)
    (array([[ 1.875, -0.125],
           [ 1.875,  0.125]]), 1.25)
    """
    if (done := without_search(Y, radius)) is not None:
        return done
    clipped, _ = walk(np.abs(Y), radius)

    # From the members found, once more and without the rounding of the walk.
    S = {j: math.fsum(members) for j, members in clipped.items()}
    k = {j: len(members) for j, members in clipped.items()}
    theta = (math.fsum(S[j] / k[j] for j in clipped) - radius) / math.fsum(1.0 / k[j] for j in clipped)
    mu = np.zeros(Y.shape[1])
    for j in clipped:
        mu[j] = max(0.0, (S[j] - theta) / k[j])
    return clip(Y, mu), theta


def walk(A: Matrix, radius: float) -> tuple[dict[int, list[float]], int]:
    """For ``A >= 0`` outside the ball: the clipped members of each active column, and J, the events applied.

    >>> walk(np.array([[3.0, 1.0], [2.0, 0.5]]), 2.0)
    ({0: [2.0, 3.0], 1: [0.5, 1.0]}, 2)
    """
    n, m = A.shape
    S = list(A.sum(axis=0, dtype=np.longdouble))  # loses members one at a time, hence the wider type
    k = [n] * m
    P = [(-S[j], j) for j in range(m)]
    heapq.heapify(P)
    clipped: dict[int, list[float]] = {}
    theta = top = bottom = np.longdouble(0.0)  # theta = (top - radius) / bottom
    J = 0
    while P:
        event, j = -P[0][0], P[0][1]
        if clipped and theta >= event:
            break
        J += 1
        if j not in clipped:
            clipped[j] = A[:, j].tolist()
            heapq.heapify(clipped[j])
        else:
            top -= S[j] / k[j]
            bottom -= np.longdouble(1.0) / k[j]
            S[j] -= heapq.heappop(clipped[j])
            k[j] -= 1
        top += S[j] / k[j]
        bottom += np.longdouble(1.0) / k[j]
        theta = (top - radius) / bottom
        if k[j] > 1:
            heapq.heapreplace(P, (k[j] * clipped[j][0] - S[j], j))
        else:
            heapq.heappop(P)
    return clipped, J
