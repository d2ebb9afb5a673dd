"""Tables that stay on a disk: rows are read when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from normball.data._frames import check_frame

__all__ = ["CHUNK", "Stored", "checked", "chunks", "dense", "stored"]

CHUNK = 1 << 18  # entries that are looked at in one go

Indices = npt.NDArray[np.intp]


def dense(part: Any) -> npt.NDArray[Any]:
    """Return rows as an array."""
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part)


def chunks(index: Indices, features: int) -> list[Indices]:
    """Cut row numbers into parts that fit into memory, whatever the number of features."""
    step = max(CHUNK // max(features, 1), 1)
    return [index[start : start + step] for start in range(0, len(index), step)] or [index]


class Stored:
    """A table on a disk: a memory-mapped array, a dataset of HDF5 or Zarr, or the sparse rows of a backed AnnData.

    ``table[numbers]`` reads these rows, as float32 or float64, dense or sparse as they are stored.
    """

    def __init__(self, source: Any, rows: Indices | None = None) -> None:
        self._source, self._rows = source, rows
        if len(source.shape) != 2:
            raise ValueError(f"X: expected a table with two axes, got shape {tuple(source.shape)}")
        if getattr(source, "format", "csr") != "csr":
            raise ValueError(
                f"X: expected rows that can be read one by one, got a sparse matrix stored as {source.format}; "
                "store it as CSR, or read it into memory"
            )
        kind = np.dtype(source.dtype)
        if kind.kind not in "biuf":
            raise ValueError(f"X: expected a table of real numbers, got dtype {kind}")
        self.dtype = kind if kind in (np.float32, np.float64) else np.dtype(np.float64)
        self.shape = (source.shape[0] if rows is None else len(rows), source.shape[1])

    def take(self, rows: Indices) -> Stored:
        """Return these rows alone, numbered from 0; nothing is read."""
        return Stored(self._source, rows if self._rows is None else self._rows[rows])

    def __getitem__(self, index: Indices) -> Any:
        """Read rows."""
        index = np.asarray(index) if self._rows is None else self._rows[index]
        if isinstance(self._source, np.ndarray):
            return np.asarray(self._source[index]).astype(self.dtype, copy=False)
        once, back = np.unique(index, return_inverse=True)  # files are read in order, each row once
        near = len(once) and once[-1] - once[0] < 2 * len(once)
        part = self._source[int(once[0]) : int(once[-1]) + 1][once - once[0]] if near else self._source[once]
        return part[back].astype(self.dtype, copy=False)


def stored(X: Any) -> Stored | None:
    """Return `X` as a table on a disk, if it is one."""
    if isinstance(X, Stored):
        return X
    base = X
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return Stored(X)
        base = base.base
    package = type(X).__module__.partition(".")[0]
    sparse_rows = package == "anndata" and hasattr(X, "format") and hasattr(X, "to_memory")
    if sparse_rows or (package in ("h5py", "zarr") and hasattr(X, "dtype")):
        return Stored(X)
    return None


def checked(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool = True, finite: bool = True) -> Any:
    """Have scikit-learn check the data; a table on a disk is looked through part by part, and stays there.

    Returns X where there is no y, else both. Not `finite`: whether the numbers are is left to be checked.
    """
    table = stored(X)
    check_frame(X)
    if table is None:
        return validate_data(
            estimator, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset, ensure_all_finite=finite
        )
    validate_data(estimator, table, skip_check_array=True, reset=reset)
    if table.shape[0] == 0:
        raise ValueError("X: expected at least one sample, got none")
    for part in chunks(np.arange(table.shape[0]), table.shape[1]) if finite else ():
        rows = table[part]
        assert_all_finite(getattr(rows, "data", rows) if hasattr(rows, "toarray") else rows, input_name="X")
    if isinstance(y, str):
        return table
    y = column_or_1d(y, warn=True)
    check_consistent_length(table, y)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    return table, y
