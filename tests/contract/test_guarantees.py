"""The promises beside exactness: what is preserved, what is repeatable, what no layout or thread may change."""

import numpy as np
import pytest

from .data import DISTRIBUTIONS, LAYOUTS, REAL_DTYPES, matrix
from .judge import assert_close, assert_feasible, assert_optimal, eps, rounding, same_bits
from .registry import CASES, EUCLIDEAN, FAST_CASES, NORM_BALLS

every_case = pytest.mark.parametrize("case", CASES, ids=str)
norm_balls = pytest.mark.parametrize("case", NORM_BALLS, ids=str)
euclidean = pytest.mark.parametrize("case", EUCLIDEAN, ids=str)

PARTS = (1e-8, 1e-2, 0.2, 0.6, 0.98)


@every_case
@pytest.mark.parametrize("dtype", REAL_DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_projecting_twice_changes_nothing(case, distribution, dtype):
    for shape in [(1, 9), (23, 41), (130, 64)]:
        Y = matrix(distribution, shape, dtype)
        for part in PARTS:
            radius = part * case.exact_norm(Y, 0)
            X = case.project(Y, radius)
            again = case.project(X, radius)
            assert_optimal(case, Y, X, radius)
            # A norm that is over the radius by rounding may be taken from few groups, so the radius is the scale. A sum
            # that must equal the radius, and misses it by rounding of the entries, is made good.
            scale = radius if case.of_a_norm else np.abs(Y.astype(np.float64)).max()
            moved = np.abs(again.astype(np.float64) - X.astype(np.float64)).max()
            assert moved <= 8 * eps(X.dtype) * scale + float(np.finfo(dtype).smallest_subnormal), (shape, part)


@norm_balls
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_signs_pass_through(case, distribution):
    Y = matrix(distribution, (37, 53))
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=Y.shape)
    for part in PARTS:
        radius = part * case.exact_norm(Y, 0)
        assert_close(case, case.project(signs * Y, radius), signs * case.project(Y, radius), Y)


@every_case
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_order_does_not_matter(case, distribution):
    rng = np.random.default_rng(2)
    Y = matrix(distribution, (37, 53))
    groups = rng.permutation(53)
    places = np.argsort(rng.random(Y.shape), axis=0)
    for part in PARTS:
        radius = part * case.exact_norm(Y, 0)
        X = case.project(Y, radius)
        assert_close(case, case.project(Y[:, groups], radius), X[:, groups], Y)
        shuffled = case.project(np.take_along_axis(Y, places, axis=0), radius)
        assert_close(case, shuffled, np.take_along_axis(X, places, axis=0), Y)


@every_case
def test_scale_passes_through(case):
    Y = matrix("normal", (29, 31))
    X = case.project(Y, 5.0)
    for factor in (2.0**-600, 1e-30, 3.0, 1e30, 2.0**600):
        scaled = case.project(factor * Y, factor * 5.0)
        assert_close(case, scaled / factor, X, Y, note=f"factor {factor}")


@norm_balls
@pytest.mark.parametrize("dtype", [*REAL_DTYPES, "complex64", "complex128"])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_interior_points_keep_their_bits(case, distribution, dtype):
    for shape in [(1, 1), (16, 9), (65, 130)]:
        Y = matrix(distribution, shape, "float16" if dtype == "float16" else "float64").astype(dtype)
        Y.flat[0] = -0.0  # and its sign with it
        norm = case.exact_norm(Y, 0)
        for radius in (norm * (1 + 1e-12) or 1.0, 2 * norm + 1, np.inf):
            for values, axis in ((Y, 0), (np.asfortranarray(Y), 0), (np.ascontiguousarray(Y.T), 1)):
                X = case.project(values, radius, axis=axis)
                assert same_bits(X, values), (shape, radius, axis)
                assert not np.shares_memory(X, values)


@norm_balls
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_on_the_sphere_nothing_moves(case, distribution):
    Y = matrix(distribution, (33, 65))
    assert_close(case, case.project(Y, case.exact_norm(Y, 0)), Y, Y)


@every_case
@pytest.mark.parametrize("dtype", REAL_DTYPES)
@pytest.mark.parametrize("distribution", ["normal", "ties", "cauchy"])
def test_same_bits_on_every_call_and_for_any_threads(case, distribution, dtype):
    shapes = [(40, 60), (700, 500)] if case in FAST_CASES else [(40, 60), (150, 120)]
    for shape in shapes:
        Y = matrix(distribution, shape, dtype)
        for values, axis in ((Y, 0), (np.ascontiguousarray(Y.T), 1)):
            for part in (1e-3, 0.3, 0.9):
                radius = part * case.exact_norm(Y, 0)
                X = case.project(values, radius, axis=axis, threads=1)
                assert_feasible(case, X, radius, axis)
                for threads in (None, 1, 2, 3, 8):
                    again = case.project(values.copy(order="K"), radius, axis=axis, threads=threads)
                    assert same_bits(X, again), (shape, axis, part, threads)


