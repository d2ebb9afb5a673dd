"""Independent problems in one array: each as if it were alone."""

import numpy as np
import pytest

from .judge import assert_close, assert_optimal, same_bits
from .registry import CASES, L1INF, NORM_BALLS

every_case = pytest.mark.parametrize("case", CASES, ids=str)


@every_case
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64"])
@pytest.mark.parametrize(
    ("shape", "axis", "batch_axis"),
    [
        ((4, 9, 7), 1, 0),
        ((4, 9, 7), 2, 0),
        ((9, 7, 4), 0, 2),
        ((9, 7, 4), 1, -1),
        ((7, 4, 9), 0, 1),
        ((2, 3, 8, 5), 2, (0, 1)),
        ((8, 2, 5, 3), (0,), (1, 3)),
        ((2, 8, 3, 5), (1, 3), (0,)),
        ((2, 8, 3, 5), (1, 3), (0, 2)),
        ((1, 70, 90), 1, 0),
    ],
)
def test_each_problem_as_if_alone(case, shape, axis, batch_axis, dtype):
    if "complex" in dtype and not case.of_a_norm:
        pytest.skip("real numbers only")
    if not case.groups:
        axis = tuple(a for a in range(len(shape)) if a not in {b % len(shape) for b in np.atleast_1d(batch_axis)})
    rng = np.random.default_rng(1)
    Y = rng.normal(size=shape).astype(dtype)
    if Y.dtype.kind == "c":
        Y = Y * np.exp(1j * rng.normal(size=shape)).astype(dtype)
    batches = sorted(a % len(shape) for a in np.atleast_1d(batch_axis))
    axes = sorted(a % len(shape) for a in np.atleast_1d(axis))
    batch_shape = tuple(shape[a] for a in batches)
    radii = 10.0 ** rng.uniform(-2, 1, size=batch_shape)
    X, info = case.project(Y, radii, axis=axis if isinstance(axis, int) else tuple(axis), batch_axis=batch_axis,
                           return_info=True)  # fmt: skip
    remaining = [a for a in range(len(shape)) if a not in axes]
    assert info.theta.shape == (info.mu.shape if case.each else batch_shape)
    assert info.theta.dtype == np.float64
    assert info.mu.shape == info.nonzero.shape == np.abs(Y).max(axis=tuple(axes)).shape
    assert info.n_nonzero == np.count_nonzero(info.nonzero)

    first = [remaining.index(b) for b in batches], range(len(batches))
    nonzero = np.moveaxis(info.nonzero, *first)
    theta = np.moveaxis(info.theta, *first) if case.each else info.theta
    inner = tuple(a - sum(b < a for b in batches) for a in axes)
    first_Y, first_X = np.moveaxis(Y, batches, range(len(batches))), np.moveaxis(X, batches, range(len(batches)))
    for index in np.ndindex(batch_shape):
        one, got = np.ascontiguousarray(first_Y[index]), np.ascontiguousarray(first_X[index])
        assert_optimal(case, one, got, float(radii[index]), inner, note=f"problem {index}")
        alone, alone_info = case.project(one, float(radii[index]), axis=inner, return_info=True)
        assert_close(case, got, alone.astype(np.result_type(dtype, np.float64)), one, inner)
        assert theta[index] == pytest.approx(alone_info.theta, rel=1e-5, abs=1e-12)
        assert np.array_equal(nonzero[index], alone_info.nonzero)


@every_case
def test_radius_broadcasts_to_the_batch(case):
    Y = np.random.default_rng(2).normal(size=(3, 4, 10, 6))
    full = np.broadcast_to(np.array([[0.5], [2.0], [1e3]]), (3, 4))
    X = case.project(Y, full.copy(), axis=2, batch_axis=(0, 1))
    assert same_bits(X, case.project(Y, full, axis=2, batch_axis=(0, 1)))
    assert same_bits(X, case.project(Y, np.array([[0.5], [2.0], [1e3]]), axis=2, batch_axis=(0, 1)))
    along = np.array([0.5, 1.0, 2.0, 4.0])
    X = case.project(Y, along, axis=2, batch_axis=(0, 1))
    for index in np.ndindex(3, 4):
        assert_optimal(case, Y[index], X[index].copy(), along[index[1]], 0)
    X = case.project(Y, 1.5, axis=2, batch_axis=(0, 1))
    for index in np.ndindex(3, 4):
        assert_optimal(case, Y[index], X[index].copy(), 1.5, 0)


@pytest.mark.parametrize("case", NORM_BALLS, ids=str)
def test_zero_infinite_and_ordinary_radii_side_by_side(case):
    Y = np.random.default_rng(3).normal(size=(4, 12, 9))
    radii = np.array([0.0, np.inf, 2.0, 1e6])
    X, info = case.project(Y, radii, axis=1, batch_axis=0, return_info=True)
    assert not X[0].any()
    assert same_bits(X[1], Y[1])
    assert same_bits(X[3], Y[3])
    assert_optimal(case, Y[2], X[2].copy(), 2.0, 0)
    assert info.theta[0] == pytest.approx(case.project(Y[0], 0.0, return_info=True)[1].theta, rel=1e-13)
    assert np.all(info.theta[1] == 0)
    assert np.all(info.theta[3] == 0)
    assert np.all(info.theta[2] > 0)
    alone = case.project(Y[2], 2.0, return_info=True)[1]
    if case.ball != "l1inf":
        return
    assert info.theta[0] == pytest.approx(np.abs(Y[0]).sum(axis=0).max(), rel=1e-13)
    assert info.clipped == alone.clipped
    assert info.kept == 2 * 12 * 9 + alone.kept


@every_case
def test_batch_of_one_and_of_none(case):
    Y = np.random.default_rng(4).normal(size=(1, 8, 5))
    assert_close(case, case.project(Y, [1.5], axis=1, batch_axis=0)[0], case.project(Y[0], 1.5), Y[0])
    empty = case.project(np.empty((0, 8, 5)), np.empty(0), axis=1, batch_axis=0)
    assert empty.shape == (0, 8, 5)


@pytest.mark.parametrize("case", L1INF, ids=str)
def test_every_group_its_own_problem(case):
    """With all other axes in the batch each problem has one group, and its cap is its radius."""
    Y = np.random.default_rng(5).normal(size=(20, 6))
    radii = np.linspace(0.1, 3.0, 6)
    X = case.project(Y, radii, axis=0, batch_axis=1)
    assert_close(case, X, np.clip(Y, -radii, radii), Y)


@every_case
def test_in_place_and_threads(case):
    Y = np.random.default_rng(6).normal(size=(16, 40, 30))
    radii = np.geomspace(0.01, 50, 16)
    X = case.project(Y, radii, axis=1, batch_axis=0, threads=1)
    for threads in (2, 5, None):
        assert same_bits(X, case.project(Y, radii, axis=1, batch_axis=0, threads=threads))
    W = Y.copy()
    assert case.project(W, radii, axis=1, batch_axis=0, out=W) is W
    for b in range(16):
        assert_optimal(case, Y[b], W[b].copy(), float(radii[b]), 0)
