"""The readable algorithms against exact arithmetic, and exact arithmetic against a solver that knows nothing of it."""

import doctest
import importlib
import itertools
import pkgutil
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

import normball.reference
from normball.reference import METHODS, oracle
from normball.reference.inverse_total_order import walk

from ..contract.data import DISTRIBUTIONS, RADII, matrix

SHAPES = [(1, 1), (1, 6), (6, 1), (2, 3), (7, 8), (17, 16), (31, 40), (100, 30), (30, 100)]
MODULES = [f"normball.reference.{m.name}" for m in pkgutil.iter_modules(normball.reference.__path__)]


@pytest.mark.parametrize("module", ["normball.reference", *MODULES])
def test_examples(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.failed == 0
    assert result.attempted > 0


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_equals_the_oracle(method, distribution):
    for shape in SHAPES:
        Y = matrix(distribution, shape)
        caps = oracle.ExactCaps(np.abs(Y)) if Y.any() else None
        for part in RADII if caps else ():
            radius = part * np.abs(Y).max(axis=0).sum()
            before = Y.copy()
            X, theta = METHODS[method](Y, radius)
            exact_theta, mu = caps.solve(radius)
            expected = np.copysign(np.minimum(np.abs(Y), [float(cap) for cap in mu]), Y)
            tolerance = 8 * np.finfo(float).eps * (1 + np.sqrt(shape[0])) * np.abs(Y).max()
            np.testing.assert_allclose(X, expected, rtol=0, atol=tolerance, err_msg=f"{shape} {part}")
            assert abs(theta - exact_theta) <= tolerance * shape[0]
            assert oracle.kkt_residual(Y, X, radius) <= tolerance / np.abs(Y).max()
            assert np.array_equal(Y, before)


@pytest.mark.parametrize("method", METHODS)
def test_easy_cases(method):
    Y = np.array([[1.0, -2.0, 0.0], [-3.0, 0.5, -0.0]])
    project = METHODS[method]
    for radius in (5.0, 9.0, np.inf):
        X, theta = project(Y, radius)
        assert X.tobytes() == Y.tobytes()
        assert X is not Y
        assert theta == 0.0
    X, theta = project(Y, 0.0)
    assert not X.any()
    assert theta == 4.0
    X, theta = project(np.zeros((3, 2)), 0.0)
    assert not X.any()
    assert theta == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_many_dimensions(method):
    Y = np.random.default_rng(0).normal(size=(3, 4, 2, 5))
    for axis in (0, 2, -1, (0, 1), (3, 1), (0, 2, 3), (0, 1, 2, 3)):
        X = normball.reference.project_l1inf(Y, 1.7, axis=axis, method=method)
        assert X.shape == Y.shape
        assert oracle.kkt_residual(Y, X, 1.7, axis) <= 1e-14
        np.testing.assert_allclose(X, oracle.project_l1inf(Y, 1.7, axis)[0], rtol=0, atol=1e-14)
    assert normball.reference.project_l1inf(np.empty((0, 3)), 1.0, method=method).shape == (0, 3)


def test_the_walk_counts_what_is_left_alone():
    """J is at least the members set free and the columns alive, and small when the result is sparse."""
    Y = matrix("uniform", (100, 60))
    A = np.abs(Y)
    norm = A.max(axis=0).sum()
    counts = []
    for part in (1e-4, 1e-2, 0.3, 0.9):
        X, _ = METHODS["inverse_total_order"](Y, part * norm)
        _, J = walk(A, part * norm)
        alive = X.any(axis=0)
        untouched = np.count_nonzero((X == Y)[:, alive])
        assert untouched + np.count_nonzero(alive) == J
        counts.append(J)
    assert counts == sorted(counts)
    assert counts[0] < 0.01 * Y.size


# The oracle


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_oracle_meets_the_conditions_exactly(distribution):
    for shape in [(1, 1), (5, 4), (12, 20), (40, 9)]:
        A = np.abs(matrix(distribution, shape))
        if not A.any():
            continue
        caps = oracle.ExactCaps(A)
        for part in (*RADII, 1e-30):
            radius = float(part * A.max(axis=0).sum())
            theta, mu = caps.solve(radius)
            assert theta > 0
            assert sum(mu) == Fraction(radius)
            for column, cap in zip(A.T.tolist(), mu, strict=True):
                if cap > 0:
                    assert sum(max(Fraction(y) - cap, Fraction(0)) for y in column) == theta
                else:
                    assert cap == 0
                    assert sum(map(Fraction, column)) <= theta


def quadratic_program(Y, radius):
    """min |X - Y|^2 over -t_j <= X_ij <= t_j, sum_j t_j <= radius, by a general solver."""
    n, m = Y.shape
    bound = [(i, j, sign) for i, j in itertools.product(range(n), range(m)) for sign in (1, -1)]
    jacobian = np.zeros((len(bound) + 1, n * m + m))
    for row, (i, j, sign) in enumerate(bound):
        jacobian[row, i * m + j] = -sign
        jacobian[row, n * m + j] = 1
    jacobian[-1, n * m :] = -1
    offset = np.zeros(len(bound) + 1)
    offset[-1] = radius
    y = Y.ravel()
    done = minimize(
        lambda v: 0.5 * np.sum((v[: n * m] - y) ** 2),
        np.zeros(n * m + m),
        jac=lambda v: np.concatenate([v[: n * m] - y, np.zeros(m)]),
        constraints={"type": "ineq", "fun": lambda v: jacobian @ v + offset, "jac": lambda v: jacobian},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return done.x[: n * m].reshape(n, m)


@pytest.mark.parametrize("seed", range(6))
def test_a_general_solver_finds_the_same_point(seed):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(3, 4)) * rng.choice([0.2, 1.0, 3.0], size=4)
    for part in (0.05, 0.3, 0.8):
        radius = part * np.abs(Y).max(axis=0).sum()
        solved = quadratic_program(Y, radius)
        np.testing.assert_allclose(oracle.project_l1inf(Y, radius)[0], solved, atol=2e-6)
        for method in METHODS.values():
            np.testing.assert_allclose(method(Y, radius)[0], solved, atol=2e-6)


# The residual must see every way of being wrong


def wrong_points():
    Y = np.array([[3.0, -1.0, 0.1], [2.0, 0.5, -0.1], [-2.5, 0.25, 0.0]])
    radius = 2.0
    X, _ = oracle.project_l1inf(Y, radius)
    peaks = np.abs(X).max(axis=0)
    assert peaks[0] > 0
    assert peaks[1] > 0
    assert peaks[2] == 0
    yield "the input", Y, radius, Y
    yield "zero", Y, radius, np.zeros_like(Y)
    yield "scaled onto the sphere", Y, radius, Y * radius / np.abs(Y).max(axis=0).sum()
    yield "inside the ball", Y, radius, 0.999 * X
    yield "outside the ball", Y, radius, 1.001 * X
    yield "a sign flipped", Y, radius, X * np.array([[1.0], [-1.0], [1.0]])
    yield "caps shared wrongly", Y, radius, np.clip(Y, *(s * np.add(peaks, [0.1, -0.1, 0]) for s in (-1, 1)))
    yield "a zero group kept", Y, radius, np.clip(Y, *(s * np.add(peaks, [-0.05, 0, 0.05]) for s in (-1, 1)))
    yield "a live group dropped", Y, radius, np.clip(Y, *(s * np.array([2.0, 0.0, 0.0]) for s in (-1, 1)))
    moved = X.copy()
    moved[2, 1] += 0.01
    yield "one entry moved", Y, radius, moved
    yield "not finite", Y, radius, X * np.nan
    inside = Y.copy()
    inside[0, 0] = np.nextafter(3.0, 0.0)
    yield "an interior point moved", Y, 50.0, inside


@pytest.mark.parametrize(
    ("name", "Y", "radius", "X"), list(wrong_points()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_the_residual_sees(name, Y, radius, X):
    smallest = 0 if name == "an interior point moved" else 1e-4
    assert oracle.kkt_residual(Y, X, radius) > smallest
    assert oracle.kkt_residual(Y.T, X.T, radius, axis=1) > smallest


def test_the_residual_of_the_truth_is_rounding():
    for distribution in DISTRIBUTIONS:
        Y = matrix(distribution, (50, 40))
        for part in (*RADII, 1.0, 3.0):
            radius = part * np.abs(Y).max(axis=0).sum()
            assert oracle.kkt_residual(Y, oracle.project_l1inf(Y, radius)[0], radius) <= 4e-16
            for size in (2.0**-900, 2.0**900):
                X, _ = oracle.project_l1inf(Y * size, radius * size)
                assert oracle.kkt_residual(Y * size, X, radius * size) <= 4e-16
