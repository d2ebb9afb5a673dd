"""Every check of the estimators' arguments, and every error message: what was expected, what came, what to do."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from normball._validate import unknown
from normball.estimators._descents import DESCENTS
from normball.estimators._network import ACTIVATIONS, FIRST, Autoencoder
from normball.estimators._path import NORMS
from normball.estimators._ranks import Ranks
from normball.nn.patterns import matched

__all__ = [
    "codes_of",
    "consistent",
    "constraints",
    "count_of",
    "device_of",
    "finite_rows",
    "labels",
    "options",
    "plain_labels",
    "real",
    "size",
    "streaming",
    "unknown",
    "whole",
]


def real(value: Any) -> bool:
    """Whether a value is a number, and no bool."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def whole(value: Any) -> bool:
    """Whether a value is an int, and no bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def size(count: Any, radius: Any, norm: Any, name: str = "n_features_to_select") -> None:
    """Check that the size of the selection is asked for in one way at most."""
    given = not (isinstance(count, str) and count == "auto")
    if given and radius is not None:
        raise ValueError(f"radius, {name}: expected one of them at most, got both: {radius!r} and {count!r}")
    for asked, value, free in ((name, count, not given), ("radius", radius, radius is None)):
        if norm is None and not free:
            expected = "'auto'" if asked == name else "None"
            raise ValueError(f"{asked}: expected {expected} with norm=None, which uses all the features, got {value!r}")


def consistent(estimator: Any, presets: Sequence[Any]) -> None:
    """Check the parameters as the user gave them, before a preset: none of them may silently overrule another."""
    if estimator.preset not in presets:
        unknown("preset", estimator.preset, presets)
    size(estimator.n_features_to_select, estimator.radius, estimator.norm)
    if estimator.norm is None and estimator.descent is not None:
        raise ValueError(f"descent: expected None with norm=None, which projects nothing, got {estimator.descent!r}")
    if estimator.norm is None and estimator.head not in (None, "auto", "network"):
        raise ValueError(f"head: expected 'auto' or 'network' with norm=None, got {estimator.head!r}")


def options(estimator: Any) -> None:
    """Check the parameters that do not depend on the data."""
    for name, known in (("descent", DESCENTS), ("activation", tuple(ACTIVATIONS))):
        if getattr(estimator, name) not in known:
            unknown(name, getattr(estimator, name), known)
    if estimator.norm is not None and estimator.norm not in NORMS:
        unknown("norm", estimator.norm, tuple(NORMS))
    if estimator.head not in ("auto", "network", "linear", "gaussian"):
        unknown("head", estimator.head, ("auto", "network", "linear", "gaussian"))
    if estimator.expand not in (None, "associated"):
        raise ValueError(f"expand: expected None or 'associated', got {estimator.expand!r}")
    if estimator.ranking not in ("layer", "grown"):
        unknown("ranking", estimator.ranking, ("layer", "grown"))
    if estimator.ranking == "grown" and (estimator.descent != "refit" or estimator.norm is None or estimator.radius):
        raise ValueError("ranking: expected descent='refit', a norm and no radius with 'grown', which follows no ball")
    if estimator.expand is not None and (estimator.descent != "refit" or estimator.norm is None):
        raise ValueError("expand: expected descent='refit' and a norm, since it changes the set that is fitted again")
    radius = estimator.radius
    if radius is not None and not (real(radius) and radius > 0):
        raise ValueError(f"radius: expected a number > 0 or None, got {radius!r}")
    for name in ("batch_size", "epochs"):
        value = getattr(estimator, name)
        if value is not None and not (whole(value) and value >= 1):
            raise ValueError(f"{name}: expected a positive int, got {value!r}")
    hidden = estimator.hidden
    sizes = (hidden,) if whole(hidden) else tuple(hidden)
    if not sizes or not all(whole(size) and size >= 1 for size in sizes):
        raise ValueError(f"hidden: expected a positive int or a tuple of them, got {hidden!r}")
    rate = estimator.learning_rate
    if rate is not None and not (real(rate) and rate > 0):
        raise ValueError(f"learning_rate: expected a number > 0 or None, got {rate!r}")
    part = estimator.reconstruction_weight
    if not (real(part) and part >= 0):
        raise ValueError(f"reconstruction_weight: expected a number >= 0, got {part!r}")


def constraints(asked: Any, hidden: tuple[int, ...]) -> Mapping[Any, Any]:
    """Return the balls of other layers by pattern, having looked whether there are such layers."""
    if asked is None:
        return {}
    found = matched(Autoencoder(1, [1] * len(hidden), 2), asked, "constraints")
    if FIRST in found:
        raise ValueError(f"constraints: expected other weights than {FIRST}, whose ball is that of norm and radius")
    return asked  # type: ignore[no-any-return]


def streaming(estimator: Any) -> None:
    """Check what data that come in chunks cannot have."""
    if estimator.ranking == "grown":
        raise ValueError("ranking: expected 'layer' with partial_fit, got 'grown'")
    if estimator.head not in ("auto", "network"):
        raise ValueError(f"head: expected 'auto' or 'network' with partial_fit, got {estimator.head!r}")
    if estimator.distributed:
        raise ValueError("distributed: expected False with partial_fit, got True; use fit")
    if estimator.expand is not None:
        raise ValueError(f"expand: expected None with partial_fit, got {estimator.expand!r}")
    if estimator.class_weight == "balanced":
        raise ValueError("class_weight: expected a dict or None with partial_fit, got 'balanced', which needs all data")


def codes_of(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the class of each sample as a number, the classes being known."""
    if len(classes) < 2:
        raise ValueError(f"classes: expected at least two, got {len(classes)} class")
    strange = np.setdiff1d(y, classes)
    if len(strange):
        raise ValueError(f"y: expected labels among the classes {classes.tolist()}, got {strange[:5].tolist()}")
    return np.searchsorted(classes, y)


