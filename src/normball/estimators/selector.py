"""The supervised autoencoder as a selector of columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from normball.estimators.autoencoder import SupervisedAutoencoder

__all__ = ["FeatureSelector"]


class FeatureSelector(SelectorMixin, SupervisedAutoencoder):  # type: ignore[misc]
    """A selector that keeps the few features that matter, for pipelines.

    It is a `SupervisedAutoencoder` whose `transform` returns the selected columns of `X`, as they are, where that of
    the autoencoder returns the latent space. Parameters, attributes and files are the same, and it predicts, too.

    Parameters
    ----------
    n_features_to_select : int, float or "auto"
        A number of features, a fraction of them, or the choice by inner cross-validation.
    **parameters
        All the others of `SupervisedAutoencoder`, with the same defaults: a radius, a norm, a preset and so on.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from normball.estimators import FeatureSelector
    >>> X, y = make_classification(200, 50, n_informative=3, n_redundant=0, class_sep=2, shuffle=False, random_state=0)
    >>> selector = FeatureSelector(n_features_to_select=3, random_state=0)
    >>> selector.fit_transform(X, y).shape
    (200, 3)
    >>> selector.get_feature_names_out()
    array(['x0', 'x1', 'x2'], dtype=object)
    >>> bool(make_pipeline(selector, RandomForestClassifier(random_state=0)).fit(X, y).score(X, y) > 0.9)
    True
    """

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_
