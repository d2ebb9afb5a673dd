"""The only choice of backend: by the type of the array."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from normball.backends import cpu

__all__ = ["backend_for"]


def backend_for(Y: Any) -> ModuleType:
    """Return the module that projects arrays of the type of `Y`."""
    return cpu
