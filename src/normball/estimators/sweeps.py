"""Many fits of the same data, on whatever joblib is told to use: threads, processes, a cluster.

The result does not depend on where a task runs: each computes on one thread, and gets all it needs from its arguments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

import torch
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

__all__ = ["sweep"]

_LOSSES = 5  # pools that break in a row, with no task finished in between, before the sweep gives up

Task = tuple[Any, ...]


def sweep(
    function: Callable[..., Any],
    tasks: Iterable[Sequence[Any]],
    *,
    shared: Sequence[Any] = (),
    n_jobs: int | None = None,
    prefer: str | None = None,
) -> Iterator[tuple[int, Any]]:
    """Call ``function(*shared, *task)`` for each task; yield the number of each task and its result, as they come.

    A task that raises ends the sweep. A worker that is lost costs the tasks that it had under way, which are run again,
    on a dask cluster as often as its setting ``distributed.scheduler.allowed-failures`` allows.

    Parameters
    ----------
    function : callable
        What to compute. On processes and clusters it must be picklable.
    tasks : iterable of sequences
        The arguments of each call.
    shared : sequence
        The arguments that all the calls share. They are sent once: to processes as a memory map, to a dask cluster
        through its scheduler, which holds them until the end of the sweep.
    n_jobs, prefer
        See `joblib.Parallel`. ``joblib.parallel_config(backend="loky" | "dask" | "ray", ...)`` takes precedence.

    Yields
    ------
    number : int
        The place of the task among the tasks.
    result
        What the function returned.

    Examples
    --------
    >>> import numpy as np
    >>> from normball.estimators.sweeps import sweep
    >>> X = np.arange(6.0)
    >>> sorted(sweep(lambda X, k: float(X[:k].sum()), [(2,), (3,)], shared=(X,)))
    [(0, 1.0), (1, 3.0)]
    """
    waiting = {number: tuple(task) for number, task in enumerate(tasks)}
    backend, _ = get_active_backend()
    with _one_thread():
        if hasattr(backend, "client"):
            with backend.retrieval_context():  # within a task of the cluster: give up its thread while waiting
                yield from _on_cluster(backend.client, function, waiting, shared)
        else:
            yield from _on_this_machine(function, waiting, shared, n_jobs, prefer)


def _on_this_machine(
    function: Callable[..., Any],
    waiting: dict[int, Task],
    shared: Sequence[Any],
    n_jobs: int | None,
    prefer: str | None,
) -> Iterator[tuple[int, Any]]:
    home, losses = os.getpid(), 0
    while waiting:
        calls = [delayed(_run)(home, function, number, task, *shared) for number, task in waiting.items()]
        try:
            found = Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator_unordered", batch_size=1)(calls)
            for number, result in found:
                del waiting[number]
                losses = 0
                yield number, result
        except BrokenProcessPool:
            losses += 1
            if losses >= _LOSSES:
                raise


def _on_cluster(
    client: Any, function: Callable[..., Any], tasks: Mapping[int, Task], shared: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Leave it to dask, whose scheduler runs tasks of lost workers again.

    The shared data are results of tasks themselves. So dask makes them anew when the last worker that holds them is
    lost; data that are scattered it could not.
    """
    import dask

    from distributed import as_completed

    home = os.getpid()
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):  # the data are sent once
        held = [client.submit(_same, each, pure=False) for each in shared]
    futures = {
        client.submit(_run, home, function, number, task, *held, pure=False): number
        for number, task in tasks.items()
    }
    try:
        for future in as_completed(futures):  # type: ignore[no-untyped-call]
            found = future.result()
            del futures[future], future  # or dask would compute it again, were its worker lost
            yield found
    finally:
        if futures:  # the sweep ends early
            client.cancel(list(futures))


def _same(value: Any) -> Any:
    return value


def _run(home: int, function: Callable[..., Any], number: int, task: Task, *shared: Any) -> Any:
    if os.getpid() != home:  # in a process of its own, where nothing else computes
        torch.set_num_threads(1)
        threadpool_limits(1)
    return number, function(*shared, *task)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
