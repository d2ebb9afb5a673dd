"""A warm start changes the time and nothing else, whatever it holds."""

import dataclasses

import numpy as np
import pytest

import normball

from .data import DISTRIBUTIONS, matrix
from .judge import assert_close, assert_optimal
from .registry import L1INF

pytestmark = pytest.mark.parametrize("case", L1INF, ids=str)


def shape_for(case):
    return (300, 700) if case.fast else (60, 80)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_after_a_perturbation(case, distribution, dtype):
    Y = matrix(distribution, shape_for(case), dtype)
    rng = np.random.default_rng(1)
    for part in (1e-3, 0.2, 0.8):
        radius = part * case.exact_norm(Y, 0)
        _, info = case.project(Y, radius, return_info=True)
        for size in (0.0, 1e-6, 1e-2, 1.0):
            moved = (Y + size * np.abs(Y).max() * rng.normal(size=Y.shape)).astype(dtype)
            X = case.project(moved, radius, warm_start=info)
            assert_optimal(case, moved, X, radius, 0, note=f"{distribution} {part} {size}")
            assert_close(case, X, case.project(moved, radius).astype(np.float64), moved)


def test_a_training_loop_in_place(case):
    rng = np.random.default_rng(2)
    W = rng.normal(size=shape_for(case))
    info = None
    for step in range(12):
        before = W.copy()
        _, info = case.project(W, 6.0, out=W, warm_start=info, return_info=True)
        assert_optimal(case, before, W.copy(), 6.0, 0, note=f"step {step}")
        W += 0.003 * rng.normal(size=W.shape)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_steps_in_place_that_leave_zero_groups_alone(case, dtype, order):
    """Zeros that are there already need not be written: what else becomes zero must, be it little or much."""
    members, groups = shape_for(case)
    shapes = [(members, groups)] + ([(1200, 4400)] if case.fast else [])  # the second goes past the caches
    for shape in shapes:
        rng = np.random.default_rng(4)
        Y = rng.normal(size=shape)
        Y[:, rng.random(shape[1]) < 0.9] = 0.0
        left = np.flatnonzero(Y.any(axis=0))
        for emptied in (0, 2, len(left) // 2):
            W = np.array(Y, dtype, order=order)
            W[:, left[:emptied]] *= 1e-3
            radius = 0.2 * case.exact_norm(W, 0)
            expected = case.project(W, radius)
            assert np.count_nonzero(expected.any(axis=0)) == len(left) - emptied
            _, info = case.project(np.array(Y, dtype), radius, return_info=True)
            for start in (None, info):
                again = W.copy(order="K")
                X = case.project(again, radius, out=again, warm_start=start)
                assert_optimal(case, W, X, radius, 0, note=f"{shape} {emptied} {start}")
                assert_close(case, X, expected.astype(np.float64), W)


@pytest.mark.parametrize("part", [1e-3, 0.3, 0.9])
def test_nonsense_of_the_right_shape(case, part):
    Y = matrix("normal", shape_for(case))
    radius = part * case.exact_norm(Y, 0)
    expected, info = case.project(Y, radius, return_info=True)
    shape = info.mu.shape
    rng = np.random.default_rng(3)
    nonsense = {
        "zeros": (0.0, np.zeros(shape)),
        "huge": (1e300, np.full(shape, 1e300)),
        "negative": (-5.0, np.full(shape, -1.0)),
        "nan": (np.nan, np.full(shape, np.nan)),
        "inf": (np.inf, np.full(shape, np.inf)),
        "-inf": (-np.inf, np.full(shape, -np.inf)),
        "mixed": (3.0, rng.choice([0.0, np.nan, np.inf, -np.inf, 1e-320, 1.0, -1.0], size=shape)),
        "theta alone": (np.nextafter(0, 1), info.mu),
        "another's theta": (2 * info.theta, info.mu),
        "caps shuffled": (info.theta, rng.permutation(info.mu)),
        "caps of no member": (info.theta, info.mu * 0.5),
        "caps above all": (info.theta, np.abs(Y).max(axis=0)),
    }
    for name, (theta, mu) in nonsense.items():
        start = dataclasses.replace(info, theta=theta, mu=mu, clipped=-1, kept=-1, reads=np.nan, order_steps=-1)
        X = case.project(Y, radius, warm_start=start)
        assert_optimal(case, Y, X, radius, 0, note=name)
        assert_close(case, X, expected, Y, 0, note=name)


def test_from_another_radius_dtype_method_and_layout(case):
    Y = matrix("lognormal", shape_for(case))
    norm = case.exact_norm(Y, 0)
    for other in L1INF:
        for part in (0.0, 1e-4, 0.9, 2.0):
            small = Y.astype(np.float32)
            _, info = other.project(np.asfortranarray(small), part * norm, return_info=True)
            X = case.project(Y, 0.1 * norm, warm_start=info)
            assert_optimal(case, Y, X, 0.1 * norm, 0, note=f"{other} {part}")


def test_in_a_batch(case):
    Y = np.random.default_rng(4).normal(size=(3, 20, 15))
    radii = np.array([0.1, 3.0, 20.0])
    _, info = case.project(Y, radii, axis=1, batch_axis=0, return_info=True)
    moved = Y[::-1] * 1.01
    X = case.project(moved, radii, axis=1, batch_axis=0, warm_start=info)
    for b in range(3):
        assert_optimal(case, moved[b], X[b].copy(), float(radii[b]), 0)


def test_the_start_is_not_changed(case):
    Y = matrix("normal", shape_for(case))
    _, info = case.project(Y, 5.0, return_info=True)
    mu, nonzero, theta = info.mu.copy(), info.nonzero.copy(), info.theta
    case.project(Y * 1.1, 5.0, warm_start=info, out=np.empty(Y.shape))
    assert np.array_equal(info.mu, mu)
    assert np.array_equal(info.nonzero, nonzero)
    assert info.theta == theta


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("where", ["out", "in place", "window"])
def test_groups_that_come_and_go(case, dtype, where):
    """The groups of the start may be copied ahead: those that are missing there must be found, be they few or many."""
    rng = np.random.default_rng(5)
    shape = (2060 if case.fast else 40, 3, 120)
    Y = rng.normal(size=shape).astype(dtype) * rng.uniform(0.5, 1.0, size=shape[1:]).astype(dtype)
    radius = normball.radius_for_sparsity(Y, axis=0, n_groups=60)
    expected, info = case.project(Y, radius, axis=0, return_info=True)
    groups, zero = np.argwhere(info.nonzero), np.argwhere(~info.nonzero)
    assert len(groups) == 60
    for gone in (0, 1, 9, 17, 60):
        for come in (0, 30):
            mu = np.array(info.mu)
            mu[tuple(rng.permutation(groups)[:gone].T)] = 0
            mu[tuple(rng.permutation(zero)[:come].T)] = 1
            W = np.empty((*shape[:2], 125), dtype)[..., 2:-3]  # three lines of groups side by side
            W[...] = Y
            window = np.empty((*shape[:2], 125), dtype)[..., 1:-4]
            out = {"out": np.empty_like(Y), "in place": W, "window": window}[where]
            X = case.project(W, radius, axis=0, out=out, warm_start=dataclasses.replace(info, mu=mu))
            assert_close(case, X, expected.astype(np.float64), Y, 0, note=f"{gone} {come}")
            assert_optimal(case, Y, np.array(X), radius, 0, note=f"{gone} {come}")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("left", [0.1, 0.5])
def test_the_step_after_the_first_projection(case, order, left):
    """Theta falls a thousandfold from the first projection to that of the step after it; the caps still lead there."""
    if not case.fast:
        pytest.skip("the other methods do not use a warm start")
    rng = np.random.default_rng(6)
    Y = np.asarray(rng.normal(size=(300, 700)), dtype="float32", order=order)
    radius = normball.radius_for_sparsity(Y, n_groups=int(left * 700))
    X, first = case.project(Y, radius, return_info=True)
    X += (1e-3 * rng.normal(size=X.shape) * first.nonzero).astype("float32")
    expected, cold = case.project(X, radius, return_info=True)
    found, warm = case.project(X, radius, return_info=True, warm_start=first)
    assert warm.theta < 1e-2 * first.theta
    assert_close(case, found, expected.astype(np.float64), X)
    assert_optimal(case, X, found, radius, 0)
    assert warm.reads < cold.reads, "a start that is worse than none"
