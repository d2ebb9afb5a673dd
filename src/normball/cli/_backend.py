"""Where the tasks of a command run: two options, and what they mean to joblib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

__all__ = ["Backend", "Scheduler", "running_on"]

BACKENDS = ("loky", "threading", "dask", "ray")

_PANEL = "Cluster"
Backend = Annotated[
    str | None,
    typer.Option(help=f"Where tasks run: {', '.join(BACKENDS)}; if not given, processes here.", rich_help_panel=_PANEL),
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Address of the cluster, as tcp://host:8786; else one is started.", rich_help_panel=_PANEL),
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

    if backend is not None and backend not in BACKENDS:
        raise typer.BadParameter(f"expected one of {', '.join(BACKENDS)}, got {backend!r}", param_hint="--backend")
    if scheduler is not None and backend not in ("dask", "ray"):
        raise typer.BadParameter("expected --backend dask or ray with an address", param_hint="--scheduler")
    if backend is None:
        yield
    elif backend == "dask":
        try:
            import distributed
        except ImportError as error:
            raise ImportError(f"--backend dask needs an extra: pip install normball[cluster]  ({error})") from error
        client = distributed.Client(scheduler)  # type: ignore[no-untyped-call]
        with client, parallel_config(backend="dask", client=client):
            yield
    elif backend == "ray":
        try:
            import ray
            from ray.util.joblib import register_ray
        except ImportError as error:
            raise ImportError(f"--backend ray needs ray: pip install ray  ({error})") from error
        ray.init(address=scheduler, ignore_reinit_error=True)
        register_ray()
        with parallel_config(backend="ray"):
            yield
    else:
        with parallel_config(backend=backend):
            yield
