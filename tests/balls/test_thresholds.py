"""The l1 ball and the simplex where they are hard: long vectors, ties, tails, order, weights, exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

import normball
from normball.reference.family import FAMILY

N = 300_007  # several pieces, and a bit

LONG = {
    "normal": lambda rng: rng.standard_normal(N),
    "uniform": lambda rng: rng.random(N),
    "cauchy": lambda rng: np.clip(rng.standard_cauchy(N), -6e4, 6e4),
    "lognormal": lambda rng: np.minimum(rng.lognormal(sigma=2.0, size=N), 6e4),
    "ties": lambda rng: rng.integers(-3, 4, size=N).astype(float),
    "constant": lambda rng: np.full(N, -0.1),
    "sorted": lambda rng: np.sort(rng.standard_normal(N)),
    "mostly zero": lambda rng: rng.standard_normal(N) * (rng.random(N) < 1e-3),
    "one outlier": lambda rng: np.where(np.arange(N) == 77_777, 5e4, 1e-3 * rng.standard_normal(N)),
    "two scales": lambda rng: rng.standard_normal(N) * np.where(np.arange(N) % 1000 < 3, 1e4, 1e-2),
    "nearly tied": lambda rng: 1.3 * (1 + rng.integers(-3, 4, size=N) * 2.0**-50),
}
PARTS = (1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-9)


def project(name, y, radius, **options):
    return getattr(normball, f"project_{name}")(y, radius, **options)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("distribution", LONG)
@pytest.mark.parametrize("name", ["l1", "simplex"])
def test_long_vectors(name, distribution, dtype):
    y = LONG[distribution](np.random.default_rng(0)).astype(dtype)
    wide = y.astype(np.float64)
    norm = float(FAMILY["l1"].norm(y, 0))
    eps = float(np.finfo(dtype).eps)
    parts = PARTS if dtype == "float64" else (1e-6, 0.1, 0.9)
    for part in parts:
        radius = part * norm
        if name == "simplex" and dtype == "float16" and radius > 6e4:
            continue
        X, info = project(name, y, radius, return_info=True)
        expected, tau = FAMILY[name].project(wide, radius, 0)
        scale = max(np.abs(wide).max(), abs(tau))
        allowed = (4 * eps + 4e-15) * scale  # the sums of the textbook round as well
        assert np.abs(X.astype(np.float64) - expected).max() <= allowed, part
        assert FAMILY["l1"].norm(X, 0) <= radius * (1 + 4 * eps), part
        assert info.theta == pytest.approx(tau, abs=4e-15 * scale)


@pytest.mark.parametrize("distribution", LONG)
@pytest.mark.parametrize("name", ["l1", "simplex"])
def test_any_layout_and_threads_of_a_long_vector(name, distribution):
    y = LONG[distribution](np.random.default_rng(1))
    y = np.concatenate([y, y, y, y])  # enough for a team
    radius = 0.3 * float(np.abs(y).sum())
    X = project(name, y, radius, threads=1)
    for threads in (2, 3, 8):
        assert X.tobytes() == project(name, y, radius, threads=threads).tobytes()
    apart = np.repeat(y, 3)[::3]
    assert np.abs(project(name, apart, radius) - X).max() <= 1e-14 * np.abs(y).max()
    assert np.abs(project(name, y[::-1], radius)[::-1] - X).max() <= 1e-14 * np.abs(y).max()
    rows = y[: 4 * (N - 7)].reshape(4, -1)
    each = normball.BALLS[name](radius / 4, axis=1).project(rows)
    for row, got in zip(rows, each, strict=True):
        assert np.array_equal(got, project(name, row.copy(), radius / 4))


@pytest.mark.parametrize("name", ["l1", "simplex"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 65_536, N - 1])
def test_what_is_not_finite_in_a_long_vector(name, bad, place):
    y = np.random.default_rng(2).standard_normal(N)
    y[place] = bad
    out = np.full(N, 7.0)
    for radius in (0.0, 1e-3, 10.0, 1e9):
        with pytest.raises(ValueError, match=rf"\bY\b.*{place}"):
            project(name, y, radius, out=out)
        assert (out == 7.0).all()
        assert np.isnan(project(name, y, radius, check_finite=False)).all()


def test_a_long_vector_of_extremes():
    for factor in (1e300, 1e-300, 5e-324):
        y = np.random.default_rng(3).integers(-9, 10, size=N) * factor
        radius = float(np.abs(y).max()) * 100
        X = normball.project_l1(y, radius)
        expected, _ = FAMILY["l1"].project(y, radius, 0)
        assert np.abs(X - expected).max() <= 1e-14 * np.abs(y).max() + 5e-324
        assert FAMILY["l1"].norm(X, 0) <= np.longdouble(radius) * (1 + 1e-15)


def exact_threshold(values, radius):
    Z = sorted((Fraction(v) for v in values), reverse=True)
    total, best = Fraction(0), None
    for k, z in enumerate(Z, 1):
        total += z
        line = (total - Fraction(radius)) / k
        best = line if best is None else max(best, line)
    return best


numbers = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, 1e-9, 1e9]))


@given(y=hnp.arrays(np.float64, st.integers(1, 40), elements=numbers), radius=st.floats(1e-9, 1e7))
def test_the_thresholds_are_those_of_exact_arithmetic(y, radius):
    scale = max(np.abs(y).max(), radius)
    tau = normball.project_simplex(y, radius, return_info=True)[1].theta
    assert abs(Fraction(tau) - exact_threshold(y, radius)) <= 8e-16 * scale
    tau = normball.project_l1(y, radius, return_info=True)[1].theta
    assert abs(Fraction(tau) - max(exact_threshold(np.abs(y), radius), 0)) <= 8e-16 * scale


# ---- many groups, of which a few tell where to look for the others ----

GROUPS = {
    "alike": lambda rng, n: rng.standard_normal(n),
    "scaled": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-6, 4),
    "tails": lambda rng, n: np.clip(rng.standard_cauchy(n), -1e4, 1e4),
    "ties": lambda rng, n: rng.integers(-2, 3, size=n).astype(float),
    "flat": lambda rng, n: np.full(n, rng.standard_normal()),
    "one": lambda rng, n: np.where(np.arange(n) == rng.integers(n), 3.0, 1e-3 * rng.standard_normal(n)),
    "none": lambda rng, n: np.zeros(n),
}


def mixed(kinds, members, groups, dtype, order, seed):
    """Groups across; they begin where no register does."""
    rng = np.random.default_rng(seed)
    Y = np.empty((members, groups + 3), dtype=dtype, order=order)[:, 3:]
    for g in range(groups):
        Y[:, g] = GROUPS[kinds[rng.integers(len(kinds))]](rng, members)
    return Y


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["l1", "simplex"])
@pytest.mark.parametrize("kinds", [("alike",), ("alike", "scaled", "tails"), tuple(GROUPS)], ids=len)
def test_many_groups(name, dtype, order, kinds):
    for members, groups in ((70, 300), (3, 500), (33, 2100)):
        Y = mixed(kinds, members, groups, dtype, order, seed=members)
        wide, eps = Y.astype(np.float64), float(np.finfo(dtype).eps)
        rng = np.random.default_rng(groups)
        parts = np.where(rng.random(groups) < 0.3, 0.0, 10.0 ** rng.uniform(-8, 0.2, size=groups))
        radii = parts * np.abs(wide).sum(axis=0)
        X, info = project(name, Y, radii, axis=0, return_info=True)
        for g in range(0, groups, groups // 200):
            scale = max(np.abs(wide[:, g]).max(), radii[g])
            expected, tau = FAMILY[name].project(wide[:, g], radii[g], 0)
            assert np.abs(X[:, g] - expected).max() <= (4 * eps + 4e-15) * scale
            assert FAMILY["l1"].norm(X[:, g], 0) <= radii[g] * (1 + 4 * eps)
            assert radii[g] == 0 or info.theta[g] == pytest.approx(tau, abs=4e-15 * scale)
        # A share of the sum that is less than any number.
        least = np.where(rng.random(groups) < 0.5, 5e-324, np.maximum(radii, 5e-324))
        X0, info = project(name, Y, least, axis=0, return_info=True)
        peaks = (np.abs(wide) if name == "l1" else wide).max(axis=0)
        alone = least == 5e-324
        assert not X0[:, alone & (peaks > 1e-300)].any()
        assert (np.abs(info.theta - peaks) <= 4e-15 * np.abs(wide).max(axis=0))[alone].all()
        assert np.abs(X0 - X)[:, ~alone].max() <= 4 * eps * np.abs(wide).max()
        assert project(name, Y, radii, axis=0, out=Y) is Y
        assert np.array_equal(X, Y)


@pytest.mark.parametrize("order", ["C", "F"])
def test_many_groups_on_many_threads(order):
    Y = mixed(tuple(GROUPS), 500, 2200, "float32", order, seed=0)
    for name in ("bilevel_l11", "linf1", "l12", "bilevel_l1inf"):
        ball = normball.BALLS[name](0.1 * float(normball.BALLS[name](1.0).norm(Y)))
        X = ball.project(Y, threads=1)
        assert X.tobytes() == ball.project(Y, threads=2).tobytes()


# ---- weights ----


def weighted_threshold(y, w, radius):
    """By bisection over the breakpoints, in exact arithmetic."""
    sizes, weights = [Fraction(abs(v)) for v in y], [Fraction(v) for v in w]
    if sum(a * b for a, b in zip(sizes, weights, strict=True)) <= radius:
        return Fraction(0)
    for tau in sorted({a / b for a, b in zip(sizes, weights, strict=True) if b > 0}):
        excess = sum(b * max(a - tau * b, 0) for a, b in zip(sizes, weights, strict=True))
        if excess <= radius:
            active = [(a, b) for a, b in zip(sizes, weights, strict=True) if b > 0 and a / b >= tau]
            return (sum(a * b for a, b in active) - Fraction(radius)) / sum(b * b for _, b in active)
    raise AssertionError


@given(
    pairs=st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0.01, 10) | st.just(0.0)), min_size=1, max_size=20),
    part=st.floats(1e-6, 1.2),
)
def test_weights(pairs, part):
    y, w = np.array(pairs).T
    radius = part * float(np.sum(w * np.abs(y)))
    tau = float(weighted_threshold(y, w, radius))
    expected = np.sign(y) * np.maximum(np.abs(y) - tau * w, 0)
    X, info = normball.project_l1(y, radius, weights=w, return_info=True)
    np.testing.assert_allclose(X, expected, rtol=0, atol=1e-13 * max(np.abs(y).max(), 1e-300))
    assert np.sum(w * np.abs(X)) <= radius * (1 + 1e-14) + 1e-300
    assert info.theta == pytest.approx(tau, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
def test_weights_of_one_change_nothing(dtype):
    rng = np.random.default_rng(4)
    Y = rng.normal(size=(4, 30, 5)).astype(dtype)
    eps = float(np.finfo(dtype).eps)
    for options in ({}, {"axis": 1}, {"axis": (0, 2)}, {"batch_axis": 0}):
        plain = normball.project_l1(Y, 2.0, **options)
        for weights in (1.0, np.ones(5), np.ones((30, 1), dtype=int)):
            X = normball.project_l1(Y, 2.0, weights=weights, **options)
            assert X.dtype == Y.dtype
            assert np.abs(X - plain).max() <= 8 * eps * np.abs(Y).max()
    doubled = normball.project_l1(Y, 4.0, weights=2.0)
    assert np.abs(doubled - normball.project_l1(Y, 2.0)).max() <= 8 * eps * np.abs(Y).max()


def test_weighted_in_place_and_infinite():
    Y = np.random.default_rng(5).normal(size=(6, 7))
    W = np.random.default_rng(6).random((6, 7))
    expected = normball.project_l1(Y, 0.5, weights=W, axis=0)
    assert normball.norm_l1(expected, axis=0, weights=W) == pytest.approx(np.full(7, 0.5), rel=1e-14)
    assert np.array_equal(normball.project_l1(Y, np.inf, weights=W), Y)
    assert not normball.project_l1(Y, 0.0, weights=W).any()
    place = Y.copy()
    assert normball.project_l1(place, 0.5, weights=W, axis=0, out=place) is place
    assert np.array_equal(place, expected)
    Y[2, 3] = np.nan
    with pytest.raises(ValueError, match=r"\bY\b"):
        normball.project_l1(Y, 0.5, weights=W)
    assert np.isnan(normball.project_l1(Y, 0.5, weights=W, check_finite=False)).all()


@pytest.mark.parametrize(
    ("weights", "error"),
    [([-1.0] * 3, ValueError), ([np.nan] * 3, ValueError), ([1.0] * 4, ValueError), ("a", TypeError), (1j, TypeError)],
)
def test_bad_weights(weights, error):
    with pytest.raises(error, match=r"\bweights\b"):
        normball.project_l1([1.0, 2.0, 3.0], 1.0, weights=weights)


def test_weighted_l1_against_a_quadratic_program():
    rng = np.random.default_rng(7)
    for _ in range(5):
        y, w = rng.normal(size=4), rng.random(4) + 0.1
        radius = 0.4 * float(w @ np.abs(y))
        found = minimize(
            lambda z, y=y: 0.5 * np.sum((z[:4] - z[4:] - y) ** 2), np.zeros(8), bounds=[(0, None)] * 8, method="SLSQP",
            constraints={"type": "ineq", "fun": lambda z, w=w, r=radius: r - w @ (z[:4] + z[4:])},
            options={"ftol": 1e-14, "maxiter": 500},
        ).x  # fmt: skip
        assert np.allclose(normball.project_l1(y, radius, weights=w), found[:4] - found[4:], atol=1e-6)


# ---- the simplex ----


def test_points_of_the_simplex_keep_their_bits():
    for dtype in (np.float64, np.float32, np.float16):
        y = np.random.default_rng(8).random(50).astype(dtype)
        X = normball.project_simplex(y, 1.0)
        assert normball.SimplexBall(1.0).contains(X, rtol=64 * float(np.finfo(dtype).eps))
        if normball.SimplexBall(1.0).contains(X, rtol=1.9 * float(np.finfo(dtype).eps)):
            assert np.array_equal(normball.project_simplex(X, 1.0), X)
    corner = np.array([0.0, 1.0, 0.0])
    assert np.array_equal(normball.project_simplex(corner, 1.0), corner)


def test_the_simplex_refuses_what_it_cannot_have():
    with pytest.raises(TypeError, match=r"\bY\b"):
        normball.project_simplex(np.ones(3, dtype=complex), 1.0)
    with pytest.raises(ValueError, match=r"\bradius\b"):
        normball.project_simplex(np.ones(3), np.inf)
    with pytest.raises(TypeError, match="dual"):
        _ = normball.SimplexBall(1.0).dual
    assert not normball.project_simplex(np.array([3.0, -1.0]), 0.0).any()
    assert normball.project_simplex(np.array([3.0, -1.0]), 0.0, return_info=True)[1].theta == 3.0
