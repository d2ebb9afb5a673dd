"""Sweeps: the same results wherever they run, data sent once, and workers that may be lost."""

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import cross_validate

from normball.estimators import StabilitySelection, SupervisedAutoencoder
from normball.estimators.sweeps import sweep


def table(seed=0, samples=80, features=12):
    y = np.arange(samples) % 2
    X = np.random.default_rng(seed).normal(size=(samples, features))
    X[:, :2] += 1.5 * y[:, None]
    return X, y


class Counted:
    """Data that write a line to a file each time they are sent."""

    def __init__(self, values, path):
        self.values, self.path = values, path

    def __reduce__(self):
        with open(self.path, "a") as file:
            file.write("sent\n")
        return Counted, (self.values, self.path)


def total(X, k):
    return float(X.values[:k].sum()) if isinstance(X, Counted) else float(X[:k].sum())


def dies_once(flag, X, k):
    """Kill the worker that runs it, the first time."""
    if k == 2 and not os.path.exists(flag):
        with open(flag, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return total(X, k)


def held_up(X, folder, k):
    """Tell where it runs; once five tasks are done, wait until workers have been killed."""
    folder = Path(folder)
    with (folder / f"run {k}").open("a") as file:
        file.write(f"{os.getpid()}\n")
    while not (folder / "killed").exists() and len(list(folder.glob("done *"))) >= 5:
        time.sleep(0.01)
    (folder / f"done {k}").touch()
    return total(X, k)


def dies_always(X, k):
    if k == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return total(X, k)


def nested(folder, number, others):
    """Sweep within a task of a cluster, when all of its threads are in such tasks."""
    (Path(folder) / f"outer {number}").touch()
    while len(list(Path(folder).glob("outer *"))) < others:
        time.sleep(0.01)
    with parallel_config(backend="dask"):
        return sorted(sweep(total, [(k,) for k in range(4)], shared=(np.arange(5.0),)))


def results_kept(dask_scheduler):
    return sum(str(key).startswith("_run") and task.state == "memory" for key, task in dask_scheduler.tasks.items())


@contextmanager
def dask_cluster(**settings):
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        parallel_config(backend="dask", client=client),
    ):
        yield client


def test_tasks_that_raise_end_the_sweep():
    with pytest.raises(ZeroDivisionError):
        list(sweep(lambda k: 1 / k, [(1,), (0,)]))
    assert list(sweep(total, [], shared=(np.ones(3),))) == []


def test_a_killed_process_costs_its_task(tmp_path):
    X = np.arange(5.0)
    with parallel_config(backend="loky", n_jobs=2):
        found = dict(sweep(dies_once, [(X, k) for k in range(5)], shared=(str(tmp_path / "flag"),)))
    assert (tmp_path / "flag").exists()
    assert found == {k: total(X, k) for k in range(5)}


def test_a_cluster(tmp_path):
    X, y = table()
    network = SupervisedAutoencoder(preset="paper", epochs=2, radius=0.02)

    def found():
        repeated = StabilitySelection(network, n_pairs=2, random_state=0).fit(X, y)
        crossed = cross_validate(network.set_params(random_state=0), X, y, cv=2, return_estimator=True)
        return repeated.selections_, [each.support_ for each in crossed["estimator"]]

    at_home = found()
    with dask_cluster() as client:
        for one, other in zip(at_home, found(), strict=True):
            np.testing.assert_array_equal(one, other)  # the same bits in other processes

        assert list(sweep(total, [], shared=(np.ones(3),))) == []
        with pytest.raises(ZeroDivisionError):
            list(sweep(lambda k: 1 / k, [(1,), (0,)]))

        # The data travel once to each worker, however many tasks; once more to the scheduler, and between workers.
        sent = Counted(np.arange(500.0), str(tmp_path / "sent"))
        assert dict(sweep(total, [(k,) for k in range(20)], shared=(sent,))) == {k: total(sent, k) for k in range(20)}
        assert 1 <= (tmp_path / "sent").read_text().count("sent") <= 5

        # A sweep within a task gives up its thread while it waits; else nothing would go on here.
        workers = list(client.run(os.getpid))
        outer = [client.submit(nested, str(tmp_path), k, 2, workers=[workers[k]]) for k in range(2)]
        assert client.gather(outer) == [[(k, total(np.arange(5.0), k)) for k in range(4)]] * 2


@pytest.mark.parametrize("survivors", [0, 1])
def test_a_cluster_with_a_worker_killed(tmp_path, survivors):
    """Without survivors no copy of the data is left."""
    data, found = Counted(np.arange(500.0), str(tmp_path / "sent")), {}
    with dask_cluster() as client:
        for number, result in sweep(held_up, [(str(tmp_path), k) for k in range(24)], shared=(data,)):
            found[number] = result
            if len(found) == 5:
                early, sent_before = list(found), (tmp_path / "sent").read_text().count("sent")
                for _ in range(3000):  # until the scheduler, too, has let go of the results that are here
                    if client.run_on_scheduler(results_kept) <= len(list(tmp_path.glob("done *"))) - 5:
                        break
                    time.sleep(0.01)
                for pid in list(client.run(os.getpid).values())[survivors:]:
                    os.kill(pid, signal.SIGKILL)
                (tmp_path / "killed").touch()
    assert found == {k: total(data, k) for k in range(24)}
    runs = {k: [int(pid) for pid in (tmp_path / f"run {k}").read_text().split()] for k in range(24)}
    assert os.getpid() not in {pid for each in runs.values() for pid in each}
    # Only what the lost workers had under way is run again.
    assert [len(runs[k]) for k in early] == [1] * 5
    assert max(map(len, runs.values())) <= 2
    if not survivors:
        assert (tmp_path / "sent").read_text().count("sent") > sent_before


def test_a_task_that_kills_its_workers_ends_the_sweep():
    with dask_cluster(**{"distributed.scheduler.allowed-failures": 1}):
        from distributed.scheduler import KilledWorker

        with pytest.raises(KilledWorker):
            list(sweep(dies_always, [(k,) for k in range(4)], shared=(np.arange(5.0),)))
