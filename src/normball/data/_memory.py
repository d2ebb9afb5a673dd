"""Whether a table will fit, asked before it is read."""

from __future__ import annotations

import os
import re
from pathlib import Path

from normball._spelling import argument
from normball.data.table import TableError

__all__ = ["check_memory", "free_memory", "memory_of"]

_PEAK = 3.5  # times the table: the numbers, once more where they are turned or thinned out, and batches


def memory_of(limit: int | float | str | None) -> int | None:
    """Turn ``memory_limit`` into bytes; None asks the system."""
    if limit is None:
        return free_memory()
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", limit, re.IGNORECASE | re.ASCII)
        if not found:
            raise ValueError(f"memory_limit: expected bytes, or a text such as '4GB', got {limit!r}")
        return int(float(found[1]) * 1024 ** " kmgt".index(found[2].lower() or " "))
    if isinstance(limit, bool) or not limit > 0:
        raise ValueError(f"memory_limit: expected a positive number of bytes, got {limit!r}")
    return int(limit)


def free_memory() -> int | None:
    """Bytes that this process may still take, or None where the system does not tell."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        try:
            found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
        except (ValueError, OSError, AttributeError):
            return None
    try:  # a container may have less
        group = Path("/sys/fs/cgroup")
        found.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return min(found, default=None)


def check_memory(name: str, rows: float, columns: int, on_disk: int, limit: int | None) -> None:
    """Refuse a table that would not fit."""
    table = rows * columns * 4
    if limit is not None and table * _PEAK > limit:
        raise TableError(
            f"{name}: too large for the memory: {_size(on_disk)} on disk, about {rows:,.0f} x {columns:,} values, "
            f"{_size(table)} as float32, and reading takes about {_size(table * _PEAK)}; {_size(limit)} are free. "
            f"Keep fewer columns or samples, use a larger machine, or raise {argument('memory_limit')}"
        )


def _size(amount: float) -> str:
    power = 0
    while amount >= 1024 and power < 4:
        amount, power = amount / 1024, power + 1
    return f"{amount:.{1 if power and amount < 100 else 0}f} {('bytes', 'KB', 'MB', 'GB', 'TB')[power]}"
