"""From records to float32, in batches: by pyarrow if it is there, else by Python; with care where both give up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from normball.data._cells import Cells, looks
from normball.data._dialect import Record
from normball.data._open import Text
from normball.data._plan import Layout
from normball.data.table import TableError, show

try:
    import pyarrow
    import pyarrow.csv
except ImportError:  # slower, no less right
    pyarrow = None

__all__ = ["Body", "Source"]

_BATCH = 1 << 22  # characters
_LARGEST = float(np.finfo(np.float32).max)
Key = str | int  # of a line: its name or its number
Features = str | list[str]  # the fields of a record that are numbers: joined by the delimiter, or apart


@dataclass
class _Batch:
    lines: list[int] = field(default_factory=list)
    features: list[Features] = field(default_factory=list)
    size: int = 0


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

    ``text_rows`` are lines to keep as text, by name or by number (the line of names is 1); those in ``skip_rows`` are
    left out. Both serve tables with samples in columns.
    """

    def __init__(
        self, name: str, source: Source, text_rows: Set[Key] | None = None, skip_rows: Set[Key] | None = None
    ) -> None:
        layout = source.layout
        self.name, self.layout, self.delimiter, self.cells = name, layout, source.delimiter, source.cells
        self.samples_in_rows = text_rows is None
        self.text_rows, self.skip_rows = text_rows or set(), skip_rows or set()
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
        self._batch = _Batch()
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
            if (self.text_rows or self.skip_rows) and self._kept_as_text(number, special, features):
                continue
            for column, values in self.columns.items():
                values.append(special[column])
            self.lines.append(line)
            self._batch.lines.append(line)
            self._batch.features.append(features)
            self._batch.size += len(features) if isinstance(features, str) else 8 * len(features)
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
        if isinstance(record, str):
            special, features = self._cut_line(record, mark)
        else:
            special, features = {i: record[i] for i in layout.special}, [record[i] for i in layout.features]
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
        right = rest.rsplit(mark, self._right) if self._right else [rest]
        rest = right.pop(0) if len(right) > self._right else ""
        fields = dict(enumerate(left)) | {self._full - len(right) + i: each for i, each in enumerate(right)}
        special = {i: fields.pop(i) for i in self.layout.special}
        if self._count > len(fields):
            fields[self._left] = rest
        return special, mark.join(fields[i] for i in sorted(fields))

    def _kept_as_text(self, number: int, special: dict[int, str], features: Features) -> bool:
        names: set[Key] = {number, special[self.layout.index or 0].strip()}
        self.skipped |= names & self.skip_rows
        for key in names & self.text_rows:
            if key in self.rows:
                raise TableError(f"{self.name}: {show(key)} is the name of two lines; give its number")
            fields = features.split(self.delimiter) if isinstance(features, str) else features
            self.rows[key] = [each.strip() for each in fields]
        return bool(names & (self.skip_rows | self.text_rows))

    def _ragged(self, line: int, count: int) -> None:
        text = self._text
        cut = count < self._full and text is not None and text.line == line and not text.ended
        raise TableError(
            f"{self.name}, line {line}: expected {self._full} fields as in the line of names, got {count}"
            + ("; it is the last line and has no end: the file seems to be cut" if cut else "")
        )

    def _convert(self) -> None:
        batch, self._batch = self._batch, _Batch()
        rows = len(batch.lines)
        if not rows or not self._count:
            self._used += rows
            return
        if self._used + rows > len(self._values):
            self._values.resize((int((self._used + rows) * 1.25) + 1, self._count), refcheck=False)
        target = self._values[self._used : self._used + rows]
        self._used += rows
        if not self._by_arrow(batch, target):
            self._by_rows(batch, target)

    def _plain(self, features: Features) -> str | None:
        """Return the fields as one text with decimal points, or None where only care will do."""
        if isinstance(features, str):
            text = features
        else:
            text = self.delimiter.join(features)
            if text.count(self.delimiter) != self._count - 1 or "\n" in text or "\r" in text or '"' in text:
                return None
        if self.cells.decimal == ",":
            if "." in text or self.delimiter == ",":
                return None
            text = text.replace(",", ".")
        return None if "_" in text else text  # which Python takes for a mark of thousands

    def _by_arrow(self, batch: _Batch, target: npt.NDArray[np.float32]) -> bool:
        if pyarrow is None:
            return False
        texts = [self._plain(each) for each in batch.features]
        if None in texts:
            return False
        # One long column: a table of many columns costs pyarrow more than its numbers do.
        flat = "\n".join(texts).replace(self.delimiter, "\n").encode()  # type: ignore[arg-type]
        try:
            table = pyarrow.csv.read_csv(
                pyarrow.BufferReader(flat),
                pyarrow.csv.ReadOptions(column_names=["x"]),
                pyarrow.csv.ParseOptions(delimiter="\x01", quote_char=False, ignore_empty_lines=False),
                pyarrow.csv.ConvertOptions(column_types={"x": pyarrow.float64()}, null_values=list(self.cells.missing)),
            )
        except pyarrow.ArrowException:
            return False
        if table.num_rows == target.size - 1 and not flat.endswith(b"\n"):
            return False
        out, at = target.reshape(-1), 0
        if table.num_rows not in (target.size, target.size - 1):
            return False
        out[table.num_rows :] = np.nan  # an empty last field is no line to pyarrow
        for chunk in table.column(0).chunks:
            _store(chunk.to_numpy(zero_copy_only=False), out[at : at + len(chunk)])
            at += len(chunk)
        return not np.isinf(out).any()

    def _by_rows(self, batch: _Batch, target: npt.NDArray[np.float32]) -> None:
        bad: list[tuple[int, int, str]] = []
        for line, features, row in zip(batch.lines, batch.features, target, strict=True):
            text = self._plain(features)
            try:
                _store(np.array(list(map(float, text.split(self.delimiter)))), row)  # type: ignore[union-attr]
            except (ValueError, AttributeError):
                row[:] = np.inf
            if np.isinf(row).any():
                fields = features.split(self.delimiter) if isinstance(features, str) else features
                bad += self._by_cells(line, fields, row)
        if bad:
            self._text_found(bad)

    def _by_cells(self, line: int, fields: list[str], row: npt.NDArray[np.float32]) -> Iterator[tuple[int, int, str]]:
        """With care: thousands marks, spaces, marks for missing values; yields the cells that are text."""
        for j, text in enumerate(fields):
            value = self.cells.number(text)
            if value is None:
                yield line, self.layout.features[j], text
            elif abs(value) > _LARGEST:
                raise TableError(
                    f"{self._at(line, self.layout.features[j])}: {show(text)} is beyond the range of float32; "
                    "if it stands for a missing value, name it in missing"
                )
            else:
                row[j] = value

    def _at(self, line: int, column: int) -> str:
        return f"{self.name}, line {line}, column {column + 1} ({show(self.layout.names[column], 40)})"

    def _text_found(self, bad: list[tuple[int, int, str]]) -> None:
        first = "; ".join(f"{self._at(line, column)}: {show(text, 40)}" for line, column, text in bad[:3])
        columns = list(dict.fromkeys(self.layout.names[column] for _, column, _ in bad))
        lines = {line for line, _, _ in bad}
        other = {",": ".", ".": ","}[self.cells.decimal]
        if all(looks(text, other) for _, _, text in bad):
            hint = f"if these are numbers, say decimal={other!r}"
        elif len(lines) == 1 and len(bad) > 1 and self.samples_in_rows:
            hint = (f"all in line {bad[0][0]}: if it holds the labels of samples that are in columns, "
                    f"say label_row={bad[0][0]}, or transpose=True and its name as target")  # fmt: skip
        elif self.samples_in_rows:
            hint = f"if they are no features: drop=[{', '.join(show(name, 40) for name in columns[:5])}]"
        else:
            hint = "name lines that are no features, and columns that are no samples, in drop"
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        raise TableError(f"text among the features: {first}{more}; {hint}")


def _store(values: npt.NDArray[np.float64], out: npt.NDArray[np.float32]) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        out[...] = values
