"""The table that everything else works on, and the one error of bad ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Table", "TableError", "blocks", "show"]


class TableError(ValueError):
    """A file that is no usable table; the message names the file, the place and what to do."""


def show(text: object, limit: int = 60) -> str:
    """Quote a name or a cell for a message, on one line and no longer than `limit`."""
    quoted = repr(str(text))
    return quoted if len(quoted) <= limit else f"{quoted[: limit - 4]}...'"


def blocks(X: npt.NDArray[np.float32]) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Yield some rows at a time with the number of the first, so that no temporary is as large as the table."""
    step = max(1, (1 << 20) // max(X.shape[1], 1))
    for start in range(0, len(X), step):
        yield start, X[start : start + step]


@dataclass(frozen=True, repr=False, eq=False)
class Table:
    """Samples by features, with names, and labels if there are any.

    Attributes
    ----------
    X : ndarray of float32, (n_samples, n_features)
        C-contiguous; NaN where a value is missing.
    feature_names : list of str
        As they stand in the file.
    sample_ids : list of str
        As they stand in the file; numbers from 1 where it has none.
    y : ndarray of str objects or None
        The labels; empty for a sample without one.
    groups : ndarray of str objects or None
        What must stay together in cross-validation, such as patients.
    name : str
        Of the file, without its folder.
    notes : list of str
        What was recognised, and what was left out, in words.
    aside : list of str
        Columns of the file that were not read, because the argument ``features`` of `read_table` does not name them.
    """

    X: npt.NDArray[np.float32]
    feature_names: list[str]
    sample_ids: list[str]
    y: npt.NDArray[Any] | None = None
    groups: npt.NDArray[Any] | None = None
    name: str = "table"
    notes: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        target: Any = None,
        *,
        features: Sequence[Any] | None = None,
        group: Any = None,
        name: str = "table",
    ) -> Table:
        """Make a table of a pandas DataFrame with the samples in its rows.

        The frame passes the checks of `read_table`: features that are constant or always missing, and samples without
        a label, are left out, and the notes of the table say so. Missing values, also those of pandas's nullable
        dtypes, become NaN.

        Parameters
        ----------
        frame : pandas.DataFrame
            Its index gives the names of the samples.
        target : label, optional
            The name of the column with the labels. Without it, `y` is None.
        features : list of labels, optional
            The names of the columns to take as features; by default all but `target` and `group`.
        group : label, optional
            The name of a column of what must stay together in cross-validation, such as the patient.
        name : str
            The name of the table, for messages and reports.

        Returns
        -------
        Table

        Raises
        ------
        TableError
            For a column that is not there or does not hold numbers, names that are there twice, infinite values, or
            labels that are no classes.

        Examples
        --------
        >>> import pandas as pd
        >>> from normball.data import Table
        >>> frame = pd.DataFrame({"TP53": [1.5, 0.5, 2.0], "EGFR": [2.25, None, 1.0], "status": ["ill", "well", "ill"]})
        >>> table = Table.from_dataframe(frame, "status")
        >>> table
        Table('table': 3 samples x 2 features; classes {'ill': 2, 'well': 1}; 1 missing)
        >>> table.sample_ids
        ['0', '1', '2']
        """
        from normball.data._frames import table_of

        return table_of(frame, target, features, group, name)

    @property
    def n_missing(self) -> int:
        """How many values are missing."""
        return sum(int(np.isnan(block).sum()) for _, block in blocks(self.X))

    @property
    def classes(self) -> dict[str, int]:
        """How many samples each class has, in the order of their names; empty without labels."""
        if self.y is None:
            return {}
        names, counts = np.unique(self.y[self.y != ""], return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def __repr__(self) -> str:
        parts = [f"{len(self.sample_ids)} samples x {len(self.feature_names)} features"]
        if self.y is not None:
            several = [f"{show(name, 30)}: {count}" for name, count in list(self.classes.items())[:6]]
            parts.append(f"classes {{{', '.join(several)}{', ...' if len(self.classes) > 6 else ''}}}")
        if self.groups is not None:
            parts.append(f"{len(set(self.groups))} groups")
        missing = self.n_missing
        if missing:
            parts.append(f"{missing} missing")
        return f"Table({show(self.name)}: {'; '.join(parts)})"

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write it as UTF-8 CSV: ``sample``, ``label`` and ``group`` if known, features; `read_table` gives it back."""
        lead: list[tuple[str, Any]] = [("sample", self.sample_ids)]
        lead += [(name, each) for name, each in (("label", self.y), ("group", self.groups)) if each is not None]
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            file.write(",".join(map(_quoted, [*(name for name, _ in lead), *self.feature_names])) + "\n")
            for i, row in enumerate(self.X):
                # The shortest digits that give the same float32 back; missing values stay empty.
                values = ["" if text == "nan" else text for text in row.astype(str).tolist()]
                file.write(",".join([*(_quoted(column[i]) for _, column in lead), *values]) + "\n")


def _quoted(text: str) -> str:
    """Quote what would not survive in CSV; the standard library forgets a lone carriage return."""
    return '"' + text.replace('"', '""') + '"' if re.search('[",\r\n]', text) else text
