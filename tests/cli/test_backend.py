"""The options that say where tasks run."""

import pytest
import typer
from joblib import Parallel, delayed
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
    for wrong in (["--backend", "thread"], ["--scheduler", "tcp://nowhere:1"]):
        done = run(app, wrong)
        assert done.exit_code == 2
        assert "expected" in done.output


def test_a_cluster_by_its_address():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        running_on("dask", cluster.scheduler_address),
    ):
        assert Parallel()(delayed(abs)(x) for x in (-1, 2)) == [1, 2]
