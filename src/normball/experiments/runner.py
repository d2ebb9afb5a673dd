"""Runs cells: those that are timed alone and one by one, the others side by side; what is done is not done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd

from normball.experiments.environment import cpu_model, instruction_set
from normball.experiments.experiment import Cell, Experiment, Row, Setting
from normball.experiments.ledger import Ledger

__all__ = ["data_of", "machine_name", "missing", "run"]

Told = Callable[[Cell], None]


def machine_name() -> str:
    """Return what times belong to."""
    return f"{cpu_model()}, {instruction_set()}"


def missing(chosen: Iterable[Experiment], setting: Setting, ledger: Ledger, retime: bool = False) -> list[Cell]:
    """Return the cells that are not done, each once, the timed ones first: the machine is coolest then.

    With `retime`, the timed ones that are done too: a later result replaces an earlier one.
    """
    machine = machine_name()
    cells = {cell.key(machine): cell for each in chosen for cell in each.cells(setting)}
    wanted = (cell for key, cell in cells.items() if key not in ledger or (retime and cell.work.timed))
    return sorted(wanted, key=lambda cell: not cell.work.timed)


def _done(cell: Cell) -> tuple[Cell, list[Row], float]:
    start = time.perf_counter()
    rows = cell.rows()
    return cell, rows, time.perf_counter() - start


def _side_by_side(cells: list[Cell], jobs: int) -> Iterator[tuple[Cell, list[Row], float]]:
    from normball.estimators.sweeps import sweep

    for _, done in sweep(_done, [(cell,) for cell in cells], n_jobs=jobs):
        yield done


def run(cells: list[Cell], ledger: Ledger, jobs: int, told: Told) -> None:
    """Do the cells, keep each result as it comes, and tell of it."""
    machine = machine_name()
    timed = [cell for cell in cells if cell.work.timed]
    others = [cell for cell in cells if not cell.work.timed]
    for results in (map(_done, timed), _side_by_side(others, jobs)):
        for cell, rows, seconds in results:
            ledger.add(cell.key(machine), rows, seconds)
            told(cell)


def data_of(each: Experiment, setting: Setting, ledger: Ledger) -> pd.DataFrame:
    """Return the rows of an experiment, with the parameters of their cells."""
    machine = machine_name()
    rows = []
    for cell in each.cells(setting):
        shared: dict[str, Any] = {name: value for name, value in cell.params.items() if _plain(value)}
        rows += [shared | row for row in ledger[cell.key(machine)]]
    return pd.DataFrame(rows)


def _plain(value: Any) -> bool:
    return isinstance(value, (str, int, float))
