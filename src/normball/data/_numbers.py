"""From fields to float32, in batches: by pyarrow or NumPy while all is plain, else cell by cell and with care."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from normball._spelling import argument
from normball.data._cells import Cells, looks
from normball.data._plan import Layout
from normball.data.table import TableError, show

try:
    import pyarrow
    import pyarrow.csv
except ImportError:  # slower, no less right
    pyarrow = None

__all__ = ["Batch", "Features", "Numbers"]

Features = str | list[str]  # the fields of a record that are numbers: joined by the delimiter, or apart
_BEYOND = 2.0**128 - 2.0**103  # the least that float32 rounds to infinity


@dataclass
class Batch:
    """Records that wait for being turned into numbers."""

    lines: list[int] = field(default_factory=list)
    features: list[Features] = field(default_factory=list)
    size: int = 0  # characters, about

    def add(self, line: int, features: Features) -> None:
        """Take one more."""
        self.lines.append(line)
        self.features.append(features)
        self.size += len(features) if isinstance(features, str) else 8 * len(features)


@dataclass
class Numbers:
    """Turns batches into numbers; every way gives the same bits, that of float64 rounded to float32."""

    name: str
    layout: Layout
    delimiter: str
    cells: Cells
    samples_in_rows: bool

    def fill(self, batch: Batch, out: npt.NDArray[np.float32]) -> None:
        """Write the numbers of `batch` into `out`."""
        texts = [self._plain(each) for each in batch.features]
        whole = [text for text in texts if text is not None]
        if len(whole) == len(texts):
            fast = self._by_numpy if pyarrow is None else self._by_arrow
            if fast(whole, out) and not np.isinf(out).any():
                return
        bad: list[tuple[int, int, str]] = []
        for line, features, text, row in zip(batch.lines, batch.features, texts, out, strict=True):
            if text is None or not self._by_python(text, row) or np.isinf(row).any():
                fields = features.split(self.delimiter) if isinstance(features, str) else features
                bad += self._by_cells(line, fields, row)
        if bad:
            self._text_found(bad)

    def _plain(self, features: Features) -> str | None:
        """Return the fields as one text with decimal points, or None where only care will do."""
        if isinstance(features, str):
            text = features
        else:
            text = self.delimiter.join(features)
            if text.count(self.delimiter) != len(features) - 1 or "\n" in text or "\r" in text or '"' in text:
                return None
        if self.cells.decimal == ",":
            if "." in text or self.delimiter == ",":
                return None
            text = text.replace(",", ".")
        return None if "_" in text else text  # which Python takes for a mark of thousands

    def _by_arrow(self, texts: list[str], out: npt.NDArray[np.float32]) -> bool:
        # One long column: a table of many columns costs pyarrow more than its numbers do.
        flat = "\n".join(texts).replace(self.delimiter, "\n").encode()
        try:
            column = pyarrow.csv.read_csv(
                pyarrow.BufferReader(flat),
                pyarrow.csv.ReadOptions(column_names=["x"]),
                pyarrow.csv.ParseOptions(delimiter="\x01", quote_char=False, ignore_empty_lines=False),
                pyarrow.csv.ConvertOptions(column_types={"x": pyarrow.float64()}, null_values=list(self.cells.missing)),
            ).column(0)
        except pyarrow.ArrowException:
            return False
        if len(column) + flat.endswith(b"\n") != out.size:  # an empty last field is no line to pyarrow
            return False
        values, at = out.reshape(-1), 0
        values[len(column) :] = np.nan
        for chunk in column.chunks:
            _store(chunk.to_numpy(zero_copy_only=False), values[at : at + len(chunk)])
            at += len(chunk)
        return True

    def _by_numpy(self, texts: list[str], out: npt.NDArray[np.float32]) -> bool:
        if not all(text.strip() for text in texts):  # no line to NumPy
            return False
        try:
            values = np.loadtxt(texts, delimiter=self.delimiter, comments=None, ndmin=2)
        except (ValueError, TypeError):
            return False
        if values.shape != out.shape:
            return False
        _store(values, out)
        return True

    def _by_python(self, text: str, row: npt.NDArray[np.float32]) -> bool:
        missing = self.cells.missing
        try:
            _store(np.array([np.nan if each in missing else float(each) for each in text.split(self.delimiter)]), row)
        except ValueError:
            return False
        return True

    def _by_cells(self, line: int, fields: list[str], row: npt.NDArray[np.float32]) -> Iterator[tuple[int, int, str]]:
        """With care: spaces, thousands marks, numbers out of range; yields the cells that are text."""
        for j, text in enumerate(fields):
            value = self.cells.number(text)
            if value is None:
                yield line, self.layout.features[j], text
            elif abs(value) >= _BEYOND:
                raise TableError(
                    f"{self._at(line, self.layout.features[j])}: {show(text)} is beyond the range of float32; "
                    f"if it stands for a missing value: {argument('missing', [text.strip()])}"
                )
            else:
                row[j] = value

    def _at(self, line: int, column: int) -> str:
        return f"{self.name}, line {line}, column {column + 1} ({show(self.layout.names[column], 40)})"

    def _text_found(self, bad: list[tuple[int, int, str]]) -> None:
        first = "; ".join(f"{self._at(line, column)}: {show(text, 40)}" for line, column, text in bad[:3])
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        raise TableError(f"text among the features: {first}{more}; {self._advice(bad)}")

    def _advice(self, bad: list[tuple[int, int, str]]) -> str:
        columns = list(dict.fromkeys(self.layout.names[column] for _, column, _ in bad))
        lines = {line for line, _, _ in bad}
        other = {",": ".", ".": ","}[self.cells.decimal]
        if all(looks(text, other) for _, _, text in bad):
            return f"if these are numbers: {argument('decimal', other)}"
        if len(lines) == 1 and len(bad) > 1:
            turn = argument("transpose", True)
            turn = f" of samples that are in columns: {turn} and" if self.samples_in_rows else ":"
            return f"all in line {bad[0][0]}: if it holds the labels{turn} its name as {argument('target')}"
        missing = argument("missing", list(dict.fromkeys(text.strip() for _, _, text in bad))[:3])
        if self.samples_in_rows:
            return f"if this is no feature: {argument('drop', columns[:5])}; if it means a missing value: {missing}"
        drop = argument("drop")
        return f"lines that are no features, and columns that are no samples: {drop}; missing values: {missing}"


def _store(values: npt.NDArray[np.float64], out: npt.NDArray[np.float32]) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        out[...] = values
