"""Exactness: equal to the oracle, and optimal, on every distribution, dtype, size and radius."""

import numpy as np
import pytest

from normball import reference

from .data import DISTRIBUTIONS, RADII, REAL_DTYPES, SHAPES, exact_solution, matrix
from .judge import assert_close, assert_optimal
from .registry import CASES, FAST_CASES, L1INF


@pytest.mark.parametrize("dtype", REAL_DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("case", L1INF, ids=str)
def test_equals_the_oracle(case, distribution, dtype):
    for shape in SHAPES:
        Y = matrix(distribution, shape, dtype)
        norm = case.exact_norm(Y, 0)
        for part in RADII if norm > 0 else ():
            radius = part * norm
            mu, _ = exact_solution(distribution, shape, dtype, radius)
            expected = np.copysign(np.minimum(np.abs(Y.astype(np.float64)), mu), Y)
            note = f"{case} {distribution} {dtype} {shape} radius={radius!r}"

            X = case.project(Y, radius, axis=0)
            assert_close(case, X, expected, Y, 0, note=note)
            assert_optimal(case, Y, X, radius, 0)

            contiguous = np.ascontiguousarray(Y.T)
            X = case.project(contiguous, radius, axis=1)
            assert_close(case, X, expected.T, contiguous, 1, note=note + " transposed")
            assert_optimal(case, contiguous, X, radius, 1)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("distribution", ["uniform", "normal", "lognormal"])
@pytest.mark.parametrize("case", L1INF, ids=str)
def test_single_precision_to_the_last_place(case, distribution, order):
    """Of each entry, also where caps are thousands of times smaller than the entries, so that sums cancel."""
    unit = float(np.finfo(np.float32).eps)
    for shape in [(300, 500), (100, 900)]:
        Y = np.asarray(matrix(distribution, shape, "float32"), order=order)
        for part in (1e-4, 1e-3, 0.02, 0.3):
            radius = part * case.exact_norm(Y, 0)
            expected = reference.project_l1inf(Y, radius, method="semismooth_newton")
            X = case.project(Y, radius, axis=0).astype(np.float64)
            lost = 1e-15 * np.abs(Y).sum(axis=0, dtype=np.float64)  # by the sums of double precision
            assert (np.abs(X - expected) <= 1.5 * unit * np.abs(expected) + lost).all(), f"{shape} {part}"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_optimal_at_medium_sizes(case, distribution, dtype):
    for shape in [(257, 129), (127, 255), (31, 1000), (1000, 33)]:
        Y = matrix(distribution, shape, dtype)
        for part in (1e-9, 1e-3, 0.1, 0.5, 0.95):
            radius = part * case.exact_norm(Y, 0)
            assert_optimal(case, Y, case.project(Y, radius, axis=0), radius, 0, note=distribution)
            T = np.ascontiguousarray(Y.T)
            assert_optimal(case, T, case.project(T, radius, axis=1), radius, 1, note=distribution)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(1000, 1000), (100, 10007), (4099, 257)])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("case", FAST_CASES, ids=str)
def test_optimal_at_large_sizes(case, distribution, shape, dtype):
    """Large enough for a method to sample, stream and compress instead of looking at everything at once."""
    if case.ball != "l1inf" and (distribution, shape[0]) not in (("normal", 1000), ("cauchy", 100), ("ties", 1000)):
        pytest.skip("to bound the time: these are sorted in extended precision")
    Y = matrix(distribution, shape, dtype)
    T = np.ascontiguousarray(Y.T)
    for part in (1e-3, 0.25, 0.8) if case.ball == "l1inf" else (1e-3, 0.3):
        radius = part * case.exact_norm(Y, 0)
        assert_optimal(case, Y, case.project(Y, radius, axis=0), radius, 0, note=distribution)
        assert_optimal(case, T, case.project(T, radius, axis=1), radius, 1, note=distribution)


