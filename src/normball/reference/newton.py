"""Newton's method on the one equation in theta.

Once theta is known, each group j has its cap

    mu_j(theta) = max(0, max_k (S_kj - theta) / k),    S_kj = sum of the k largest |Y_ij| of the group,

since any k members give a line in theta that never exceeds the cap, and the k largest give the best of these lines.
So g(theta) = sum_j mu_j(theta) is convex, decreasing and piecewise linear, and the root of g(theta) = radius is wanted.
Newton from theta = 0 climbs to it monotonically, one linear piece at a time, and ends on it exactly.

The compiled method is this one without the sort: it evaluates one line per group at a time.
"""

from __future__ import annotations

import numpy as np

from normball.reference._problem import Matrix, clip, without_search


def newton(Y: Matrix, radius: float) -> tuple[Matrix, float]:
    """Project the columns of Y, as one point, onto ``sum_j max_i |X_ij| <= radius``; return ``(X, theta)``.

    >>> newton(np.array([[3.0, -1.0], [2.0, 0.5]]), 2.0)
    (array([[ 1.875, -0.125],
           [ 1.875,  0.125]]), 1.25)
    >>> newton(np.array([[3.0, -0.5], [2.0, 0.5]]), 1.0)
    (array([[ 1., -0.],
           [ 1.,  0.]]), 3.0)
    """
    if (done := without_search(Y, radius)) is not None:
        return done
    n, m = Y.shape
    Z = -np.sort(-np.abs(Y), axis=0)
    S = np.cumsum(Z, axis=0)
    k = np.arange(1, n + 1)[:, None]
    j = np.arange(m)

    theta = 0.0
    while True:
        lines = (S - theta) / k
        best = lines.argmax(axis=0)
        mu = np.maximum(lines[best, j], 0.0)
        a = mu > 0.0  # the active columns
        slope = np.sum(1.0 / (best[a] + 1))
        root = (np.sum(S[best, j][a] / (best[a] + 1)) - radius) / slope if a.any() else theta
        if not root > theta:
            return clip(Y, mu), theta
        theta = float(root)
