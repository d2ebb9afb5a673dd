"""What the l1,inf projection tells about itself."""

import dataclasses

import numpy as np
import pytest

import normball

from .data import DISTRIBUTIONS, RADII, REAL_DTYPES, exact_solution, matrix
from .judge import same_bits
from .registry import L1INF

pytestmark = pytest.mark.parametrize("case", L1INF, ids=str)


@pytest.mark.parametrize("dtype", REAL_DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_fields_describe_the_result(case, distribution, dtype):
    for shape in [(1, 1), (9, 1), (1, 9), (23, 31), (100, 64)]:
        Y = matrix(distribution, shape, dtype)
        for part in RADII:
            radius = part * case.exact_norm(Y, 0)
            if radius == 0:
                continue
            X, info = case.project(Y, radius, return_info=True)
            note = f"{shape} {part}"
            assert same_bits(X, case.project(Y, radius)), note

            _, theta = exact_solution(distribution, shape, dtype, radius)
            largest_sum = np.abs(Y.astype(np.float64)).sum(axis=0).max()
            assert isinstance(info.theta, float)
            # A cap rounded to float32 or float16 moves its group's excess; the theta reported may follow it.
            assert abs(info.theta - theta) <= 32 * np.finfo(dtype).eps * largest_sum, note

            assert info.mu.shape == shape[1:]
            assert info.mu.dtype == Y.dtype
            assert np.array_equal(X, np.sign(Y) * np.minimum(np.abs(Y), info.mu)), note
            assert info.nonzero.dtype == bool
            assert np.array_equal(info.nonzero, X.any(axis=0)), note
            assert type(info.n_nonzero) is int
            assert info.n_nonzero == np.count_nonzero(info.nonzero)
            alive = X[:, info.nonzero] == Y[:, info.nonzero]
            assert type(info.kept) is type(info.clipped) is int
            assert info.kept == np.count_nonzero(alive), note
            assert info.clipped == np.count_nonzero(~alive), note
            assert isinstance(info.reads, float)
            assert info.reads > 0


@pytest.mark.parametrize("dtype", REAL_DTYPES)
def test_an_interior_point(case, dtype):
    Y = matrix("zero_groups", (12, 30), dtype)
    X, info = case.project(Y, 2 * case.exact_norm(Y, 0), return_info=True)
    assert same_bits(X, Y)
    assert info.theta == 0.0
    assert info.clipped == 0
    assert info.kept == np.count_nonzero(info.nonzero) * 12  # of the groups that are not zero, as everywhere
    assert np.array_equal(info.nonzero, Y.any(axis=0))
    assert info.n_nonzero == np.count_nonzero(Y.any(axis=0))
    assert np.array_equal(Y, np.sign(Y) * np.minimum(np.abs(Y), info.mu))


def test_radius_zero(case):
    Y = matrix("normal", (12, 30))
    X, info = case.project(Y, 0.0, return_info=True)
    assert not X.any()
    assert info.theta == pytest.approx(np.abs(Y).sum(axis=0).max(), rel=1e-14)
    assert not info.mu.any()
    assert not info.nonzero.any()
    assert (info.n_nonzero, info.clipped, info.kept) == (0, 0, 0)


def test_infinite_radius(case):
    Y = matrix("normal", (12, 30))
    _, info = case.project(Y, np.inf, return_info=True)
    assert info.theta == 0.0
    assert info.clipped == 0
    assert info.kept == Y.size
    assert info.nonzero.all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(case, dtype):
    Y = (matrix("normal", (20, 15)) * np.exp(1j * matrix("uniform", (20, 15)))).astype(dtype)
    X, info = case.project(Y, 4.0, return_info=True)
    assert info.mu.dtype == np.zeros(1, dtype=dtype).real.dtype
    np.testing.assert_allclose(np.abs(X).max(axis=0), info.mu, rtol=8 * np.finfo(dtype).eps)
    assert np.array_equal(info.nonzero, X.any(axis=0))
    assert info.clipped + info.kept == 20 * info.n_nonzero
    assert info.clipped == pytest.approx(np.count_nonzero(np.abs(Y) > info.mu), abs=info.n_nonzero)


def test_shape_of_the_groups_in_higher_dimensions(case):
    Y = np.random.default_rng(1).normal(size=(4, 5, 6))
    X, info = case.project(Y, 3.0, axis=1, return_info=True)
    assert info.mu.shape == info.nonzero.shape == (4, 6)
    assert np.array_equal(X, np.sign(Y) * np.minimum(np.abs(Y), info.mu[:, None, :]))
    X, info = case.project(Y, 3.0, axis=(2, 0), return_info=True)
    assert info.mu.shape == (5,)
    assert np.array_equal(X, np.sign(Y) * np.minimum(np.abs(Y), info.mu[None, :, None]))


def test_order_steps_is_for_the_paper_s_algorithm_alone(case):
    Y = matrix("uniform", (50, 40))
    steps = []
    for part in (1e-3, 0.1, 0.5, 0.9):
        _, info = case.project(Y, part * case.exact_norm(Y, 0), return_info=True)
        steps.append(info.order_steps)
    if case.name == "l1inf-inverse_total_order":
        assert all(type(J) is int and 1 <= J <= Y.size + Y.shape[1] for J in steps)
        assert steps == sorted(steps), "J grows with the entries left alone"
        assert steps[0] < steps[-1]
    else:
        assert steps == [None] * 4


def test_it_is_a_small_frozen_value(case):
    Y = matrix("normal", (30, 200))
    _, info = case.project(Y, 3.0, return_info=True)
    assert isinstance(info, normball.ProjectionInfo)
    assert dataclasses.is_dataclass(info)
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.theta = 0.0
    text = repr(info)
    assert len(text) < 300
    assert "ProjectionInfo" in text
    assert f"{info.n_nonzero}" in text
    assert "200" in text
