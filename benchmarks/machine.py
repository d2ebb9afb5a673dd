"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import normball
from normball import _core


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
        cpu=_cpu_model(),
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        last_cache=_last_cache(),
        instruction_set=_core.instruction_set(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        numpy=np.__version__,
        normball=normball.__version__,
    )


def others_seconds() -> float:
    """CPU seconds since the start of the machine that were not this process's: idle aside, the noise in a benchmark."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
    everybody = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return everybody - sum(os.times()[:4])


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _last_cache() -> int:
    """Bytes of the last cache that the first CPU sees; 32 MiB where the system does not tell."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    sizes = [32 * 2**20]
    levels = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    if levels:
        sizes = [int(text[:-1]) * units[text[-1]] for text in (p.read_text(encoding="ascii").strip() for p in levels)]
    return max(sizes)
