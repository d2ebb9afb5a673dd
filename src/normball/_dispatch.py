"""The only choice of backend: by the type of the array."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from normball.backends import cpu

__all__ = ["backend_for"]


def backend_for(Y: Any) -> ModuleType:
    """Return the module that projects arrays of the type of `Y`."""
    # A tensor can only come from a torch that has been imported; so this never imports it by itself.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(Y, torch.Tensor):
        tensors = sys.modules.get("torch.distributed.tensor")
        if tensors is not None and isinstance(Y, tensors.DTensor):
            from normball.backends import distributed

            return distributed
        from normball.backends import torch_op

        return torch_op
    return cpu
