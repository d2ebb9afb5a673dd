"""Where the tasks of a command run: three options, and what they mean to joblib."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import typer

__all__ = ["Backend", "Jobs", "Scheduler", "running_on"]

_PANEL = "Where it runs"
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1, help="The number of tasks to run at the same time. By default one for each CPU.", rich_help_panel=_PANEL
    ),
]
Backend = Annotated[
    Literal["loky", "threading", "dask", "ray"] | None,
    typer.Option(
        help="What runs the tasks: processes (loky, the default) or threads here, or a cluster of dask or ray.",
        rich_help_panel=_PANEL,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="The address of the cluster, such as tcp://host:8786. By default a cluster is started on this machine.",
        rich_help_panel=_PANEL,
    ),
]


@contextmanager
def running_on(backend: str | None, scheduler: str | None) -> Iterator[None]:
    """Run what joblib is given on this backend.

    Examples
    --------
    >>> from normball.cli._backend import running_on
    >>> from joblib import Parallel, delayed
    >>> with running_on("threading", None):
    ...     Parallel(n_jobs=2)(delayed(abs)(x) for x in (-1, 2))
    [1, 2]
    """
    from joblib import parallel_config

    if scheduler is not None and backend not in ("dask", "ray"):
        raise ValueError(f"scheduler: expected --backend dask or ray with an address, got {backend or 'none'}")
    if backend == "dask":
        try:
            import distributed
        except ImportError as error:
            raise ImportError(f"--backend dask needs an extra: pip install normball[cluster]  ({error})") from error
        with _undisturbed():
            client = distributed.Client(scheduler)  # type: ignore[no-untyped-call]
        with client, parallel_config(backend="dask", client=client):
            yield
    elif backend == "ray":
        try:
            import ray
            from ray.util.joblib import register_ray
        except ImportError as error:
            raise ImportError(f"--backend ray needs ray: pip install ray  ({error})") from error
        with _undisturbed():
            ray.init(address=scheduler, ignore_reinit_error=True)
        register_ray()
        with parallel_config(backend="ray"):
            yield
    elif backend == "threading":
        with parallel_config(backend="threading"):
            yield
    else:
        with parallel_config(backend=_processes()):
            yield


def _processes() -> Any:
    """Return joblib's own backend of processes, which start undisturbed."""
    from joblib._parallel_backends import LokyBackend

    class Undisturbed(LokyBackend):  # type: ignore[misc]
        def submit(self, *arguments: Any, **more: Any) -> Any:
            with _undisturbed():
                return super().submit(*arguments, **more)

    return Undisturbed()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Start processes that take no notice of Ctrl-C, which reaches all that belong to a terminal.

    The command itself ends its workers then, and says what is left to do. What a process ignores, those that it starts
    ignore too.
    """
    if threading.current_thread() is not threading.main_thread():  # where signals cannot be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
