"""Semismooth Newton on the optimality conditions, in the caps and theta together.

Reference: D. Chu, C. Zhang, S. Sun, Q. Tao, "Semismooth Newton algorithm for efficient projections onto l1,inf-norm
ball", ICML 2020. The unknowns are mu_1 .. mu_m and theta, the equations

    sum_i max(|Y_ij| - mu_j, 0) = theta    for each column with mu_j > 0,
    sum_j mu_j = radius.

The generalised Jacobian is an arrow: minus k_j, the members of column j above mu_j, on the diagonal, bordered by ones.
Eliminating the caps leaves theta = (sum_j S_j / k_j - radius) / sum_j 1 / k_j, and then mu_j = (S_j - theta) / k_j,
S_j being the sum of those k_j members. Neither a sort nor an inner iteration is needed.

The guard: whatever the members taken, this theta is never above the true one. So theta is never let fall, and while it
stands still a column's members are replaced only by fewer. Each can happen finitely often: the method always ends.
"""

from __future__ import annotations

import numpy as np

from normball.reference._problem import Matrix, clip, without_search


def semismooth_newton(Y: Matrix, radius: float) -> tuple[Matrix, float]:
    """Project the columns of Y, as one point, onto ``sum_j max_i |X_ij| <= radius``; return ``(X, theta)``.

    >>> semismooth_newton(np.array([[3.0, -1.0], [2.0, 0.5]]), 2.0)
    (array([[ 1.875, -0.125],
           [ 1.875,  0.125]]), 1.25)
    """
    if (done := without_search(Y, radius)) is not None:
        return done
    A = np.abs(Y)
    greatest = A.max(axis=0)
    S, k = greatest, np.ones(Y.shape[1], dtype=np.intp)
    theta = 0.0
    while True:
        a = theta < S
        root = float((np.sum(S[a] / k[a]) - radius) / np.sum(1.0 / k[a])) if a.any() else theta
        rises = root > theta
        theta = max(theta, root)
        mu = np.maximum((S - theta) / k, 0.0)

        above = mu < A
        k_new = np.maximum(above.sum(axis=0), 1)
        S_new = np.where(above.any(axis=0), np.sum(A, axis=0, where=above), greatest)
        replaced = (k_new < k) | rises
        if not replaced.any():
            return clip(Y, mu), theta
        S, k = np.where(replaced, S_new, S), np.where(replaced, k_new, k)
