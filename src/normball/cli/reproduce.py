"""``normball reproduce``: the paper's figures and tables, made anew."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from normball.cli._backend import Backend, Jobs, Scheduler, running_on
from normball.cli._common import messages, stopped, within_reach

__all__ = ["reproduce"]

Opt = typer.Option


def reproduce(
    out: Annotated[
        Path,
        Opt(
            file_okay=False,
            writable=True,
            callback=within_reach,
            help="The folder for the results. What it holds already is not computed again.",
        ),
    ] = Path("paper"),
    only: Annotated[
        list[str] | None, Opt(help="A figure or table to make, such as fig:radius. The option may be repeated.")
    ] = None,
    data: Annotated[
        list[str] | None,
        Opt(
            help="A table of your own to compare on: FILE, which has its labels in the column 'label', FILE:COLUMN, or "
            "FILE:row=LINE if its samples are in columns. The option may be repeated."
        ),
    ] = None,
    quick: Annotated[
        bool, Opt("--quick", help="Use small sizes, to see in minutes that it works. The results are not to be quoted.")
    ] = False,
    retime: Annotated[bool, Opt("--retime", help="Measure all times anew, for instance those of a busy hour.")] = False,
    list_: Annotated[bool, Opt("--list", help="List the figures and tables, and stop.")] = False,
    jobs: Jobs = None,
    backend: Backend = None,
    scheduler: Scheduler = None,
) -> None:
    """Make the paper's figures and tables anew, with a verdict on each claim.

    The results go to a folder; open index.html there. Times are taken one by one, on a machine that should be idle; all
    else runs side by side. If the command is stopped, the same command goes on from there.
    """
    from normball.experiments import registry, tables
    from normball.experiments.experiment import Setting

    chosen = registry.chosen(only or ())
    if list_:
        for each in chosen:
            typer.echo(f"{each.id:22s} {each.title} ({each.place})")
        return
    for table in data or ():
        tables.load(table)  # a wrong table is found now, not after half an hour
    setting = Setting(quick, tuple(map(tables.absolute, data or ())))
    with running_on(backend, scheduler):
        _Run(chosen, setting, out, jobs).all(retime)


class _Run:
    """One run, from the cells that are missing to the page."""

    def __init__(self, chosen: list[Any], setting: Any, out: Path, jobs: int | None) -> None:
        from normball.experiments.environment import cpus
        from normball.experiments.ledger import Ledger

        self.console, self.chosen, self.setting, self.out = messages(), chosen, setting, out
        self.jobs = jobs or cpus()
        out.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(out / ".progress" / "cells.jsonl")

    def all(self, retime: bool) -> None:
        from normball.experiments import runner

        cells = runner.missing(self.chosen, self.setting, self.ledger, retime)
        try:
            self._cells(cells)
        except KeyboardInterrupt:
            left = len(runner.missing(self.chosen, self.setting, self.ledger))
            raise stopped(f"{left} pieces of work are left. The same command goes on from there.") from None
        self._page()

    def _cells(self, cells: list[Any]) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        from normball.experiments import runner

        whole = {cell.key("") for each in self.chosen for cell in each.cells(self.setting)}
        done = len(whole) - len(cells)
        if done:
            self.console.print(f"{done} of {len(whole)} pieces of work were done before.")
        start = time.perf_counter()
        columns = (TextColumn("{task.description:24s}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console) as progress:
            task = progress.add_task("starting", total=len(whole), completed=done)
            runner.run(
                cells, self.ledger, self.jobs,
                lambda cell: progress.update(task, advance=1, description=cell.work.name),
            )  # fmt: skip
            progress.update(task, description="measured")
        self.console.print(f"{len(cells)} pieces of work in {time.perf_counter() - start:.0f} s")

    def _page(self) -> None:
        from normball.experiments import output, runner
        from normball.experiments.environment import environment

        findings: list[output.Finding] = []
        seeds: set[int] = set()
        busy: list[float] = []
        for each in self.chosen:
            rows = runner.data_of(each, self.setting, self.ledger)
            findings.append(output.find(each, rows, self.out))
            seeds.update(rows.get("seed", ()))
            busy += list(rows.get("busy", ()))
            outcome = findings[-1].verdict.outcome
            typer.echo(f"{output.MARKS[outcome]} {each.id:22s} {outcome}")
        told = environment(sorted(int(seed) for seed in seeds), self.setting.quick)
        told["others_cpus"] = round(sum(busy) / len(busy), 2) if busy else 0.0
        typer.echo(f"\n{output.write_page(findings, told, self.out)}")
