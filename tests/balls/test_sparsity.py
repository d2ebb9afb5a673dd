"""Asking for a number of groups, and for many radii at once."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import normball
from normball.balls.sparsity import SPARSIFYING, theta_leaving
from normball.estimators import _path
from normball.nn import NGroups
from normball.nn.radii import at_step

RNG = np.random.default_rng(0)
BALLS = ["l1inf", "l12", "bilevel_l1inf", "bilevel_l11", "bilevel_l12"]
DATA = {
    "normal": lambda: RNG.normal(size=(40, 60)),
    "lognormal": lambda: RNG.lognormal(sigma=2, size=(40, 60)),
    "cauchy": lambda: RNG.standard_cauchy((40, 60)),
    "geometric": lambda: RNG.normal(size=(40, 60)) * np.geomspace(1, 1e-9, 60),
    "sparse": lambda: RNG.normal(size=(40, 60)) * (RNG.random((40, 60)) < 0.25),
}


def survivors(ball, Y, radius, axis=0):
    X = normball.BALLS[ball](radius, axis).project(Y)
    return np.count_nonzero(np.abs(X).max(axis=axis))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("name", DATA)
def test_just_so_many_groups(ball, name, dtype):
    Y = np.clip(DATA[name](), -6e4, 6e4).astype(dtype)
    if dtype == "float16" and name == "geometric":
        pytest.skip("most of it is zero in half precision")
    for order in "CF":
        values = np.array(Y, order=order)
        for k in (0, 1, 2, 7, 30, 58):
            radius = normball.radius_for_sparsity(values, ball, n_groups=k)
            assert isinstance(radius, float)
            assert survivors(ball, values, radius) == k
            assert radius == normball.radius_for_sparsity(values, ball, zero_groups=60 - k)
    radius = normball.radius_for_sparsity(np.ascontiguousarray(Y.T), ball, n_groups=7, axis=1)
    assert survivors(ball, np.ascontiguousarray(Y.T), radius, axis=1) == 7


@pytest.mark.parametrize("ball", BALLS)
def test_all_the_groups(ball):
    Y = RNG.normal(size=(10, 20))
    radius = normball.radius_for_sparsity(Y, ball, n_groups=20)
    assert survivors(ball, Y, radius) == 20
    assert radius < normball.BALLS[ball](1.0).norm(Y)


@pytest.mark.parametrize("ball", BALLS)
def test_in_batches(ball):
    Y = RNG.normal(size=(3, 12, 25))
    radii = normball.radius_for_sparsity(Y, ball, n_groups=9, axis=1, batch_axis=0)
    assert radii.shape == (3,)
    for one, radius in zip(Y, radii, strict=True):
        assert radius == pytest.approx(normball.radius_for_sparsity(one, ball, n_groups=9), rel=1e-14)
        assert survivors(ball, one, float(radius)) == 9


def test_entries_of_the_l1_ball():
    Y = RNG.normal(size=(20, 30))
    for k in (0, 1, 100, 599, 600):
        radius = normball.radius_for_sparsity(Y, "l1", n_groups=k)
        assert np.count_nonzero(normball.project_l1(Y, radius)) == k


def test_large_and_in_order():
    Y = RNG.normal(size=(300, 4000)).astype(np.float32)
    radii = [normball.radius_for_sparsity(Y, n_groups=k) for k in (1, 10, 100, 1000, 3999)]
    assert radii == sorted(radii)
    for k, radius in zip((1, 10, 100, 1000, 3999), radii, strict=True):
        assert normball.project_l1inf(Y, radius, return_info=True)[1].n_nonzero == k


def kept(ball, Y, **wanted):
    """How many groups the ball of the radius for a number of groups leaves; for l1, how many entries."""
    radius = normball.radius_for_sparsity(Y, ball, **wanted)
    X = normball.BALLS[ball](radius).project(Y)
    return np.count_nonzero(X if ball == "l1" else np.abs(X).max(axis=0))


@pytest.mark.parametrize("ball", [*BALLS, "l1"])
def test_ties_keep_at_least_the_number_asked_for(ball):
    Y = np.array([[3.0, 2.0, 2.0, 2.0, 1.0, 0.0]])
    for k, left in [(0, 0), (1, 1), (2, 4), (3, 4), (4, 4), (5, 5)]:
        assert kept(ball, Y, n_groups=k) == kept(ball, Y, zero_groups=6 - k) == left


@pytest.mark.parametrize("ball", [*BALLS, "l1"])
def test_zero_groups_cannot_be_kept(ball):
    Y = np.array([[3.0, 2.0, 0.0, 2.0, 0.0, 0.0]])
    for k in (3, 4, 6):
        assert kept(ball, Y, n_groups=k) == kept(ball, Y, zero_groups=6 - k) == 3
    assert normball.radius_for_sparsity(np.zeros((4, 5)), ball, n_groups=2) == 0.0
    assert normball.radius_for_sparsity(np.zeros((4, 0)), ball, n_groups=0) == 0.0
    assert kept(ball, np.array([[5e-324, 0.0]]), n_groups=1) == 1  # theta is rounded to 0


@pytest.mark.parametrize("ball", BALLS)
def test_groups_that_are_equal_but_for_rounding_tie(ball):
    rng = np.random.default_rng(1)
    column = rng.normal(size=40)
    # Permuted, and so added up in other orders: the sums differ in the last bits.
    Y = np.stack([rng.permutation(column) for _ in range(30)], axis=1)
    for k in (1, 7, 29):
        assert kept(ball, Y, n_groups=k) == 30


@pytest.mark.parametrize("ball", [*BALLS, "l1"])
def test_ties_in_some_problems_of_a_batch(ball):
    Y = np.array([[[3.0, 2.0, 2.0, 1.0]], [[4.0, 3.0, 2.0, 1.0]], [[0.0, 0.0, 5.0, 0.0]]])
    options = {"batch_axis": 0} if ball == "l1" else {"axis": 1, "batch_axis": 0}
    radii = normball.radius_for_sparsity(Y, ball, n_groups=2, **options)
    X = normball.BALLS[ball](radii, options.get("axis")).project(Y, batch_axis=0)
    assert np.count_nonzero(X, axis=(1, 2)).tolist() == [3, 2, 1]


def test_entries_of_each_vector_of_the_l1_ball():
    Y = RNG.normal(size=(20, 6))
    for ball in ("l1", normball.L1Ball(1.0)):
        radii = normball.radius_for_sparsity(Y, ball, n_groups=4, axis=0)
        assert radii.shape == (6,)
        assert np.count_nonzero(normball.project_l1(Y, radii, axis=0), axis=0).tolist() == [4] * 6
    assert np.array_equal(radii, normball.radius_for_sparsity(Y, normball.L1Ball(1.0, axis=0), n_groups=4))


NORMS = arrays(np.float64, st.integers(1, 12), elements=st.one_of(st.integers(0, 4).map(float), st.floats(0, 1e9)))


@given(NORMS, st.integers(0, 14))
def test_the_rule_for_theta(norms, k):
    theta = theta_leaving(norms, k)
    left = np.sort(norms[norms > theta])[::-1]
    rest = norms[norms <= theta]
    assert len(left) >= min(k, np.count_nonzero(norms))
    assert k > 0 or len(left) == 0
    if len(left) > k > 0:  # those beyond the number asked for tie with the last of it
        assert left[-1] >= left[k - 1] * (1 - 1e-12)
    if len(left):
        low = rest.max(initial=0.0)
        assert theta == pytest.approx(low + 0.01 * (min(left[min(k, len(left)) - 1], left.max()) - low), rel=1e-9)
    assert float(theta_leaving(torch.from_numpy(norms), k)) == theta
    rows = np.stack([norms, np.zeros_like(norms), norms[::-1]])
    assert theta_leaving(rows, k).tolist() == [theta, 0.0, theta]


@pytest.mark.parametrize("name", SPARSIFYING)
def test_every_request_of_a_number_has_the_same_radius(name):
    Y = np.random.default_rng(3).normal(size=(8, 20))
    for k in (1, 6, 20):
        radius = normball.radius_for_sparsity(Y, name, n_groups=k)
        ball = normball.BALLS[name](NGroups(k))
        assert float(at_step(ball, 0, torch.from_numpy(Y)).radius) == pytest.approx(radius, rel=1e-14)
        if name == "l1":  # the estimator counts columns, not entries
            columns = normball.project_l1(Y, _path.threshold(Y, name, k)[1])
            assert np.count_nonzero(np.abs(columns).max(axis=0)) == k
            assert radius == normball.radius_for_sparsity(Y, name, zero_groups=160 - k)
        else:
            assert _path.threshold(Y, name, k)[1] == pytest.approx(radius, rel=1e-14)
            assert radius == normball.radius_for_sparsity(Y, name, zero_groups=20 - k)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", SPARSIFYING)
def test_tensors_give_the_radius_of_arrays(name, dtype):
    Y = torch.from_numpy(np.random.default_rng(4).normal(size=(3, 9, 14))).to(dtype)
    for options in ({"n_groups": 4, "batch_axis": 0}, {"zero_groups": 9}):
        if name != "l1":
            options["axis"] = 1
        found = normball.radius_for_sparsity(Y, name, **options)
        wanted = normball.radius_for_sparsity(Y.double().numpy(), name, **options)
        assert type(found) is type(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_bad_requests():
    Y = np.ones((2, 3))
    for arguments, word in [
        ({}, "exactly one of n_groups"), ({"n_groups": 1, "zero_groups": 2}, "exactly one of n_groups"),
        ({"n_groups": 4}, "n_groups"), ({"ball": "l2", "n_groups": 1}, "ball"),
        ({"n_groups": -1}, "n_groups"), ({"zero_groups": 4}, "zero_groups"), ({"ball": "l7", "n_groups": 1}, "ball"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=rf"\b{word}\b"):
            normball.radius_for_sparsity(Y, **arguments)
    with pytest.raises(TypeError, match=r"\bn_groups\b"):
        normball.radius_for_sparsity(Y, n_groups=1.5)
    with pytest.raises(ValueError, match=r"\bY\b"):
        normball.radius_for_sparsity([[np.nan, 1.0]], n_groups=1)


@pytest.mark.parametrize("name", normball.BALLS)
def test_a_path_is_its_projections(name):
    Y = RNG.normal(size=(30, 40))
    radii = [0.0, 1e-3, 0.5, 3.0, 20.0, 5.0, 1e5]
    found = list(normball.radius_path(Y, radii, name, return_info=True))
    assert len(found) == len(radii)
    for radius, (X, info) in zip(radii, found, strict=True):
        expected, alone = normball.BALLS[name](radius).project(Y, return_info=True)
        np.testing.assert_allclose(X, expected, rtol=0, atol=1e-14 * max(1, radius if name == "simplex" else 1))
        np.testing.assert_allclose(info.theta, alone.theta, rtol=1e-12, atol=1e-14 * max(1, radius))
    for X, (expected, _) in zip(normball.radius_path(Y, radii, name), found, strict=True):
        assert np.array_equal(X, expected)
    if name in ("l12", "bilevel_l1inf"):
        assert found[3][1].reads <= 1.0  # nothing is read twice


def test_a_path_reads_less_than_its_projections():
    Y = RNG.normal(size=(100, 2000))
    radii = np.geomspace(50, 1, 6)
    along = [info.reads for _, info in normball.radius_path(Y, radii, return_info=True)]
    alone = [normball.project_l1inf(Y, r, return_info=True)[1].reads for r in radii]
    assert sum(along) <= sum(alone) * 1.05


def test_a_path_of_an_unknown_ball():
    with pytest.raises(ValueError, match=r"\bball\b"):
        normball.radius_path(np.ones((2, 2)), [1.0], "l7")


def test_a_ball_given_as_a_value_brings_its_axis():
    Y = np.random.default_rng(5).normal(size=(8, 30, 2))
    balls = normball.L1InfBall(1.0, axis=(1, 2)), normball.L12Ball(1.0, axis=1), normball.BilevelBall(1.0, 2, "l1")
    for ball in balls:
        radius = normball.radius_for_sparsity(Y, ball, n_groups=3)
        assert radius == normball.radius_for_sparsity(Y, ball.name, n_groups=3, axis=ball.axis)
        (X,) = normball.radius_path(Y, [radius], ball)
        assert np.count_nonzero(np.abs(X).sum(axis=ball.axis)) == 3
