"""Files that other libraries read: one place for missing extras, and for whatever those libraries raise."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from normball.data.table import TableError

__all__ = ["load", "reading"]


def load(module: str, what: str) -> Any:
    """Import what a format needs, or name the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".", maxsplit=1)[0]
        raise ImportError(f"{what} files need {package}: pip install normball[omics]") from error


@contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """Turn every complaint of a library about a file into a `TableError`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old layouts, missing styles and the like; they change no number
            yield
    except (TableError, ImportError, MemoryError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise TableError(f"{name}: the {what} file is cut, damaged or of an unknown kind ({said})") from error
