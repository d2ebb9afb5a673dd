"""Tables that come as records: text files, and whatever else gives one line after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np

from normball.data._body import Body
from normball.data._cells import Cells
from normball.data._dialect import NAMES, Record, decimal_of, delimiter_of, head_of, records, split
from normball.data._memory import check_memory
from normball.data._open import Text
from normball.data._plan import Layout, Options, Raw, layout_of, near
from normball.data.table import TableError, show

__all__ = ["read_records", "read_text"]


def read_text(path: Path, kind: str, options: Options) -> Raw:
    """Read CSV and its relatives, packed or not; UTF-8 unless it says or shows otherwise."""
    try:
        return _read_text(path, kind, options, options.encoding)
    except UnicodeError as error:
        found = getattr(error, "encoding", "")
        if options.encoding is not None or found != "utf-8":
            raise TableError(f"{options.name}: the file is not valid {found or options.encoding} ({error})") from error
    raw = _read_text(path, kind, options, "latin-1")
    raw.notes.insert(0, "the file is not valid UTF-8: it was read as latin-1; check names with accents")
    return raw


def _read_text(path: Path, kind: str, options: Options, encoding: str | None) -> Raw:
    text = Text(path, kind, encoding)
    try:
        head = head_of(text)
        delimiter = options.delimiter or delimiter_of(head, options.name)
        whole = sum(map(len, head))
        share = text.size / max(text.consumed(), 1)

        def rows_left(header: int) -> float:
            if text.consumed() >= text.size and len(head) < 100:
                return float(len(head))
            return share * len(head) * whole / max(whole - header, 1)

        raw = read_records(records(text, chain(head, text), delimiter, 1), delimiter, options, rows_left, text)
        if not text.ended:
            raw.notes.append("the last line has no line end; if the file was cut, its last value may be short")
    finally:
        text.close()
    said = [*text.notes, f"delimiter: {NAMES.get(delimiter, repr(delimiter))}", f"encoding: {text.encoding}"]
    raw.notes[:0] = said
    return raw


def read_records(
    found: Iterator[Record],
    delimiter: str,
    options: Options,
    rows_left: Callable[[int], float],
    text: Text | None = None,
) -> Raw:
    """Read a table whose first record holds the names."""
    name, notes = options.name, []
    head = list(islice(found, 100))
    while len(head) > 1 and sum(bool(each.strip()) for each in split(head[0][1], delimiter)) <= 1:
        line, title = head.pop(0)
        if any(map(str.strip, split(title, delimiter))):
            notes.append(f"line {line} was taken for a title and skipped: {show(''.join(title).strip())}")
    names = split(head[0][1], delimiter)
    sample = [split(record, delimiter) for _, record in head[1:]]
    sample = [row for row in sample if any(map(str.strip, row))]
    if not sample:
        raise TableError(f"{name}: there is no line below the line of names")
    names = _completed(names, sample)
    if len(names) < 2:
        raise TableError(f"{name}: not a table: one column only; is {show(delimiter)} the delimiter?")
    decimal, sure = (options.decimal, True) if options.decimal else decimal_of(sample, delimiter, name)
    cells = Cells(decimal, sure, options.missing)
    layout = layout_of(names, sample, options, cells)
    if not layout.features:
        raise TableError(f"{name}: no column is left as a feature")
    rows = rows_left(len(head[0][1]))
    check_memory(name, rows, len(layout.features), text.size if text else 0, options.memory_limit)
    expected = int(rows * 1.02) + 16
    tail = chain(head[1:], found)
    if options.transpose:
        raw = _samples_in_columns(name, layout, delimiter, cells, expected, tail, options, text)
    else:
        raw = _samples_in_rows(name, layout, delimiter, cells, expected, tail, text)
    if decimal == ",":
        notes.append("decimal mark: comma")
    if cells.grouped:
        notes.append(f"thousands marks were read as such, for instance {', '.join(map(show, cells.grouped))}")
    if layout.index is not None and names[layout.index]:
        notes.append(f"{show(names[layout.index])} was taken for the names of the {'features' if options.transpose else 'samples'}")
    raw.notes[:0] = notes
    return raw


def _completed(names: list[str], sample: list[list[str]]) -> list[str]:
    """Give the names as many fields as the records have, where the habit of a program explains the difference."""
    common = Counter(map(len, sample)).most_common(1)[0][0]
    if common == len(names) + 1:
        trailing = all(not row[-1].strip() for row in sample if len(row) == common)
        return [*names, ""] if trailing else ["", *names]  # R leaves out the name of the index
    if common == len(names) - 1 and not names[-1].strip():
        return names[:-1]
    return names


def _samples_in_rows(
    name: str, layout: Layout, delimiter: str, cells: Cells, expected: int, tail: Iterator[Record], text: Text | None
) -> Raw:
    features = [layout.names[i] for i in layout.features]
    body = Body(name, layout, delimiter, cells, expected)
    body.read(tail, text)

    def column(i: int | None) -> list[str] | None:
        return None if i is None else [value.strip() for value in body.columns[i]]

    ids = column(layout.index)
    lines = body.lines
    return Raw(body.X, features, ids, column(layout.target), column(layout.group), [], lambda i: f"line {lines[i]}")


def _samples_in_columns(
    name: str,
    layout: Layout,
    delimiter: str,
    cells: Cells,
    expected: int,
    tail: Iterator[Record],
    options: Options,
    text: Text | None,
) -> Raw:
    ids: list[str] | None = [layout.names[i].strip() for i in layout.features]
    first = next(tail)
    fields = split(first[1], delimiter)
    y = None
    target = None if options.header_is_target else options.target
    if options.header_is_target:
        y, ids = ids, None
        below = [fields[i] for i in layout.features if i < len(fields)]
        if all(cells.number(each) is None for each in below):
            ids, first = [each.strip() for each in below], next(tail)
    wanted = {key for key in (target, options.group) if key is not None}
    dropped = {key for key in options.drop if key not in layout.names}
    head = list(islice(tail, 100))
    known = {split(record, delimiter)[layout.index or 0] for _, record in (first, *head)}
    wanted_now = {_row_key(key, known) for key in wanted}
    body = Body(
        name, layout, delimiter, cells, expected, wanted_now, {_row_key(key, known) for key in dropped}, False
    )
    body.read(chain([first], head, tail), text)
    features = [value for value in body.columns[layout.index]] if layout.index is not None else []
    for what, key in (("target", target), ("group", options.group), *(("drop", key) for key in dropped)):
        if key is not None and _row_key(key, known) not in {*body.rows, *body.skipped_rows} and not (
            options.target_optional and what != "drop"
        ):
            hint = "but it is the name of a column: leave out transpose?" if key in layout.names else near(str(key), features)
            raise TableError(f"{name}: {what} {show(key)} is not the name of a line; {hint}")
    y = body.rows.get(_row_key(target, known)) if target is not None else y
    groups = body.rows.get(_row_key(options.group, known)) if options.group is not None else None
    columns = layout.features
    return Raw(
        np.ascontiguousarray(body.X.T), features, ids,
        None if y is None else [each.strip() for each in y],
        None if groups is None else [each.strip() for each in groups],
        [], lambda i: f"column {columns[i] + 1}",
    )  # fmt: skip


def _row_key(key: str | int, known: set[str]) -> str | int:
    return int(key) if isinstance(key, str) and key not in known and key.isdecimal() else key
