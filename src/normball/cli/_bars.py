"""Progress of a study: bars on a terminal, plain lines elsewhere, both on standard error."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

__all__ = ["Bars"]

_BEGAN = {
    "again": "going on where it stopped: {done} of {total} parts are finished",
    "anew": "the table or a setting has changed since the last run into this folder: starting anew",
}


def _place(unit: tuple[Any, ...]) -> tuple[str, str]:
    """Return the bar a unit belongs to, and what it is."""
    if unit[0] == "fold":
        return f"seed {unit[1] + 1}", f"seed {unit[1] + 1}, fold {unit[2] + 1}"
    if unit[0] == "permutation":
        return "permutations", f"permutation {unit[1] + 1}"
    return "final model", "final model"


class Bars:
    """Listens to a study; use as a context."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self._console, self._quiet = console, quiet
        self._live = console.is_terminal and not quiet
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _Left(),
            console=console,
            disable=not self._live,
        )
        self._tasks: dict[str, Any] = {}
        self._began, self._fresh = time.monotonic(), 0

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        """Take what a study tells."""
        if self._quiet:
            return
        if event["event"] == "start":
            self._start(event)
            return
        bar, name = _place(event["unit"])
        self._fresh += 1
        if self._live:
            self._bars.advance(self._tasks["all"])
            self._bars.advance(self._tasks[bar])
        else:
            pace = (time.monotonic() - self._began) / self._fresh
            left = pace * (event["total"] - event["done"])
            self._console.print(
                f"{name}: {event['seconds']:.1f} s; {event['done']} of {event['total']} parts, about {left:.0f} s left"
            )

    def _start(self, event: dict[str, Any]) -> None:
        self._began = time.monotonic()
        if event["began"] in _BEGAN and (event["done"] or event["began"] == "anew"):
            self._console.print(_BEGAN[event["began"]].format(**event))
        if not self._live:
            return
        self._tasks["all"] = self._bars.add_task("all", total=event["total"], completed=event["done"])
        for unit in event["units"]:
            name = _place(unit)[0]
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=0)
            self._bars.update(self._tasks[name], total=self._bars.tasks[self._tasks[name]].total + 1)
        for unit in event["finished"]:
            self._bars.advance(self._tasks[_place(unit)[0]])


class _Left(TimeRemainingColumn):
    """The time left of the whole; of its parts it says little."""

    def render(self, task: Any) -> Text:
        """Return it, in words."""
        return super().render(task) if task.description == "all" else Text("")
