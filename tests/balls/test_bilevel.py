"""Bilevel and multilevel: inside the ball, the same at two levels, no Euclidean projections."""

import itertools

import numpy as np
import pytest

import normball

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("name", "inner"), [("bilevel_l1inf", "linf"), ("bilevel_l11", "l1"), ("bilevel_l12", "l2")]
)
def test_two_levels_of_many(name, inner, axis):
    for dtype in (np.float64, np.float32):
        Y = RNG.normal(size=(12, 17)).astype(dtype)
        for radius in (1e-3, 1.0, 10.0, 1e4):
            X = getattr(normball, name)(Y, radius, axis=axis)
            other = normball.multilevel(Y, radius, ("l1", inner), (1 - axis, axis))
            assert other.dtype == dtype
            np.testing.assert_allclose(other, X, rtol=0, atol=16 * float(np.finfo(dtype).eps) * np.abs(Y).max())


def test_bilevel_is_near_but_not_nearest():
    Y = RNG.normal(size=(30, 40))
    for radius in (1.0, 10.0, 40.0):
        near = normball.bilevel_l1inf(Y, radius)
        nearest = normball.project_l1inf(Y, radius)
        assert normball.L1InfBall(radius).contains(near)
        assert np.linalg.norm(near - Y) > np.linalg.norm(nearest - Y) * (1 + 1e-6)


@pytest.mark.parametrize("norms", list(itertools.product(("l1", "l2", "linf"), repeat=3)))
def test_three_levels(norms):
    Y = RNG.normal(size=(4, 5, 6, 2))
    axes = ((1,), 0, (3, 2))
    norm = normball.norm_multilevel(Y, norms, axes)
    for part in (0.0, 1e-6, 0.1, 0.7, 1.0, 3.0):
        X, info = normball.multilevel(Y, part * norm, norms, axes, return_info=True)
        left = normball.norm_multilevel(X, norms, axes)
        assert left <= part * norm * (1 + 1e-14)
        assert left == pytest.approx(min(part, 1.0) * norm, rel=1e-12)
        assert info.mu.shape == (4, 5)
        again = normball.multilevel(X, part * norm, norms, axes)
        np.testing.assert_allclose(again, X, rtol=0, atol=1e-13)
        if part > 1:
            assert np.array_equal(X, Y)
    assert np.all(np.sign(X) * np.sign(Y) >= 0)


def test_norm_of_norms_by_hand():
    Y = RNG.normal(size=(3, 4, 5))
    A = np.abs(Y)
    expected = np.sqrt((A.sum(axis=2) ** 2).sum(axis=0)).max()
    assert normball.norm_multilevel(Y, ("linf", "l2", "l1"), (1, 0, 2)) == pytest.approx(expected, rel=1e-14)


def test_a_multilevel_projection_leaves_whole_slices_zero():
    Y = RNG.normal(size=(8, 6, 5)) * np.geomspace(1, 1e-3, 8)[:, None, None]
    X = normball.multilevel(Y, 1.0, ("l1", "linf", "linf"), (0, 1, 2))
    assert 0 < np.count_nonzero(X.any(axis=(1, 2))) < 8
    out = np.empty_like(Y)
    assert normball.multilevel(Y, 1.0, ("l1", "linf", "linf"), (0, 1, 2), out=out) is out
    assert np.array_equal(out, X)


def test_bad_levels():
    Y = np.ones((2, 3, 4))
    for norms, axes, word in [
        (("l1", "l3"), (0, 1), "norms"), (("l1",), (0, 1), "axes"), ((), (), "axes"), (("l1", "linf"), (0, 1), "axes"),
        (("l1", "linf"), (0, (0, 1, 2)), "axes"), (("l1", "linf"), (0, (1, 5)), "axes"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=rf"\b{word}\b"):
            normball.multilevel(Y, 1.0, norms, axes)
