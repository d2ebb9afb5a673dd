"""The norms, the prox and the ball object around the projection."""

import dataclasses
import math

import numpy as np
import pytest

import normball
from normball.reference import oracle

RNG = np.random.default_rng(0)
SHAPES = [(1, 1), (5, 7), (64, 33), (130, 257)]
DTYPES = ["float64", "float32", "float16", "complex64", "complex128"]


def sample(shape, dtype):
    Y = RNG.normal(size=shape)
    return (Y * np.exp(1j * RNG.normal(size=shape))).astype(dtype) if "complex" in dtype else Y.astype(dtype)


def modulus(Y):
    return np.abs(Y.astype(np.result_type(Y.dtype, np.float64)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_norms(shape, dtype):
    Y = sample(shape, dtype)
    tolerance = 8 * float(np.finfo(dtype).eps)
    for axis in (0, 1, -1):
        for values in (Y, np.asfortranarray(Y), Y[::-1, ::-1]):
            A = modulus(values)
            assert float(normball.norm_l1inf(values, axis)) == pytest.approx(A.max(axis).sum(), rel=tolerance)
            assert float(normball.norm_linf1(values, axis=axis)) == pytest.approx(A.sum(axis).max(), rel=tolerance)


def test_norms_of_integers_lists_and_nothing():
    assert normball.norm_l1inf([[3, -1], [2, 5]]) == 8
    assert normball.norm_linf1([[3, -1], [2, 5]]) == 6
    assert normball.norm_l1inf(np.array([[True, False]])) == 1
    for shape in [(0, 4), (4, 0), (0,)]:
        assert normball.norm_l1inf(np.empty(shape)) == 0
        assert normball.norm_linf1(np.empty(shape)) == 0


def test_norms_over_several_axes_and_in_batches():
    Y = RNG.normal(size=(3, 4, 5, 6))
    A = np.abs(Y)
    assert normball.norm_l1inf(Y, axis=(0, 2)) == pytest.approx(A.max((0, 2)).sum(), rel=1e-14)
    assert normball.norm_linf1(Y, axis=(0, 2)) == pytest.approx(A.sum((0, 2)).max(), rel=1e-14)
    np.testing.assert_allclose(normball.norm_l1inf(Y, axis=1, batch_axis=0), A.max(1).sum((1, 2)), rtol=1e-14)
    np.testing.assert_allclose(normball.norm_linf1(Y, axis=1, batch_axis=(0, 3)), A.sum(1).max(1), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_prox_is_the_other_half_of_moreau(dtype):
    Y = sample((20, 30), dtype)
    tolerance = 16 * np.finfo(dtype).eps * np.abs(Y).max()
    for axis in (0, 1):
        for scale in (0.0, 0.3, 5.0, 1e4):
            P = normball.prox_linf1(Y, scale, axis=axis)
            assert P.dtype == Y.dtype
            assert P.shape == Y.shape
            np.testing.assert_allclose(P, Y - oracle.project_l1inf(Y, scale, axis)[0], rtol=0, atol=tolerance)


def test_prox_minimises_its_objective():
    Y = RNG.normal(size=(6, 5))
    scale = 1.3

    def objective(X):
        return 0.5 * np.sum((X - Y) ** 2) + scale * np.abs(X).sum(axis=0).max()

    least = objective(normball.prox_linf1(Y, scale))
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(50):
            assert objective(normball.prox_linf1(Y, scale) + size * RNG.normal(size=Y.shape)) >= least - 1e-12
    assert least < min(objective(Y), objective(np.zeros_like(Y)))


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_the_ball_does_what_the_functions_do(axis):
    Y = RNG.normal(size=(9, 8))
    ball = normball.L1InfBall(0.5, axis=axis)
    X = ball.project(Y)
    assert oracle.kkt_residual(Y, X, 0.5, axis) <= 1e-14
    assert np.array_equal(X, normball.project_l1inf(Y, 0.5, axis=axis))
    assert np.array_equal(X, ball(Y))
    assert ball.norm(Y) == normball.norm_l1inf(Y, axis=axis)
    assert ball.contains(X)
    assert not ball.contains(Y)


def test_contains_has_tolerances():
    ball = normball.L1InfBall(1.0)
    assert ball.contains(np.array([[1.0]]))
    assert ball.contains(np.array([[0.5, -0.5]]), rtol=0.0, atol=0.0)
    assert not ball.contains(np.array([[1.0 + 1e-3]]))
    assert ball.contains(np.array([[1.0 + 1e-3]]), rtol=1e-2)
    assert ball.contains(np.array([[1.0 + 1e-3]]), atol=1e-2)
    assert not ball.contains(np.array([[1.1]]), rtol=0.0, atol=0.05)


def test_the_ball_is_a_value():
    ball = normball.L1InfBall(2.0, axis=(0, 2))
    assert ball == normball.L1InfBall(2.0, axis=(0, 2))
    assert hash(ball) == hash(normball.L1InfBall(2.0, axis=(0, 2)))
    assert ball != normball.L1InfBall(3.0, axis=(0, 2))
    assert ball != normball.L1InfBall(2.0)
    assert (ball.radius, ball.axis) == (2.0, (0, 2))
    assert "2.0" in repr(ball)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ball.radius = 1.0


@pytest.mark.parametrize(("radius", "axis", "word"), [
    (-1.0, 0, "radius"), (math.nan, 0, "radius"), ("1", 0, "radius"), (None, 0, "radius"), ([1.0, -1.0], 0, "radius"),
    (1.0, "0", "axis"), (1.0, 0.5, "axis"), (1.0, (0, None), "axis"),
])  # fmt: skip
def test_a_ball_that_cannot_be_is_refused(radius, axis, word):
    with pytest.raises((TypeError, ValueError), match=rf"\b{word}\b"):
        normball.L1InfBall(radius, axis)


def test_a_ball_for_each_problem():
    Y = np.random.default_rng(0).normal(size=(4, 3, 5))
    for radius in (np.array([0.5, 1.0, 2.0]), [0.5, 1.0, 2.0]):
        ball = normball.L1InfBall(radius)
        X = ball.project(Y, batch_axis=1)
        assert np.allclose(ball.norm(X, batch_axis=1), radius)
        assert ball.contains(X, batch_axis=1)
        assert not ball.contains(Y, batch_axis=1)
        with pytest.raises(ValueError, match="batch_axis"):
            ball.contains(X)


@pytest.mark.parametrize(("name", "value"), [("rtol", "a"), ("atol", None), ("rtol", -1.0), ("atol", math.nan)])
def test_tolerances_are_checked(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        normball.L1InfBall(1.0).contains(np.ones((2, 2)), **{name: value})


def test_norms_beyond_all_floats():
    Y = np.full((2, 3), 1e308)
    assert normball.norm_l1inf(Y) == math.inf
    assert normball.norm_linf1(Y) == math.inf
    assert normball.L1InfBall(math.inf).contains(Y)


@pytest.mark.parametrize("method", normball.reference.METHODS)
def test_a_single_group_is_clipped_at_the_radius(method):
    for seed in range(40):
        y = np.random.default_rng(seed).normal(size=50 + 100 * seed)
        for radius in (0.1, 0.3, 0.7):
            assert np.array_equal(normball.project_l1inf(y, radius, method=method), np.clip(y, -radius, radius))


def test_zero_groups_keep_nothing():
    _, info = normball.project_l1inf(np.zeros((3, 4)), 1.0, return_info=True)
    assert (info.n_nonzero, info.clipped, info.kept) == (0, 0, 0)


def test_a_prox_of_negative_scale_is_refused():
    with pytest.raises(ValueError, match=r"scale|radius"):
        normball.prox_linf1(np.ones((2, 2)), -1.0)
