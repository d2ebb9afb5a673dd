"""The naive algorithm: project each active column onto the simplex of radius theta, solve for theta, repeat.

References: B. Bejar, I. Dokmanic, R. Vidal, "The fastest l1,inf prox in the West", IEEE TPAMI 2021; G. Perez,
L. Condat, M. Barlaud, "Near-linear time projection onto the l1,inf ball", Algorithm 1.

Columns that are bound to be zero are eliminated first. All n members of a column give the cap's lower bound
(|y_j|_1 - theta) / n, the greatest alone gives max_i |Y_ij| - theta. Put either bound in the place of the cap, and the
equation for theta is that of a simplex, whose root theta cannot fall below.
"""

from __future__ import annotations

import numpy as np

from normball.reference._problem import Matrix, clip, without_search


def active_set(Y: Matrix, radius: float) -> tuple[Matrix, float]:
    """Project the columns of Y, as one point, onto ``sum_j max_i |X_ij| <= radius``; return ``(X, theta)``.

    >>> active_set(np.array([[3.0, -1.0], [2.0, 0.5]]), 2.0)
    (array([[ 1.875, -0.125],
           [ 1.875,  0.125]]), 1.25)
    """
    if (done := without_search(Y, radius)) is not None:
        return done
    A = np.abs(Y)
    n, m = A.shape
    sums = A.sum(axis=0)
    theta = max(simplex(sums, n * radius)[0], simplex(A.max(axis=0), radius)[0])

    a = list(range(m))
    S, k = np.zeros(m), np.ones(m)
    while True:
        theta = min(theta, float(sums.max()))  # rounding must not empty the active set
        a = [j for j in a if sums[j] >= theta]
        for j in a:
            _, k[j], S[j] = simplex(A[:, j], theta)
        root = float((np.sum(S[a] / k[a]) - radius) / np.sum(1.0 / k[a]))
        if not root > theta:
            break
        theta = root
    mu = np.zeros(m)
    mu[a] = np.maximum((S[a] - theta) / k[a], 0.0)
    return clip(Y, mu), theta


def simplex(y: Matrix, radius: float) -> tuple[float, int, float]:
    """Find t with ``sum_i max(y_i - t, 0) = radius``; return it, how many members lie above it, and their sum.

    >>> simplex(np.array([3.0, 1.0, 2.0]), 2.0)
    (1.5, 2, 5.0)
    """
    z = -np.sort(-y)
    s = np.cumsum(z)
    k = max(1, int(np.count_nonzero(s - np.arange(1, y.size + 1) * z < radius)))
    return float((s[k - 1] - radius) / k), k, float(s[k - 1])
