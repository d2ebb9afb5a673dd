"""Excel workbooks, sheet by sheet, as records of text."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from normball.data._dialect import Record
from normball.data._foreign import load, reading
from normball.data._plan import Options, column_of
from normball.data.table import show

__all__ = ["sheet_records"]


def sheet_records(path: Path, options: Options) -> tuple[Iterator[Record], int, list[str]]:
    """Return the records of the wanted sheet, how many it claims to have, and notes."""
    openpyxl = load("openpyxl", "xlsx")
    with reading(options.name, "xlsx"):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        names = [sheet.title for sheet in book.worksheets]
        at = 0 if options.sheet is None else column_of(options.sheet, names, "sheet", options.name)
        sheet = book.worksheets[at]
        notes = [f"sheet: {show(names[at])}" + (f" of {len(names)}" if len(names) > 1 else "")]
        return _records(book, sheet, options), sheet.max_row or 100, notes


def _records(book: Any, sheet: Any, options: Options) -> Iterator[Record]:
    width = 0
    with closing(book), reading(options.name, "xlsx"):
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            cells = [_text(value, options.decimal or ".") for value in row]
            while len(cells) > width and not cells[-1]:
                cells.pop()
            if sum(map(bool, cells)) > 1 and not width:
                width = len(cells)  # of the line of names; cells that are empty at the end of others are not stored
            yield number, cells + [""] * (width - len(cells))


def _text(value: Any, decimal: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return (str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)).replace(".", decimal)
    return value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)
