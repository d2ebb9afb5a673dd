import numpy as np
import pytest

from normball.data import Table
from normball.selection import rivals, units

from ..one_thread import one_thread  # noqa: F401


@pytest.fixture
def few_trees(monkeypatch):
    """Forests that cost little; for runs in this process alone."""
    monkeypatch.setattr(rivals, "TREES", 60)  # with fewer, some samples are in the bags of all the trees
    monkeypatch.setattr(rivals, "COUNTS", (2, 8))


def make_table(n=48, d=20, classes=("ill", "well"), *, shift=2.5, missing=0.0, groups=None, seed=0, intensities=False):
    """Features 3 and 7 tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % len(classes) if groups is None else (np.arange(n) // groups) % len(classes)
    X = rng.normal(size=(n, d))
    X[:, 3] += shift * y
    X[:, 7] -= shift * (y == 1)
    if intensities:
        X = np.exp2(X + 9.0)
    X[rng.random(X.shape) < missing] = np.nan
    return Table(
        X.astype(np.float32),
        [f"gene{k}" for k in range(d)],
        [f"s{k}" for k in range(n)],
        np.array([classes[k] for k in y], dtype=object),
        None if groups is None else np.array([f"patient{k // groups}" for k in range(n)], dtype=object),
        "made up",
    )


@pytest.fixture(name="make_table", scope="session")
def _make_table():
    return make_table


@pytest.fixture
def options():
    return units.Options(
        radius=None, n_features=2, norm="l1inf", folds=3, log="auto", impute="median", epochs=5, device="cpu",
        random_state=0,
    )  # fmt: skip
