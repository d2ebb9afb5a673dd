"""What the numbers were measured on."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import normball
from normball.experiments.environment import cpu_model, cpus, instruction_set


@dataclass(frozen=True)
class Machine:
    cpu: str
    cpus: int
    last_cache: int  # bytes
    instruction_set: str
    system: str
    python: str
    numpy: str
    normball: str

    def __str__(self) -> str:
        return (
            f"{self.cpu}, {self.cpus} CPUs, last cache {self.last_cache / 2**20:.0f} MiB, {self.instruction_set}, "
            f"{self.system}, Python {self.python}, NumPy {self.numpy}, normball {self.normball}"
        )


def this_machine() -> Machine:
    return Machine(
        cpu=cpu_model(),
        cpus=cpus(),
        last_cache=_last_cache(),
        instruction_set=instruction_set(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        numpy=np.__version__,
        normball=normball.__version__,
    )


def _last_cache() -> int:
    """Bytes of the last cache that the first CPU sees; 32 MiB where the system does not tell."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    sizes = [32 * 2**20]
    levels = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    if levels:
        sizes = [int(text[:-1]) * units[text[-1]] for text in (p.read_text(encoding="ascii").strip() for p in levels)]
    return max(sizes)
