"""Inputs that once came out wrong, or not at all."""

import numpy as np
import pytest

import normball
from normball.backends.cpu import METHODS
from normball.reference.oracle import kkt_residual

from .judge import rounding


def residual(Y, radius):
    return kkt_residual(Y, normball.project_l1inf(Y, radius), radius)


@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_of_tied_values_err_all_the_same_way(order):
    Y = np.array(np.random.default_rng(0).integers(0, 5, (10000, 70)) / 10, order=order)
    for share in (0.02, 0.1, 0.5):
        assert residual(Y, share * normball.norm_l1inf(Y)) <= 1e-14


@pytest.mark.parametrize("order", ["C", "F"])
def test_float32_sums_that_overflow_in_float32(order):
    Y = np.linspace(1e37, 3e37, 600 * 8, dtype=np.float32).reshape(600, 8).copy(order)
    assert residual(Y, 1e38) <= 1e-6


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_members_a_few_units_apart(order, dtype):
    rng = np.random.default_rng(57)
    Y = (3.7 * (1 + rng.integers(0, 4, (300, 64)) * np.finfo(dtype).eps)).astype(dtype).copy(order)
    for share in (1e-9, 0.5, 1 - 1e-7, 1 - 1e-14):
        assert residual(Y, share * normball.norm_l1inf(Y)) <= rounding(np.dtype(dtype), len(Y))


@pytest.mark.parametrize("share", [1e-300, 1e-13, 1e-9])
def test_a_tiny_radius_is_used_up(share):
    Y = np.random.default_rng(1).standard_normal((200, 90))
    radius = share * normball.norm_l1inf(Y)
    assert normball.norm_l1inf(normball.project_l1inf(Y, radius)) == pytest.approx(radius, rel=1e-12)


def test_an_estimate_of_theta_is_not_the_answer():
    Y = np.random.default_rng([0, 1000, 4000]).standard_normal((4000, 1000)).T
    assert residual(Y, 0.3 * normball.norm_l1inf(Y)) <= 1e-14


def test_groups_that_drop_out_change_the_equation():
    Y = np.random.default_rng(13).standard_normal((64, 65))
    assert residual(Y, 1e-9 * normball.norm_l1inf(Y)) <= 1e-14


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_guess_of_theta_is_not_the_root_of_lines_that_do_not_change(order):
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, m = rng.integers(1, 40), rng.integers(1, 300)
        Y = np.array(np.round(2 * rng.standard_normal((n, m))) * (rng.random((n, m)) < 0.05), order=order)
        for share in (0.03, 0.1) if Y.any() else ():
            radius = share * normball.norm_l1inf(Y)
            X, info = normball.project_l1inf(Y, radius, return_info=True)
            assert kkt_residual(Y, X, radius) <= 1e-14
            assert info.theta == pytest.approx(
                normball.project_l1inf(Y, radius, method="active_set", return_info=True)[1].theta, rel=1e-12
            )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_groups_that_sum_to_the_same(method, order):
    """Of single precision, and all but zero: rounding in the first sums decides nothing."""
    rng = np.random.default_rng(5)
    column = rng.standard_normal(100).astype(np.float32)
    shuffled = np.array([rng.permutation(column) for _ in range(200)]).T
    for values in (np.full((100, 200), 0.9470809631292422, np.float32), shuffled):
        Y = np.array(values, order=order)
        for share in (1e-9, 1e-7, 1e-5):
            radius = share * normball.norm_l1inf(Y)
            caps = np.abs(normball.project_l1inf(Y, radius, method=method)).max(axis=0)
            off = np.finfo(np.float32).eps * np.abs(Y).max()
            np.testing.assert_allclose(caps, radius / Y.shape[1], rtol=1e-6, atol=off, err_msg=f"{share}")
