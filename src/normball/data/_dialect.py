"""How a text file writes its table, told by its first lines: delimiter, decimal mark, and where the names stand."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TypeVar

from normball._spelling import argument
from normball.data._cells import looks
from normball.data._open import Text
from normball.data.table import TableError, show

__all__ = ["Record", "decimal_of", "delimiter_of", "first_of", "head_of", "records", "split"]

Record = tuple[int, str | list[str]]  # number of its first line; the line, or its fields where it had quotes

T = TypeVar("T")
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
_LONGEST_QUOTE = 10_000  # lines; an opening quote that is never closed would swallow the file


def first_of(items: Iterator[T], size: Callable[[T], int]) -> list[T]:
    """Take the first few: enough to see the layout, never much of a large file."""
    taken: list[T] = []
    characters = 0
    for item in items:
        taken.append(item)
        characters += size(item)
        if len(taken) >= 100 or (characters >= 1 << 20 and len(taken) >= 3):
            break
    return taken


def head_of(text: Text) -> list[str]:
    """Take the first lines."""
    head = first_of(text, len)
    if not any(line.strip() for line in head):
        raise TableError(f"{text.name}: the file is empty")
    return head


def delimiter_of(head: list[str], name: str) -> str:
    """Find the delimiter with which the most lines have the same number of fields."""
    best, best_score = "", (0.0, 0)
    lines = [line for line in head if line.strip()][:50]
    for delimiter in (",", "\t", ";", "|"):
        counts = []
        try:
            counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:  # an overlong or badly quoted field: count by eye
            counts = [line.count(delimiter) + 1 for line in lines]
        common, times = Counter(counts[1:] or counts).most_common(1)[0]
        # The line of names may lack the one of the index, as R writes it, or the trailing delimiter of the others.
        agree = (times + (counts[0] in (common, common - 1))) / len(counts) if len(counts) > 1 else 1.0
        if common > 1 and (round(agree, 1), common) > best_score:
            best, best_score = delimiter, (round(agree, 1), common)
    if not best:
        raise TableError(
            f"{name}: not a table: no delimiter (comma, tab, semicolon, bar) divides line 1, {show(head[0].strip())}; "
            f"another one can be given as {argument('delimiter')}"
        )
    return best


def records(text: Text, lines: Iterator[str], delimiter: str, first: int) -> Iterator[Record]:
    """Yield each record with the number of its first line; a quoted field may hold line ends."""
    number = first - 1
    for line in lines:
        number += 1
        start = number
        if '"' not in line:
            yield start, line.rstrip("\r\n")
            continue
        extra = _counted(islice(lines, _LONGEST_QUOTE))
        try:
            fields = next(csv.reader(chain([line], extra), delimiter=delimiter, strict=True))
        except (csv.Error, StopIteration) as error:
            raise TableError(
                f"{text.name}, line {start}: a quote is wrong or is never closed ({error}); it begins {show(line)}"
            ) from error
        number += extra.count
        yield start, fields


class _counted:  # noqa: N801
    """An iterator that knows how much was taken from it."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self.count = lines, 0

    def __iter__(self) -> _counted:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.count += 1
        return line


def split(record: str | list[str], delimiter: str) -> list[str]:
    """Return the fields of a record."""
    return record.split(delimiter) if isinstance(record, str) else record


def decimal_of(rows: list[list[str]], delimiter: str, name: str) -> tuple[str, bool]:
    """Return the decimal mark, and whether it is so sure that the other mark can only stand between thousands."""
    seen: dict[str, str] = {}
    for row in rows:
        for cell in row[: 1 + 20_000 // len(rows)]:
            if "," in cell or "." in cell:
                marks = [mark for mark in ".," if looks(cell, mark)]
                if len(marks) == 1:
                    seen.setdefault(marks[0], cell)
                elif marks and "," in cell:
                    seen.setdefault("either", cell)  # 1,234: a fraction or a thousand
    if "." in seen and "," in seen:
        raise TableError(
            f"{name}: both {show(seen[','])} and {show(seen['.'])} are there, so the decimal mark is not clear; "
            f"give it as {argument('decimal')}"
        )
    if "," in seen or "." in seen:
        return ("," if "," in seen else "."), True
    if "either" in seen:  # in a file of the English kind a thousand, else a fraction
        return (".", True) if delimiter == "," else (",", False)
    return ".", False
