"""Sweeps: the same results wherever they run, data sent once, and workers that may be lost."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.feature_selection import SelectKBest

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


class Slow(SelectKBest):
    """Leaves its process number, and takes its time."""

    def __init__(self, folder, k=2):
        super().__init__(k=k)
        self.folder = folder

    def fit(self, X, y):
        with open(os.path.join(self.folder, str(os.getpid())), "a") as file:
            file.write("fit\n")
        time.sleep(0.15)
        return super().fit(X, y)


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


def test_a_cluster_with_a_worker_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    X, y = table()
    network = SupervisedAutoencoder(n_features_to_select=2, head="linear", epochs=2)
    at_home = StabilitySelection(network, n_pairs=2, random_state=0).fit(X, y)
    slow = StabilitySelection(Slow(str(tmp_path)), n_pairs=12, random_state=0)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        parallel_config(backend="dask", client=client),
    ):
        # The same bits in other processes.
        away = StabilitySelection(network, n_pairs=2, random_state=0).fit(X, y)
        assert np.array_equal(away.selections_, at_home.selections_)

        # The data travel once to each worker, however many tasks; once more to be hashed, and to pass between workers.
        sent = Counted(np.arange(500.0), str(tmp_path / "sent"))
        found = dict(sweep(total, [(k,) for k in range(20)], shared=(sent,)))
        assert found == {k: total(sent, k) for k in range(20)}
        assert 1 <= (tmp_path / "sent").read_text().count("sent") <= 5

        # A worker killed in the middle of a sweep.
        def kill_one():
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                busy = [int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()]
                if len(busy) == 2 and sum(len((tmp_path / str(pid)).read_text()) for pid in busy) >= 4 * len("fit\n"):
                    os.kill(busy[0], signal.SIGKILL)
                    return
                time.sleep(0.01)

        killer = threading.Thread(target=kill_one)
        killer.start()
        slow.fit(X, y)
        killer.join()
    fits = {path.name: path.read_text().count("fit") for path in tmp_path.iterdir() if path.name.isdigit()}
    assert len(slow.selections_) == 24
    assert 24 <= sum(fits.values()) <= 26, fits  # only what the lost worker had under way was run again
    os.makedirs(tmp_path / "home")
    expected = StabilitySelection(Slow(str(tmp_path / "home")), n_pairs=12, random_state=0).fit(X, y)
    assert np.array_equal(slow.selections_, expected.selections_)
