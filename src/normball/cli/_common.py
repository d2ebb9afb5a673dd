"""What the commands share: where they talk, and how they end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

__all__ = ["INTERRUPTED", "USAGE", "drop_of", "ended_well", "errors"]

USAGE = 2  # a wrong option, or a bad table
INTERRUPTED = 128 + signal.SIGINT


def errors() -> Console:
    """Return the console for all that is not a result: standard error, with nothing read as markup."""
    return Console(stderr=True, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def ended_well(command: str) -> Iterator[None]:
    """Turn what a user can mend into one line and exit code 2, in place of a traceback."""
    try:
        yield
    except (ValueError, TypeError, ImportError, OSError, MemoryError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        errors().print(f"normball {command}: {text}")
        raise typer.Exit(USAGE) from None


def drop_of(drop: list[str] | None) -> list[str]:
    """Return the columns to leave out; none by default."""
    return list(drop or ())


def reading(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `read_table` that were given, as they may be shown: files without their folders."""
    shown = {name: value for name, value in options.items() if value not in (None, False, (), [])}
    return {name: Path(value).name if isinstance(value, Path) else value for name, value in shown.items()}
