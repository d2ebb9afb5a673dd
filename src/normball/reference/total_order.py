"""The total order: sort every breakpoint, then walk them from the first.

Reference: A. Quattoni, X. Carreras, M. Collins, T. Darrell, "An efficient projection for l1,inf regularization",
ICML 2009; in the words of the paper, "build P' then find theta".

With Z_ij the i-th greatest member of column j and S_ij the sum of its i greatest, growing theta meets these events:

    at theta = S_ij - i Z_(i+1)j    member i + 1 joins those that column j clips  (the paper's -R),
    at theta = S_nj                 column j becomes zero and leaves              (the row added to make R').

Between two events theta solves a linear equation. The first solution that falls before the next event is the answer.
"""

from __future__ import annotations

import numpy as np

from normball.reference._problem import Matrix, clip, without_search


def total_order(Y: Matrix, radius: float) -> tuple[Matrix, float]:
    """Project the columns of Y, as one point, onto ``sum_j max_i |X_ij| <= radius``; return ``(X, theta)``.

    >>> total_order(np.array([[3.0, -1.0], [2.0, 0.5]]), 2.0)
    (array([[ 1.875, -0.125],
           [ 1.875,  0.125]]), 1.25)
    """
    if (done := without_search(Y, radius)) is not None:
        return done
    n, m = Y.shape
    Z = -np.sort(-np.abs(Y), axis=0)
    S = np.cumsum(Z, axis=0)
    i = np.arange(1, n + 1)[:, None]

    # Each event's place, and what it changes in theta = (top - radius) / bottom, with top = sum_j S_kj / k_j and
    # bottom = sum_j 1 / k_j over the active columns. A stable sort keeps the events of one column in their order.
    R = np.vstack([S[:-1] - i[:-1] * Z[1:], S[-1:]])
    P = np.argsort(R, axis=None, kind="stable")
    change_of_top = np.vstack([np.diff(S / i, axis=0), -S[-1:] / n]).ravel()[P]
    change_of_bottom = np.repeat(np.diff(1.0 / i[:, 0], append=0.0), m)[P]

    # The two sums run over all events, hence the wider type.
    top = np.cumsum(np.concatenate([[Z[0].sum()], change_of_top[:-1]]), dtype=np.longdouble)
    bottom = np.cumsum(np.concatenate([[float(m)], change_of_bottom[:-1]]), dtype=np.longdouble)
    solved = top - radius <= bottom * R.ravel()[P]
    steps = int(np.argmax(solved)) if solved.any() else P.size - 1

    row, column = np.divmod(P[:steps], m)
    k = 1 + np.bincount(column[row < n - 1], minlength=m)
    a = np.bincount(column[row == n - 1], minlength=m) == 0
    S_k = S[k - 1, np.arange(m)]
    theta = float((np.sum(S_k[a] / k[a]) - radius) / np.sum(1.0 / k[a]))
    mu = np.where(a, np.maximum((S_k - theta) / k, 0.0), 0.0)
    return clip(Y, mu), theta
