"""A fitted estimator as one file: tensors in safetensors, the rest as JSON in its header."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from normball.estimators import _written
from normball.estimators._heads import HEADS, Network
from normball.estimators._network import Autoencoder
from normball.estimators._states import expecting, read, under, write
from normball.estimators._stream import Stream

__all__ = ["fingerprint", "load", "save"]

_FORMAT = 1
_ANY = ("callback", "checkpoint", "cv")  # what belongs to one fit, and may be any object
_NUMBERS = ("radius_", "theta_")


def fingerprint(estimator: Any, seed: int, X: Any, y: Any) -> str:
    """Return what must be the same where a fit goes on from a checkpoint."""
    parameters = {name: repr(v) for name, v in estimator.get_params(deep=False).items() if name not in _ANY}
    digest = hashlib.sha256(json.dumps([parameters, seed, list(X.shape), str(X.dtype)]).encode())
    digest.update("\n".join(map(str, np.asarray(y).tolist())).encode())
    step = max(X.shape[0] // 16, 1)  # some rows of the table: enough to tell another table, not to read all of it
    some = X[np.arange(0, X.shape[0], step)]
    digest.update(np.ascontiguousarray(some.toarray() if hasattr(some, "toarray") else some).tobytes())
    return digest.hexdigest()


def save(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator."""
    network: Autoencoder = estimator.network_
    arrays = {
        "mean": estimator._mean,
        "scale": estimator._scale,
        "chosen": estimator._chosen,
        "importances": estimator.feature_importances_,
    }
    if estimator._layer is not None:
        arrays["layer"] = estimator._layer
    if estimator.head_ != "network":
        arrays |= {f"head/{name}": getattr(estimator._head, name) for name in estimator._head.arrays}
    if estimator.classes_.dtype.kind in "biuf":
        arrays["classes"] = estimator.classes_
    path_columns = {name: values for name, values in estimator.feature_path_.items() if values.dtype.kind in "iuf"}
    arrays |= {f"path/{name}": values for name, values in path_columns.items()}
    tensors = {name: torch.from_numpy(np.array(value, order="C")) for name, value in arrays.items()}
    tensors |= {f"network/{name}": value.contiguous() for name, value in network.state_dict().items()}
    params = {name: v for name, v in estimator.get_params(deep=False).items() if name not in _ANY}
    params["constraints"] = _written.told(params["constraints"])
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = None
    stream = None
    if hasattr(estimator, "_stream"):
        stream, state = estimator._stream.written()
        tensors |= {f"stream/{name}": value.contiguous() for name, value in state.items()}
    names = getattr(estimator, "feature_names_in_", None)
    told = {
        "format": _FORMAT,
        "params": params,
        "classes": None if "classes" in arrays else estimator.classes_.tolist(),
        "feature_names": None if names is None else names.tolist(),
        "n_features": int(estimator.n_features_in_),
        "head": estimator.head_,
        "path_heads": [str(name) for name in estimator.feature_path_.get("head", [])],
        "expanded": bool(estimator.expanded_),
        "numbers": {name: getattr(estimator, name) for name in _NUMBERS},
        "activation": network.activation,
        "stream": stream,
    }
    write(told, tensors, path)


def load(estimator: Any, path: str | Path) -> None:
    """Make a fresh estimator what the saved one was."""
    with expecting("path: expected a file that SupervisedAutoencoder.save has written", path):
        told, tensors = read(path)
        if told["format"] != _FORMAT:
            raise ValueError(f"format {told['format']} is of another version of normball")
        _restore(estimator, told, tensors)
        _verify(estimator)


def _restore(estimator: Any, told: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    arrays = {name: value.numpy() for name, value in tensors.items() if not name.startswith(("network/", "stream/"))}
    params: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in told["params"].items()}
    params["constraints"] = _written.constraints_of(told["params"]["constraints"])
    if isinstance(params.get("class_weight"), dict):  # JSON turns the keys into strings
        by_name = {str(label): label for label in (arrays["classes"].tolist() if "classes" in arrays else [])}
        params["class_weight"] = {by_name.get(key, key): v for key, v in params["class_weight"].items()}
    estimator.set_params(**params)
    estimator.classes_ = arrays["classes"] if "classes" in arrays else np.array(told["classes"])
    estimator.n_features_in_ = told["n_features"]
    if told["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(told["feature_names"], dtype=object)
    estimator.network_ = Autoencoder.of(under(tensors, "network/"), told["activation"])
    estimator.head_ = told["head"]
    estimator._head = Network(estimator.network_)
    if told["head"] != "network":
        estimator._head = HEADS[told["head"]](*(arrays[f"head/{n}"] for n in HEADS[told["head"]].arrays))
    estimator._mean, estimator._scale, estimator._chosen = arrays["mean"], arrays["scale"], arrays["chosen"]
    estimator._layer = arrays.get("layer")
    estimator.support_ = np.zeros(estimator.n_features_in_, bool)
    estimator.support_[arrays["chosen"]] = True
    estimator.feature_importances_ = arrays["importances"]
    estimator.feature_path_ = {n.removeprefix("path/"): v for n, v in arrays.items() if n.startswith("path/")}
    if told["path_heads"]:
        estimator.feature_path_["head"] = np.array(told["path_heads"])
    estimator.expanded_ = told["expanded"]
    if told["stream"] is not None:
        estimator._stream = Stream.read(told["stream"], under(tensors, "stream/"), estimator.feature_path_)
    for name, value in told["numbers"].items():
        setattr(estimator, name, value)


def _verify(estimator: Any) -> None:
    """Raise where the parts do not fit together."""
    d, k, classes = estimator.n_features_in_, len(estimator._chosen), len(estimator.classes_)
    names = getattr(estimator, "feature_names_in_", None)
    parts = [estimator._mean, estimator._scale, estimator.feature_importances_, *([] if names is None else [names])]
    shapes = [part.shape for part in parts]
    answers = [head.log_proba(np.zeros((1, k))).shape for head in (estimator._head, Network(estimator.network_))]
    if any(shape != (d,) for shape in shapes) or any(shape != (1, classes) for shape in answers):
        raise ValueError(f"parts of shapes {shapes} and {answers}, for {d} features and {classes} classes")
