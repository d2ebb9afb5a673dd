"""Univariate statistics against SciPy; l1 logistic regression against a solver that sees all the columns."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from normball.selection._l1 import SLACK, l1_path
from normball.selection.statistics import adjusted, univariate


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_analysis_of_variance(classes, missing, far):
    rng = np.random.default_rng(classes)
    y = np.arange(60) % classes
    X = rng.normal(size=(60, 530)) + far
    X[:, :5] += y[:, None]
    X[rng.random(X.shape) < missing] = np.nan
    found = univariate(X, y, classes)
    theirs = stats.f_oneway(*(X[y == k] for k in range(classes)), axis=0, nan_policy="omit")
    np.testing.assert_allclose(found["F"], theirs.statistic, rtol=1e-6)
    np.testing.assert_allclose(found["p"], theirs.pvalue, rtol=1e-6)
    np.testing.assert_allclose(found["mean"], [np.nanmean(X[y == k], 0) for k in range(classes)], rtol=1e-9)
    if classes == 2:
        t = stats.ttest_ind(X[y == 1], X[y == 0], nan_policy="omit").statistic
        n = (~np.isnan(X)).astype(float)
        n0, n1 = n[y == 0].sum(0), n[y == 1].sum(0)
        np.testing.assert_allclose(found["effect"], t * np.sqrt(1 / n0 + 1 / n1), rtol=1e-6)
    else:
        assert ((found["effect"] >= 0) & (found["effect"] <= 1)).all()


def test_rows_are_all_that_counts():
    rng = np.random.default_rng(0)
    X, y, rows = rng.normal(size=(40, 10)), np.arange(40) % 2, np.arange(5, 31)
    part, whole = univariate(X[rows], y[rows], 2), univariate(X, y, 2, rows)
    for name in part:
        np.testing.assert_array_equal(part[name], whole[name])


def test_features_that_say_nothing_have_p_one():
    y = np.arange(20) % 2
    X = np.ones((20, 3))
    X[:, 1] = np.nan
    X[:, 2] = y
    found = univariate(X, y, 2)
    assert found["p"].tolist() == [1.0, 1.0, 0.0]


def test_false_discovery_rates():
    p = np.array([0.01, 0.04, 0.03, 0.9])
    np.testing.assert_allclose(adjusted(p), [0.04, 0.16 / 3, 0.16 / 3, 0.9])


def objective(w, b, X, t, C):
    z = (2 * t - 1) * (X @ w + b)
    return np.abs(w).sum() + C * np.logaddexp(0, -z).sum()


@pytest.mark.parametrize("classes", [2, 3])
def test_l1_on_few_columns_is_right_for_all(classes):
    rng = np.random.default_rng(1)
    n, d = 80, 400
    y = np.arange(n) % classes
    X = (3.0 * rng.normal(size=(n, d)) + 5.0).astype(np.float32)
    X[:, :6] += 2.0 * y[:, None]
    rows = np.arange(4, n)
    strengths = (2.0, 8.0, 30.0)
    models = l1_path(X, y, classes, rows, strengths)
    Z = StandardScaler().fit_transform(X[rows].astype(np.float64))
    targets = [y[rows] == k for k in ((1,) if classes == 2 else range(classes))]
    sizes = [len(model.columns) for model in models]
    assert sizes == sorted(sizes)
    assert sizes[0] < d // 4
    for model, strength in zip(models, strengths, strict=True):
        for row, t in enumerate(targets):
            C = strength / np.abs((t - t.mean()) @ Z).max()
            w = np.zeros(d)
            w[model.columns] = model.coef[row] * X[rows][:, model.columns].astype(np.float64).std(0)
            b = float(model.intercept[row] + model.coef[row] @ X[rows][:, model.columns].mean(0, dtype=np.float64))
            gradient = C * np.abs((t - expit(Z @ w + b)) @ Z)
            assert gradient[w == 0].max() <= 1 + 2 * SLACK
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                full = LogisticRegression(
                    C=C, l1_ratio=1.0, solver="liblinear", intercept_scaling=10.0, max_iter=5000, tol=1e-7
                ).fit(Z, t)
            best = objective(full.coef_[0], float(full.intercept_[0]), Z, t, C)
            assert objective(w, b, Z, t, C) <= best * (1 + 5e-3)
    proba = models[-1].proba(X)
    np.testing.assert_allclose(proba.sum(1), 1.0)
    assert (proba.argmax(1) == y).mean() > 0.9
