"""What is asked of a study: one record, checked when it is made, before any file is opened."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from normball._validate import unknown
from normball.estimators import _checks
from normball.estimators._path import NORMS
from normball.selection.preparation import IMPUTATIONS, LOGS

__all__ = ["Settings"]

_LEAST = {"seeds": 1, "folds": 2, "permutations": 0, "random_state": 0, "epochs": 1}


@dataclass(frozen=True)
class Settings:
    """All that a study depends on, beside the table; `study` says what each of them means.

    ``metrics.json`` holds it as it is. Units of work get it as it is.

    Examples
    --------
    >>> from normball.selection.settings import Settings
    >>> Settings(folds=3).norm
    'l1inf'
    >>> Settings(folds=1)
    Traceback (most recent call last):
    ...
    ValueError: folds: expected an int >= 2, got 1
    """

    radius: float | None = None
    n_features: int | float | str = "auto"
    norm: str | None = "l1inf"
    seeds: int = 3
    folds: int = 5
    log: str = "auto"
    impute: str = "median"
    epochs: int | None = None
    device: str = "cpu"
    permutations: int = 0
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, known in (("log", LOGS), ("impute", IMPUTATIONS), ("norm", tuple(NORMS))):
            value = getattr(self, name)
            if value not in known and not (name == "norm" and value is None):
                unknown(name, value, known)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if name == "epochs" and value is None:
                continue
            if not _checks.whole(value) or value < least:
                raise ValueError(f"{name}: expected an int >= {least}, got {value!r}")
            self._set(name, int(value))
        _checks.size(self.n_features, self.radius, self.norm, "n_features")
        if self.radius is not None:
            if not _checks.real(self.radius) or not 0 < self.radius < math.inf:
                raise ValueError(f"radius: expected a number > 0, got {self.radius!r}")
            self._set("radius", float(self.radius))
        self._set("n_features", _count(self.n_features))
        self._set("device", str(_checks.device_of(self.device)))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def identity(self) -> dict[str, Any]:
        """The settings that tell one study from another: those of each unit, not how many units there are."""
        return {name: value for name, value in asdict(self).items() if name not in ("seeds", "permutations")}


def _count(wanted: Any) -> int | float | str:
    """Return a number of features, a share of them or "auto", as JSON can hold it."""
    if wanted == "auto":
        return "auto"
    if _checks.whole(wanted) and wanted >= 1:
        return int(wanted)
    if _checks.real(wanted) and 0 < wanted < 1:
        return float(wanted)
    raise ValueError(f"n_features: expected 'auto', an int >= 1 or a share between 0 and 1, got {wanted!r}")
