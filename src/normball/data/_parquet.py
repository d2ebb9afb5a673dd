"""Parquet files, a few columns at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from normball._spelling import argument
from normball.data._cells import Cells
from normball.data._dialect import Record
from normball.data._foreign import load, reading
from normball.data._memory import check_memory
from normball.data._plan import Options, Raw, layout_of, nothing_left, raw_labels
from normball.data.table import TableError, show

__all__ = ["parquet_records", "read_parquet"]

_STEP = 1 << 20  # values that are held apart from the table


def read_parquet(path: Path, options: Options) -> Raw:
    """Read samples in rows."""
    load("pyarrow", "Parquet")
    parquet = load("pyarrow.parquet", "Parquet")
    with reading(options.name, "Parquet"):
        file = parquet.ParquetFile(path)
        names = list(file.schema_arrow.names)
        first = next(file.iter_batches(100, columns=names[:3]), None)
        rows = [] if first is None else [raw_labels(row.values()) for row in first.to_pylist()]
        if options.index is None and (index := _pandas_index(file)) in names:
            options = replace(options, index=names.index(index) + 1)
        cells = Cells(options.decimal or ".", True, options.missing)
        layout = layout_of(names, rows, options, cells)
        if layout.blank:
            raise TableError(f"{options.name}: column {min(layout.blank) + 1} has no name")
        samples, features = file.metadata.num_rows, layout.features
        if not features:
            raise nothing_left(options, names)
        check_memory(options.name, samples, len(features), path.stat().st_size, options.memory_limit)
        X = np.empty((samples, len(features)), np.float32)
        step = max(1, _STEP // max(samples, 1))
        for start in range(0, len(features), step):
            part = features[start : start + step]
            table = file.read(columns=[names[i] for i in part], use_pandas_metadata=False)
            for j, i in enumerate(part):
                with np.errstate(over="ignore"):
                    X[:, start + j] = _numbers(table.column(names[i]), names[i], options.name, cells)

        def column(i: int | None) -> list[str] | None:
            return None if i is None else raw_labels(file.read(columns=[names[i]]).column(names[i]).to_pylist())

        found = column(layout.index), column(layout.target), column(layout.group)
    return Raw(X, [names[i] for i in features], *found, notes=[], aside=[names[i] for i in sorted(layout.aside)])


def _pandas_index(file: Any) -> str | None:
    known = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
    return known[0] if len(known) == 1 and isinstance(known[0], str) else None


def _numbers(column: Any, name: str, where: str, cells: Cells) -> Any:
    from pyarrow import types

    kind = column.type
    if types.is_floating(kind) or types.is_integer(kind):
        return column.to_numpy()
    if types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind):
        return column.cast("uint8" if types.is_boolean(kind) else "float64").to_numpy()
    values = []
    for row, text in enumerate(raw_labels(column.to_pylist()), 1):
        value = cells.number(text)
        if value is None:
            raise TableError(
                f"text among the features: {where}, row {row}, column {show(name, 40)}: {show(text, 40)}; "
                f"if it is no feature: {argument('drop', [name])}"
            )
        values.append(value)
    return values


def parquet_records(path: Path, options: Options) -> tuple[Iterator[Record], int]:
    """Give a file with samples in columns, or one of labels, as records of text, and how many there are."""
    parquet = load("pyarrow.parquet", "Parquet")
    with reading(options.name, "Parquet"):
        file = parquet.ParquetFile(path)
        names = list(file.schema_arrow.names)
        index = _pandas_index(file)
        order = sorted(names, key=lambda name: name != index)  # pandas puts it last; it belongs first

    def records() -> Iterator[Record]:
        yield 1, ["" if name == index else name for name in order]
        with reading(options.name, "Parquet"):
            number = 1
            for batch in file.iter_batches(max(1, (1 << 20) // len(names))):
                columns = [raw_labels(batch.column(name).to_pylist()) for name in order]
                for row in zip(*columns, strict=True):
                    number += 1
                    yield number, list(row)

    return records(), file.metadata.num_rows