@every_case
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [*REAL_DTYPES, "complex64", "complex128"])
def test_layouts_agree(case, dtype, layout):
    if "complex" in dtype and not case.of_a_norm:
        pytest.skip("real numbers only")
    for shape in [(1, 5), (5, 1), (18, 35), (129, 67)]:
        Y = matrix("normal", shape, "float64").astype(dtype)
        if np.dtype(dtype).kind == "c":
            Y = Y * np.exp(1j * matrix("uniform", shape)).astype(dtype)
        for axis in (0, 1):
            for part in (1e-3, 0.3, 0.9):
                radius = part * case.exact_norm(Y, axis)
                laid = LAYOUTS[layout](Y)
                assert np.array_equal(laid, Y)
                X = case.project(laid, radius, axis=axis)
                assert_optimal(case, Y, X, radius, axis, note=layout)
                wide = np.result_type(Y.dtype, np.float64)
                assert_close(case, X, case.project(Y, radius, axis=axis).astype(wide), Y, axis, note=layout)
                assert np.array_equal(laid, Y), "the input was modified"


@every_case
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, (0, 1), (1, 3), (3, 0), (0, 2, 3), (1, 2), (-1, -3), (0, 1, 2, 3)])
def test_any_axes_of_a_convolution_weight(case, axis, layout):
    Y = np.random.default_rng(3).normal(size=(6, 5, 3, 4))
    axes = (axis,) if isinstance(axis, int) else axis
    moved = np.moveaxis(Y, axes, range(len(axes)))
    columns = moved.reshape(int(np.prod(moved.shape[: len(axes)])), -1)
    for part in (0.05, 0.5):
        radius = part * case.exact_norm(columns, 0)
        X = case.project(LAYOUTS[layout](Y), radius, axis=axis)
        assert_optimal(case, Y, X, radius, axis, note=layout)
        expected, _ = case.oracle(columns, radius, 0)
        got = np.moveaxis(X, axes, range(len(axes))).reshape(columns.shape)
        assert_close(case, got, expected, columns, 0, note=f"{axis} {layout}")


@every_case
def test_repeated_rows_of_a_broadcast_array(case):
    Y = np.broadcast_to(np.random.default_rng(4).normal(size=(1, 30)), (20, 30))
    for axis in (0, 1):
        radius = 0.4 * case.exact_norm(Y, axis)
        assert_optimal(case, Y, case.project(Y, radius, axis=axis), radius, axis)


@pytest.mark.parametrize("case", [case for case in NORM_BALLS if case.euclidean], ids=str)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_no_feasible_point_is_nearer(case, distribution):
    """The variational inequality: (Y - X) makes no acute angle with any way into the ball from X."""
    rng = np.random.default_rng(7)
    Y = matrix(distribution, (20, 30))
    for part in PARTS:
        radius = part * case.exact_norm(Y, 0)
        X = case.project(Y, radius)
        for _ in range(20):
            V = rng.normal(size=Y.shape) * (rng.random(30) < rng.random())
            V *= radius / max(case.exact_norm(V, 0), 1e-300)
            for feasible in (V, 0.5 * (V + X), np.zeros_like(Y)):
                angle = np.sum((Y - X) * (feasible - X))
                assert angle <= 1e3 * rounding(Y.dtype, 20) * np.abs(Y).sum() * max(np.abs(Y).max(), radius)


@euclidean
def test_firmly_nonexpansive(case):
    rng = np.random.default_rng(8)
    for trial in range(40):
        shape = tuple(rng.integers(1, 40, size=2))
        P, Q = rng.normal(size=shape), rng.standard_cauchy(shape)
        Q = P + Q * 10.0 ** rng.integers(-8, 2)
        radius = 10.0 ** rng.uniform(-4, 0) * case.exact_norm(P, 0)
        p, q = case.project(P, radius), case.project(Q, radius)
        between, apart = np.sum((p - q) * (P - Q)), np.sum((p - q) ** 2)
        slack = 1e-12 * max(np.abs(P).max(), np.abs(Q).max()) * (np.abs(P - Q).sum() + np.abs(p - q).sum())
        assert apart <= between + slack, trial
        assert np.sqrt(apart) <= np.sqrt(np.sum((P - Q) ** 2)) * (1 + 1e-12) + slack, trial
