"""The work of the projection experiments: all algorithms on one matrix, by turns, once they are seen to agree."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

import normball
from normball.experiments.environment import cpus, others_seconds
from normball.experiments.experiment import Cell, Row, work

__all__ = ["ALGORITHMS", "COPY", "DEFAULT", "DISTRIBUTIONS", "PAPERS", "RIVALS", "matrix", "order", "threads", "times"]

DEFAULT, PAPERS, COPY = "newton", "inverse_total_order", "copy"
RIVALS = ("semismooth_newton", "active_set", "total_order")
ALGORITHMS = (DEFAULT, PAPERS, *RIVALS)

Matrix = npt.NDArray[Any]
Shape = tuple[int, int]

# Each fills (groups, members): the transpose has contiguous groups, as the paper's programs have.
DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, Shape], Matrix]] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "lognormal": lambda rng, shape: rng.lognormal(sigma=2.0, size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "ties": lambda rng, shape: rng.integers(-3, 4, size=shape).astype(np.float64),
    "geometric": lambda rng, shape: rng.standard_normal(shape) * np.geomspace(1.0, 1e-6, shape[0])[:, None],
}


def matrix(distribution: str, members: int, groups: int, seed: int, dtype: str = "float64") -> Matrix:
    """Return the same matrix for the same arguments: members down, groups across."""
    rng = np.random.default_rng([seed, members, groups])
    return np.asarray(DISTRIBUTIONS[distribution](rng, (groups, members)).astype(dtype, copy=False).T)


def radius_at(Y: Matrix, at: str, value: float) -> float:
    """Return a radius, given as such, as a part of the norm, or by the share of groups that become zero.

    A group becomes zero where its sum is at most theta; and what is left of `Y` at a theta has the radius as its norm.
    """
    if at == "radius":
        return value
    if at == "norm":
        return value * float(normball.norm_l1inf(Y))
    sums = np.sort(np.abs(Y).sum(0, dtype=np.float64))
    zeros = min(round(value * len(sums)), len(sums) - 1)  # something is left
    theta = sums[0] * (1 - 1e-6) if zeros == 0 else (sums[zeros - 1] + sums[zeros]) / 2
    return float(normball.norm_l1inf(normball.prox_l1inf(Y.astype(np.float64), float(theta))))


def by_turns(
    actions: dict[str, Callable[[], Any]],
    budget: float,
    least: int = 3,
    most: int = 15,
    clock: Callable[[], float] = time.process_time,
) -> list[Row]:
    """Time actions by turns; each goes on until its share of seconds is spent.

    What runs on one thread is timed by its CPU time: on an idle machine the time of the clock, and on a busy one free
    of the turns that other programs take.
    """
    spent: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(most):
        for name, action in actions.items():
            taken = spent[name]
            if len(taken) < least or sum(taken) < budget:
                start = clock()
                action()
                taken.append(clock() - start)
    return [
        {"algorithm": name, "ms": 1e3 * median(taken), "ms_least": 1e3 * min(taken), "rounds": len(taken)}
        for name, taken in spent.items()
    ]


def check_agreement(results: dict[str, Matrix], Y: Matrix) -> None:
    """Raise unless all results are the same to rounding: no time counts before this."""
    bound = 256 * float(np.finfo(Y.dtype).eps) * float(np.abs(Y).max())
    first, *others = results
    for other in others:
        apart = float(np.abs(results[first] - results[other]).max())
        if not apart <= bound:
            raise ArithmeticError(f"{first} and {other} differ by {apart:.3g} on a {Y.shape} matrix: nothing was timed")


def projector(Y: Matrix, X: Matrix, radius: float, method: str, count: int = 1) -> Callable[[], Any]:
    """Return the call that is timed: columns are the groups, and the result goes into an array that exists."""
    return lambda: normball.project_l1inf(Y, radius, method=method, out=X, threads=count)


@work(version=2, timed=True)
def times(
    members: int,
    groups: int,
    at: str,
    value: float,
    methods: Sequence[str],
    distribution: str,
    dtype: str,
    seed: int,
    budget: float,
) -> list[Row]:
    """Time algorithms and a copy on one matrix at one radius; one thread, into an array that exists."""
    Y = matrix(distribution, members, groups, seed, dtype)
    radius = radius_at(Y, at, value)
    results, infos = {}, {}
    for method in methods:
        results[method], infos[method] = normball.project_l1inf(Y, radius, method=method, threads=1, return_info=True)
    check_agreement(results, Y)
    info = infos[methods[0]]
    X = np.empty_like(Y)
    actions: dict[str, Callable[[], Any]] = {COPY: lambda: np.copyto(X, Y)}
    actions |= {method: projector(Y, X, radius, method) for method in methods}
    before, start = others_seconds(), time.perf_counter()
    rows = by_turns(actions, budget)
    busy = max(0.0, others_seconds() - before) / (time.perf_counter() - start)
    shared = {
        "radius": radius,
        "zeros": 1.0 - info.n_nonzero / groups,
        "theta": float(info.theta),
        "norm": float(normball.norm_l1inf(Y)),
        "busy": busy,
    }
    return [row | shared for row in rows]


@work(version=1)
def order(members: int, groups: int, distribution: str, seed: int, zeros: Sequence[float]) -> list[Row]:
    """Count the steps of the paper's algorithm along the total order, at radii that leave these shares zero."""
    Y = matrix(distribution, members, groups, seed)
    rows = []
    for share in zeros:
        _, info = normball.project_l1inf(Y, radius_at(Y, "zeros", share), method=PAPERS, return_info=True)
        kept = 100.0 * info.kept / Y.size
        steps = 100.0 * info.order_steps / Y.size
        rows.append({"zeros": 1.0 - info.n_nonzero / groups, "J_percent": steps, "kept_percent": kept})
    return rows


