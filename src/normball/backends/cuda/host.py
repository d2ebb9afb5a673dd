"""What a launch needs of the host: a short way to the compiled kernel, and a place where its blocks meet."""

from __future__ import annotations

import math
import os
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from triton.runtime import driver

__all__ = ["INTERPRETED", "Launch", "in_runs", "meeting", "place_on", "processors_on"]

INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"


class Launch:
    """A kernel, its grid, and the arguments that the compiler knows.

    Triton looks at every argument of a call to find the compiled kernel, which may take the host longer than the kernel
    takes the device. Calls with tensors of the same dtypes, all aligned, and the same numbers find the same one; so it
    is kept, and launched as it is.
    """

    def __init__(self, kernel: Any, grid: tuple[int, ...], constants: dict[str, Any], **options: Any) -> None:
        self._find = kernel[grid]
        self._grid = (*grid, 1, 1)[:3]
        self._named = constants | options
        self._constants = tuple(constants.values())  # in the kernel's order
        self._run: Any = None
        self._keeps = True

    def __call__(self, arguments: tuple[Any, ...], same: bool) -> None:
        """Launch; `same` tells that nothing but the places of aligned tensors differs from other such calls."""
        if same and self._run is not None:
            try:
                self._run(*arguments, *self._constants)
            except TypeError:  # a Triton that launches in another way
                self._run, self._keeps = None, False
            else:
                return
        found = self._find(*arguments, **self._named)
        if same and self._keeps and hasattr(found, "__getitem__"):  # not in the interpreter
            self._run = found[self._grid]


class _Places:
    """Where the blocks of a launch meet: words that are 0 to begin with, and that the kernels leave as they need them.

    Launches that may run at the same time must not share any, nor launches of other numbers of blocks: each stream has
    its own for each, and so has each launch that is captured in a graph, as long as there are some left; then the graph
    clears one each time.
    """

    SPARE = 64

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.words = 8 * _most_blocks(device) + 2
        self.of_stream: dict[tuple[int, int], Tensor] = {}
        self.spare: list[Tensor] = []
        self.given: list[Tensor] = []  # to graphs, which hold no tensors; they may be replayed at any time

    def take(self, blocks: int) -> Tensor:
        if torch.cuda.is_current_stream_capturing():
            if not self.spare:
                return self._new()
            self.given.append(self.spare.pop())
            return self.given[-1]
        key = driver.active.get_current_stream(self.device.index), blocks
        place = self.of_stream.get(key)
        if place is None:
            place = self.of_stream[key] = self._new()
        if not self.spare:
            self.spare = list(self._new(self.SPARE))
        return place

    def _new(self, *count: int) -> Tensor:
        return torch.zeros((*count, self.words), dtype=torch.int64, device=self.device)


_places: dict[torch.device, _Places] = {}


def place_on(device: torch.device, blocks: int) -> Tensor:
    """Return a place for the next launch, of so many blocks, on the current stream of the current device `device`."""
    places = _places.get(device)
    if places is None:
        if device.type == "cpu":  # the interpreter, whose blocks are alone
            return torch.zeros(2, dtype=torch.int64)
        places = _places[device] = _Places(device)
    return places.take(blocks)


@lru_cache(maxsize=64)
def processors_on(device: torch.device) -> int:
    """Return how many multiprocessors a device has."""
    return 1 if device.type == "cpu" else torch.cuda.get_device_properties(device).multi_processor_count


def _most_blocks(device: torch.device) -> int:
    """Return how many blocks can meet: two on each multiprocessor, and a power of two."""
    return 1 << (2 * processors_on(device) - 1).bit_length()


def meeting(programs: int, warps: int) -> dict[str, Any]:
    """Return the places at a meeting of so many blocks, a power of two, and how many words a thread awaits at once."""
    slots = max(2, 1 << (programs - 1).bit_length())
    return {"SLOTS": slots, "WORDS": min(4, max(1, slots * 4 // (32 * warps))), "ALONE": programs == 1}


def in_runs(groups: int, members: int, *strides: tuple[int, ...]) -> tuple[int, int]:
    """Return how many neighbouring groups, and members, can be read at once: powers of two up to 8."""
    side_by_side = [all(stride[axis] == 1 for stride in strides) for axis in (1, 2)]
    wide = [
        math.gcd(8, size, *(n for stride in strides for n in (stride[0], stride[3 - axis])))
        for size, axis in ((groups, 1), (members, 2))
    ]
    VN = wide[1] if side_by_side[1] else 1
    return wide[0] if side_by_side[0] and VN == 1 else 1, VN
