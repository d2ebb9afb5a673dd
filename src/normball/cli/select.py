"""``normball select``: from a table to the few features that matter, with a report."""

from __future__ import annotations

import json as json_text
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from normball.cli._backend import Backend, Scheduler, running_on
from normball.cli._bars import Bars
from normball.cli._common import INTERRUPTED, drop_of, ended_well, errors, reading

__all__ = ["select"]

Opt = typer.Option
READ, RUN, OUT = "The table", "The procedure", "Output"
_GOES_ON = "Nothing that was finished is lost: it is in {}. The same command goes on from there."


def select(
    table: Annotated[Path, typer.Argument(help="CSV, TSV (compressed too), Parquet, xlsx, h5ad or npz.")],
    target: Annotated[str | None, Opt(help="The label: name or number of a column.", rich_help_panel=READ)] = None,
    obs_target: Annotated[str | None, Opt(help="The label, in obs of an h5ad file.", rich_help_panel=READ)] = None,
    layer: Annotated[str | None, Opt(help="Layer of an h5ad file.", rich_help_panel=READ)] = None,
    transpose: Annotated[bool, Opt("--transpose", help="Samples are in columns.", rich_help_panel=READ)] = False,
    labels: Annotated[Path | None, Opt(help="A second file with labels by sample id.", rich_help_panel=READ)] = None,
    label_row: Annotated[
        str | None, Opt(help="The line with the labels, by name or number; samples in columns.", rich_help_panel=READ)
    ] = None,
    index: Annotated[str | None, Opt(help="The column with the sample ids.", rich_help_panel=READ)] = None,
    drop: Annotated[
        list[str] | None, Opt(help="A column to leave out, such as batch; may be repeated.", rich_help_panel=READ)
    ] = None,
    group: Annotated[
        str | None, Opt(help="A column whose samples stay in one fold, such as patient.", rich_help_panel=READ)
    ] = None,
    delimiter: Annotated[str | None, Opt(help="Between cells.", rich_help_panel=READ)] = None,
    decimal: Annotated[str | None, Opt(help="Decimal mark: . or ,", rich_help_panel=READ)] = None,
    encoding: Annotated[str | None, Opt(help="Of the text.", rich_help_panel=READ)] = None,
    missing: Annotated[
        list[str] | None, Opt(help="A further mark of missing values; may be repeated.", rich_help_panel=READ)
    ] = None,
    sheet: Annotated[str | None, Opt(help="Of an xlsx file.", rich_help_panel=READ)] = None,
    log: Annotated[str, Opt(help="auto, yes or no: logarithms.", rich_help_panel=RUN)] = "auto",
    impute: Annotated[str, Opt(help="median or half-min: what fills a gap.", rich_help_panel=RUN)] = "median",
    radius: Annotated[float | None, Opt(help="Of the ball; by default it is chosen.", rich_help_panel=RUN)] = None,
    n_features: Annotated[str, Opt(help="How many features: auto, a number or a share.", rich_help_panel=RUN)] = "auto",
    seeds: Annotated[int, Opt(help="Repeats of the cross-validation.", rich_help_panel=RUN)] = 3,
    folds: Annotated[int, Opt(help="Outer folds.", rich_help_panel=RUN)] = 5,
    norm: Annotated[
        str, Opt(help="l1inf, l12, l1, bilevel_l1inf, bilevel_l11, bilevel_l12 or none.", rich_help_panel=RUN)
    ] = "l1inf",
    epochs: Annotated[int | None, Opt(help="Of training.", rich_help_panel=RUN)] = None,
    device: Annotated[str, Opt(help="cpu, cuda or auto.", rich_help_panel=RUN)] = "cpu",
    jobs: Annotated[int, Opt(help="Folds at a time; -1: one for each core.", rich_help_panel=RUN)] = -1,
    backend: Backend = None,
    scheduler: Scheduler = None,
    permutations: Annotated[int, Opt(help="Runs on shuffled labels: what chance gives.", rich_help_panel=RUN)] = 0,
    random_state: Annotated[int, Opt(help="The first seed.", rich_help_panel=RUN)] = 0,
    out: Annotated[Path, Opt(help="The folder for the results.", rich_help_panel=OUT)] = Path("results"),
    quiet: Annotated[bool, Opt("--quiet", help="Say nothing but errors.", rich_help_panel=OUT)] = False,
    json: Annotated[bool, Opt("--json", help="Print metrics.json, and nothing else.", rich_help_panel=OUT)] = False,
) -> None:
    """Find the few features of a table that tell its classes apart, and say how sure that is.

    Results go to a folder: open report.html there. Stopped, the same command goes on where it was.
    """
    console = errors()
    kept = out / ".progress"
    try:
        with ended_well("select"):
            from normball.data import read_table
            from normball.report import write_report
            from normball.report.results import metrics, write_results
            from normball.report.summary import summarise
            from normball.selection import study
            from normball.selection.files import on_disk

            if obs_target is not None and target is not None:
                raise ValueError("obs-target: expected it or target, got both")
            options: dict[str, Any] = {
                "target": obs_target if obs_target is not None else target,
                "transpose": transpose,
                "index": index,
                "labels": labels,
                "label_row": label_row,
                "drop": drop_of(drop),
                "group": group,
                "layer": layer,
                "delimiter": delimiter,
                "decimal": decimal,
                "encoding": encoding,
                "missing": tuple(missing or ()),
                "sheet": sheet,
            }
            if all(options[name] is None for name in ("target", "labels", "label_row")):
                raise ValueError("target: expected the column with the labels, or labels, or label-row; got none")
            read = read_table(table, **options, folds=folds if group is None else None)
            if not quiet and not json:
                console.print(f"{read!r}")
                for note in read.notes:
                    console.print(f"  {note}")
            out.mkdir(parents=True, exist_ok=True)
            with running_on(backend, scheduler), on_disk(read, kept) as lean, Bars(console, quiet or json) as bars:
                del read
                found = study(
                    lean,
                    radius=radius,
                    n_features=_count(n_features),
                    norm=None if norm == "none" else norm,
                    seeds=seeds,
                    folds=folds,
                    log=log,
                    impute=impute,
                    epochs=epochs,
                    device=device,
                    jobs=jobs,
                    permutations=permutations,
                    random_state=random_state,
                    progress=kept,
                    listener=bars,
                )
            shown = reading(options)
            told = {"target": str(shown.get("target", "label")), "group": group, "reading": shown}
            found = replace(found, settings=found.settings | told)
            write_results(found, out)
            page = write_report(found, out)
    except KeyboardInterrupt:
        console.print(f"\nStopped. {_GOES_ON.format(kept)}")
        raise typer.Exit(INTERRUPTED) from None
    except RuntimeError as error:
        if type(error).__name__ != "TerminatedWorkerError":  # joblib's, for a worker that the system has killed
            raise
        console.print(f"A worker was killed, perhaps for want of memory: try fewer --jobs. {_GOES_ON.format(kept)}")
        raise typer.Exit(1) from None
    if json:
        typer.echo(json_text.dumps(metrics(found), indent=1, ensure_ascii=False))
    elif not quiet:
        typer.echo(_words(found, summarise(found), page))


