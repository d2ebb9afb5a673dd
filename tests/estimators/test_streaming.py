"""Tables on a disk: the same bits as in memory, in little memory."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from normball.estimators import SupervisedAutoencoder, _fitting
from normball.estimators._tables import Stored, stored

from .test_autoencoder import data

h5py = pytest.importorskip("h5py")
anndata = pytest.importorskip("anndata")


def fresh(folder):
    return folder / f"file {len(list(folder.iterdir()))}"


def mapped(folder, X, dtype):
    file = fresh(folder)
    there = np.memmap(file, dtype=dtype, mode="w+", shape=X.shape)
    there[:] = X
    there.flush()
    return np.memmap(file, dtype=dtype, mode="r", shape=X.shape)


def backed(folder, X):
    file = fresh(folder)
    anndata.AnnData(X).write_h5ad(file)
    return anndata.read_h5ad(file, backed="r")


@pytest.mark.parametrize("kind", ["mapped", "mapped int16", "h5 dense", "h5 sparse"])
def test_the_same_bits_as_in_memory(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("normball.estimators._tables.CHUNK", 3000)  # so that there are many parts
    X, y = data(samples=150)
    X = np.round(4 * X)
    if kind == "h5 sparse":
        X = sparse.csr_matrix(np.where(np.abs(X) < 3, 0.0, X))
    if kind.startswith("mapped"):
        there = mapped(tmp_path, X, "int16" if "int16" in kind else "float64")
    else:
        there = backed(tmp_path, X).X
    assert stored(there) is not None
    one, other = (SupervisedAutoencoder(5, epochs=3, batch_size=64, random_state=0).fit(A, y) for A in (X, there))
    np.testing.assert_array_equal(one.support_, other.support_)
    assert one.head_ == other.head_
    assert one.predict_proba(X).tobytes() == other.predict_proba(there).tobytes()
    assert one.transform(X).tobytes() == other.transform(there).tobytes()


def test_rows_come_as_they_are_asked_for(tmp_path):
    X = np.arange(120.0).reshape(30, 4)
    for there in (mapped(tmp_path, X, "float64"), backed(tmp_path, X).X, backed(tmp_path, sparse.csr_matrix(X)).X):
        table = Stored(there)
        for rows in ([3, 1, 1, 29], [5, 6, 8, 7], [0], []):
            got = table[np.array(rows, dtype=int)]
            np.testing.assert_array_equal(got.toarray() if sparse.issparse(got) else got, X[rows])
        few = table.take(np.array([4, 2, 9])).take(np.array([2, 0]))
        got = few[np.array([1, 0])]
        np.testing.assert_array_equal(got.toarray() if sparse.issparse(got) else got, X[[4, 9]])
        assert few.shape == (2, 4)


def peak(action):
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["mapped", "h5 dense", "h5 sparse"])
def test_little_memory(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("normball.estimators._tables.CHUNK", 1 << 14)
    monkeypatch.setattr(_fitting, "CHOICE_SAMPLES", 200)
    samples = 2000 if kind == "h5 sparse" else 4000  # which is slow to read while memory is watched
    X = np.random.default_rng(0).normal(size=(samples, 300)).astype(np.float32)
    y = np.arange(samples) % 2
    X[:, :4] += y[:, None]
    size = X.nbytes
    if kind == "h5 sparse":
        X[np.abs(X) < 0.5] = 0.0
        X = sparse.csr_matrix(X)
        size = X.data.nbytes + X.indices.nbytes
    there = mapped(tmp_path, X, "float32") if kind == "mapped" else backed(tmp_path, X).X
    del X
    head = "linear" if kind == "h5 sparse" else "auto"
    sae = SupervisedAutoencoder(4, head=head, epochs=1, batch_size=64, random_state=0)
    assert peak(lambda: sae.fit(there, y)) < size / (2 if kind == "h5 sparse" else 3)
    assert peak(lambda: sae.predict(there)) < size / 3
    assert sae.get_support(indices=True).tolist() == [0, 1, 2, 3]


def test_select_on_a_backed_table(tmp_path):
    from normball.omics import select

    X, y = data(samples=120)
    for table in (X, sparse.csr_matrix(X)):
        adata = anndata.AnnData(table)
        adata.obs["type"] = np.where(y == 0, "B", "T")
        adata.obs.loc[adata.obs_names[:5], "type"] = None
        file = fresh(tmp_path)
        adata.write_h5ad(file)
        there = anndata.read_h5ad(file, backed="r")
        select(adata, "type", n_features=4, head="linear")
        assert select(there, "type", n_features=4, head="linear") is None
        assert there.isbacked
        np.testing.assert_array_equal(there.var["normball"], adata.var["normball"])
        assert there.obsm["X_normball"].tobytes() == adata.obsm["X_normball"].tobytes()


def test_tables_that_cannot_be_read(tmp_path):
    X, y = data()
    sae = SupervisedAutoencoder(3, head="linear")
    with pytest.raises(ValueError, match="stored as csc; store it as CSR"):
        sae.fit(backed(tmp_path, sparse.csc_matrix(X)).X, y)
    hole = X.copy()
    hole[140, 7] = np.nan
    for table in (mapped(tmp_path, hole, "float64"), backed(tmp_path, sparse.csr_matrix(hole)).X):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            sae.fit(table, y)
    there = mapped(tmp_path, X, "float64")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        sae.fit(there, y[:-1])
    with pytest.raises(ValueError, match="expecting 40 features"):
        sae.fit(there, y).predict(mapped(tmp_path, X[:, :39], "float64"))
    with h5py.File(tmp_path / "three.h5", "w") as file, pytest.raises(ValueError, match="two axes"):
        sae.fit(file.create_dataset("x", data=np.zeros((2, 2, 2))), y)
