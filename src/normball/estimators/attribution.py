"""What each feature does to the logits, by the gradients of the network; through Captum."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted

from normball._validate import unknown

__all__ = ["attributions", "chosen_attributions"]

_ROWS = 1 << 13  # that go through the network in one go; integrated gradients make many of each sample


def attributions(sae: Any, X: Any, *, method: str = "integrated_gradients", n_steps: int = 50) -> dict[str, Any]:
    """Attribute the logits of the network to the features, against a sample at the mean of the training data.

    Needs Captum: ``pip install normball[attribution]``. It explains the network, the latent vector of ``transform``;
    where another head predicts, this is not an account of its predictions.

    Parameters
    ----------
    sae : SupervisedAutoencoder
        Fitted.
    X : array_like of shape (n_samples, n_features)
        The samples to explain.
    method : {"integrated_gradients", "deeplift"}
        The attributions of a sample add up to its logit less that of the mean sample. DeepLift knows
        ``activation="relu"`` alone.
    n_steps : int
        Of integrated gradients.

    Returns
    -------
    dict
        "samples": an array of shape (n_classes, n_samples, n_features); "per_class": the mean magnitudes over samples,
        of shape (n_classes, n_features); "global": their mean over classes.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from normball.estimators import SupervisedAutoencoder, attributions
    >>> X, y = make_classification(200, 50, n_informative=3, n_redundant=0, class_sep=2, shuffle=False, random_state=0)
    >>> sae = SupervisedAutoencoder(n_features_to_select=3, random_state=0).fit(X, y)
    >>> attributions(sae, X)["global"].nonzero()[0]
    array([0, 1, 2])
    """
    found = chosen_attributions(sae, X, method=method, n_steps=n_steps)
    samples = np.zeros((*found.shape[:2], sae.n_features_in_))
    samples[:, :, sae._chosen] = found
    per_class = np.abs(samples).mean(1)
    return {"samples": samples, "per_class": per_class, "global": per_class.mean(0)}


def chosen_attributions(
    sae: Any, X: Any, *, method: str = "integrated_gradients", n_steps: int = 50
) -> npt.NDArray[np.float64]:
    """Return the same for the selected features alone: an array of shape (n_classes, n_samples, n_selected)."""
    try:
        from captum.attr import DeepLift, IntegratedGradients
    except ImportError as error:
        raise ImportError("attributions need Captum: pip install normball[attribution]") from error
    if method not in ("integrated_gradients", "deeplift"):
        unknown("method", method, ("integrated_gradients", "deeplift"))
    check_is_fitted(sae)
    encoder = sae.network_.encoder
    if method == "deeplift" and any(isinstance(layer, torch.nn.SiLU) for layer in encoder):
        raise ValueError("method: expected 'integrated_gradients' with activation='silu'; 'deeplift' needs 'relu'")
    inputs = torch.from_numpy(sae._columns(X)).to(sae.network_.first.weight)
    classes = len(sae.classes_)
    samples = np.zeros((classes, *inputs.shape))
    rows = max(len(inputs), _ROWS)
    for label in range(classes):
        if method == "deeplift":
            found = DeepLift(encoder).attribute(inputs, target=label)
        else:
            found = IntegratedGradients(encoder).attribute(
                inputs, target=label, n_steps=n_steps, internal_batch_size=rows
            )
        samples[label] = found.detach().double().numpy()
    return samples
