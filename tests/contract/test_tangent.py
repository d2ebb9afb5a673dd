"""The derivative of the projection in the core, against its formula, and against differences of projections."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import normball
from normball import _core

CODES = {"f": 1, "d": 2}


def along(Y, V, radius, axis, batch=None, threads=1):
    """The core's answer for any layout of `Y` and `V`, which lies as the result does; None where it declines."""
    _, info = normball.project_l1inf(Y, radius, axis=axis, batch_axis=batch, return_info=True)
    axes = axis if isinstance(axis, tuple) else (axis,)
    X = np.empty_like(V)
    X.fill(np.nan)
    change = np.empty(np.shape(info.theta))
    done = _core.tangent_l1inf(
        Y, V, X, CODES[Y.dtype.char], sum(1 << a for a in axes), 0 if batch is None else 1 << batch, threads,
        np.asarray(info.theta, dtype=np.float64), info.mu.astype(np.float64), change,
    )  # fmt: skip
    return (X, change, info) if done else None


def formula(Y, V, info, axes):
    """The same in a few lines, one group after another."""
    kept = tuple(a for a in range(Y.ndim) if a not in axes)
    y = np.transpose(Y, (*kept, *axes)).reshape(info.mu.size, -1).astype(np.float64)
    v = np.transpose(V, (*kept, *axes)).reshape(info.mu.size, -1).astype(np.float64)
    mu = info.mu.ravel().astype(np.float64)
    if info.theta == 0:
        return V.astype(np.float64), 0.0
    clipped = [np.abs(y[j]) > mu[j] if mu[j] > 0 else np.zeros(y.shape[1], bool) for j in range(len(mu))]
    k = np.array([c.sum() for c in clipped])
    a = np.array([(np.sign(y[j]) * v[j])[clipped[j]].sum() for j in range(len(mu))])
    some = k > 0
    mean = (a[some] / k[some]).sum() / (1 / k[some]).sum() if some.any() else 0.0
    x = np.zeros_like(v)
    for j in range(len(mu)):
        if mu[j] > 0:
            x[j] = np.where(clipped[j], np.sign(y[j]) * (a[j] - mean) / max(k[j], 1), v[j])
    back = tuple(np.argsort((*kept, *axes)))
    return x.reshape([Y.shape[a] for a in (*kept, *axes)]).transpose(back), mean


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order", ["C", "F"])
def test_equals_the_formula(dtype, threads, order):
    rng = np.random.default_rng(0)
    for shape in ((1, 40), (40, 1), (7, 5), (33, 65), (64, 130), (300, 41), (17, 3000)):
        Y = np.asarray(rng.normal(size=shape) * rng.random(shape[1]), dtype=dtype, order=order)
        V = np.asarray(rng.normal(size=shape), dtype=dtype, order=order)
        norm = normball.norm_l1inf(Y)
        for radius in (0.02 * norm, 0.4 * norm, 2 * norm, 0.0):
            X, change, info = along(Y, V, radius, 0, threads=threads)
            expected, mean = formula(Y, V, info, (0,))
            np.testing.assert_allclose(X, expected, rtol=0, atol=40 * np.finfo(dtype).eps)
            np.testing.assert_allclose(change, mean, rtol=1e-5 if dtype == "f" else 1e-12, atol=1e-12)


def test_the_large_go_round_the_cache_and_are_the_same():
    rng = np.random.default_rng(1)
    Y, V = rng.normal(size=(2, 1500, 2100))
    for axis in (0, 1):
        for part in (0.002, 0.3):
            X, _, info = along(Y, V, part * normball.norm_l1inf(Y, axis), axis, threads=2)
            np.testing.assert_allclose(X, formula(Y, V, info, (axis,))[0], rtol=0, atol=1e-13)


@given(
    shape=st.lists(st.integers(1, 6), min_size=2, max_size=4),
    part=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.1]),
    values=st.sampled_from(["normal", "integers", "sparse"]),
    data=st.data(),
)
def test_equals_the_formula_in_any_layout(shape, part, values, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    axes = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(shape))), min_size=1, max_size=len(shape) - 1))))
    step = data.draw(st.sampled_from([1, 2, -1]))
    wide = rng.normal(size=[*shape[:-1], shape[-1] * abs(step)])
    if values == "integers":
        wide = np.round(2 * wide)
    if values == "sparse":
        wide = wide * (rng.random(wide.shape) < 0.3)
    Y = wide[..., ::step]
    V = rng.normal(size=shape)
    answer = along(Y, V, part * normball.norm_l1inf(Y, axes), axes)
    if answer is None:
        return  # a layout that is left to others
    X, change, info = answer
    expected, mean = formula(Y, V, info, axes)
    np.testing.assert_allclose(X, expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(change, mean, rtol=1e-12, atol=1e-13)


def test_every_problem_of_a_batch_for_itself():
    rng = np.random.default_rng(2)
    Y, V = rng.normal(size=(2, 3, 30, 20))
    radii = np.array([1.0, 5.0, 1e3])
    X, change, info = along(Y, V, radii, 1, batch=0)
    for i in range(3):
        alone, mean, _ = along(Y[i], V[i], radii[i], 0)
        assert np.array_equal(X[i], alone)
        assert change[i] == mean
    assert info.theta[2] == 0
    assert np.array_equal(X[2], V[2])


def test_the_difference_of_two_projections():
    rng = np.random.default_rng(3)
    Y, V = rng.normal(size=(2, 200, 50))
    X, _, _ = along(Y, V, 12.0, 0)
    h = 1e-9
    moved = (normball.project_l1inf(Y + h * V, 12.0) - normball.project_l1inf(Y - h * V, 12.0)) / (2 * h)
    np.testing.assert_allclose(X, moved, rtol=0, atol=1e-5)


def test_other_types_and_layouts_are_declined_untouched():
    Y = np.random.default_rng(4).normal(size=(6, 8))[::2, ::2]
    V = np.ones((3, 4))
    assert along(Y, V, 1.0, 0) is None
