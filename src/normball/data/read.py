"""One function for every file: which reader, then the same checks for all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from normball._spelling import argument
from normball.data._arrays import read_h5ad, read_npz
from normball.data._cells import MISSING
from normball.data._finish import finish
from normball.data._labels import join_labels
from normball.data._memory import memory_of
from normball.data._open import kind_of
from normball.data._parquet import parquet_records, read_parquet
from normball.data._plan import Options, Raw
from normball.data._text import read_records, read_text
from normball.data._xlsx import sheet_records
from normball.data.table import Table, TableError, show

__all__ = ["read_table"]

_UNSEEN = "\x1f"  # divides cells that come apart already


def read_table(
    path: str | os.PathLike[str],
    target: str | int | None = None,
    *,
    transpose: bool = False,
    index: str | int | bool | None = None,
    labels: str | os.PathLike[str] | None = None,
    label_row: str | int | None = None,
    drop: str | int | Iterable[str | int] = (),
    features: Iterable[str] | None = None,
    group: str | int | None = None,
    layer: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: str | float | Iterable[str | float] = (),
    sheet: str | int | None = None,
    folds: int | None = None,
    memory_limit: int | str | None = None,
) -> Table:
    r"""Read a table of samples by features, check it, and say what was found.

    The kind of the file is told by its content: CSV, TSV and the like, plain or packed by gzip, bz2, xz or zip;
    Parquet; xlsx; h5ad; npz. Delimiter, decimal mark, encoding, marks for missing values and the column of sample ids
    are recognised. Features that are constant or always missing, and samples without a label, are left out, and the
    notes of the table say so. Missing values stay missing. A file too large for the memory is refused before it is
    read.

    Parameters
    ----------
    path : path
        The file.
    target : str or int, optional
        The column of labels: its name, or its number from 1 (-1 is the last). In a file with samples in columns, the
        line of labels. In h5ad, a column of ``obs``; in npz, the name of an array. Without it, `Table.y` is None.
    transpose : bool
        The file has its samples in columns.
    index : str, int or False, optional
        The column of sample ids; recognised if not given, and False if there is none. With samples in columns, that of
        the names of the features.
    labels : path, optional
        A second file with the labels, and perhaps the groups, joined by sample id.
    label_row : int or str, optional
        The line of labels in a file with samples in columns: its number, where 1 is the line of names, or its name.
        Implies `transpose`.
    drop : list of str or int
        Columns that are neither features nor labels, such as the batch.
    features : list of str, optional
        The only features to read, such as those that a model uses, for a table of samples to be scored. All other
        columns are left aside, whatever they hold, and `Table.aside` names them. Nothing else is left out then: a
        feature may be constant, a sample may lack a label (its entry of `Table.y` is empty), and one class is enough.
    group : str or int, optional
        A column of what must stay together in cross-validation, such as the patient.
    layer : str, optional
        Of an h5ad file, in place of ``X``; ``"raw"`` for ``raw.X``.
    delimiter, decimal, encoding : str, optional
        Where they are not recognised.
    missing : str, float, or a list of them
        More marks for missing values, such as -99, beside the usual ones.
    sheet : str or int, optional
        Of an xlsx file: name, or number from 1; the first if not given.
    folds : int, optional
        Refuse classes with fewer samples than this.
    memory_limit : int or str, optional
        Bytes, or a text such as ``"4GB"``, in place of what the system says is free.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        With the file, the line, the column and the value at fault, and what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from normball.data import read_table
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "small.csv"
    >>> _ = file.write_text("id;status;TP53;EGFR\na1;sick;1,5;2,25\na2;well;0,5;NA\na3;well;2;1\n")
    >>> table = read_table(file, "status")
    >>> table
    Table('small.csv': 3 samples x 2 features; classes {'sick': 1, 'well': 2}; 1 missing)
    >>> table.X[0]
    array([1.5 , 2.25], dtype=float32)
    >>> read_table(file, "statsu")
    Traceback (most recent call last):
    ...
    normball.data.table.TableError: 'small.csv': target 'statsu' is not a column; did you mean 'status'?
    """
    path = Path(path)
    if label_row is not None and target is not None:
        raise TableError(f"{argument('target')} and {argument('label_row')}: expected one of them, got both")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise TableError(f"delimiter: expected one character, got {delimiter!r}")
    if decimal not in (None, ".", ","):
        raise TableError(f"decimal: expected '.' or ',', got {decimal!r}")
    if folds is not None and (isinstance(folds, bool) or not isinstance(folds, int) or folds < 2):
        raise TableError(f"folds: expected an int >= 2, got {folds!r}")
    if isinstance(features, str):
        raise TableError(f"features: expected a list of names, got {features!r}")
    extra = tuple(map(str, [missing] if isinstance(missing, (str, int, float)) else missing))
    options = Options(
        name=show(path.name),
        target=label_row if label_row is not None else target,
        transpose=transpose or label_row is not None,
        index=index,
        drop=(drop,) if isinstance(drop, (str, int)) else tuple(drop),
        features=None if features is None else frozenset(map(str, features)),
        group=group,
        missing=MISSING | set(extra),
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        sheet=sheet,
        layer=layer,
        header_is_target=label_row in (1, "1"),
        target_optional=labels is not None,
        memory_limit=memory_of(memory_limit),
    )
    raw = _read(path, options)
    if labels is not None:
        join_labels(raw, Path(labels), options)
    return finish(raw, options, path.name, extra, folds)


def _read(path: Path, options: Options) -> Raw:
    kind = kind_of(path)
    for what, value, wanted in (("layer", options.layer, "h5ad"), ("sheet", options.sheet, "xlsx")):
        if value is not None and kind != wanted:
            raise TableError(f"{what}: expected an {wanted} file, got {options.name} ({kind})")
    if kind == "npz":
        return read_npz(path, options)
    if kind == "h5ad":
        if options.transpose:
            turned = f"{argument('transpose')} and {argument('label_row')}"
            raise TableError(f"{options.name}: an h5ad file has its samples in rows; leave out {turned}")
        return read_h5ad(path, options)
    if kind == "parquet" and not options.transpose:
        return read_parquet(path, options)
    if kind == "parquet":
        records, rows = parquet_records(path, options)
        return read_records(records, _UNSEEN, options, rows, path.stat().st_size)
    if kind == "xlsx":
        records, rows, notes = sheet_records(path, options)
        options = replace(options, decimal=options.decimal or ".")
        raw = read_records(records, _UNSEEN, options, rows, path.stat().st_size)
        raw.notes[:0] = notes
        return raw
    return read_text(path, kind, options)
