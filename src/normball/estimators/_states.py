"""States as flat names and tensors, which is what safetensors holds: those of optimizers and of constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

__all__ = ["flattened", "put_slots", "slots_of", "under", "unflattened"]


def under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return what stands under a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def slots_of(optimizer: torch.optim.Optimizer, prefix: str) -> dict[str, Tensor]:
    """Return what an optimizer remembers of each parameter."""
    return {
        f"{prefix}{number}/{slot}": value.detach().cpu().clone()
        for number, slots in optimizer.state_dict()["state"].items()
        for slot, value in slots.items()
        if isinstance(value, Tensor)
    }


def put_slots(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Have an optimizer remember what `slots_of` returned, less its prefix."""
    slots: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        number, slot = name.split("/")
        slots.setdefault(int(number), {})[slot] = value
    optimizer.load_state_dict(optimizer.state_dict() | {"state": slots})


def flattened(state: Mapping[str, Any], prefix: str) -> dict[str, Tensor]:
    """Return the state of a constraint as tensors."""
    tensors = {f"{prefix}steps": torch.tensor(state["steps"])}
    for name, start in state["starts"].items():
        for slot, value in start.items():
            exact = value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
            tensors[f"{prefix}{name}/{slot}"] = exact.detach().cpu().clone()
    return tensors


def unflattened(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the state that `flattened` was given."""
    starts: dict[str, dict[str, Tensor]] = {}
    for path, value in tensors.items():
        name, _, slot = path.rpartition("/")
        if name:
            starts.setdefault(name, {})[slot] = value
    return {"steps": int(tensors["steps"]), "starts": starts}
