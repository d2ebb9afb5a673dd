"""Files that are there as a whole or not at all, and tables that a spreadsheet will not run."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["csv_text", "harmless", "on_disk", "plain", "write_bytes", "write_text"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_bytes(path: Path, content: bytes) -> None:
    """Write under another name, then rename: whoever reads finds the old file or the new, and no half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write text in the same way, as UTF-8."""
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def harmless(cell: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would take for a formula.

    Examples
    --------
    >>> from normball.selection.files import harmless
    >>> harmless("=cmd()"), harmless("TP53"), harmless("-1.5")
    ("'=cmd()", 'TP53', '-1.5')
    """
    risky = isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULA) and not _number(cell)
    return f"'{cell}" if risky else cell


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV, its text made harmless."""
    shown = table.rename(columns=harmless)
    for place, column in enumerate(table.columns):
        if not pd.api.types.is_numeric_dtype(table[column]):
            shown.isetitem(place, table[column].map(harmless))
    return str(shown.to_csv(index=False, lineterminator="\n"))


@contextmanager
def on_disk(table: Any, folder: Path) -> Iterator[Any]:
    """Lend a table whose numbers are mapped from a file: all workers share them, and the first copy can go."""
    path = folder / "table.npy"
    folder.mkdir(parents=True, exist_ok=True)
    np.save(path, table.X)
    lean = replace(table, X=np.load(path, mmap_mode="r"))
    del table
    try:
        yield lean
    finally:
        path.unlink(missing_ok=True)


def plain(value: Any) -> Any:
    """Turn a value into what JSON knows; what is not a number, or not finite, is null."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, pd.DataFrame):
        return {str(name): plain(value[name].tolist()) for name in value.columns}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
