"""From records to a matrix: what is text is set apart, what is numbers goes to float32 in batches."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from normball.data._cells import Cells
from normball.data._dialect import Record, split
from normball.data._numbers import Batch, Features, Numbers
from normball.data._open import Text
from normball.data._plan import Layout
from normball.data.table import TableError, show

__all__ = ["Body", "Source"]

_BATCH = 1 << 22  # characters
Key = str | int  # of a line: its name or its number


@dataclass(frozen=True)
class Source:
    """How the records of a table are to be understood, and how many may come."""

    layout: Layout
    delimiter: str
    cells: Cells
    expected: int
    text: Text | None


class Body:
    """Collects the records of a table: numbers in `X`, the other columns and lines as text.

    For tables with samples in columns, ``text_rows`` are lines to keep as text, by name or by number (the line of names
    is 1); those in ``skip_rows`` are left out. ``wanted`` names the only lines that are read as numbers; the names of
    the others are collected in `aside`.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        text_rows: Set[Key] | None = None,
        skip_rows: Set[Key] | None = None,
        wanted: Set[str] | None = None,
    ) -> None:
        layout = source.layout
        self.name, self.layout, self.delimiter = name, layout, source.delimiter
        self.text_rows, self.skip_rows, self.wanted = text_rows or set(), skip_rows or set(), wanted
        self.aside: list[str] = []
        self.columns: dict[int, list[str]] = {
            i: [] for i in (layout.index, layout.target, layout.group) if i is not None
        }
        self.rows: dict[Key | None, list[str]] = {}
        self.skipped: set[Key] = set()
        self.lines: list[int] = []
        self._text = source.text
        self._count = len(layout.features)
        self._full = len(layout.names)
        self._values = np.empty((source.expected, self._count), np.float32)
        self._used = 0
        self._batch = Batch()
        self._numbers = Numbers(name, layout, source.delimiter, source.cells, samples_in_rows=text_rows is None)
        middle = self._full // 2
        self._left = max((i + 1 for i in layout.special if i < middle), default=0)
        self._right = max((self._full - i for i in layout.special if i >= middle), default=0)

    @property
    def X(self) -> npt.NDArray[np.float32]:
        """The numbers: records by features."""
        self._values.resize((self._used, self._count), refcheck=False)
        return self._values

    def read(self, records: Iterable[Record]) -> None:
        """Take all the records."""
        number = 1
        for line, record in records:
            if not (record.strip(f"{self.delimiter} \t") if isinstance(record, str) else any(map(str.strip, record))):
                continue
            number += 1
            special, features = self._cut(line, record)
            if (self.text_rows or self.skip_rows or self.wanted is not None) and self._apart(number, special, features):
                continue
            for column, values in self.columns.items():
                values.append(special[column])
            self.lines.append(line)
            self._batch.add(line, features)
            if self._batch.size >= _BATCH:
                self._convert()
        self._convert()

    def _cut(self, line: int, record: str | list[str]) -> tuple[dict[int, str], Features]:
        """Take the special fields out of a record."""
        mark, layout = self.delimiter, self.layout
        count = record.count(mark) + 1 if isinstance(record, str) else len(record)
        if count != self._full:
            self._ragged(line, count)
        special: dict[int, str]
        features: Features
        if isinstance(record, str) and len(layout.special) <= self._count:
            special, features = self._cut_line(record, mark)
        else:
            fields = split(record, mark)
            special, features = {i: fields[i] for i in layout.read}, [fields[i] for i in layout.features]
        for i in layout.blank:
            if special[i].strip():
                raise TableError(f"{self.name}, line {line}: column {i + 1} has no name, but holds {show(special[i])}")
        return special, features

    def _cut_line(self, record: str, mark: str) -> tuple[dict[int, str], str]:
        """Split no more than the ends of a line, where the special fields stand: the features are many."""
        if not self.layout.special:
            return {}, record
        left = record.split(mark, self._left)
        rest = left.pop()
        if not self._right and len(left) == len(self.layout.special):  # the usual case: they all stand in front
            return dict(enumerate(left)), rest
        right = rest.rsplit(mark, self._right) if self._right else [rest]
        rest = right.pop(0) if len(right) > self._right else ""
        fields = dict(enumerate(left)) | {self._full - len(right) + i: each for i, each in enumerate(right)}
        special = {i: fields.pop(i) for i in self.layout.special}
        if self._count > len(fields):
            fields[self._left] = rest
        return special, mark.join(fields[i] for i in sorted(fields))

    def _apart(self, number: int, special: dict[int, str], features: Features) -> bool:
        """Keep a line as text, or leave it out, if that is asked for."""
        name = special[self.layout.index or 0].strip()
        names: set[Key] = {number, name}
        self.skipped |= names & self.skip_rows
        for key in names & self.text_rows:
            if key in self.rows:
                raise TableError(f"{self.name}: {show(key)} is the name of two lines; give its number")
            self.rows[key] = [each.strip() for each in split(features, self.delimiter)]
        if names & (self.skip_rows | self.text_rows):
            return True
        if self.wanted is None or name in self.wanted:
            return False
        self.aside.append(name)
        return True

    def _ragged(self, line: int, count: int) -> None:
        text = self._text
        cut = count < self._full and text is not None and text.line == line and not text.ended
        raise TableError(
            f"{self.name}, line {line}: expected {self._full} fields as in the line of names, got {count}"
            + ("; it is the last line and has no end: the file seems to be cut" if cut else "")
        )

    def _convert(self) -> None:
        batch, self._batch = self._batch, Batch()
        rows = len(batch.lines)
        if self._used + rows > len(self._values):
            self._values.resize((int((self._used + rows) * 1.25) + 1, self._count), refcheck=False)
        if rows:
            self._numbers.fill(batch, self._values[self._used : self._used + rows])
        self._used += rows
