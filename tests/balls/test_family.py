"""What ties the family together: Moreau's identities, duality, small programs solved otherwise, classes, errors."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize

import normball
from normball.reference.family import FAMILY

RNG = np.random.default_rng(0)
DTYPES = ["float64", "float32", "float16", "complex64", "complex128"]
VECTORS = ("l1", "l2", "linf")
PROX_OF = {  # the prox of a norm is what the projection onto the ball of its dual norm takes away
    "l1": "linf", "linf": "l1", "l2": "l2", "l12": "linf2", "l1inf": "linf1", "linf1": "l1inf",
}  # fmt: skip
NORMS = {"l1", "l2", "linf", "l12", "linf2", "l1inf", "linf1"}
EUCLIDEAN = sorted(NORMS)


def prox(name, Y, scale, **options):
    return getattr(normball, f"prox_{name}")(Y, scale, **options)


def sample(shape, dtype):
    Y = RNG.normal(size=shape)
    return (Y * np.exp(1j * RNG.normal(size=shape))).astype(dtype) if "complex" in dtype else Y.astype(dtype)


def axis_of(name, axis):
    return None if name in VECTORS else axis


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PROX_OF)
def test_moreau(name, dtype):
    for order in "CF":
        Y = np.array(sample((40, 30), dtype), order=order)
        tolerance = 16 * float(np.finfo(dtype).eps) * float(np.abs(Y).max())
        for axis in (0, 1):
            options = {} if name in VECTORS else {"axis": axis}
            for scale in (0.0, 1e-3, 0.7, 5.0, 1e4):
                P = prox(name, Y, scale, **options)
                X = normball.BALLS[PROX_OF[name]](scale, axis_of(name, axis)).project(Y)
                assert P.dtype == Y.dtype
                assert np.abs(P + X - Y).max() <= tolerance, (axis, scale)


@pytest.mark.parametrize("name", PROX_OF)
def test_prox_minimises_its_objective(name):
    Y, scale = RNG.normal(size=(6, 5)), 0.8
    norm = getattr(normball, f"norm_{name}")

    def objective(X):
        return 0.5 * np.sum((X - Y) ** 2) + scale * norm(X)

    P = prox(name, Y, scale)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            assert objective(P + size * RNG.normal(size=Y.shape)) >= objective(P) - 1e-12
    assert objective(P) <= min(objective(Y), objective(0 * Y))


@pytest.mark.parametrize("name", PROX_OF)
def test_prox_has_the_manners_of_a_projection(name):
    Y = RNG.normal(size=(3, 20, 15))
    options = {"batch_axis": 0} if name in VECTORS else {"axis": 1, "batch_axis": 0}
    alone = {} if name in VECTORS else {"axis": 0}
    scales = np.array([0.0, 0.5, np.inf])
    X, info = prox(name, Y, scales, return_info=True, **options)
    assert np.array_equal(X[0], Y[0])
    assert not X[2].any()
    np.testing.assert_allclose(X[1], prox(name, Y[1], 0.5, **alone), atol=1e-15)
    assert info.nonzero.any()
    assert "non-zero" in repr(info)
    W = Y.copy()
    assert prox(name, W, scales, out=W, **options) is W
    np.testing.assert_allclose(W, X, atol=1e-15)
    for bad in (-1.0, np.nan):
        with pytest.raises(ValueError, match=r"\bscale\b"):
            prox(name, Y, bad, **options)
    Y[1, 2, 3] = np.nan
    with pytest.raises(ValueError, match=r"\bY\b"):
        prox(name, Y, scales, **options)
    X = prox(name, Y, scales, check_finite=False, **options)
    assert np.isnan(X[1]).all()
    assert np.isfinite(X[[0, 2]]).all()
    assert prox(name, np.empty((0, 3, 2)), 1.0).shape == (0, 3, 2)


@pytest.mark.parametrize("name", EUCLIDEAN)
def test_the_dual_norm(name):
    """|<X, Y>| <= norm(X) * dual(Y), and the projection makes an equality of it: so it is optimal."""
    for axis in (0, 1):
        for trial in range(30):
            Y = RNG.normal(size=(7, 9)) * 10.0 ** RNG.integers(-3, 3)
            ball = normball.BALLS[name](0.0, axis_of(name, axis))
            dual = ball.dual
            assert dual.dual == ball
            X = RNG.standard_cauchy(Y.shape)
            assert abs(np.sum(X * Y)) <= ball.norm(X) * dual.norm(Y) * (1 + 1e-12)
            radius = 10.0 ** RNG.uniform(-3, 0) * ball.norm(Y)
            X = dataclasses.replace(ball, radius=radius).project(Y)
            gap = radius * dual.norm(Y - X) - np.sum(X * (Y - X))
            assert abs(gap) <= 1e-12 * radius * dual.norm(Y), trial


@pytest.mark.parametrize("name", EUCLIDEAN)
def test_against_a_small_program(name):
    """The same minimum by sequential quadratic programming, from bounds on auxiliary variables."""
    inner, outer = {"l1": ("l1", None), "l2": ("l2", None), "linf": ("linf", None)}.get(
        name, ({"2": "l2", "f": "linf", "1": "l1"}[name[-1]], "max" if name.startswith("linf") else "sum")
    )
    Y = np.random.default_rng(3).normal(size=(2, 3))
    ball = normball.BALLS[name](0.0, None if outer is None else 0)
    radius = 0.4 * ball.norm(Y)
    groups = [slice(None)] if outer is None else [(slice(None), j) for j in range(3)]
    m = len(groups)

    def bounds(z):  # what must not be negative: X = z[:6], |X| <= a = z[6:12], norms <= t = z[12:12 + m]
        X, a, t = z[:6].reshape(2, 3), z[6:12].reshape(2, 3), z[12:]
        rows = [(a - X).ravel(), (a + X).ravel()]
        for group, level in zip(groups, t, strict=True):
            if inner == "l1":
                rows.append([level - a[group].sum()])
            elif inner == "l2":
                rows.append([level**2 - np.sum(X[group] ** 2), level])
            else:
                rows.append((level - a[group]).ravel())
        rows.append([radius - t.sum()] if outer == "sum" else radius - t)
        return np.concatenate(rows)

    start = np.concatenate([0.01 * Y.ravel(), np.abs(0.02 * Y).ravel(), np.full(m, radius / (2 * m))])
    found = minimize(
        lambda z: 0.5 * np.sum((z[:6] - Y.ravel()) ** 2), start, method="SLSQP",
        constraints={"type": "ineq", "fun": bounds}, options={"ftol": 1e-15, "maxiter": 2000},
    )  # fmt: skip
    X = dataclasses.replace(ball, radius=radius).project(Y)
    assert 0.5 * np.sum((X - Y) ** 2) <= found.fun + 1e-7
    assert np.allclose(X, found.x[:6].reshape(2, 3), atol=2e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["l1", "l2", "linf", "l12", "linf2", "l1inf", "linf1"])
def test_norms(name, dtype):
    norm = getattr(normball, f"norm_{name}")
    reference = FAMILY.get(name, FAMILY["bilevel_l1inf"]).norm
    for order in "CF":
        Y = np.array(sample((40, 30), dtype), order=order)
        for axis in (0, 1) if name not in VECTORS else (None,):
            expected = float(reference(Y, axis if axis is not None else (0, 1)))
            # The sums of l1,inf, and with them its dual norm, add a few floats in float first.
            rel = 1e-7 if (name, dtype) == ("linf1", "float32") else 1e-14
            assert norm(Y, axis) == pytest.approx(expected, rel=rel)
            assert isinstance(norm(Y, axis), float)
    Y = sample((4, 5, 6), dtype)
    if name in VECTORS:
        each = norm(Y, axis=(0, 2))
        assert each == pytest.approx([norm(Y[:, j]) for j in range(5)], rel=1e-14)
        assert np.array_equal(each, norm(Y, batch_axis=1))
    else:
        assert norm(Y, 1, batch_axis=0) == pytest.approx([norm(Y[b], 0) for b in range(4)], rel=1e-14)
    assert norm(np.empty((0, 3))) == 0


def test_norms_neither_overflow_nor_vanish():
    for factor in (1e200, 1e-200, 5e-324):
        y = np.array([3.0, -4.0]) * factor
        assert normball.norm_l2(y) == pytest.approx(5 * factor, rel=1e-15)
        assert normball.norm_l12(y[:, None]) == pytest.approx(5 * factor, rel=1e-15)
    assert normball.norm_l2([1e308, 1e308, 1e308]) == pytest.approx(1.7320508075688772e308, rel=1e-15)
    assert np.isnan(normball.norm_l2([1.0, np.nan]))
    assert normball.norm_l1([1.0, np.inf]) == np.inf
    assert normball.norm_linf([1.0, -np.inf]) == np.inf


# ---- the classes ----


@pytest.mark.parametrize("name", normball.BALLS)
def test_a_ball_is_a_value(name):
    make = normball.BALLS[name]
    ball = make(0.5)
    assert isinstance(ball, normball.Ball)
    assert ball == make(0.5)
    assert hash(ball) == hash(make(0.5))
    assert ball != make(0.25)
    assert "0.5" in repr(ball)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ball.radius = 1.0
    Y = RNG.random((6, 5))
    X = ball.project(Y)
    assert np.array_equal(ball(Y), X)
    assert ball.contains(X, atol=1e-15)
    assert not ball.contains(Y)
    if name != "simplex":
        assert ball.norm(X) == pytest.approx(0.5, rel=1e-14)
        assert np.sum(X * Y) <= ball.norm(X) * ball.dual.norm(Y) * (1 + 1e-12)


def test_a_ball_of_many_vectors():
    Y = RNG.normal(size=(6, 5))
    ball = normball.L1Ball(0.5, axis=1)
    assert ball.norm(Y).shape == (6,)
    assert not ball.contains(Y)
    assert ball.contains(ball.project(Y))


def test_an_unknown_inner_norm():
    with pytest.raises(ValueError, match=r"\binner\b"):
        normball.BilevelBall(1.0, inner="l3")


@pytest.mark.parametrize("name", [n for n in normball.BALLS if n != "l1inf"])
def test_bad_arguments(name):
    Y = np.ones((3, 4))
    ball = normball.BALLS[name]
    for radius in (-1.0, np.nan):
        with pytest.raises(ValueError, match=r"\bradius\b"):
            ball(radius).project(Y)
    with pytest.raises(TypeError, match=r"\bradius\b"):
        ball("1").project(Y)
    with pytest.raises(ValueError, match=r"\baxis\b"):
        ball(1.0, 7).project(Y)
    with pytest.raises(ValueError, match=r"\bbatch_axis\b"):
        ball(1.0, 0).project(Y, batch_axis=0)
    with pytest.raises(ValueError, match=r"\bout\b"):
        ball(1.0).project(Y, out=np.empty((4, 3)))
    with pytest.raises(TypeError, match=r"\bout\b"):
        ball(1.0).project(Y, out=np.empty((3, 4), dtype=np.float32))
    with pytest.raises(ValueError, match=r"\bthreads\b"):
        ball(1.0).project(Y, threads=0)
    with pytest.raises(TypeError, match=r"\bY\b"):
        ball(1.0).project(Y.astype(object))
    W = np.where(np.arange(12).reshape(3, 4) == 11, np.nan, 1.0)
    before = W.copy()
    with pytest.raises(ValueError, match=r"\bY\b.*\(2, 3\)"):
        ball(0.5).project(W, out=W)
    assert np.array_equal(W, before, equal_nan=True)


def test_axes_of_vectors_from_either_side():
    Y = RNG.normal(size=(3, 4, 5))
    X = normball.project_l1(Y, 0.5, axis=1)
    assert np.array_equal(X, normball.project_l1(Y, 0.5, batch_axis=(0, 2)))
    assert np.array_equal(X, normball.project_l1(Y, 0.5, axis=1, batch_axis=(2, 0)))
    with pytest.raises(ValueError, match=r"\bbatch_axis\b"):
        normball.project_l1(Y, 0.5, axis=1, batch_axis=0)
    with pytest.raises(ValueError, match=r"\bbatch_axis\b"):
        normball.project_l1(Y, 0.5, batch_axis=(0, 1, 2))


# ---- the box ----


def test_box():
    Y = RNG.normal(size=(5, 4))
    assert np.array_equal(normball.project_box(Y, -0.5, 0.5), np.clip(Y, -0.5, 0.5))
    low, high = -RNG.random(4), RNG.random((5, 1))
    assert np.array_equal(normball.project_box(Y, low, high), np.clip(Y, low, high))
    assert np.array_equal(normball.project_box(Y, -np.inf, np.inf), Y)
    W = Y.copy()
    assert normball.project_box(W, 0, 1, out=W) is W
    X = normball.project_box(np.array([-1, 5], dtype=np.float32), 0.1, 0.7)
    assert X.dtype == np.float32
    assert 0.1 <= float(X[0]) <= float(X[1]) <= 0.7


def test_bad_boxes():
    for lower, upper, name, error in [
        (1.0, 0.0, "upper", ValueError), (np.nan, 1.0, "lower", ValueError), (0.0, np.ones(3), "upper", ValueError),
        ("a", 1.0, "lower", TypeError), (0.0, 1j, "upper", TypeError),
    ]:  # fmt: skip
        with pytest.raises(error, match=rf"\b{name}\b"):
            normball.project_box(np.ones(2), lower, upper)
    with pytest.raises(ValueError, match=r"\bY\b"):
        normball.project_box([np.nan], 0, 1)
    with pytest.raises(TypeError, match=r"\bY\b"):
        normball.project_box([1j], 0, 1)