def _count(text: str) -> int | float | str:
    """Return a number of features, a share of them, or the text as it came."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _words(found: Any, summary: Any, page: Path) -> str:
    """Say in a few lines what was found."""

    def percent(value: float) -> str:
        return f"{100 * value:.1f} %"

    ours = summary.ours.accuracy
    lines = [
        f"{found.n_samples} samples, {found.n_features} features, {len(found.classes)} classes",
        f"accuracy   {percent(ours.mean)} on unseen samples (95 % interval {percent(ours.low)} to"
        f" {percent(ours.high)}); chance {percent(summary.chance)}",
    ]
    if summary.baseline is not None:
        best, apart = summary.baseline, summary.difference
        as_good = "clearly better" if apart.low > 0 else "clearly worse" if apart.high < 0 else "not clearly different"
        lines.append(
            f"baseline   {percent(best.accuracy.mean)} by {best.method} with {best.n_features:.0f} features:"
            f" ours is {as_good}"
        )
    if summary.p_permutation is not None:
        lines.append(f"chance     p = {summary.p_permutation:.2g} by {summary.n_permutations} runs on shuffled labels")
    chosen = [str(name) for name in found.features["feature"][found.features["selected"]]]
    few = ", ".join(name if len(name) <= 40 else f"{name[:37]}..." for name in chosen[:8])
    lines.append(f"features   {len(chosen)}: {few}{', ...' if len(chosen) > 8 else ''}")
    if summary.stability.mean == summary.stability.mean:
        lines.append(f"stability  {summary.stability.mean:.2f} (1: the same features in each fold; 0: chance)")
    lines.append(f"report     {page}")
    return "\n".join(line.encode("utf-8", "replace").decode("utf-8") for line in lines)
