"""What is wanted of a table, and which of its columns is what."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from normball._spelling import argument
from normball.data._cells import Cells
from normball.data.table import TableError, show

__all__ = ["Layout", "Options", "Raw", "column_of", "layout_of", "near", "nothing_left"]

Column = str | int


@dataclass(frozen=True)
class Options:
    """The arguments of `read_table`, as the readers need them."""

    name: str
    target: Column | None = None
    transpose: bool = False
    index: Column | bool | None = None
    drop: tuple[Column, ...] = ()
    group: Column | None = None
    missing: frozenset[str] = frozenset()
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: Column | None = None
    layer: str | None = None
    header_is_target: bool = False
    target_optional: bool = False  # it may stand in a second file
    memory_limit: int | None = None
    features: frozenset[str] | None = None  # the only ones to be read


@dataclass
class Raw:
    """What a reader found: numbers with names on both sides, and the columns that are text."""

    X: npt.NDArray[np.float32]
    features: list[str]
    ids: list[str] | None
    y: list[str] | None
    groups: list[str] | None
    notes: list[str]
    row: Callable[[int], str] = field(default=lambda i: f"row {i + 1}")  # where a sample stands in the file
    aside: list[str] = field(default_factory=list)  # columns that were not read, since `features` does not name them


def near(wanted: str, names: Sequence[str]) -> str:
    """Say which names look like the wanted one, or which there are."""
    short = {name[:80].casefold(): name for name in reversed(names)}
    alike = difflib.get_close_matches(wanted[:80].casefold(), list(short), n=3, cutoff=0.6)
    if alike:
        return "did you mean " + " or ".join(show(short[each]) for each in alike) + "?"
    few = ", ".join(show(name, 30) for name in names[:5])
    return f"there are {few}{', ...' if len(names) > 5 else ''} ({len(names)} in all)"


def column_of(wanted: Column, names: Sequence[str], what: str, where: str, hint: str = "") -> int:
    """Find a column by its name, or by its number counted from 1, or from the end if negative."""
    name = argument(what)
    if isinstance(wanted, str):
        found = [i for i, each in enumerate(names) if each == wanted]
        found = found or [i for i, each in enumerate(names) if each.strip() == wanted.strip()]
        if len(found) > 1:
            raise TableError(f"{where}: {name} {show(wanted)} is the name of {len(found)} columns; give its number")
        if found:
            return found[0]
        if not re.fullmatch(r"-?\d+", wanted, re.ASCII):
            raise TableError(f"{where}: {name} {show(wanted)} is not a column; {hint or near(wanted, names)}")
    number = int(wanted)
    if not 1 <= abs(number) <= len(names):
        raise TableError(f"{where}: {name} {wanted} is not a column; expected a name, or a number 1 to {len(names)}")
    return number - 1 if number > 0 else len(names) + number


@dataclass
class Layout:
    """Which field of a record is what; the rest are features."""

    names: list[str]
    index: int | None
    target: int | None = None
    group: int | None = None
    skip: frozenset[int] = frozenset()
    aside: frozenset[int] = frozenset()  # not among the features that are wanted
    blank: frozenset[int] = frozenset()  # without a name; must be empty

    def __post_init__(self) -> None:
        known = {each for each in (self.index, self.target, self.group) if each is not None}
        self.read = known | self.blank  # beside the features
        apart = self.read | self.skip | self.aside
        self.special = sorted(apart)
        self.features = [i for i in range(len(self.names)) if i not in apart]


_ID_NAMES = {"", "id", "ids", "sample", "samples", "sampleid", "sampleids", "samplename", "index", "name", "names"} | {
    *("unnamed0", "rowname", "rownames", "barcode", "barcodes", "cell", "cellid", "indexlevel0", "identifier"),
}


def layout_of(names: list[str], rows: list[list[str]], options: Options, cells: Cells) -> Layout:
    """Decide what the columns are, from their names and the first records."""
    where = options.name
    dropped = []
    target = group = None
    if not options.transpose:
        lines = [row[0] for row in rows if row]
        if options.target is not None and not (options.target_optional and options.target not in names):
            hint = ""
            if isinstance(options.target, str) and options.target in lines:
                turn = argument("transpose", True)
                hint = f"but it is the name of a line: are the samples in columns? If so, {turn}"
            target = column_of(options.target, names, "target", where, hint)
        if options.group is not None and not (options.target_optional and options.group not in names):
            group = column_of(options.group, names, "group", where)
        dropped = [column_of(each, names, "drop", where) for each in options.drop]
    else:
        dropped = [names.index(each) for each in options.drop if isinstance(each, str) and each in names]
    for what, each in (("target", target), ("group", group)):
        if each is not None and each in dropped:
            raise TableError(f"{where}: {argument(what)} {show(names[each])} is in {argument('drop')}, too")
    taken = {*dropped, *(each for each in (target, group) if each is not None)}
    wanted = None if options.transpose else options.features
    features = {i for i, name in enumerate(names) if wanted is not None and name in wanted}
    index = _index_of(names, rows, options, cells, taken | features)
    apart = taken | ({index} if index is not None else set())
    aside = set() if wanted is None else set(range(len(names))) - features - apart
    blank = {i for i, name in enumerate(names) if not name.strip()} - apart - aside
    return Layout(names, index, target, group, frozenset(dropped), frozenset(aside), frozenset(blank))


def nothing_left(options: Options, names: Sequence[str]) -> TableError:
    """Return the error for a table without features."""
    if options.features is None:
        return TableError(f"{options.name}: no column is left as a feature")
    turn = "" if options.transpose else f"; are the samples in columns? If so, {argument('transpose', True)}"
    return TableError(
        f"{options.name}: none of the {len(options.features)} features that are wanted is there, such as"
        f" {show(min(options.features, default=''))}; {near(min(options.features, default=''), names)}{turn}"
    )


def _index_of(names: list[str], rows: list[list[str]], options: Options, cells: Cells, taken: set[int]) -> int | None:
    if options.index is False:
        if options.transpose:
            raise TableError(f"{options.name}: index: expected the column of feature names, got False")
        return None
    if options.index is not None and options.index is not True:
        index = column_of(options.index, names, "index", options.name)
        if index in taken:
            what = f"{argument('index')} {show(names[index])}"
            others = f"the target, the group, one of {argument('features')} or in {argument('drop')}"
            raise TableError(f"{options.name}: {what} is {others}, too")
        return index
    if options.transpose or options.index is True:
        return 0
    for i in (i for i in range(min(3, len(names))) if i not in taken):
        column = [row[i].strip() for row in rows if i < len(row)]
        known = re.sub(r"[^a-z0-9]", "", names[i].casefold()) in _ID_NAMES
        text = any(cells.number(each) is None for each in column)
        blank = not any(column)
        if known and not blank and (text or len(set(column)) == len(column)):
            return i
        if i == 0 and text and len(set(column)) == len(column):
            return i
    return None


def raw_labels(values: Any) -> list[str]:
    """Turn typed values into labels: whole numbers without a point, nothing for what is missing."""
    labels = []
    for value in values:
        if value is None or (isinstance(value, (float, np.floating)) and np.isnan(value)):
            labels.append("")
        elif isinstance(value, (float, np.floating)) and float(value).is_integer():
            labels.append(str(int(value)))
        else:
            labels.append(value.decode() if isinstance(value, bytes) else str(value))
    return labels
