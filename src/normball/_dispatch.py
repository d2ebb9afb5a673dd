"""The only choice of backend: by the type of the array."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np

from normball.backends import cpu

__all__ = ["backend_for", "is_sharded"]

_TENSORS = "normball.backends.torch_op"


def backend_for(Y: Any) -> ModuleType:
    """Return the module that projects arrays of the type of `Y`."""
    if type(Y) is np.ndarray:  # by far the most frequent, and the quickest to tell
        return cpu
    # A tensor can only come from a torch that has been imported; so this never imports it by itself.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(Y, torch.Tensor):
        if is_sharded(Y):
            from normball.backends import distributed

            return distributed
        # To import what is there already takes longer than to look it up.
        return sys.modules.get(_TENSORS) or importlib.import_module(_TENSORS)
    return cpu


def is_sharded(Y: Any) -> bool:
    """Whether `Y` is a tensor of which each rank holds a part."""
    tensors = sys.modules.get("torch.distributed.tensor")
    return tensors is not None and isinstance(Y, tensors.DTensor)
