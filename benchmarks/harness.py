"""Timing: a solver and a copy by turns, each verified before its time counts, as one record per measurement."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.machine import Machine
from benchmarks.matrices import Point
from benchmarks.verify import WrongResultError, verify

Record = dict[str, Any]
Action = Callable[[], Any]

MILLION = 1_000_000
VERY_SLOW = 0.5  # seconds
STRETCH = 5e-3  # seconds of the fastest action: a few ticks of the system's clock


@dataclass(frozen=True)
class Solver:
    """A way to project with groups along axis 0: ``project(Y, radius, out=, threads=, warm_start=, return_info=)``."""

    name: str
    project: Callable[..., Any]
    everywhere: bool = False  # else only where `takes` says, to bound the time
    largest: int | None = None  # elements

    def takes(self, distribution: str, elements: int) -> bool:
        if self.largest is not None and elements > self.largest:
            return False
        return self.everywhere or distribution == "normal" or (distribution == "uniform" and elements <= MILLION)


@dataclass
class Bench:
    """What every case is given."""

    machine: Machine
    solvers: dict[str, Solver]
    quick: bool = False
    records: list[Record] = field(default_factory=list)
    on_record: Callable[[Record], None] = lambda record: None
    _told: float = 0.0

    @property
    def budget(self) -> float:
        """Seconds that one measurement may take, unless its fewest repeats take longer."""
        return 0.02 if self.quick else 0.12

    def emit(self, record: Record) -> None:
        self.records.append(record)
        self.on_record(record)

    @contextmanager
    def guarding(self, about: Record) -> Iterator[None]:
        """Turn a wrong result into a record that says so, and go on."""
        try:
            yield
        except WrongResultError as error:
            self.emit(about | {"kind": "wrong", "error": str(error)})

    def progress(self, text: str) -> None:
        """One line on stderr that overwrites itself, at most ten times a second."""
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._told > 0.1:
            sys.stderr.write(f"\r\x1b[K{len(self.records):5d} measured   {text}")
            sys.stderr.flush()
            self._told = now
        elif not sys.stderr.isatty() and now - self._told > 30:
            print(f"{len(self.records):5d} measured   {text}", file=sys.stderr, flush=True)
            self._told = now


def timed(action: Action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def by_turns(actions: dict[str, Action], *, prepare: Action, budget: float, fewest: int) -> dict[str, list[float]]:
    """Time the actions in turn, round after round; `prepare` runs untimed before each of them.

    The times of each action are means over stretches of rounds, so long that interruptions cost all actions the same
    share: of single calls, those shorter than the time from one tick of the clock to the next mostly meet none.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    start, rounds = time.perf_counter(), 0
    while rounds < fewest or (rounds < 101 and time.perf_counter() - start < budget):
        for name, action in actions.items():
            prepare()
            times[name].append(timed(action))
        rounds += 1
    stretch = math.ceil(STRETCH / min(median(spent) for spent in times.values()))
    stretch = max(1, min(stretch, rounds // fewest))
    starts = range(0, rounds - stretch + 1, stretch)
    return {name: [mean(spent[i : i + stretch]) for i in starts] for name, spent in times.items()}


def measure(
    bench: Bench,
    solver: Solver,
    Y: npt.NDArray[Any],
    radius: float,
    *,
    target: str = "out",
    threads: int = 1,
    warm_start: Any = None,
    buffer: npt.NDArray[Any],
) -> Record:
    """Time one projection against a copy that ends in the same place.

    `target` is ``new`` (against ``Y.copy``), ``out`` or ``in place`` (both against ``np.copyto``).
    """
    options: dict[str, Any] = {"threads": threads}
    if warm_start is not None:
        options["warm_start"] = warm_start

    def nothing() -> None: ...

    def fill() -> None:
        np.copyto(buffer, Y)

    prepare: Action = nothing
    copy: Action = fill
    if target == "new":
        solve: Action = lambda: solver.project(Y, radius, **options)  # noqa: E731
        copy = lambda: Y.copy(order="K")  # noqa: E731
    elif target == "out":
        solve = lambda: solver.project(Y, radius, out=buffer, **options)  # noqa: E731
    else:
        solve = lambda: solver.project(buffer, radius, out=buffer, **options)  # noqa: E731
        prepare = fill

    prepare()
    started = time.perf_counter()
    X = solve()
    first = time.perf_counter() - started
    verdict = verify(Y, X, radius)
    del X
    # What a slow solver costs next to a copy is told well enough by one call or two.
    if first > VERY_SLOW:
        times = {"solve": [first], "copy": [timed(copy) for _ in range(5)]}
    else:
        fewest = 1 if first > 2 * bench.budget else 3 if bench.quick else 5
        times = by_turns({"copy": copy, "solve": solve}, prepare=prepare, budget=bench.budget, fewest=fewest)
    seconds, copy_seconds = median(times["solve"]), median(times["copy"])
    return {
        "kind": "time",
        "method": solver.name,
        "target": target,
        "threads": threads,
        "start": "cold" if warm_start is None else "warm",
        "seconds": seconds,
        "copy_seconds": copy_seconds,
        "ratio": seconds / copy_seconds,
        "repeats": len(times["solve"]),
        "residual": verdict.residual,
        "zero_share": verdict.zero_share,
    }


def describe(
    bench: Bench, Y: npt.NDArray[Any], *, layout: str, distribution: str, point: Point, radius: float
) -> Record:
    """Tell what every record tells about its matrix and radius."""
    return {
        "members": Y.shape[0],
        "groups": Y.shape[1],
        "dtype": Y.dtype.name,
        "layout": layout,
        "distribution": distribution,
        "point": str(point),
        "radius": radius,
        "fits_cache": Y.nbytes <= bench.machine.last_cache,
    }
