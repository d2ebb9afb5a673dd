"""scikit-learn's own checks, all of them, and its tools."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from normball.estimators import SupervisedAutoencoder


@parametrize_with_checks([SupervisedAutoencoder()])
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
