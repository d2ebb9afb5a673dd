"""``normball apply``: a saved model on new samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from normball.cli._common import drop_of, ended_well, errors

__all__ = ["apply"]

Opt = typer.Option


def apply(
    model: Annotated[Path, typer.Argument(help="The folder model/ among the results of normball select.")],
    table: Annotated[Path, typer.Argument(help="The new samples; columns in any order.")],
    out: Annotated[Path | None, Opt(help="A CSV file for the predictions; by default they are printed.")] = None,
    target: Annotated[str | None, Opt(help="The column with the labels, if they are known.")] = None,
    transpose: Annotated[bool, Opt("--transpose", help="Samples are in columns.")] = False,
    index: Annotated[str | None, Opt(help="The column with the sample ids.")] = None,
    drop: Annotated[list[str] | None, Opt(help="A column to leave out; may be repeated.")] = None,
    layer: Annotated[str | None, Opt(help="Layer of an h5ad file.")] = None,
    delimiter: Annotated[str | None, Opt(help="Between cells.")] = None,
    decimal: Annotated[str | None, Opt(help="Decimal mark: . or ,")] = None,
    encoding: Annotated[str | None, Opt(help="Of the text.")] = None,
    missing: Annotated[list[str] | None, Opt(help="A further mark of missing values; may be repeated.")] = None,
    sheet: Annotated[str | None, Opt(help="Of an xlsx file.")] = None,
    quiet: Annotated[bool, Opt("--quiet", help="Say nothing but warnings and errors.")] = False,
) -> None:
    """Score new samples with the model of an earlier selection."""
    console = errors()
    with ended_well("apply"):
        from normball.data import read_table
        from normball.selection import apply_model, load_model
        from normball.selection.application import few
        from normball.selection.files import csv_text, write_text

        fitted = load_model(model)
        options: dict[str, Any] = {
            "transpose": transpose,
            "index": index,
            "layer": layer,
            "delimiter": delimiter,
            "decimal": decimal,
            "encoding": encoding,
            "missing": tuple(missing or ()),
            "sheet": sheet,
        }
        aside = drop_of(drop)
        read = read_table(table, drop=[*aside, *([] if target is None else [target])], **options)
        found = apply_model(fitted, read)
        score = None
        if target is not None:  # read anew: beside its label a table loses what is constant, which may matter here
            known = read_table(table, target, drop=aside, **options)
            labels = dict(zip(known.sample_ids, [] if known.y is None else known.y, strict=True))
            told = found.predictions[found.predictions["sample"].isin(labels)]
            right = float((told["predicted"] == told["sample"].map(labels)).mean())
            score = f"accuracy {100 * right:.1f} %, chance {100 * max(known.classes.values()) / len(labels):.1f} %"
        text = csv_text(found.predictions)
        if out is not None:
            write_text(out, text)
    for warning in found.warnings:
        console.print(f"warning: {warning}")
    if found.missing:
        console.print(f"missing, filled by what the training samples say: {few(found.missing)}")
    if not quiet:
        if found.unused:
            console.print(f"{found.unused} features of the training table are not there; the model does not use them")
        if found.extra:
            console.print(f"{len(found.extra)} columns are unknown to the model, and left aside: {few(found.extra)}")
        if score is not None:
            console.print(score)
        if out is not None:
            console.print(f"{len(read.sample_ids)} samples scored: {out}")
    if out is None:
        typer.echo(text, nl=False)
