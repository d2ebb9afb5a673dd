"""How stable a selection is: repetition over subsamples, and the index of Nogueira, Sechidis and Brown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from normball.data._frames import check_frame
from normball.estimators import _checks
from normball.estimators.autoencoder import SupervisedAutoencoder
from normball.estimators.sweeps import sweep

__all__ = ["Stability", "StabilitySelection", "nogueira"]


@dataclass(frozen=True)
class Stability:
    """The index, and its confidence interval."""

    value: float
    low: float
    high: float


def nogueira(selections: Any, level: float = 0.95) -> Stability:
    """Stability of a feature selection: 1 where all selections agree, 0 where they agree as often as by chance.

    S. Nogueira, K. Sechidis and G. Brown, *On the stability of feature selection algorithms* (2018), with the
    asymptotic interval given there.

    Parameters
    ----------
    selections : array_like of bool, shape (n_selections, n_features)
        One row for each run.
    level : float
        Of the interval.

    Returns
    -------
    Stability
        ``value``, ``low``, ``high``. Not a number where every run takes all the features, or none.

    Examples
    --------
    >>> from normball.estimators import nogueira
    >>> nogueira([[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]).value
    1.0
    """
    Z = np.asarray(selections, dtype=bool).astype(np.float64)
    if Z.ndim != 2 or len(Z) < 2:
        raise ValueError(f"selections: expected a matrix with a row for each of two or more runs, got shape {Z.shape}")
    M, d = Z.shape
    p = Z.mean(0)
    k = Z.sum(1)
    mean = k.mean()
    chance = (mean / d) * (1.0 - mean / d)
    if chance == 0.0:
        return Stability(np.nan, np.nan, np.nan)
    value = float(1.0 - (M / (M - 1) * (p * (1.0 - p)).mean()) / chance)
    part = (
        (Z * p).mean(1)
        - k * mean / d**2
        - value / 2.0 * (2.0 * k * mean / d**2 - k / d - mean / d + 1.0)
    ) / chance  # fmt: skip
    variance = 4.0 / M**2 * np.square(part - part.mean()).sum()
    half = float(stats.norm.ppf(0.5 + level / 2.0) * np.sqrt(variance))
    return Stability(value, value - half, value + half)


def _selected(X: Any, y: Any, estimator: Any, half: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.asarray(estimator.fit(X[half], y[half]).get_support())


class StabilitySelection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Features that are selected again and again on complementary halves of the samples.

    R. Shah and R. Samworth, *Variable selection with error control* (2013): each repetition cuts the samples of each
    class into two halves, and selects on both.

    Parameters
    ----------
    estimator : estimator, optional
        An estimator with ``get_support``, such as `SupervisedAutoencoder`, the default, or a selector of scikit-learn.
        Each fit gets a seed of its own.
    n_pairs : int
        The number of repetitions; there are twice as many fits.
    threshold : float
        Features selected in at least this part of the fits are kept.
    n_jobs : int, optional
        The number of fits at a time, in threads, or where ``joblib.parallel_config`` says; the result does not depend
        on it.
    random_state : int, RandomState or None
        The seed of the halves and the fits.

    Attributes
    ----------
    selections_ : ndarray of bool, shape (2 * n_pairs, n_features)
        The features of each fit.
    frequencies_ : ndarray
        How often each feature was selected.
    stability_ : Stability
        The index of `nogueira`, with its interval.

    Examples
    --------
    >>> import numpy as np
    >>> from normball.estimators import StabilitySelection, SupervisedAutoencoder
    >>> y = np.arange(200) % 2
    >>> X = np.random.default_rng(0).normal(size=(200, 50))
    >>> X[:, :2] += 2.0 * y[:, None]
    >>> sae = SupervisedAutoencoder(n_features_to_select=2, head="linear")
    >>> StabilitySelection(sae, n_pairs=3, random_state=0).fit(X, y).get_support(indices=True)
    array([0, 1])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_pairs: int = 25,
        threshold: float = 0.6,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_pairs = n_pairs
        self.threshold = threshold
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Labels are needed; sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any) -> StabilitySelection:
        """Fit the estimator to the halves, and count."""
        base = SupervisedAutoencoder() if self.estimator is None else self.estimator
        if isinstance(base, type) or not (hasattr(base, "get_support") and hasattr(base, "get_params")):
            got = f"the class {base.__name__}" if isinstance(base, type) else type(base).__name__
            raise TypeError(
                "estimator: expected one that selects features and so has get_support, such as SupervisedAutoencoder()"
                f" or SelectKBest(), got {got}"
            )
        if not _checks.whole(self.n_pairs) or self.n_pairs < 1:
            raise ValueError(f"n_pairs: expected an int >= 1, got {self.n_pairs!r}")
        if not _checks.real(self.threshold) or not 0.0 < self.threshold <= 1.0:
            raise ValueError(f"threshold: expected a number in (0, 1], got {self.threshold!r}")
        _checks.plain_labels(y)
        check_frame(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        random = check_random_state(self.random_state)
        tasks = []
        for _ in range(self.n_pairs):
            for half in _halves(y, random):
                made = clone(base)
                if "random_state" in made.get_params(deep=False):
                    made.set_params(random_state=int(random.randint(1 << 31)))
                tasks.append((made, half))
        found = dict(sweep(_selected, tasks, shared=(X, y), n_jobs=self.n_jobs, prefer="threads"))
        self.selections_ = np.array([found[number] for number in range(len(tasks))])
        self.frequencies_ = self.selections_.mean(0)
        self.stability_ = nogueira(self.selections_)
        return self

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        check_is_fitted(self)
        return np.asarray(self.frequencies_ >= self.threshold)


def _halves(y: npt.NDArray[Any], random: np.random.RandomState) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Cut the samples of each class into two halves; the odd one goes now here, now there."""
    parts: tuple[list[Any], list[Any]] = ([], [])
    for label in np.unique(y):
        mine = random.permutation(np.flatnonzero(y == label))
        cut = (len(mine) + random.randint(2)) // 2
        parts[0].append(mine[:cut])
        parts[1].append(mine[cut:])
    return np.sort(np.concatenate(parts[0])), np.sort(np.concatenate(parts[1]))
