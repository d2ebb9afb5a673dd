"""scikit-learn's own checks, all of them, and its tools."""

import pickle

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from normball.estimators import FeatureSelector, StabilitySelection, SupervisedAutoencoder
from normball.selection import Impute


@parametrize_with_checks([SupervisedAutoencoder(), FeatureSelector()])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def data(samples=120, features=30, classes=2, seed=0):
    return make_classification(
        samples, features, n_informative=6, n_redundant=0, n_classes=classes, class_sep=2.0, shuffle=False,
        n_clusters_per_class=1, random_state=seed,
    )  # fmt: skip


def test_its_tools():
    X, y = data()
    pipe = make_pipeline(StandardScaler(), SupervisedAutoencoder(random_state=0, head="linear"))
    search = GridSearchCV(pipe, {"supervisedautoencoder__n_features_to_select": [2, 6]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8
    results = cross_validate(clone(search.best_estimator_), X, y, cv=2, return_train_score=True)
    assert results["test_score"].mean() > 0.8


PAPER = {"preset": "paper", "epochs": 3, "random_state": 0}


def test_a_preset_survives_pickles_clones_and_parameters():
    X, y = data()
    wanted = SupervisedAutoencoder(**PAPER).fit(X, y).predict_proba(X)
    for other in (
        pickle.loads(pickle.dumps(SupervisedAutoencoder(**PAPER))),
        clone(pickle.loads(pickle.dumps(clone(SupervisedAutoencoder(**PAPER))))),
        SupervisedAutoencoder(**pickle.loads(pickle.dumps(SupervisedAutoencoder(**PAPER).get_params()))),
        SupervisedAutoencoder(radius=3.0, head="linear").set_params(**SupervisedAutoencoder(**PAPER).get_params()),
    ):
        assert other.get_params() == SupervisedAutoencoder(**PAPER).get_params()
        np.testing.assert_array_equal(other.fit(X, y).predict_proba(X), wanted)


def test_a_preset_leaves_what_is_given_even_if_it_is_the_default():
    X, y = data()
    given = {"descent": "refit", "head": "linear", "batch_size": 128, "reconstruction_weight": 0.1}
    given |= {"radius": 0.1, "epochs": 20, "learning_rate": 1e-3, "random_state": 0}
    one, other = (SupervisedAutoencoder(preset=preset, **given).fit(X, y) for preset in (None, "paper"))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_searches_and_cross_validation_do_not_depend_on_the_number_of_jobs(backend):
    X, y = data()
    grid = {"preset": [None, "paper"], "norm": ["l1inf", "l12"]}

    def found(jobs):
        with parallel_config(backend=backend):
            search = GridSearchCV(SupervisedAutoencoder(**PAPER), grid, cv=2, n_jobs=jobs).fit(X, y)
            cross = cross_validate(SupervisedAutoencoder(**PAPER), X, y, cv=3, n_jobs=jobs, return_estimator=True)
        return search, cross

    (search, cross), (search_of_two, cross_of_two) = found(1), found(2)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], search_of_two.cv_results_["mean_test_score"]
    )
    for one, other in zip(cross["estimator"], cross_of_two["estimator"], strict=True):
        np.testing.assert_array_equal(one.support_, other.support_)
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-9)


def test_tables_with_names_and_labels_with_names():
    X, y = data(classes=3)
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(X.shape[1])])
    names = np.array(["ALL", "AML", "none"])[y]
    sae = SupervisedAutoencoder(6, random_state=0, head="gaussian").set_output(transform="pandas").fit(frame, names)
    assert set(sae.classes_) == {"ALL", "AML", "none"}
    assert list(sae.selected_features_) == [f"gene {i}" for i in np.flatnonzero(sae.get_support())]
    latent = sae.transform(frame)
    assert list(latent.columns) == list(sae.get_feature_names_out())
    assert latent.shape == (len(X), 3)
    assert sae.score(frame, names) > 0.85
    assert sae.inverse_transform(latent).shape == X.shape


def test_sparse_tables_are_dense_tables():
    X, y = data()
    X[np.abs(X) < 0.5] = 0.0
    one, other = (SupervisedAutoencoder(random_state=0).fit(A, y) for A in (X, sparse.csr_matrix(X)))
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(sparse.csr_array(X)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["csc_matrix", "coo_array", "bsr_matrix", "lil_matrix", "dok_array"])
def test_every_sparse_format(kind):
    X, y = data()
    X[np.abs(X) < 0.5] = 0.0
    wanted = SupervisedAutoencoder(4, head="linear", random_state=0).fit(X, y)
    S = getattr(sparse, kind)(X)
    np.testing.assert_array_equal(clone(wanted).fit(S, y).predict(S), wanted.predict(X))
    assert StabilitySelection(clone(wanted), n_pairs=1).fit(S, y).transform(S).shape[0] == len(y)
    with pytest.raises(TypeError, match=r"Sparse data was passed for Z.*toarray"):
        wanted.inverse_transform(sparse.csr_matrix(np.zeros((3, 2))))


def nullable():
    """A frame of every nullable dtype, and its numbers."""
    X, y = data()
    frame = pd.DataFrame(X).add_prefix("gene").astype("Float64")
    frame["gene7"] = (frame["gene7"] > 0).astype("boolean")
    frame["gene8"] = (10 * frame["gene8"]).round().astype("Int64")
    return frame, frame.to_numpy(np.float64), y