@work(version=2, timed=True)
def threads(members: int, groups: int, zeros: float, dtype: str, seed: int, counts: Sequence[int]) -> list[Row]:
    """Time the default with more and more threads, after a look that the bits are the same."""
    Y = matrix("uniform", members, groups, seed, dtype)
    radius = radius_at(Y, "zeros", zeros)
    X = np.empty_like(Y)
    one = normball.project_l1inf(Y, radius, threads=1)
    for count in counts:
        if not np.array_equal(one, normball.project_l1inf(Y, radius, threads=count)):
            raise ArithmeticError(f"{count} threads give other bits than one")
    actions = {str(count): projector(Y, X, radius, DEFAULT, count) for count in counts}
    before, start = others_seconds(), time.perf_counter()
    rows = by_turns({COPY: lambda: np.copyto(X, Y)} | actions, budget=1.0, most=25, clock=time.perf_counter)
    busy = max(0.0, others_seconds() - before) / (time.perf_counter() - start)
    used = {row["algorithm"]: 1 if row["algorithm"] == COPY else int(row["algorithm"]) for row in rows}
    return [row | {"threads": used[row["algorithm"]], "busy": busy} for row in rows]


def sweep(
    sizes: Sequence[Shape],
    at: str,
    values: Sequence[float],
    *,
    methods: Sequence[str] = ALGORITHMS,
    distributions: Sequence[str] = ("uniform",),
    dtypes: Sequence[str] = ("float64",),
    budget: float = 0.5,
) -> list[Cell]:
    """Return the cells of a sweep."""
    return [
        times(
            members=members, groups=groups, at=at, value=float(value), methods=list(methods),
            distribution=distribution, dtype=dtype, seed=0, budget=budget,
        )
        for distribution in distributions for dtype in dtypes for members, groups in sizes for value in values
    ]  # fmt: skip


def thread_counts() -> list[int]:
    """Return 1, 2, 4 ... up to all the CPUs."""
    counts = [1]
    while counts[-1] * 2 <= cpus():
        counts.append(counts[-1] * 2)
    return counts if counts[-1] == cpus() else [*counts, cpus()]
