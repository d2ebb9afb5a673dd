"""One-way analysis of variance with gaps, and false discovery rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

__all__ = ["adjusted", "univariate"]

Floats = npt.NDArray[np.float64]

_BLOCK = 512


def univariate(X: Any, y: npt.NDArray[np.intp], classes: int, rows: Any = slice(None)) -> dict[str, Floats]:
    """Compare the classes feature by feature; missing values are left out.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        May have gaps.
    y : ndarray
        The class of each row of `X` as a number below `classes`.
    rows : indices, optional
        The rows that count.

    Returns
    -------
    dict
        "mean": of shape (classes, n_features); "effect": for two classes the difference of their means, second less
        first, over the pooled standard deviation, else eta squared; "F" and "p": of the one-way analysis of variance,
        for two classes that of Student's t test. p is 1 where a feature does not vary, or has too few values.
    """
    d = X.shape[1]
    member = np.eye(classes)[:, y[rows]]
    found = {"mean": np.full((classes, d), np.nan)} | {name: np.zeros(d) for name in ("effect", "F")}
    found["p"] = np.ones(d)
    for start in range(0, d, _BLOCK):
        block = slice(start, start + _BLOCK)
        part = X[:, block][rows].astype(np.float64)
        here = ~np.isnan(part)
        count = member @ here
        with np.errstate(invalid="ignore", divide="ignore"):
            centre = np.where(here, part, 0.0).sum(0) / count.sum(0)
            part = np.where(here, part - centre, 0.0)  # sums of squares about the mean lose no digits
            total = member @ part
            every = np.square(part).sum(0)
            between = np.where(count > 0, np.square(total) / count, 0.0).sum(0)
            within = np.maximum(every - between, 0.0)
            within[within <= 1e-13 * every] = 0.0
            groups = (count > 0).sum(0)
            above, below = groups - 1.0, count.sum(0) - groups
            usable = (above > 0) & (below > 0) & (every > 1e-20 * np.square(centre) * count.sum(0))
            F = np.where(usable, (between / above) / (within / below), 0.0)
            apart = total / count
            effect = (apart[1] - apart[0]) / np.sqrt(within / below) if classes == 2 else between / every
            p = stats.f.sf(F, above, below)
        found["mean"][:, block] = apart + centre
        found["F"][block] = F
        found["effect"][block] = np.where(usable & np.isfinite(effect), effect, 0.0)
        found["p"][block] = np.where(usable, p, 1.0)
    return found


def adjusted(p: Floats) -> Floats:
    """Return the q-values of Benjamini and Hochberg."""
    return np.asarray(stats.false_discovery_control(p)) if len(p) else p
