"""Labels and groups in a second file, joined by sample id."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from normball._spelling import argument
from normball.data._dialect import delimiter_of, head_of, records, split
from normball.data._open import Text, kind_of
from normball.data._parquet import parquet_records
from normball.data._plan import Options, Raw, column_of
from normball.data._xlsx import sheet_records
from normball.data.table import TableError, show

__all__ = ["join_labels"]


def join_labels(raw: Raw, path: Path, options: Options) -> None:
    """Put the labels of the second file, and its groups if asked for, beside the samples of `raw`."""
    if raw.ids is None:
        index = argument("index")
        raise TableError(f"{options.name}: no column holds sample ids to join the labels by; name one by {index}")
    where = show(path.name)
    names, rows = _text_table(path, options, where)
    ids = set(raw.ids)
    matches = [len(ids & {row[i].strip() for row in rows}) for i in range(len(names))]
    key = max(range(len(names)), key=matches.__getitem__)
    if not matches[key]:
        features, turn = set(raw.features), argument("transpose", True)
        turned = any(row[i].strip() in features for row in rows for i in range(len(names)))
        raise TableError(
            f"{where}: no sample id of {options.name}, such as {show(raw.ids[0])}, is there"
            + (f"; but names of features are: are the samples in columns? If so, {turn}" if turned else "")
        )
    target = _target(names, key, options, where, raw)
    group = None
    if options.group is not None and (options.group in names or raw.groups is None):
        group = column_of(options.group, names, "group", where)
    found: dict[str, tuple[str, ...]] = {}
    columns = [each for each in (target, group) if each is not None]
    for row in rows:
        each, values = row[key].strip(), tuple(row[i].strip() for i in columns)
        if found.setdefault(each, values) != values and each in ids:
            raise TableError(f"{where}: sample {show(each)} is there twice, with different labels")
    nothing = ("",) * len(columns)
    joined = [found.get(each, nothing) for each in raw.ids]
    if target is not None:
        raw.y = [values[0] for values in joined]
    if group is not None:
        raw.groups = [values[-1] for values in joined]
    raw.notes.append(f"{where} was joined by {show(names[key])}: it has {matches[key]} of the {len(ids)} samples")
    if others := len(set(found) - ids - {""}):
        raw.notes.append(f"{others} samples of {where} are not in the table")


def _target(names: list[str], key: int, options: Options, where: str, raw: Raw) -> int | None:
    if options.target is not None:
        if raw.y is not None and options.target not in names:
            return None  # the table itself has it; the second file is for the groups
        return column_of(options.target, names, "target", where)
    others = [i for i in range(len(names)) if i != key and names[i] != options.group]
    if len(others) != 1:
        several = ", ".join(show(names[i], 30) for i in others[:6]) or "no other column"
        raise TableError(f"{where}: {argument('target')} is not given, and there are {several}")
    return others[0]


def _text_table(path: Path, options: Options, where: str) -> tuple[list[str], list[list[str]]]:
    kind = kind_of(path)
    if kind == "xlsx":
        found = [record for _, record in sheet_records(path, options)[0]]
        delimiter = ","
    elif kind == "parquet":
        found, delimiter = [record for _, record in parquet_records(path, options)[0]], ","
    elif kind in ("h5ad", "npz"):
        raise TableError(f"{where}: expected labels in a text, xlsx or Parquet file, got {kind}")
    else:
        try:
            found, delimiter = _text_records(path, kind, options.encoding, where)
        except UnicodeError:
            found, delimiter = _text_records(path, kind, "latin-1", where)
    table = [fields for fields in (split(record, delimiter) for record in found) if any(map(str.strip, fields))]
    if len(table) < 2:
        raise TableError(f"{where}: there is no line below the line of names")
    names, rows = table[0], table[1:]
    if len(rows[0]) == len(names) + 1:
        names = ["", *names]
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            expected = f"expected {len(names)} fields as in the line of names"
            raise TableError(f"{where}, record {number}: {expected}, got {len(row)}")
    return names, rows


def _text_records(path: Path, kind: str, encoding: str | None, where: str) -> tuple[list[str | list[str]], str]:
    text = Text(path, kind, encoding)
    try:
        head = head_of(text)
        delimiter = delimiter_of(head, where)
        return [record for _, record in records(text, chain(head, text), delimiter, 1)], delimiter
    finally:
        text.close()
