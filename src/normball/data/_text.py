"""Tables that come as records: text files, and whatever else gives one line after the other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from normball._spelling import argument
from normball.data._body import Body, Source
from normball.data._cells import Cells
from normball.data._dialect import NAMES, Record, decimal_of, delimiter_of, first_of, head_of, records, split
from normball.data._memory import check_memory
from normball.data._open import Text
from normball.data._plan import Options, Raw, layout_of, near, nothing_left
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
        # From the share of the file that these lines took; the line of names may be longer than the others.
        whole = sum(map(len, head)) * text.size / max(text.consumed(), 1)
        line = sum(map(len, head[1:])) / max(len(head) - 1, 1)
        rows = max(whole - len(head[0]), 0) / max(line, 1) + 1
        raw = read_records(records(text, chain(head, text), delimiter, 1), delimiter, options, rows, text.size, text)
        if not text.ended:
            raw.notes.append("the last line has no line end; if the file was cut, its last value may be short")
    finally:
        text.close()
    raw.notes[:0] = [*text.notes, f"delimiter: {NAMES.get(delimiter, repr(delimiter))}", f"encoding: {text.encoding}"]
    return raw


def read_records(
    found: Iterator[Record], delimiter: str, options: Options, rows: float, size: int, text: Text | None = None
) -> Raw:
    """Read a table whose first record holds the names; `rows` is a guess, `size` that of the file."""
    name = options.name
    head = first_of(found, lambda record: len(record[1]))
    notes = _without_titles(head, delimiter)
    names = split(head[0][1], delimiter)
    sample = [row for row in (split(record, delimiter) for _, record in head[1:]) if any(map(str.strip, row))]
    if max(map(len, [names, *sample])) < 2:
        raise TableError(f"{name}: not a table: one column only; is {show(delimiter)} the delimiter?")
    if not sample:
        raise TableError(f"{name}: there is no line below the line of names")
    names = _completed(names, sample)
    decimal, sure = (options.decimal, True) if options.decimal else decimal_of(sample, delimiter, name)
    cells = Cells(decimal, sure, options.missing)
    if all(each.strip() and cells.number(each) is not None for each in names):
        raise TableError(f"{name}, line {head[0][0]}: numbers only, such as {show(names[0])}; expected the names")
    layout = layout_of(names, sample, options, cells)
    if not layout.features:
        raise nothing_left(options, names)
    if options.transpose and options.features is not None:
        rows = min(rows, len(options.features))
    check_memory(name, rows, len(layout.features), size, options.memory_limit)
    read = _samples_in_columns if options.transpose else _samples_in_rows
    raw = read(Source(layout, delimiter, cells, int(rows * 1.02) + 16, text), chain(head[1:], found), options)
    if decimal == ",":
        notes.append("decimal mark: comma")
    if cells.grouped:
        notes.append(f"thousands marks were read as such, for instance {', '.join(map(show, cells.grouped))}")
    if layout.index is not None and names[layout.index]:
        what = "features" if options.transpose else "samples"
        notes.append(f"{show(names[layout.index])} was taken for the names of the {what}")
    raw.notes[:0] = notes
    return raw


def _without_titles(head: list[Record], delimiter: str) -> list[str]:
    """Take lines with one field above the table away; return notes."""
    notes = []
    while len(head) > 1 and sum(bool(each.strip()) for each in split(head[0][1], delimiter)) <= 1:
        line, title = head.pop(0)
        if any(map(str.strip, split(title, delimiter))):
            notes.append(f"line {line} was taken for a title and skipped: {show(''.join(title).strip())}")
    return notes


def _completed(names: list[str], sample: list[list[str]]) -> list[str]:
    """Give the names as many fields as the records have, where the habit of a program explains the difference."""
    common = Counter(map(len, sample)).most_common(1)[0][0]
    if common == len(names) + 1:
        trailing = all(not row[-1].strip() for row in sample if len(row) == common)
        return [*names, ""] if trailing else ["", *names]  # R leaves out the name of the index
    if common == len(names) - 1 and not names[-1].strip():
        return names[:-1]
    return names


def _samples_in_rows(source: Source, tail: Iterator[Record], options: Options) -> Raw:
    layout = source.layout
    body = Body(options.name, source)
    body.read(tail)
    notes: list[str] = []
    columns = {i: [value.strip() for value in values] for i, values in body.columns.items()}
    if layout.index is not None and (sign := _sign_of_turned(layout.names[layout.index], columns[layout.index])):
        turn = argument("transpose", True)
        notes.append(f"the table looks transposed, since {sign}: if its samples are in columns, say {turn}")
    ids, y, groups = (None if i is None else columns[i] for i in (layout.index, layout.target, layout.group))
    features, aside = ([layout.names[i] for i in some] for some in (layout.features, sorted(layout.aside)))
    return Raw(body.X, features, ids, y, groups, notes, lambda i: f"line {body.lines[i]}", aside)


_FEATURES = {"gene", "genes", "geneid", "genesymbol", "symbol", "probe", "probeid", "idref", "feature", "features"} | {
    *("metabolite", "compound", "protein", "proteinid", "transcript", "ensembl", "ensemblid", "mz", "taxon", "otu"),
}
_LABELS = {"label", "labels", "class", "classes", "diagnosis", "status", "condition", "group", "phenotype", "target"}


def _sign_of_turned(index_name: str, ids: list[str]) -> str:
    """Say what speaks for samples in columns, if anything does."""
    if re.sub(r"[^a-z]", "", index_name.casefold()) in _FEATURES:
        return f"its first column is called {show(index_name)}"
    line = next((each for each in ids[:5] if each.casefold() in _LABELS), None)
    return "" if line is None else f"one of its first lines is called {show(line)}"


def _samples_in_columns(source: Source, tail: Iterator[Record], options: Options) -> Raw:
    layout, name, delimiter = source.layout, options.name, source.delimiter
    index = layout.index or 0
    ids: list[str] | None = [layout.names[i].strip() for i in layout.features]
    y = None
    if options.header_is_target:
        y, ids = ids, None
        first = next(tail)
        below = split(first[1], delimiter)
        if all(source.cells.number(each) is None for each in (below[i] for i in layout.features if i < len(below))):
            ids = [below[i].strip() for i in layout.features]
        else:
            tail = chain([first], tail)
    head = first_of(tail, lambda record: len(record[1]))
    known = {field.strip() for _, record in head for field in split(record, delimiter)[index : index + 1]}

    def key_of(wanted: str | int) -> str | int:  # a number in words is a number, unless a line has that name
        return int(wanted) if isinstance(wanted, str) and wanted not in known and wanted.isdecimal() else wanted

    target = None if options.header_is_target or options.target is None else key_of(options.target)
    group = None if options.group is None else key_of(options.group)
    dropped = {key_of(key) for key in options.drop if key not in layout.names}
    body = Body(name, source, {key for key in (target, group) if key is not None}, dropped, options.features)
    body.read(chain(head, tail))
    features = body.columns[index]
    found = {*body.rows, *body.skipped}
    for what, key in (("target", target), ("group", group), *(("drop", key) for key in dropped)):
        if key is None or key in found or (options.target_optional and what != "drop"):
            continue
        turned = key in layout.names
        leave = f"but it is the name of a column: leave out {argument('transpose')}?"
        hint = leave if turned else near(str(key), [*features, *body.aside])
        raise TableError(f"{name}: {argument(what)} {show(key)} is not the name of a line; {hint}")
    if not features:
        raise nothing_left(options, body.aside)
    if target in body.rows:
        y = body.rows[target]
    columns = layout.features
    return Raw(
        np.ascontiguousarray(body.X.T), features, ids, y, body.rows.get(group), [],
        lambda i: f"column {columns[i] + 1}", body.aside,
    )  # fmt: skip
