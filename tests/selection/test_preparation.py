"""Gaps and logarithms: what is filled and taken, and from where it is learned."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.impute import SimpleImputer

from normball.selection import Impute, Log


def table(seed, n=30, d=700, missing=0.3):
    rng = np.random.default_rng(seed)
    X = rng.lognormal(3, 1, size=(n, d)).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    return X


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_medians_are_those_of_scikit_learn(missing):
    X, new = table(0, missing=missing), table(1)
    theirs = SimpleImputer(strategy="median").fit(X.astype(np.float64))
    np.testing.assert_allclose(Impute().fit(X).transform(new), theirs.transform(new), rtol=1e-6)


def test_half_of_the_smallest():
    X = np.array([[4.0, -3.0, np.nan], [np.nan, 5.0, np.nan], [8.0, np.nan, np.nan]])
    filled = Impute("half-min").fit_transform(X)
    assert filled[1, 0] == 2.0
    assert filled[2, 1] == -3.0  # half of a negative number would be a larger one
    assert np.isfinite(filled).all()  # also where a column has no value at all


def test_frames_are_arrays_and_sparse_matrices_are_refused():
    X = table(3, d=5).astype(np.float64)
    nullable = pd.DataFrame(X).convert_dtypes()
    assert nullable.dtypes.astype(str).tolist() == ["Float64"] * 5
    np.testing.assert_array_equal(Impute().fit_transform(nullable), Impute().fit_transform(X))
    np.testing.assert_array_equal(Log("yes").fit_transform(nullable), Log("yes").fit_transform(X))
    for step in (Impute(), Log()):
        with pytest.raises(TypeError, match=r"X: expected an array .* got a sparse csr_matrix; use \.toarray"):
            step.fit(sparse.csr_matrix(X))


def test_only_gaps_change_and_copies_are_made_unless_told():
    X = table(2)
    before = X.copy()
    out = Impute().fit_transform(X)
    np.testing.assert_array_equal(X, before)
    here = ~np.isnan(before)
    np.testing.assert_array_equal(out[here], before[here])
    assert out.dtype == np.float32
    assert Impute(copy=False).fit(X).transform(X) is X
    np.testing.assert_array_equal(X, out)


@pytest.mark.parametrize(
    ("low", "high", "taken"),
    [(1.0, 20000.0, True), (0.0, 5000.0, True), (-3.0, 3.0, False), (2.0, 16.0, False), (0.0, 1.0, False)],
)
def test_auto_looks_at_the_range(low, high, taken):
    X = np.random.default_rng(0).uniform(low, high, size=(40, 30))
    log = Log().fit(X)
    assert log.taken_ == taken
    assert ("no logarithms" in str(log)) != taken
    assert Log("yes").fit(X).taken_
    assert not Log("no").fit(X).taken_


def test_centred_values_of_any_size_are_left_alone():
    assert not Log().fit(np.random.default_rng(0).normal(scale=1000.0, size=(50, 50))).taken_


def test_plain_logarithms_of_positive_values():
    X = table(3, missing=0.0)
    np.testing.assert_allclose(Log("yes").fit_transform(X), np.log2(X), rtol=1e-6)
    below = np.full((1, X.shape[1]), -5.0)
    np.testing.assert_allclose(Log("yes").fit(X).transform(below), np.log2(float(X.min())), rtol=1e-6)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=4, max_size=20))
def test_smoothed_logarithms_keep_the_order_and_are_finite(values):
    log = Log("yes").fit(np.array([[-50.0, 0.0, 3.0, 20.0, 900.0, 5.0]]))
    values = np.sort(np.array(values))
    out = log.of(values)
    assert np.isfinite(out).all()
    assert (np.diff(out) >= -1e-12).all()
    large = values[values > 1e3]
    np.testing.assert_allclose(log.of(large), np.log2(large), atol=1e-3)


def test_gaps_stay_gaps():
    assert np.isnan(Log("yes").fit(np.array([[1.0, 0.0]])).of([np.nan, -1.0, 2.0])).tolist() == [True, False, False]


@pytest.mark.parametrize("make", [lambda: Impute("mean"), lambda: Log("maybe")])
def test_unknown_ways(make):
    with pytest.raises(ValueError, match="expected"):
        make().fit(np.ones((3, 2)))


def test_other_columns_are_refused():
    with pytest.raises(ValueError, match="matrix of 2 columns"):
        Impute().fit(np.ones((3, 2))).transform(np.ones((3, 4)))
    with pytest.raises(ValueError, match="not missing"):
        Log().fit(np.full((3, 2), np.nan))
