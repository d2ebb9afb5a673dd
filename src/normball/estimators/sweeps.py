"""Many fits of the same data, on whatever joblib is told to use: threads, processes, a cluster.

The result does not depend on where a task runs: each computes on one thread, and gets all it needs from its arguments.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

__all__ = ["sweep"]

_LOSSES = 5  # of workers, or of whole pools, before it is given up


def sweep(
    function: Callable[..., Any],
    tasks: Iterable[Sequence[Any]],
    *,
    shared: Sequence[Any] = (),
    n_jobs: int | None = None,
    prefer: str | None = None,
) -> Iterator[tuple[int, Any]]:
    """Call ``function(*shared, *task)`` for each task; yield the number of each task and its result, as they come.

    Where they run is for joblib: ``joblib.parallel_config(backend="loky" | "dask" | "ray", ...)``, else `n_jobs` and
    `prefer`. What is `shared` is sent once: to processes as a memory map, to the workers of a dask cluster as one copy
    each. A worker that is lost costs the tasks that it had under way, which are run again; a task that raises ends the
    sweep.

    Examples
    --------
    >>> import numpy as np
    >>> from normball.estimators.sweeps import sweep
    >>> X = np.arange(6.0)
    >>> sorted(sweep(lambda X, k: float(X[:k].sum()), [(2,), (3,)], shared=(X,)))
    [(0, 1.0), (1, 3.0)]
    """
    waiting = {number: tuple(task) for number, task in enumerate(tasks)}
    home, losses = os.getpid(), 0
    with _held(shared), _one_thread():
        while waiting:
            calls = [delayed(_run)(home, function, number, task, *shared) for number, task in waiting.items()]
            try:
                found = Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator_unordered", batch_size=1)(calls)
                for number, result in found:
                    del waiting[number]
                    yield number, result
            except _lost():
                losses += 1
                if losses >= _LOSSES:
                    raise


def _run(home: int, function: Callable[..., Any], number: int, task: tuple[Any, ...], *shared: Any) -> Any:
    if os.getpid() != home:  # in a process of its own, where nothing else computes
        torch.set_num_threads(1)
        threadpool_limits(1)
    return number, function(*shared, *task)


def _held(shared: Sequence[Any]) -> AbstractContextManager[Any]:
    """Have a cluster hold the data: a copy on each worker, so that none of them is missed."""
    backend, _ = get_active_backend()
    client = getattr(backend, "client", None)
    if client is None or not shared:
        return nullcontext()
    held: AbstractContextManager[Any] = parallel_config(backend="dask", client=client, scatter=list(shared))
    return held


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def _lost() -> tuple[type[BaseException], ...]:
    """Return what tells of a worker that is gone."""
    scheduler = sys.modules.get("distributed.scheduler")
    return (BrokenProcessPool, CancelledError, *([scheduler.KilledWorker] if scheduler is not None else []))
