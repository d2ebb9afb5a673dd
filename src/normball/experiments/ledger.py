"""What is done already: one line of JSON for each cell, written as soon as there is a result."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from normball.experiments.experiment import Row

__all__ = ["Ledger"]


class Ledger:
    """The results of cells by their keys, in a file that may be cut off at any byte and still be read.

    Parameters
    ----------
    path : Path
        Made when the first result is added.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._done: dict[str, Any] = {}
        self._torn = False
        if path.exists():
            text = path.read_bytes().decode("utf-8", errors="replace")
            self._torn = bool(text) and not text.endswith("\n")
            for line in text.splitlines():
                try:
                    record = json.loads(line)
                    self._done[record["key"]] = record
                except (json.JSONDecodeError, KeyError, TypeError):
                    continue  # the line during which an earlier run was killed; its cell is done again

    def __contains__(self, key: str) -> bool:
        return key in self._done

    def __getitem__(self, key: str) -> list[Row]:
        rows: list[Row] = self._done[key]["rows"]
        return rows

    def seconds(self, key: str) -> float:
        """Return how long the cell took."""
        return float(self._done[key]["seconds"])

    def add(self, key: str, rows: list[Row], seconds: float) -> None:
        """Keep a result: it is on disk when this returns."""
        record = {"key": key, "rows": rows, "seconds": round(seconds, 3)}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(("\n" if self._torn else "") + json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._torn = False
        self._done[key] = record
