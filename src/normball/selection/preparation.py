"""What is done to a table before a model sees it, learned from the training rows alone: fill the gaps, take logs.

Standardisation is the estimator's own step, so that its inner folds have moments of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from normball._validate import unknown
from normball.data._frames import array_of

__all__ = ["IMPUTATIONS", "LOGS", "Impute", "Log"]

IMPUTATIONS = ("median", "half-min")
LOGS = ("auto", "yes", "no")

_BLOCK = 512  # columns that are looked at in one go
_SAMPLE = 1 << 20  # entries that are enough for quantiles of a whole table

Floats = npt.NDArray[Any]


def _table(X: Any, features: int | None = None) -> Floats:
    X = array_of(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if X.ndim != 2 or (features is not None and X.shape[1] != features):
        expected = "a matrix" if features is None else f"a matrix of {features} columns"
        raise ValueError(f"X: expected {expected}, got shape {X.shape}")
    return np.asarray(X)


class Impute(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill missing values by what the training rows say of their column.

    Parameters
    ----------
    how : {"median", "half-min"}
        Half of the smallest value is the habit of metabolomics, where a value is missing because it is below what the
        instrument sees; a column with values of zero or below gets its smallest value.
    copy : bool
        False: fill the array that came.

    Attributes
    ----------
    fill_ : ndarray of shape (n_features,)
        A column without any value gets the median of all the others' fills.

    Examples
    --------
    >>> import numpy as np
    >>> from normball.selection import Impute
    >>> Impute("half-min").fit_transform(np.array([[4.0, np.nan], [np.nan, 3.0], [6.0, 5.0]]))
    array([[4. , 1.5],
           [2. , 3. ],
           [6. , 5. ]])
    """

    def __init__(self, how: str = "median", *, copy: bool = True) -> None:
        self.how = how
        self.copy = copy

    def fit(self, X: Any, y: Any = None) -> Impute:
        """Learn what to fill with."""
        if self.how not in IMPUTATIONS:
            unknown("how", self.how, IMPUTATIONS)
        X = _table(X)
        self.n_features_in_ = X.shape[1]
        fill = np.full(X.shape[1], np.nan)
        for start in range(0, X.shape[1], _BLOCK):
            part = X[:, start : start + _BLOCK]
            here = ~np.isnan(part)
            some = here.any(0)
            if self.how == "median":
                whole = here.all(0)
                found = np.full(part.shape[1], np.nan)
                found[whole] = np.median(part[:, whole], axis=0)
                gaps = some & ~whole
                if gaps.any():
                    found[gaps] = np.nanmedian(part[:, gaps], axis=0)
            else:
                found = np.where(some, np.where(here, part, np.inf).min(0), np.nan)
                found = np.where(found > 0, 0.5 * found, found)
            fill[start : start + _BLOCK] = found
        known = fill[~np.isnan(fill)]
        fill[np.isnan(fill)] = np.median(known) if len(known) else 0.0
        self.fill_ = fill
        return self

    def transform(self, X: Any) -> Floats:
        """Return the table without gaps."""
        check_is_fitted(self)
        X = _table(X, len(self.fill_))
        out = X.copy() if self.copy else X
        for start in range(0, X.shape[1], _BLOCK):
            part = out[:, start : start + _BLOCK]
            rows, columns = np.nonzero(np.isnan(part))
            part[rows, columns] = self.fill_[start + columns]
        return np.asarray(out)


class Log(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Take logarithms to base 2, if the training rows look as if nobody had.

    "auto" takes them where the median is positive and either the 99 % quantile exceeds 100, or the range exceeds 50
    with a positive lower quartile: intensities and counts do so, what is already a logarithm or a score does not.

    Where all training values are positive this is ``log2(x)``, and smaller values are taken as the smallest. Else it is
    ``log2((x + sqrt(x**2 + c**2)) / 2)``, which is nearly the same for large values and goes on smoothly through zero;
    ``c`` is the 10 % quantile of the magnitudes that are not zero.

    Parameters
    ----------
    when : {"auto", "yes", "no"}
        Whether to look at the range, or what to do.
    copy : bool
        False: change the array that came.

    Attributes
    ----------
    taken_ : bool
        Whether logarithms are taken.
    offset_ : float
        ``c``; 0 where the logarithm is the plain one.
    floor_ : float
        The smallest value of the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from normball.selection import Log
    >>> Log().fit_transform(np.array([[4.0, 512.0], [16.0, 2048.0]]))
    array([[ 2.,  9.],
           [ 4., 11.]])
    >>> Log().fit_transform(np.array([[-0.5, 1.5]]))
    array([[-0.5,  1.5]])
    """

    def __init__(self, when: str = "auto", *, copy: bool = True) -> None:
        self.when = when
        self.copy = copy

    def fit(self, X: Any, y: Any = None) -> Log:
        """Look at the range."""
        if self.when not in LOGS:
            unknown("when", self.when, LOGS)
        X = _table(X)
        self.n_features_in_ = X.shape[1]
        low = float(np.fmin.reduce(X, axis=None))
        if np.isnan(low):
            raise ValueError("X: expected some values that are not missing, got none")
        some = X.ravel()
        if X.size > _SAMPLE:
            some = some[np.random.default_rng(0).integers(X.size, size=_SAMPLE)]
        some = some[~np.isnan(some)].astype(np.float64)
        quarter, median, most = np.quantile(some, [0.25, 0.5, 0.99])
        wide = most > 100.0 or (some.max() - low > 50.0 and quarter > 0.0)
        self.taken_ = bool(self.when == "yes" or (self.when == "auto" and median > 0.0 and wide))
        self.floor_, self.offset_ = low, 0.0
        if self.taken_ and low <= 0.0:
            sizes = np.abs(some[some != 0.0])
            self.offset_ = float(np.quantile(sizes, 0.1)) if len(sizes) else 1.0
        return self

    def transform(self, X: Any) -> Floats:
        """Return the table, in logarithms or as it is."""
        check_is_fitted(self)
        X = _table(X, self.n_features_in_)
        if not self.taken_:
            return np.asarray(X)
        out = X.copy() if self.copy else X
        for row in out:  # row by row, so that no second table is made
            row[:] = self.of(row)
        return np.asarray(out)

    def of(self, values: Any) -> Floats:
        """Return the same of single values, in double precision."""
        x = np.asarray(values, dtype=np.float64)
        if not self.taken_:
            return x
        if not self.offset_:
            return np.asarray(np.log2(np.maximum(x, self.floor_)))
        root = np.hypot(x, self.offset_)
        with np.errstate(divide="ignore", invalid="ignore"):  # of the two forms the one is taken that does not cancel
            small = np.log2(self.offset_**2 / 2.0 / (root - x))
            return np.asarray(np.where(x < 0.0, small, np.log2((x + root) / 2.0)))

    def __str__(self) -> str:
        """Say what was done, in words."""
        if not getattr(self, "taken_", False):
            return "no logarithms taken"
        if self.offset_:
            return f"logarithms to base 2 taken, smoothed through zero at {self.offset_:.3g}"
        return "logarithms to base 2 taken"
