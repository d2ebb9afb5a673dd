"""Estimators in the manner of scikit-learn: the supervised autoencoder, a selector, and how stable a selection is.

Needs PyTorch and scikit-learn: ``pip install normball[sklearn]``.
"""

try:
    import safetensors as _safetensors  # noqa: F401
    import sklearn as _sklearn  # noqa: F401
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "normball.estimators needs PyTorch, scikit-learn and safetensors: pip install normball[sklearn]"
    ) from error

from normball.estimators.attribution import attributions
from normball.estimators.autoencoder import SupervisedAutoencoder
from normball.estimators.selector import FeatureSelector
from normball.estimators.stability import Stability, StabilitySelection, nogueira

__all__ = [
    "FeatureSelector",
    "Stability",
    "StabilitySelection",
    "SupervisedAutoencoder",
    "attributions",
    "nogueira",
]
