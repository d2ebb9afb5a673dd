"""Stability, attributions, the second look and AnnData."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from normball.estimators import StabilitySelection, SupervisedAutoencoder, attributions, nogueira
from normball.estimators._expand import _grown
from normball.estimators._rows import Rows


# One feature in each of four fits: some feature is in a quarter of them.
@parametrize_with_checks([StabilitySelection(SelectKBest(k=1), n_pairs=2, threshold=0.25)])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def data(samples=200, features=40, informative=4, seed=0, **options):
    options = {"n_clusters_per_class": 1, "class_sep": 2.0} | options
    X, y = make_classification(
        samples, features, n_informative=informative, n_redundant=0, shuffle=False, random_state=seed, **options
    )
    order = np.random.default_rng(seed).permutation(samples)
    return X[order], y[order]


@settings(max_examples=50)
@given(st.integers(2, 8), st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_the_index_is_its_definition(runs, features, seed):
    Z = np.random.default_rng(seed).random((runs, features)) < 0.4
    if Z.all() or not Z.any():
        return
    p, k = Z.mean(0), Z.sum(1).mean()
    variance = Z.astype(float).var(0, ddof=1).mean()
    got = nogueira(Z)
    assert got.value == pytest.approx(1.0 - variance / (k / features * (1 - k / features)))
    assert got.low <= got.value <= got.high
    assert p.shape == (features,)


def test_the_index_of_agreement_and_of_chance():
    same = nogueira(np.tile([1, 1, 0, 0, 0], (6, 1)))
    assert (same.value, same.low, same.high) == (1.0, 1.0, 1.0)
    rng = np.random.default_rng(0)
    chance = nogueira(rng.random((400, 50)) < 0.2)
    assert abs(chance.value) < 0.02
    assert chance.low < chance.value < chance.high
    runs = [nogueira(np.random.default_rng(i).random((60, 40)) < 0.3) for i in range(100)]
    assert 80 <= sum(run.low <= 0.0 <= run.high for run in runs) <= 100  # about as often as it says
    assert np.isnan(nogueira(np.ones((3, 4))).value)
    with pytest.raises(ValueError, match="selections: expected a matrix"):
        nogueira([1, 0, 1])


def test_repetition_finds_the_features_whatever_the_number_of_jobs():
    X, y = data()
    base = SupervisedAutoencoder(4, head="linear")
    one, two = (StabilitySelection(base, n_pairs=4, n_jobs=jobs, random_state=0).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.selections_, two.selections_)
    assert one.selections_.shape == (8, 40)
    assert set(one.get_support(indices=True)) <= set(range(4))
    assert one.get_support().sum() >= 3
    assert one.stability_.value > 0.5
    assert one.transform(X).shape[1] == one.get_support().sum()
    for wrong in (0, 2.5, "3", True):
        with pytest.raises(ValueError, match="n_pairs: expected an int >= 1"):
            StabilitySelection(base, n_pairs=wrong).fit(X, y)
    for wrong in (0.0, 1.5, "0.6", np.nan):
        with pytest.raises(ValueError, match="threshold: expected a number in"):
            StabilitySelection(base, threshold=wrong).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (LogisticRegression(), "got LogisticRegression"),
        (make_pipeline(StandardScaler(), SelectKBest(k=2)), "got Pipeline"),
        (SelectKBest, "got the class SelectKBest"),
        ("l1inf", "got str"),
        (np.ones(3), "got ndarray"),
    ],
)
def test_repetition_needs_an_estimator_that_selects(estimator, said, monkeypatch):
    X, y = data()
    monkeypatch.setattr("normball.estimators.stability.sweep", lambda *_, **__: pytest.fail("something was fitted"))
    with pytest.raises(TypeError, match=f"estimator: expected one that selects features.*{said}"):
        StabilitySelection(estimator).fit(X, y)


def test_the_halves_are_complementary_and_keep_the_classes():
    from normball.estimators.stability import _halves

    y = np.repeat([0, 1, 2], [11, 6, 3])
    a, b = _halves(y, np.random.RandomState(0))
    np.testing.assert_array_equal(np.sort(np.concatenate([a, b])), np.arange(20))
    assert (np.abs(np.bincount(y[a]) - np.bincount(y[b])) <= 1).all()


def test_seeds_grow_to_all_that_hangs_together():
    X, y = data(600, 150, 24, class_sep=0.8)
    plain = SupervisedAutoencoder(12, random_state=0).fit(X[:450], y[:450])
    grown = SupervisedAutoencoder(12, expand="associated", random_state=0).fit(X[:450], y[:450])
    assert grown.expanded_
    assert not plain.expanded_
    assert grown.support_[:24].sum() >= 23
    assert grown.support_[24:].sum() <= 2
    assert grown.score(X[450:], y[450:]) > plain.score(X[450:], y[450:])
    assert grown.transform(X).shape == (600, 2)


@pytest.mark.parametrize("seed", range(2))
def test_the_second_look_refuses_what_does_not_help(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 80))
    X[:, :3] += 1.5 * y[:, None]  # three that matter, each for itself
    X[:, 3:60] += rng.normal(size=(300, 1))  # many idle ones that explain each other
    options = {"n_features_to_select": 10, "random_state": 0}
    plain = SupervisedAutoencoder(**options).fit(X, y)
    assert plain.support_[:3].all()
    rows = Rows(X, plain._mean, plain._scale, torch.float64, torch.device("cpu"))
    grown = _grown(rows, np.arange(300), plain.get_support(indices=True))
    assert not np.array_equal(grown, plain.get_support(indices=True))  # it would go astray
    careful = SupervisedAutoencoder(**options, expand="associated").fit(X, y)
    assert not careful.expanded_
    np.testing.assert_array_equal(careful.support_, plain.support_)
    np.testing.assert_array_equal(careful.predict_proba(X), plain.predict_proba(X))


def test_attributions_add_up_and_keep_to_the_selected():
    pytest.importorskip("captum")
    X, y = data()
    sae = SupervisedAutoencoder(4, random_state=0).fit(X, y)
    found = attributions(sae, X[:20], n_steps=200)
    assert found["samples"].shape == (2, 20, 40)
    assert found["per_class"].shape == (2, 40)
    assert (found["global"][~sae.support_] == 0).all()
    with torch.no_grad():
        base = sae.network_.encoder(torch.zeros(1, 4, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(found["samples"].sum(2).T, sae.transform(X[:20]) - base, atol=1e-3)
    with pytest.raises(ValueError, match="needs 'relu'"):
        attributions(sae, X, method="deeplift")
    with pytest.raises(ValueError, match="method: expected one of"):
        attributions(sae, X, method="guess")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_attributions_by_deeplift():
    pytest.importorskip("captum")
    X, y = data()
    sae = SupervisedAutoencoder(4, activation="relu", random_state=0).fit(X, y)
    with torch.no_grad():
        base = sae.network_.encoder(torch.zeros(1, 4, dtype=torch.float64)).numpy()
    lift = attributions(sae, X[:20], method="deeplift")
    np.testing.assert_allclose(lift["samples"].sum(2).T, sae.transform(X[:20]) - base, atol=1e-9)


def test_anndata(tmp_path):
    anndata = pytest.importorskip("anndata")
    from scipy import sparse

    from normball.omics import select

    X, y = data()
    adata = anndata.AnnData(sparse.csr_matrix(X), layers={"logs": X})
    adata.var_names = [f"gene{i}" for i in range(40)]
    adata.obs["type"] = np.where(y == 0, "B", "T")
    adata.obs.loc[adata.obs_names[:5], "type"] = None
    other = select(adata, "type", n_features=4, copy=True)
    assert "normball" not in adata.var
    assert select(adata, "type", layer="logs", n_features=4, key_added="few") is None
    np.testing.assert_array_equal(adata.var["few"], other.var["normball"])
    assert adata.var["few"].sum() == 4
    assert adata.obsm["X_few"].shape == (200, 2)
    assert adata.var["few_importance"].sum() == pytest.approx(1.0)
    adata.write_h5ad(tmp_path / "cells.h5ad")  # all of it can be written
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    np.testing.assert_array_equal(backed.uns["few"]["classes"].astype(str), ["B", "T"])
    again = select(backed, "type", n_features=4, copy=True)
    np.testing.assert_array_equal(again.var["normball"], other.var["normball"])
    with pytest.raises(ValueError, match="groupby: expected a column"):
        select(adata, "kind")
    with pytest.raises(ValueError, match="layer: expected one of"):
        select(adata, "type", layer="counts")
