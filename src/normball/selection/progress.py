"""What of a study is finished, kept in a folder: so that the same study, begun again, goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from normball.selection.files import write_text
from normball.selection.settings import Settings
from normball.selection.units import Data, Unit

__all__ = ["Progress", "fingerprint_of", "other_study"]

_MARK = "study.json"
_COMMON = ("fingerprint", "table", "seeds", "permutations", "versions", "reading")  # say nothing to a reader


def fingerprint_of(
    data: Data, names: list[str], samples: list[str], settings: Settings, versions: dict[str, str]
) -> str:
    """Return what tells one study from another: every cell, label, name and setting, and the versions."""
    digest = hashlib.sha256(json.dumps([settings.identity, versions, data.classes, names, samples]).encode())
    digest.update(repr((data.X.shape, data.X.dtype.str)).encode())
    for row in data.X:
        digest.update(np.ascontiguousarray(row).data)
    digest.update(data.y.tobytes())
    if data.groups is not None:
        digest.update(data.groups.tobytes())
    return digest.hexdigest()


def other_study(results: Path, record: dict[str, Any]) -> str | None:
    """Return how the study differs whose progress or results a folder holds; None if it holds none, or the same.

    Parameters
    ----------
    results : Path
        The folder of results.
    record : dict
        Of the study that is to be written there: fingerprint, settings and versions.
    """
    held = _read(results / ".progress" / _MARK)
    if held is None and (results / "metrics.json").exists():
        held = _read(results / "metrics.json") or {}
        held = held["settings"] if isinstance(held.get("settings"), dict) else {}
    if held is None or held.get("fingerprint") == record["fingerprint"]:
        return None
    there, here = (each | each.get("versions", {}) for each in (held, record))
    names = [name for name in here if name in there and name not in _COMMON and there[name] != here[name]]
    apart = [f"{name} is {there[name]!r} there and {here[name]!r} here" for name in names]
    return ", ".join(apart) or "the table or its labels differ"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


class Progress:
    """Finished units, one JSON file for each, written as a whole or not at all.

    Attributes
    ----------
    began : {"new", "again", "anew"}
        "again" where the folder held units of the same study, "anew" where it held those of another; they are removed.
    """

    def __init__(self, folder: Path | None, record: dict[str, Any]) -> None:
        self.folder = folder
        self.began = "new"
        if folder is None:
            return
        mark = folder / _MARK
        if mark.exists():
            same = (_read(mark) or {}).get("fingerprint") == record["fingerprint"]
            self.began = "again" if same else "anew"
        if self.began != "again":
            for stale in folder.glob("*.json"):
                stale.unlink()
            shutil.rmtree(folder / "model", ignore_errors=True)
            write_text(mark, json.dumps(record, indent=1) + "\n")

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
        return _read(self._file(self.folder, unit))

    def put(self, unit: Unit, found: dict[str, Any]) -> None:
        """Keep what a unit found."""
        if self.folder is not None:
            write_text(self._file(self.folder, unit), json.dumps(found))
