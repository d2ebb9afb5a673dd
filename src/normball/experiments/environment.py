"""What the numbers were measured on and with."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import normball
from normball import _core

__all__ = ["cpu_model", "cpus", "environment", "instruction_set", "others_seconds"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "triton", "pandas", "matplotlib", "joblib", "captum")


def cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def instruction_set() -> str:
    """Return the instruction set that the compiled core has chosen."""
    return _core.instruction_set()


def cpu_model() -> str:
    """Return the name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def others_seconds() -> float:
    """Return the CPU seconds, since the machine's start, of all other processes: what disturbs a timing."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
    everybody = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return everybody - sum(os.times()[:4])


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Return the commit of the sources, where they lie in a repository."""
    here = Path(normball.__file__).parent
    if not (here.parents[1] / "pyproject.toml").exists():  # installed: any repository around it is another's
        return None
    try:
        asked = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def _gpu() -> str | None:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def environment(seeds: list[int], quick: bool) -> dict[str, Any]:
    """Return all of it, ready for JSON."""
    return {
        "cpu": cpu_model(),
        "cpus": cpus(),
        "instruction_set": instruction_set(),
        "gpu": _gpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "normball": normball.__version__,
        "commit": _commit(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "seeds": seeds,
        "quick": quick,
        "command": " ".join(["normball", *sys.argv[1:]]),
    }
