"""How a message spells an argument: as Python writes it, or as an option of the command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["argument", "as_options"]

_OPTIONS: ContextVar[frozenset[str]] = ContextVar("options", default=frozenset())


def argument(name: str, value: Any = None) -> str:
    """Name an argument in a message, with the value that is proposed for it if there is one.

    Examples
    --------
    >>> from normball._spelling import argument, as_options
    >>> argument("label_row"), argument("drop", ["batch", "my age"])
    ('label_row', "drop=['batch', 'my age']")
    >>> with as_options(["drop", "label_row"]):
    ...     argument("label_row"), argument("drop", ["batch", "my age"])
    ('--label-row', "--drop batch --drop 'my age'")
    """
    value = [_short(each) for each in value] if isinstance(value, list) else value
    if name not in _OPTIONS.get():
        return name if value is None else f"{name}={value!r}"
    option = f"--{name.replace('_', '-')}"
    if value is None or value is True:
        return option
    return " ".join(f"{option} {shlex.quote(str(each))}" for each in (value if isinstance(value, list) else [value]))


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:37]}..."


@contextmanager
def as_options(names: Iterable[str]) -> Iterator[None]:
    """Have the messages made here spell these arguments as options of the command line."""
    token = _OPTIONS.set(frozenset(names))
    try:
        yield
    finally:
        _OPTIONS.reset(token)
