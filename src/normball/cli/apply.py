"""``normball apply``: a saved model on new samples."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from normball.cli import _reading
from normball.cli._common import messages, within_reach

__all__ = ["apply"]

Opt = typer.Option


def apply(
    model: Annotated[
        Path,
        typer.Argument(exists=True, file_okay=False, help="The folder model/ among the results of normball select."),
    ],
    table: _reading.TableFile,
    out: Annotated[
        Path | None,
        Opt(
            dir_okay=False,
            writable=True,
            callback=within_reach,
            help="The CSV file for the predictions. By default they are printed.",
        ),
    ] = None,
    target: Annotated[
        str | None, Opt(help="The column of the labels, by its name or number, if they are known.")
    ] = None,
    json: Annotated[
        bool, Opt("--json", help="Print the predictions, and all that was noticed, as JSON on standard output.")
    ] = False,
    quiet: Annotated[bool, Opt("--quiet", help="Print nothing but the result, warnings and errors.")] = False,
    drop: _reading.Drop = None,
    index: _reading.Index = None,
    transpose: _reading.Transpose = False,
    layer: _reading.Layer = None,
    sheet: _reading.Sheet = None,
    delimiter: _reading.Delimiter = None,
    decimal: _reading.Decimal = None,
    encoding: _reading.Encoding = None,
    missing: _reading.Missing = None,
    memory_limit: _reading.MemoryLimit = None,
) -> None:
    """Predict the classes of new samples by the model of an earlier selection.

    The columns of the table are matched by name, in any order. Columns that the model does not use are left aside,
    whatever they hold.
    """
    from normball.data import read_table
    from normball.selection import apply_model, load_model
    from normball.selection.application import few, used_features
    from normball.selection.files import csv_text, plain, write_text

    fitted = load_model(model)
    reading = _reading.given(
        target=target, drop=drop, index=index, transpose=transpose, layer=layer, sheet=sheet, delimiter=delimiter,
        decimal=decimal, encoding=encoding, missing=missing, memory_limit=memory_limit,
    )  # fmt: skip
    read = read_table(table, **reading, features=used_features(fitted))
    found = apply_model(fitted, read)
    if out is not None:
        write_text(out, csv_text(found.predictions))
    console = messages()
    for warning in found.warnings:
        console.print(f"warning: {warning}")
    if found.missing:
        console.print(f"missing, filled by what the training samples say: {few(found.missing)}")
    if not quiet:
        if found.unused:
            console.print(f"features of the training table that are not there, and not used: {found.unused}")
        if found.extra:
            console.print(f"columns that the model does not know, left aside: {len(found.extra)}, {few(found.extra)}")
        if found.accuracy is not None and found.chance is not None:
            console.print(f"accuracy {100 * found.accuracy:.1f} %, chance {100 * found.chance:.1f} %")
        if out is not None:
            console.print(f"{len(read.sample_ids)} samples scored: {out}")
    if json:
        told = {"model": str(model), "table": read.name} | vars(found)
        typer.echo(json_text.dumps(plain(told), indent=1, ensure_ascii=False))
    elif out is None:
        typer.echo(csv_text(found.predictions), nl=False)
