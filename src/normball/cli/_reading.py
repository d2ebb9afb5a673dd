"""How a table is read: the options that `select` and `apply` share, under the names that `read_table` has for them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

__all__ = [
    "Decimal", "Delimiter", "Drop", "Encoding", "Index", "Layer", "MemoryLimit", "Missing", "Option", "Sheet",
    "TableFile", "Transpose", "given",
]  # fmt: skip

Option = partial(typer.Option, rich_help_panel="The table")

TableFile = Annotated[
    Path,
    typer.Argument(
        exists=True,
        dir_okay=False,
        help="The file with the samples: CSV or TSV, packed or not, Parquet, xlsx, h5ad or npz.",
    ),
]
Transpose = Annotated[bool, Option("--transpose", help="Read a file that has its samples in columns.")]
Index = Annotated[str | None, Option(help="The column that holds the sample ids, by its name or number.")]
Drop = Annotated[list[str] | None, Option(help="A column to leave out, such as the batch. The option may be repeated.")]
Layer = Annotated[str | None, Option(help="The layer to read from an h5ad file.")]
Sheet = Annotated[str | None, Option(help="The sheet to read from an xlsx file, by its name or number.")]
Delimiter = Annotated[
    str | None,
    Option(
        callback=lambda value: "\t" if value == r"\t" else value,
        help=r"The character between cells, if it is not recognised; \t is a tab.",
    ),
]
Decimal = Annotated[Literal[".", ","] | None, Option(help="The decimal mark, if it is not recognised.")]
Encoding = Annotated[str | None, Option(help="The encoding of the text, if it is not recognised.")]
Missing = Annotated[
    list[str] | None, Option(help="A further mark of missing values, such as -99. The option may be repeated.")
]
MemoryLimit = Annotated[
    str | None, Option(help="The memory that reading may take, such as 4GB. By default what the system says is free.")
]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given: `read_table` has defaults for the others.

    Examples
    --------
    >>> from normball.cli._reading import given
    >>> given(transpose=False, drop=["batch"], layer=None)
    {'drop': ['batch']}
    """
    return {name: value for name, value in options.items() if value not in (None, False, [])}
