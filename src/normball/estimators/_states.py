"""States as flat names and tensors, and files of them: safetensors, with the rest as JSON in their headers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

__all__ = ["expecting", "flattened", "put_slots", "read", "slots_of", "under", "unflattened", "write"]


def write(told: Mapping[str, Any], tensors: dict[str, Tensor], path: str | Path) -> None:
    """Write a file; `told` is for JSON."""
    try:
        text = json.dumps(told)
    except TypeError as error:
        raise TypeError(f"save: expected parameters and labels that JSON can hold: {error}") from None
    save_file(tensors, path, metadata={"normball": text})


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return what `write` was given."""
    with safe_open(path, "pt") as file:
        metadata = file.metadata() or {}
        if "normball" not in metadata:
            raise ValueError("its header is not of normball")
        told = json.loads(metadata["normball"])
        return told, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@contextmanager
def expecting(what: str, path: str | Path, remedy: str = "") -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into one error: it is not what it should be."""
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{what}, got {str(path)!r} ({reason}){remedy}") from None


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