@pytest.mark.parametrize("distribution", ["normal", "cauchy"])
@pytest.mark.parametrize("case", [case for case in L1INF if case.fast], ids=str)
def test_equals_the_oracle_at_a_large_size(case, distribution):
    shape = (700, 1300)
    Y = matrix(distribution, shape)
    for part in (1e-6, 0.02, 0.4, 0.9):
        radius = part * case.exact_norm(Y, 0)
        mu, theta = exact_solution(distribution, shape, "float64", radius)
        X, info = case.project(Y, radius, axis=0, return_info=True)
        assert_close(case, X, np.copysign(np.minimum(np.abs(Y), mu), Y), Y, 0, note=f"{distribution} {part}")
        assert info.theta == pytest.approx(theta, rel=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("case", L1INF, ids=str)
def test_sums_of_equal_terms_do_not_drift(case, order):
    """Rounding errs the same way at each of them."""
    Y = np.array(np.broadcast_to(1.0 + 0.1 * np.random.default_rng(8).random(30), (20000, 30)), order=order)
    for part in (0.5, 0.02):
        X = case.project(Y, part * case.exact_norm(Y, 0), axis=0)
        residual = case.kkt(Y, X, part * case.exact_norm(Y, 0), 0)
        assert residual <= 8 * np.finfo(np.float64).eps, f"{case} {part}: {residual}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_outlier_hides_nothing(case):
    """A sample of the groups says nothing about the one that matters."""
    rng = np.random.default_rng(5)
    for place in (0, 399, 799):
        Y = rng.random((300, 800)) * 1e-3
        Y[:, place] = rng.random(300) * 100.0
        for radius in (1e-3, 0.5, 60.0, 90.0):
            assert_optimal(case, Y, case.project(Y, radius), radius, 0, note=f"outlier at {place}")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_groups_of_very_different_kinds(case):
    """Half the groups heavy-tailed, half flat, in an order that no stride samples fairly."""
    rng = np.random.default_rng(6)
    Y = np.where(np.arange(600) % 32 == 0, rng.standard_cauchy((200, 600)) ** 3, rng.random((200, 600)))
    for part in (1e-4, 0.01, 0.3, 0.9):
        radius = part * case.exact_norm(Y, 0)
        for axis, values in ((0, Y), (1, np.ascontiguousarray(Y.T))):
            assert_optimal(case, values, case.project(values, radius, axis=axis), radius, axis)


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_some_of_many_groups_fail_again_and_again(dtype, part):
    """Heavy tails and groups side by side: what fails after the first exact look is copied, and goes on from there."""
    Y = np.random.default_rng(7).lognormal(sigma=2.0, size=(1000, 960)).astype(dtype)
    case = next(case for case in CASES if case.name == "l1inf-newton")
    radius = part * case.exact_norm(Y, 0)
    X, info = case.project(Y, radius, threads=1, return_info=True)
    assert_optimal(case, Y, X, radius, 0)
    assert info.n_nonzero > 240, "too few to be left where they lie"
    assert np.array_equal(X, case.project(Y, radius, threads=2))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("distribution", ["uniform", "normal", "lognormal", "cauchy", "ties", "mixed", "crowded"])
def test_optimal_past_the_caches(distribution, order):
    """Large enough for windows to be kept of the groups, with the few members that are expected there, or with many."""
    rng = np.random.default_rng(9)
    case = next(case for case in CASES if case.name == "l1inf-newton")
    for dtype, shape in (("float32", (1401, 3000)), ("float64", (700, 3000))):
        if distribution == "mixed":
            wide = rng.random((shape[0], shape[1])) ** -0.8
            Y = np.where(np.arange(shape[1]) % 3 == 0, wide, rng.standard_normal(shape))
        elif distribution == "crowded":  # about one place, most of them
            Y = np.where(rng.random(shape) < 0.9, 1.0 + 1e-4 * rng.random(shape), rng.random(shape))
        else:
            Y = matrix(distribution, shape)
        Y = np.asarray(Y, dtype=dtype, order=order)
        norm = case.exact_norm(Y, 0)
        for part in (0.02, 0.5, 0.9) if dtype == "float32" else (0.4,):
            X = case.project(Y, part * norm, threads=1)
            assert_optimal(case, Y, X, part * norm, 0, note=distribution)
            assert np.array_equal(X, case.project(Y, part * norm, threads=2)), f"{distribution} {dtype} {part}"
