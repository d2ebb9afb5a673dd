"""One function for every file: which reader, then the same checks for all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from normball.data._cells import MISSING
from normball.data._finish import finish
from normball.data._memory import memory_of
from normball.data._open import kind_of
from normball.data._plan import Options, Raw
from normball.data._text import read_text
from normball.data.table import Table, show

__all__ = ["read_table"]


def read_table(
    path: str | os.PathLike[str],
    target: str | int | None = None,
    *,
    transpose: bool = False,
    index: str | int | bool | None = None,
    labels: str | os.PathLike[str] | None = None,
    label_row: str | int | None = None,
    drop: str | int | Iterable[str | int] = (),
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
    """Read a table of samples by features, and check it."""
    path = Path(path)
    transpose = transpose or label_row is not None
    extra = tuple(map(str, [missing] if isinstance(missing, (str, int, float)) else missing))
    options = Options(
        name=show(path.name),
        target=label_row if label_row is not None else target,
        transpose=transpose,
        index=index,
        drop=(drop,) if isinstance(drop, (str, int)) else tuple(drop),
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
    return finish(raw, options, path.name, extra, folds)


def _read(path: Path, options: Options) -> Raw:
    kind = kind_of(path)
    return read_text(path, kind, options)
