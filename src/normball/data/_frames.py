"""Data frames of pandas as arrays of numbers. Pandas itself is not imported: who has a frame has pandas."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from normball.data._finish import finish
from normball.data._plan import Options, Raw, near, raw_labels
from normball.data.table import Table, TableError, show

__all__ = ["array_of", "check_frame", "is_frame", "numbers", "table_of"]

Floats = npt.NDArray[np.floating[Any]]


def is_frame(thing: Any) -> bool:
    """Whether something is a data frame of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(thing, pandas.DataFrame)


def _plain(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def numbers(frame: Any, what: str = "X") -> Floats:
    """Return the values of a frame, NaN where one is missing, or raise for a column that does not hold numbers.

    Frames of NumPy's dtypes keep the precision that NumPy finds for all the columns together.
    """
    if all(_plain(dtype) for dtype in frame.dtypes):
        X = frame.to_numpy()
        return np.asarray(X if X.dtype in (np.float32, np.float64) else X.astype(np.float64))
    X = np.empty(frame.shape, np.float64)
    for place in range(frame.shape[1]):
        X[:, place] = _column(frame, place, what)
    return X


def _column(frame: Any, place: int, what: str) -> Floats:
    column, dtype = frame.iloc[:, place], frame.dtypes.iloc[place]
    if dtype.kind not in "mMc":  # dates, spans of time and complex numbers: NumPy would make numbers of them
        try:
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            pass
    strange = next((value for value in column if not _number(value)), column.iloc[0])
    raise TableError(
        f"{what}: expected numbers, got column {show(frame.columns[place])} of dtype {dtype}, with {show(strange, 40)};"
        " encode it as numbers, or leave it out"
    )


def _number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None or value is sys.modules["pandas"].NA
    return True


def check_frame(X: Any, what: str = "X") -> None:
    """Raise for a frame with a column that does not hold numbers, or has gaps for which NumPy's dtypes have no mark."""
    for place, dtype in enumerate(X.dtypes if is_frame(X) else ()):
        if not _plain(dtype) and (gaps := int(np.isnan(_column(X, place, what)).sum())):
            raise TableError(
                f"{what}: expected a value in every cell, got {gaps} missing in column {show(X.columns[place])} of"
                f" dtype {dtype}, which would become NaN; fill them first, with sklearn.impute.SimpleImputer or"
                " normball.selection.Impute"
            )


def array_of(X: Any, what: str = "X") -> npt.NDArray[Any]:
    """Return a table as an array: frames as numbers, with NaN in their gaps; sparse matrices are refused."""
    if is_frame(X):
        return numbers(X, what)
    if hasattr(X, "toarray"):
        raise TypeError(f"{what}: expected an array or a data frame, got a sparse {type(X).__name__}; use .toarray()")
    return np.asanyarray(X)


def table_of(frame: Any, target: Any, features: Sequence[Any] | None, group: Any, name: str) -> Table:
    """Return the table of a frame; see `Table.from_dataframe`."""
    if not is_frame(frame):
        raise TypeError(f"frame: expected a DataFrame of pandas, got {type(frame).__name__}")
    where, labels = show(name), list(frame.columns)
    names = [str(label) for label in labels]

    def place(label: Any, what: str) -> int:
        found = [j for j, each in enumerate(labels) if each == label]
        if len(found) > 1:
            raise TableError(f"{where}: {what} {show(label)} is the name of {len(found)} columns")
        if not found:
            raise TableError(f"{where}: {what} {show(label)} is not a column; {near(str(label), names)}")
        return found[0]

    special = {what: place(label, what) for what, label in (("target", target), ("group", group)) if label is not None}
    apart = set(special.values())
    if features is None:
        kept = [j for j in range(len(labels)) if j not in apart]
    else:
        kept = [place(label, "feature") for label in features]
    if both := apart.intersection(kept):
        raise TableError(f"{where}: feature {show(names[both.pop()])} is the target or the group, too")
    if not kept:
        raise TableError(f"{where}: expected a column of numbers beside target and group, got none")
    with np.errstate(over="ignore"):  # what becomes infinite is refused below, by its name
        X = np.array(numbers(frame.iloc[:, kept], where), dtype=np.float32, order="C")
    told = {what: raw_labels(frame.iloc[:, j].tolist()) for what, j in special.items()}
    ids = [str(label) for label in frame.index]
    raw = Raw(X, [names[j] for j in kept], ids, told.get("target"), told.get("group"), [])
    return finish(raw, Options(where, target=target), name, (), None)
