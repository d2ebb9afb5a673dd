"""Those who fit together: each rank reads its own rows, and all of them take the same steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["ALONE", "Ranks", "everyone"]


@dataclass(frozen=True)
class Ranks:
    """One of `size` processes of PyTorch's default group; or the only one."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"  # where its group adds up

    def mine(self, rows: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.bool_]:
        """Which of some rows of a table of `count` are for this rank to read: those of one contiguous part."""
        if self.size == 1:
            return np.ones(len(rows), bool)
        return (rows >= self.rank * count // self.size) & (rows < (self.rank + 1) * count // self.size)

    def total(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Add up an array over the ranks."""
        if self.size == 1:
            return values
        sums = torch.tensor(values, device=self.device)
        dist.all_reduce(sums)
        return np.asarray(sums.cpu().numpy())

    def add_up(self, parts: Iterable[Tensor | None]) -> None:
        """Add up tensors over the ranks, in place and in one go."""
        if self.size == 1:
            return
        tensors = [part for part in parts if part is not None]
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors]).to(self.device)
        dist.all_reduce(flat)
        for tensor, part in zip(tensors, torch.split(flat, [tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.reshape(tensor.shape))


ALONE = Ranks()


def everyone() -> Ranks:
    """Return this process among those of the default group."""
    if not (dist.is_available() and dist.is_initialized()):
        raise ValueError(
            "distributed: expected the default process group of torch.distributed, got none; start with torchrun, and "
            "call torch.distributed.init_process_group() first"
        )
    by_gpu = dist.get_backend() == "nccl"
    device = f"cuda:{torch.cuda.current_device()}" if by_gpu else "cpu"
    return Ranks(dist.get_rank(), dist.get_world_size(), device)
