"""How a message spells an argument: as Python writes it, or as an option of the command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["argument", "as_options"]

_AS_OPTIONS: ContextVar[bool] = ContextVar("as_options", default=False)


def argument(name: str, value: Any = None) -> str:
    """Name an argument in a message, with the value that is proposed for it if there is one.

    Examples
    --------
    >>> from normball._spelling import argument, as_options
    >>> argument("label_row"), argument("drop", ["batch", "my age"])
    ('label_row', "drop=['batch', 'my age']")
    >>> with as_options():
    ...     argument("label_row"), argument("drop", ["batch", "my age"])
    ('--label-row', "--drop batch --drop 'my age'")
    """
    value = [_short(each) for each in value] if isinstance(value, list) else value
    if not _AS_OPTIONS.get():
        return name if value is None else f"{name}={value!r}"
    option = f"--{name.replace('_', '-')}"
    if value is None or value is True:
        return option
    return " ".join(f"{option} {shlex.quote(str(each))}" for each in (value if isinstance(value, list) else [value]))


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:37]}..."


@contextmanager
def as_options() -> Iterator[None]:
    """Have the messages made here name options of the command line."""
    token = _AS_OPTIONS.set(True)
    try:
        yield
    finally:
        _AS_OPTIONS.reset(token)
