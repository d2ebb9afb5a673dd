"""Intervals for scores of cross-validation, whose folds share most of their training samples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

__all__ = ["Estimate", "corrected", "wilson"]


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95 % interval; the ends are not numbers where there is no telling."""

    mean: float
    low: float
    high: float


def corrected(values: npt.ArrayLike, folds: int, level: float = 0.95) -> Estimate:
    """Return the mean over repeats and folds, with the corrected resampled t interval of Nadeau and Bengio (2003).

    The training parts overlap, so the plain standard error is too small. The correction takes ``1 / J`` up to
    ``1 / J + n_test / n_train``, with ``J`` scores and, for cross-validation, ``n_test / n_train = 1 / (folds - 1)``.

    Examples
    --------
    >>> from normball.report.intervals import corrected
    >>> found = corrected([0.8, 0.9, 0.8, 0.9], folds=5)
    >>> print(f"{found.mean:.3f}, {found.low:.3f} to {found.high:.3f}")
    0.850, 0.720 to 0.980
    """
    scores = np.asarray(values, dtype=np.float64)
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return Estimate(np.nan, np.nan, np.nan)
    mean = float(scores.mean())
    if len(scores) < 2 or folds < 2:
        return Estimate(mean, np.nan, np.nan)
    error = np.sqrt((1.0 / len(scores) + 1.0 / (folds - 1)) * scores.var(ddof=1))
    half = float(stats.t.ppf(0.5 + level / 2.0, len(scores) - 1) * error)
    return Estimate(mean, mean - half, mean + half)


def wilson(right: Any, total: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Wilson's interval for a share, which is honest at 0 and at 1 too.

    Examples
    --------
    >>> from normball.report.intervals import wilson
    >>> print("{:.3f} to {:.3f}".format(*wilson(20, 20)))
    0.839 to 1.000
    """
    z = stats.norm.ppf(0.5 + level / 2.0)
    middle = (right + z**2 / 2.0) / (total + z**2)
    half = z / (total + z**2) * np.sqrt(right * (total - right) / total + z**2 / 4.0)
    return middle - half, middle + half
