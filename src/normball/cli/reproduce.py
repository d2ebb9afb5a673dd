"""``normball reproduce``: the paper's figures and tables, made anew."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from normball.cli._backend import Backend, Scheduler, running_on


def reproduce(
    out: Annotated[
        Path, typer.Option(help="The folder to write into; what it holds already is not computed again.")
    ] = Path("paper"),
    only: Annotated[list[str] | None, typer.Option(help="One figure or table, such as fig:radius. Repeatable.")] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="A table of your own: FILE, with labels in the column 'label', FILE:COLUMN, or FILE:row=LINE "
            "for samples in columns. Repeatable."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: to see that it works, not to quote.")] = False,
    jobs: Annotated[int, typer.Option(help="Fits side by side; 0: as many as there are CPUs.", min=0)] = 0,
    backend: Backend = None,
    scheduler: Scheduler = None,
    retime: Annotated[bool, typer.Option("--retime", help="Take times anew, such as those of a busy hour.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the figures and tables, and stop.")] = False,
) -> None:
    """Make the paper's figures and tables anew, with a verdict on each claim: OUT/index.html.

    Times are taken one by one on an otherwise idle machine; the rest runs side by side. Stopped or killed, the same
    command goes on where it was.
    """
    from rich.console import Console

    from normball.experiments import registry, tables
    from normball.experiments.experiment import Setting

    console = Console()
    try:
        chosen = registry.chosen(only or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from error
    if list_:
        for each in chosen:
            console.print(f"{each.id:22s} {each.title} ({each.place})", highlight=False)
        return
    for table in data or ():
        try:
            tables.load(table)  # now, and not after half an hour
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--data") from error
    setting = Setting(quick, tuple(map(tables.absolute, data or ())))
    with running_on(backend, scheduler):
        _Run(console, chosen, setting, out, jobs).all(retime)


class _Run:
    """One run, from the cells that are missing to the page."""

    def __init__(self, console: Any, chosen: list[Any], setting: Any, out: Path, jobs: int) -> None:
        from normball.experiments.environment import cpus
        from normball.experiments.ledger import Ledger

        self.console, self.chosen, self.setting, self.out = console, chosen, setting, out
        self.jobs = jobs or cpus()
        self.ledger = Ledger(out / ".progress" / "cells.jsonl")

    def all(self, retime: bool) -> None:
        from normball.experiments import runner

        cells = runner.missing(self.chosen, self.setting, self.ledger, retime)
        try:
            self._cells(cells)
        except KeyboardInterrupt:
            left = len(runner.missing(self.chosen, self.setting, self.ledger))
            self.console.print(f"\nStopped; {left} pieces of work are left. The same command goes on from here.")
            raise typer.Exit(130) from None
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
        self.out.mkdir(parents=True, exist_ok=True)
        for each in self.chosen:
            rows = runner.data_of(each, self.setting, self.ledger)
            findings.append(output.find(each, rows, self.out))
            seeds.update(rows.get("seed", ()))
            busy += list(rows.get("busy", ()))
            outcome = findings[-1].verdict.outcome
            self.console.print(f"{output.MARKS[outcome]} {each.id:22s} {outcome}", highlight=False)
        told = environment(sorted(int(seed) for seed in seeds), self.setting.quick)
        told["others_cpus"] = round(sum(busy) / len(busy), 2) if busy else 0.0
        self.console.print(f"\n{output.write_page(findings, told, self.out)}", highlight=False, soft_wrap=True)
