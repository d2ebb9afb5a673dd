"""What an experiment is: a claim, cells of work, a picture of their results, and a verdict by a stated rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import normball

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "FAILS",
    "HOLDS",
    "IN_PART",
    "NOT_MEASURED",
    "PAPER",
    "Cell",
    "Experiment",
    "Row",
    "Setting",
    "Verdict",
    "Work",
    "work",
]

HOLDS, IN_PART, FAILS, NOT_MEASURED = "holds", "holds in part", "does not hold", "not measured"
PAPER = "the paper"

Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What the user asked for: small sizes, and tables of their own."""

    quick: bool = False
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Work:
    """A function from parameters to rows. The version is to be raised where the same parameters give other rows."""

    name: str
    run: Callable[..., list[Row]]
    version: int
    timed: bool


@dataclass(frozen=True)
class Cell:
    """The smallest piece of work that is kept: a pure function of its parameters, but for the clock."""

    work: Work
    params: Mapping[str, Any]

    def key(self, machine: str) -> str:
        """Return what tells this cell from others. Times belong to a machine, other results do not."""
        where = machine if self.work.timed else ""
        return json.dumps([self.work.name, self.work.version, normball.__version__, where, self.params], sort_keys=True)

    def rows(self) -> list[Row]:
        """Do the work."""
        return self.work.run(**self.params)


def work(version: int, *, timed: bool = False) -> Callable[[Callable[..., list[Row]]], Callable[..., Cell]]:
    """Make of a function what makes cells of it: calling it only notes the parameters."""

    def made(function: Callable[..., list[Row]]) -> Callable[..., Cell]:
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__.removeprefix('_')}"
        described = Work(name, function, version, timed)
        return lambda **params: Cell(described, params)

    return made


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Attributes
    ----------
    outcome : str
        One of ``HOLDS``, ``IN_PART``, ``FAILS`` and ``NOT_MEASURED``.
    here : str
        What the paper's algorithm and settings give here.
    default : str
        What the default of this package gives.
    remedy : str
        Where the claim does not hold, what would make it hold.
    numbers : dict
        What the rule looked at.
    """

    outcome: str
    here: str
    default: str = ""
    remedy: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


def _no_table(data: pd.DataFrame) -> pd.DataFrame | None:
    return None


@dataclass(frozen=True)
class Experiment:
    """One figure or table.

    Attributes
    ----------
    id : str
        As in ``--only``: ``fig:radius``.
    place : str
        Where the paper has it, or that it goes beyond.
    claim : str
        In one sentence, and whose.
    rule : str
        From which data to which verdict, in words; `judge` is the same in code.
    cells : callable
        From a `Setting` to the cells.
    draw, judge, table : callable
        From the rows of the cells to the picture, the verdict and, if there is one, a table to be shown.
    needs : str
        What has to be there, where `cells` may come out empty.
    """

    id: str
    title: str
    place: str
    claim: str
    rule: str
    cells: Callable[[Setting], list[Cell]]
    draw: Callable[[pd.DataFrame], Figure]
    judge: Callable[[pd.DataFrame], Verdict]
    table: Callable[[pd.DataFrame], pd.DataFrame | None] = _no_table
    says: str = ""  # the paper's numbers, where it states any
    needs: str = ""

    @property
    def stem(self) -> str:
        """The name of its files."""
        return self.id.replace(":", "-")
