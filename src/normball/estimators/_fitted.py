"""What a fitted estimator can do: predict, transform, tell its features, and go into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from normball.estimators import _persistence
from normball.estimators._fitting import Fitted
from normball.estimators._heads import Head, Network
from normball.estimators._network import Autoencoder
from normball.estimators._rows import Rows
from normball.estimators._tables import checked

__all__ = ["FittedMixin"]

Floats = npt.NDArray[np.float64]


class FittedMixin(TransformerMixin):  # type: ignore[misc]
    """All of the estimator but its parameters and its fitting."""

    # The latent vectors are data, not metadata to be routed.
    __metadata_request__inverse_transform: ClassVar = {"Z": UNUSED}

    classes_: npt.NDArray[Any]
    n_features_in_: int
    network_: Autoencoder
    _head: Head

    def _take(self, fitted: Fitted) -> None:
        self.network_ = fitted.network.cpu()  # that of a stream is a copy
        self._head, self.head_ = fitted.head, fitted.head_name
        self._layer = fitted.layer
        self._mean, self._scale = fitted.mean, fitted.scale
        self._chosen = fitted.chosen
        self.support_ = np.zeros(self.n_features_in_, bool)
        self.support_[fitted.chosen] = True
        kept = np.where(self.support_, fitted.score, 0.0)
        if kept.sum() == 0.0:
            kept = self.support_.astype(np.float64)
        self.feature_importances_ = kept / kept.sum()
        self.feature_path_ = fitted.path
        self.radius_, self.theta_ = fitted.radius, fitted.theta
        self.expanded_ = fitted.expanded

    @property
    def selected_features_(self) -> npt.NDArray[Any]:
        """Names of the selected features; their numbers, if `X` had no names."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return np.asarray(self._chosen if names is None else names[self._chosen])

    @property
    def _n_features_out(self) -> int:
        return len(self.classes_)

    def _columns(self, X: Any) -> Floats:
        """Return the selected columns, standardised."""
        check_is_fitted(self)
        X = checked(self, X, reset=False)
        rows = Rows(X, self._mean, self._scale, torch.float64, torch.device("cpu"))
        return rows.columns(np.arange(X.shape[0]), self._chosen)

    def get_support(self, indices: bool = False) -> npt.NDArray[Any]:
        """Return which features are selected, as a mask or as their numbers."""
        check_is_fitted(self)
        return np.flatnonzero(self.support_) if indices else self.support_.copy()

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the log-probabilities of the classes."""
        columns = self._columns(X)
        return self._head.log_proba(columns)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each sample."""
        best = self.predict_log_proba(X).argmax(1)
        return np.asarray(self.classes_[best])

    def transform(self, X: Any) -> Floats:
        """Return the latent vectors of the network, one column for each class."""
        columns = self._columns(X)
        return Network(self.network_).latent(columns)

    @torch.no_grad()
    def inverse_transform(self, Z: Any) -> Floats:
        """Return the features that the decoder makes of latent vectors.

        After "refit", whose network knows the selected features alone, the others are at their mean.
        """
        check_is_fitted(self)
        weight = self.network_.first.weight
        Z = check_array(Z, dtype=np.float64, input_name="Z")
        if Z.shape[1] != self._n_features_out:
            raise ValueError(f"Z: expected a matrix of {self._n_features_out} columns, got shape {Z.shape}")
        assert self.network_.decoder is not None
        out = self.network_.decoder(torch.from_numpy(Z).to(weight)).double().numpy()
        X = np.zeros((len(Z), self.n_features_in_))
        X[:, self._chosen if out.shape[1] == len(self._chosen) else slice(None)] = out
        return np.asarray(X * self._scale + self._mean)

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator as safetensors, with the rest as JSON in its header. No pickle.

        `partial_fit` goes on from it to the same bits. `callback`, `checkpoint` and `cv` are not kept, since they may
        be any object.
        """
        check_is_fitted(self)
        _persistence.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` has written; any other file, damaged or missing, is a ValueError."""
        estimator = cls()
        _persistence.load(estimator, path)
        return estimator
