"""``normball select``: from a table to the few features that matter, with a report."""

from __future__ import annotations

import json as json_text
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from normball.cli import _reading
from normball.cli._backend import Backend, Jobs, Scheduler, running_on
from normball.cli._bars import Bars
from normball.cli._common import FAILED, messages, stopped, within_reach

__all__ = ["select"]

Read = _reading.Option
Run = partial(typer.Option, rich_help_panel="The procedure")
Out = partial(typer.Option, rich_help_panel="Output")


def _devices() -> list[str]:
    return ["cpu", "cuda", "auto"]


def select(
    table: _reading.TableFile,
    target: Annotated[str | None, Read(help="The column of the labels, by its name or number.")] = None,
    obs_target: Annotated[str | None, Read(help="The column of obs with the labels, in an h5ad file.")] = None,
    labels: Annotated[
        Path | None,
        Read(exists=True, dir_okay=False, help="A second file that holds the labels; it is joined by the sample ids."),
    ] = None,
    label_row: Annotated[
        str | None,
        Read(help="The line of the labels, by its name or number, in a file that has its samples in columns."),
    ] = None,
    group: Annotated[
        str | None, Read(help="The column of what must stay in one fold, such as the patient, by its name or number.")
    ] = None,
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
    log: Annotated[
        Literal["auto", "yes", "no"], Run(help="Whether to take logarithms. The range of the values decides on auto.")
    ] = "auto",
    impute: Annotated[
        Literal["median", "half-min"],
        Run(help="What fills a missing value: the median of its feature, or half of the smallest value."),
    ] = "median",
    n_features: Annotated[
        str, Run(help="The number of features to select, a share of them such as 0.1, or auto to have it chosen.")
    ] = "auto",
    radius: Annotated[
        float | None, Run(help="The radius of the ball, in place of the number of features. By default it is chosen.")
    ] = None,
    norm: Annotated[
        Literal["l1inf", "l12", "l1", "bilevel_l1inf", "bilevel_l11", "bilevel_l12", "none"],
        Run(help="The norm of the ball. With none, all the features are used."),
    ] = "l1inf",
    seeds: Annotated[int, Run(help="How often the cross-validation is repeated, each time with other folds.")] = 3,
    folds: Annotated[int, Run(help="The number of outer folds.")] = 5,
    permutations: Annotated[
        int, Run(help="How often the procedure runs on shuffled labels, to show what chance gives.")
    ] = 0,
    epochs: Annotated[
        int | None, Run(help="The number of epochs to train each network. By default the method decides.")
    ] = None,
    device: Annotated[str, Run(help="Where networks are trained: cpu, cuda or auto.", autocompletion=_devices)] = "cpu",
    random_state: Annotated[int, Run(help="The seed of the first repeat; the next repeats count up from it.")] = 0,
    jobs: Jobs = None,
    backend: Backend = None,
    scheduler: Scheduler = None,
    out: Annotated[
        Path, Out(file_okay=False, writable=True, callback=within_reach, help="The folder for the results.")
    ] = Path("results"),
    force: Annotated[
        bool, Out("--force", help="Replace the results of another study, if the folder holds them.")
    ] = False,
    quiet: Annotated[bool, Out("--quiet", help="Print nothing but errors.")] = False,
    json: Annotated[
        bool, Out("--json", help="Print the content of metrics.json in place of the summary, and no progress.")
    ] = False,
) -> None:
    """Find the few features of a table that tell its classes apart, and say how sure that is.

    The results go to a folder; open report.html there. If the command is stopped, the same command goes on from there.
    """
    console, silent = messages(), quiet or json
    kept, what_is_left = out / ".progress", ""
    try:
        from normball.data import read_table
        from normball.report import write_report
        from normball.report.results import metrics, write_results
        from normball.selection.files import on_disk
        from normball.selection.procedure import carried_out, planned
        from normball.selection.progress import other_study
        from normball.selection.settings import Settings

        settings = Settings(
            radius=radius, n_features=_count(n_features), norm=None if norm == "none" else norm, seeds=seeds,
            folds=folds, log=log, impute=impute, epochs=epochs, device=device, permutations=permutations,
            random_state=random_state,
        )  # fmt: skip
        if all(option is None for option in (target, obs_target, labels, label_row)):
            raise ValueError("give the labels by one of --target, --obs-target, --labels and --label-row")
        if obs_target is not None and target is not None:
            raise ValueError("give one of --target and --obs-target, not both")
        reading = _reading.given(
            target=obs_target if obs_target is not None else target, labels=labels, label_row=label_row, group=group,
            drop=drop, index=index, transpose=transpose, layer=layer, sheet=sheet, delimiter=delimiter, decimal=decimal,
            encoding=encoding, missing=missing, memory_limit=memory_limit,
        )  # fmt: skip
        with running_on(backend, scheduler):
            read = read_table(table, **reading, folds=folds if group is None else None)
            if not silent:
                console.print(f"{read!r}")
                for note in read.notes:
                    console.print(f"  {note}")
            shown = {name: value.name if isinstance(value, Path) else value for name, value in reading.items()}
            told = {"target": str(shown.get("target", "label")), "group": group, "reading": shown}
            plan = planned(read, settings, told)
            del read
            if not force and (difference := other_study(out, plan.record)):
                raise ValueError(
                    f"out: expected a folder without another study, got {out} ({difference});"
                    " give another folder, or --force to replace what is there"
                )
            what_is_left = f"Nothing that was finished is lost: it is in {kept}. The same command goes on from there."
            with on_disk(plan.data, kept) as data, Bars(console, silent) as bars:
                plan = replace(plan, data=data)  # the numbers are mapped from a file, and the first copy can go
                found = carried_out(plan, jobs=jobs or -1, progress=kept, listener=bars)
        write_results(found, out)
        page = write_report(found, out)
    except KeyboardInterrupt:
        raise stopped(what_is_left) from None
    except RuntimeError as error:
        if type(error).__name__ != "TerminatedWorkerError":  # joblib's, for a worker that the system has killed
            raise
        console.print(f"A worker was killed, perhaps for want of memory: give a smaller --jobs. {what_is_left}")
        raise typer.Exit(FAILED) from None
    if json:
        typer.echo(json_text.dumps(metrics(found), indent=1, ensure_ascii=False))
    elif not quiet:
        from normball.report.summary import summarise

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