def test_nullable_frames_are_frames():
    frame, X, y = nullable()
    one, other = (SupervisedAutoencoder(4, head="linear", random_state=0).fit(table, y) for table in (frame, X))
    np.testing.assert_array_equal(one.predict_proba(frame), other.predict_proba(X))
    assert list(one.selected_features_) == [f"gene{k}" for k in other.selected_features_]
    chosen = FeatureSelector(4, head="linear", random_state=0).set_output(transform="pandas").fit_transform(frame, y)
    pd.testing.assert_frame_equal(chosen, frame[list(one.selected_features_)])
    again = SupervisedAutoencoder(4, head="linear", random_state=0).fit(X, pd.array(y, dtype="Int64"))
    np.testing.assert_array_equal(again.predict(X), other.predict(X))


@pytest.mark.parametrize(
    ("column", "dtype"), [("gene3", "Float64"), ("gene7", "boolean"), ("gene8", "Int64"), ("gene3", "object")]
)
def test_gaps_in_nullable_frames_are_told_with_type_and_remedy(column, dtype):
    frame, _, y = nullable()
    gaps = frame.copy()
    gaps[column] = gaps[column].astype(dtype)
    gaps.loc[[2, 5], column] = pd.NA
    sae = SupervisedAutoencoder(4, head="linear", random_state=0)
    said = f"X: expected a value in every cell, got 2 missing in column '{column}' of dtype {dtype}.*Impute"
    for estimator in (sae, StabilitySelection(sae, n_pairs=1), FeatureSelector(4)):
        with pytest.raises(ValueError, match=said):
            estimator.fit(gaps, y)
    with pytest.raises(ValueError, match=said):
        sae.fit(frame, y).predict(gaps)
    for remedy in (Impute(), SimpleImputer()) if dtype != "object" else (Impute(),):
        assert make_pipeline(remedy, sae).fit(gaps, y).predict(gaps).shape == y.shape


def test_columns_that_are_no_numbers_and_labels_that_are_missing():
    frame, X, y = nullable()
    for values, said in (
        (pd.Timestamp("2020-01-01"), "column 'gene3' of dtype datetime64.*leave it out"),
        (pd.Categorical(np.where(y, "a", "b")), "column 'gene3' of dtype category, with '[ab]'; encode it"),
    ):
        for estimator in (SupervisedAutoencoder(4), StabilitySelection()):
            with pytest.raises(ValueError, match=said):
                estimator.fit(frame.assign(gene3=values), y)
    names = np.where(y, "a", "b").astype(object)
    names[3] = None
    for labels in (names, names.tolist(), *(pd.Series(names, dtype=dtype) for dtype in ("string", "category"))):
        for estimator in (SupervisedAutoencoder(4), StabilitySelection()):
            with pytest.raises(ValueError, match="y: expected a label for each sample, got 1 missing"):
                estimator.fit(X, labels)


def test_the_selector_in_a_pipeline():
    X, y = data()
    frame = pd.DataFrame(X).add_prefix("gene")
    selector = FeatureSelector(4, random_state=0)
    alone = SupervisedAutoencoder(4, random_state=0).fit(frame, y)
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), selector, LogisticRegression())
    assert pipe.fit(frame, y).score(frame, y) > 0.8
    search = GridSearchCV(pipe, {"featureselector__n_features_to_select": [2, 6]}, cv=2, n_jobs=2).fit(frame, y)
    assert search.best_estimator_[1].get_support().sum() in (2, 6)

    selector.fit(frame, y)
    names = list(alone.selected_features_)
    np.testing.assert_array_equal(selector.get_support(), alone.get_support())
    np.testing.assert_array_equal(selector.transform(frame), frame[names])
    assert list(selector.get_feature_names_out()) == names
    back = selector.inverse_transform(selector.transform(frame))
    np.testing.assert_array_equal(back, np.where(selector.get_support(), X, 0.0))
    np.testing.assert_array_equal(selector.predict_proba(frame), alone.predict_proba(frame))
    assert selector.get_params() == alone.get_params()
    assert selector.fit(sparse.csc_matrix(X), y).transform(sparse.csr_matrix(X)).format == "csr"


def test_the_selector_streams_and_is_saved(tmp_path):
    X, y = data()
    selector = FeatureSelector(4, random_state=0)
    for part in (slice(60), slice(60, None)):
        selector.partial_fit(X[part], y[part], classes=[0, 1])
    selector.save(tmp_path / "selector")
    other = FeatureSelector.load(tmp_path / "selector")
    np.testing.assert_array_equal(other.transform(X), selector.transform(X))
    assert other.transform(X).shape == (len(X), 4)


def test_a_weight_is_a_repetition_and_balance_is_a_weight():
    X, y = data()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"n_features_to_select": 4, "head": "network", "random_state": 0, "batch_size": 1000}
    one = SupervisedAutoencoder(**options).fit(X, y, sample_weight=weight)
    other = SupervisedAutoencoder(**options).fit(X.repeat(weight, 0), y.repeat(weight))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-6)
    keep = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:10]]
    X, y = X[keep], y[keep]
    balanced = SupervisedAutoencoder(**options, class_weight="balanced").fit(X, y)
    weights = np.where(y == 0, len(y) / (2 * (y == 0).sum()), len(y) / (2 * (y == 1).sum()))
    same = SupervisedAutoencoder(**options).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(balanced.predict_proba(X), same.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_seed_gives_the_same_bits(dtype):
    X, y = data(samples=300, features=4000)  # large enough for single precision, shuffled batches
    one, other = (SupervisedAutoencoder(8, random_state=7).fit(X.astype(dtype), y) for _ in range(2))
    assert one.transform(X).tobytes() == other.transform(X).tobytes()
    assert one.predict_proba(X).tobytes() == other.predict_proba(X).tobytes()
    np.testing.assert_array_equal(one.feature_importances_, other.feature_importances_)