def count_of(wanted: Any, features: int, name: str = "n_features_to_select") -> int | None:
    """Return the number of features asked for; None for "auto"."""
    if isinstance(wanted, str):
        if wanted == "auto":
            return None
    elif whole(wanted):
        if 1 <= wanted <= features:
            return int(wanted)
        raise ValueError(f"{name}: expected a number between 1 and the {features} features of X, got {wanted}")
    elif real(wanted) and 0 < wanted < 1:
        return max(round(float(wanted) * features), 1)
    raise ValueError(f"{name}: expected 'auto', a number of features, or a fraction between 0 and 1, got {wanted!r}")


def plain_labels(y: Any) -> None:
    """Raise for labels of which some are missing, or some are strings and some are not."""
    dtype = np.dtype(object) if isinstance(y, (list, tuple)) else getattr(y, "dtype", None)
    numeric = isinstance(dtype, np.dtype) and dtype.kind != "O"
    if dtype is None or numeric or np.ndim(y) != 1:
        return  # scikit-learn's own checks do for arrays of numbers
    from pandas import isna

    missing = int(np.sum(isna(y)))
    if missing:
        raise ValueError(f"y: expected a label for each sample, got {missing} missing; leave these samples out")
    kinds = {type(label).__name__ for label in y}
    if "str" in kinds and len(kinds) > 1:
        raise TypeError(f"y: expected labels of one type, got {', '.join(sorted(kinds))}; convert them all to strings")


def labels(y: npt.NDArray[Any], weight: npt.NDArray[np.float64]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the classes, and the class of each sample as a number."""
    classes, codes = np.unique(y, return_inverse=True)
    present = np.unique(y[weight > 0])
    if len(present) < 2:
        raise ValueError(f"y: expected at least two classes with a sample of weight > 0, got {len(present)} class")
    return classes, codes.reshape(-1)


def device_of(device: Any) -> torch.device:
    """Return the device, or say that it is not there."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"device: expected 'cpu', 'cuda' or 'auto', got {device!r}") from None
    if wanted.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device: expected a device that is present, got {device!r} and no GPU; use 'cpu' or 'auto'")
    return wanted


def finite_rows(X: Any, ranks: Ranks) -> None:
    """Raise, on all ranks alike, where the rows of one of them hold NaN or infinity."""
    mine = np.flatnonzero(ranks.mine(np.arange(X.shape[0]), X.shape[0]))
    step = max((1 << 22) // max(X.shape[1], 1), 1)
    parts = (X[mine[start : start + step]] for start in range(0, len(mine), step))
    bad = sum(int((~np.isfinite(part.data if hasattr(part, "toarray") else part)).sum()) for part in parts)
    found = int(ranks.total(np.array(bad)))
    if found:
        raise ValueError(f"X: expected finite numbers, got {found} entries that are NaN or infinite")
