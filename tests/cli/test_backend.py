"""The options that say where tasks run."""

import signal

import pytest
import typer
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import get_active_backend

from normball.cli._backend import Backend, Scheduler, running_on


def test_options_reach_joblib():
    from typer.testing import CliRunner

    app = typer.Typer()

    @app.command()
    def work(backend: Backend = None, scheduler: Scheduler = None):
        with running_on(backend, scheduler):
            typer.echo(type(get_active_backend()[0]).__name__)
            typer.echo(Parallel(n_jobs=1)(delayed(abs)(x) for x in (-1, 2)))

    run = CliRunner().invoke
    assert "ThreadingBackend" in run(app, ["--backend", "threading"]).output
    assert "[1, 2]" in run(app, []).output
    assert run(app, ["--backend", "thread"]).exit_code == 2
    with pytest.raises(ValueError, match="scheduler: expected --backend dask or ray with an address, got threading"):
        run(app, ["--backend", "threading", "--scheduler", "tcp://nowhere:1"], catch_exceptions=False)


def test_processes_take_no_notice_of_interrupts():
    get_reusable_executor().shutdown()  # workers of an earlier test would be used again
    with running_on(None, None):
        there = Parallel(n_jobs=2)(delayed(signal.getsignal)(signal.SIGINT) for _ in range(2))
    get_reusable_executor().shutdown()  # to joblib, workers that were small would have grown by a leak later
    assert there == [signal.SIG_IGN] * 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_cluster_by_its_address():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        running_on("dask", cluster.scheduler_address),
    ):
        assert Parallel()(delayed(abs)(x) for x in (-1, 2)) == [1, 2]
