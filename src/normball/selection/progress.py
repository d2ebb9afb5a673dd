"""What of a study is finished, kept in a folder: so that the same study, begun again, goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from normball.selection.files import write_text
from normball.selection.units import Data, Options, Unit

__all__ = ["Progress", "key_of"]


def key_of(data: Data, names: list[str], samples: list[str], options: Options, versions: dict[str, str]) -> str:
    """Return what tells one study from another: every cell, label, name and setting, and the versions."""
    digest = hashlib.sha256(json.dumps([options.told(), versions, data.classes, names, samples]).encode())
    digest.update(repr((data.X.shape, data.X.dtype.str)).encode())
    for row in data.X:
        digest.update(np.ascontiguousarray(row).data)
    digest.update(data.y.tobytes())
    if data.groups is not None:
        digest.update(data.groups.tobytes())
    return digest.hexdigest()


class Progress:
    """Finished units, one JSON file for each, written as a whole or not at all.

    Attributes
    ----------
    began : {"new", "again", "anew"}
        "again" where the folder held units of the same study, "anew" where it held those of another; they are removed.
    """

    def __init__(self, folder: Path | None, key: str) -> None:
        self.folder = folder
        self.began = "new"
        if folder is None:
            return
        mark = folder / "key"
        if mark.exists():
            self.began = "again" if mark.read_text(encoding="utf-8") == key else "anew"
        if self.began != "again":
            for stale in folder.glob("*.json"):
                stale.unlink()
            shutil.rmtree(folder / "model", ignore_errors=True)
            write_text(mark, key)

    @property
    def model(self) -> Path | None:
        """Where the final model is kept."""
        return None if self.folder is None else self.folder / "model"

    def _file(self, folder: Path, unit: Unit) -> Path:
        return folder / f"{'-'.join(map(str, unit))}.json"

    def get(self, unit: Unit) -> dict[str, Any] | None:
        """Return what a unit found, if it is finished."""
        if self.folder is None:
            return None
        try:
            found = json.loads(self._file(self.folder, unit).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def put(self, unit: Unit, found: dict[str, Any]) -> None:
        """Keep what a unit found."""
        if self.folder is not None:
            write_text(self._file(self.folder, unit), json.dumps(found))
