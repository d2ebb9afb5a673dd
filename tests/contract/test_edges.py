"""The ends of every range: no entries, no radius, no bound, the largest and the smallest floats, what is not finite."""

import numpy as np
import pytest

from .data import DISTRIBUTIONS, REAL_DTYPES, matrix
from .judge import assert_close, assert_feasible, assert_optimal, same_bits
from .registry import CASES, NORM_BALLS

every_case = pytest.mark.parametrize("case", CASES, ids=str)
norm_balls = pytest.mark.parametrize("case", NORM_BALLS, ids=str)

DTYPES = (*REAL_DTYPES, "complex64", "complex128")


@norm_balls
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((0,), 0), ((0, 5), 0), ((0, 5), 1), ((5, 0), 0), ((5, 0), 1), ((0, 0), 0), ((3, 0, 2), 0), ((3, 0, 2), (0, 1))],
)
def test_empty_arrays_come_back_empty(case, shape, axis, dtype):
    Y = np.empty(shape, dtype=dtype)
    for radius in (0.0, 1.0, np.inf):
        X, info = case.project(Y, radius, axis=axis, return_info=True)
        assert X.shape == shape
        assert X.dtype == Y.dtype
        assert X is not Y
        assert info.n_nonzero == 0
        assert case.ball != "l1inf" or info.clipped == info.kept == 0
        assert not np.any(info.nonzero)
        assert np.all(info.mu == 0)
        out = np.empty_like(Y)
        assert case.project(Y, radius, axis=axis, out=out) is out


@norm_balls
@pytest.mark.parametrize("dtype", DTYPES)
def test_radius_zero_gives_zeros(case, dtype):
    for shape in [(1, 1), (17, 9), (70, 130)]:
        Y = matrix("normal", shape).astype(dtype)
        for axis in (0, 1):
            X = case.project(Y, 0, axis=axis)
            assert X.dtype == Y.dtype
            assert X.shape == shape
            assert not X.any()


@norm_balls
@pytest.mark.parametrize("dtype", DTYPES)
def test_infinite_radius_gives_a_copy(case, dtype):
    Y = matrix("cauchy", (33, 20)).astype(dtype)
    X = case.project(Y, np.inf)
    assert same_bits(X, Y)
    assert not np.shares_memory(X, Y)


@norm_balls
@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_stay_zeros(case, dtype):
    for radius in (0.0, 1e-300, 1.0):
        X = case.project(np.zeros((12, 13), dtype=dtype), radius)
        assert not X.any()
        assert X.dtype == np.dtype(dtype)


@norm_balls
@pytest.mark.parametrize("dtype", REAL_DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_values_near_the_largest_float(case, distribution, dtype):
    largest = float(np.finfo(dtype).max)
    for shape in [(3, 4), (40, 70), (70, 40)]:
        unit = matrix(distribution, shape)
        if not unit.any():
            continue
        Y = (unit / np.abs(unit).max() * largest).astype(dtype)
        assert np.isfinite(Y).all()
        for radius in (1e-3 * largest, largest / 2, min(largest * 2, np.finfo(np.float64).max)):
            X = case.project(Y, radius)
            assert np.isfinite(X).all()
            assert_feasible(case, X, radius)
            assert_close(case, X, case.oracle(Y, radius, 0)[0], Y, 0, note=f"{shape} {radius}")


@norm_balls
@pytest.mark.parametrize("dtype", REAL_DTYPES)
@pytest.mark.parametrize("distribution", ["uniform", "normal", "ties", "constant", "one_hot"])
def test_subnormal_values_do_not_vanish(case, distribution, dtype):
    least = float(np.finfo(dtype).smallest_subnormal)
    for shape in [(3, 4), (40, 30), (30, 40)]:
        unit = matrix(distribution, shape)
        Y = (np.rint(unit / np.abs(unit).max() * 900) * least).astype(dtype)
        for part in (0.1, 0.5, 0.9):
            radius = part * case.exact_norm(Y, 0)
            X = case.project(Y, radius)
            assert_feasible(case, X, radius)
            assert X.any() or not case.groups or case.each  # entries below the least float are zero
            expected = case.oracle(Y, radius, 0)[0]
            worst = np.abs(X.astype(np.float64) - expected).max()
            units = 2 if case.ball == "bilevel_l11" else 1  # rounded at either level
            assert worst <= least * (units + 1e-9), f"{shape} {part}: off by {worst / least} units"


@every_case
@pytest.mark.parametrize("dtype", REAL_DTYPES)
def test_a_radius_far_below_every_entry(case, dtype):
    """The result is tiny against the sums it is a difference of, and still inside the ball."""
    Y = matrix("uniform", (200, 60), dtype)
    for radius in (1e-15, 1e-25, 1e-60, 1e-300, 5e-324):
        assert_optimal(case, Y, case.project(Y, radius), radius)
        assert_optimal(case, Y, case.project(Y, radius, axis=1), radius, 1)


@norm_balls
def test_huge_and_tiny_in_one_matrix(case):
    Y = np.array([[1e300, 1e-300, 1.0, 0.0], [-1e299, 1e-310, -2.0, -0.0]])
    for radius in (1e-310, 1e-200, 1.0, 1e100, 5e299):
        X = case.project(Y, radius)
        assert_close(case, X, case.oracle(Y, radius, 0)[0], Y)
        assert_feasible(case, X, radius)


@every_case
def test_float16_sums_beyond_its_range(case):
    """Both the l1 norm of a group and the norm itself exceed 65504, and no entry may be lost to it."""
    for shape in [(3000, 20), (20, 3000)]:
        Y = (matrix("normal", shape) * 1000).astype(np.float16)
        for radius in (1.0, 300.0, 70000.0, 0.5 * case.exact_norm(Y, 0)):
            assert_optimal(case, Y, case.project(Y, radius), radius)
            T = np.ascontiguousarray(Y.T)
            assert_optimal(case, T, case.project(T, radius, axis=1), radius, 1)


@every_case
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_unchecked_non_finite_values_give_nan(case, bad, dtype):
    if "complex" in dtype and not case.of_a_norm:
        pytest.skip("real numbers only")
    for shape in [(1, 1), (5, 4), (130, 70)]:
        for place in (0, -1):
            for radius in (1e-3, 1.0, 50.0):
                Y = matrix("normal", shape).astype(dtype)
                Y.flat[place] = bad
                for axis in (0, 1):
                    assert np.isnan(case.project(Y, radius, axis=axis, check_finite=False)).all()


@every_case
def test_an_unchecked_problem_spoils_no_other(case):
    Y = np.random.default_rng(1).normal(size=(3, 11, 7))
    Y[1, 4, 2] = np.nan
    X = case.project(Y, 2.0, axis=1, batch_axis=0, check_finite=False)
    assert np.isnan(X[1]).all()
    for b in (0, 2):
        assert_optimal(case, Y[b], X[b].copy(), 2.0, 0)


@every_case
def test_unchecked_finite_values_are_projected_alike(case):
    Y = matrix("normal", (31, 29))
    assert same_bits(case.project(Y, 3.0, check_finite=False), case.project(Y, 3.0))
