"""What turns the selected features into probabilities: the network, a linear model, or one Gaussian for each class."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from normball.estimators._network import Autoencoder

__all__ = ["HEADS", "Gaussian", "Head", "Linear", "Network"]

Floats = npt.NDArray[np.float64]


class Head(Protocol):
    """Log-probabilities of the classes, from the standardised columns that were selected."""

    def log_proba(self, X: Floats) -> Floats:
        """Return one row for each sample."""


class Network:
    """The latent vector of the network is the logits."""

    def __init__(self, network: Autoencoder) -> None:
        self.network = network

    @torch.no_grad()
    def latent(self, X: Floats) -> Floats:
        """Return the latent vectors."""
        first = self.network.first.weight
        return np.asarray(self.network.encoder(torch.from_numpy(X).to(first)).double().cpu().numpy())

    def log_proba(self, X: Floats) -> Floats:
        """See `Head`."""
        return np.asarray(log_softmax(self.latent(X), axis=1))


class Linear:
    """Multinomial logistic regression with an l2 penalty."""

    arrays: ClassVar = ("coef", "intercept")

    def __init__(self, coef: Floats, intercept: Floats) -> None:
        self.coef, self.intercept = coef, intercept

    @classmethod
    def fit(
        cls, X: Floats, y: npt.NDArray[np.intp], weight: Floats, classes: int, C: float = 0.1, tol: float = 1e-6
    ) -> Linear:
        """Fit to weighted samples; a class that has none gets no probability."""
        seen = np.unique(y[weight > 0])
        coef, intercept = np.zeros((classes, X.shape[1])), np.full(classes, -np.inf)
        intercept[seen] = 0.0
        if len(seen) > 1:
            model = LogisticRegression(C=C, max_iter=1000, tol=tol).fit(X, y, sample_weight=weight)
            rows = seen[1:] if len(seen) == 2 else seen  # for two classes scikit-learn keeps one row, of the second
            coef[rows], intercept[rows] = model.coef_, model.intercept_
        return cls(coef, intercept)

    def log_proba(self, X: Floats) -> Floats:
        """See `Head`."""
        return np.asarray(log_softmax(X @ self.coef.T + self.intercept, axis=1))


class Gaussian:
    """One Gaussian for each class: quadratic boundaries.

    The covariance of a class is drawn towards a multiple of the identity, the more the fewer its samples are for their
    number of features: by the share ``(k + 1) / (k + 1 + n)``.
    """

    arrays: ClassVar = ("means", "whiten", "offset")

    def __init__(self, means: Floats, whiten: Floats, offset: Floats) -> None:
        self.means, self.whiten, self.offset = means, whiten, offset

    @classmethod
    def fit(cls, X: Floats, y: npt.NDArray[np.intp], weight: Floats, classes: int) -> Gaussian:
        """Fit to weighted samples; a class that has none gets no probability."""
        k = X.shape[1]
        means, whiten, offset = np.zeros((classes, k)), np.zeros((classes, k, k)), np.full(classes, -np.inf)
        for label in range(classes):
            inside = (y == label) & (weight > 0)
            count = weight[inside].sum()
            if count == 0:
                continue
            means[label] = weight[inside] @ X[inside] / count
            D = X[inside] - means[label]
            S = (D.T * weight[inside]) @ D / count
            share = (k + 1) / (k + 1 + count)
            # The data are standardised: a class whose own spread vanishes still has a share of the common one.
            S = (1.0 - share) * S + share * max(float(np.trace(S)) / k, 1e-2) * np.eye(k)
            L = np.linalg.cholesky(S)
            whiten[label] = np.linalg.inv(L)
            offset[label] = np.log(count / weight.sum()) - np.log(np.diag(L)).sum()
        return cls(means, whiten, offset)

    def log_proba(self, X: Floats) -> Floats:
        """See `Head`."""
        D = np.stack([((X - m) @ w.T) for m, w in zip(self.means, self.whiten, strict=True)], axis=1)
        return np.asarray(log_softmax(self.offset - 0.5 * np.square(D).sum(2), axis=1))


# The heads that need no training loop, by name.
HEADS: dict[str, Any] = {"linear": Linear, "gaussian": Gaussian}
