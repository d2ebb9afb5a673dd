"""Matrices to project: distributions, shapes, radii, and the memory layouts the same values can lie in."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from normball.reference import oracle


def _geometric(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.normal(size=shape) * np.geomspace(1.0, 1e-6, shape[1])


def _one_hot(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    Y = np.zeros(shape)
    Y[rng.integers(shape[0], size=shape[1]), np.arange(shape[1])] = rng.normal(size=shape[1])
    return Y


def _zero_groups(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.normal(size=shape) * (rng.random(shape[1]) < 0.5)


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "normal": lambda rng, shape: rng.normal(size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(sigma=2.0, size=shape),
    "cauchy": lambda rng, shape: np.clip(rng.standard_cauchy(shape), -6e4, 6e4),
    "ties": lambda rng, shape: rng.integers(-3, 4, size=shape).astype(np.float64),
    "one_hot": _one_hot,
    "geometric": _geometric,
    "zero_groups": _zero_groups,
    "sparse": lambda rng, shape: (rng.random(shape) < 0.1) * rng.integers(1, 6, size=shape) * 1.0,
    "constant": lambda rng, shape: np.full(shape, -0.1),
}

# Sizes 1, 2, primes, powers of two and their neighbours, on either side of the vector widths.
SHAPES = [
    (1, 1), (1, 2), (2, 1), (2, 2), (1, 7), (7, 1), (2, 9), (3, 8), (8, 3), (7, 7), (9, 15), (15, 9), (16, 16),
    (17, 31), (31, 17), (33, 2), (2, 33), (64, 5), (5, 64), (65, 65), (100, 16), (16, 100), (127, 3), (3, 127),
    (129, 8), (8, 129), (257, 4), (4, 257), (1000, 2), (2, 1000),
]  # fmt: skip

RADII = (1e-12, 1e-6, 1e-3, 0.05, 0.3, 0.7, 0.999)  # as parts of the norm

REAL_DTYPES = ("float64", "float32", "float16")


@lru_cache(maxsize=256)
def matrix(distribution: str, shape: tuple[int, int], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """The same read-only matrix on every call; its groups are its columns."""
    rng = np.random.default_rng([seed, *shape])
    Y = DISTRIBUTIONS[distribution](rng, shape).astype(dtype)
    Y.flags.writeable = False
    return Y


@lru_cache(maxsize=64)
def exact_caps(distribution: str, shape: tuple[int, int], dtype: str) -> oracle.ExactCaps:
    return oracle.ExactCaps(np.abs(matrix(distribution, shape, dtype).astype(np.float64)))


@lru_cache(maxsize=4096)
def exact_solution(distribution: str, shape: tuple[int, int], dtype: str, radius: float) -> tuple[np.ndarray, float]:
    """The caps and theta of `matrix(distribution, shape, dtype)`, which must lie outside the ball."""
    theta, mu = exact_caps(distribution, shape, dtype).solve(radius)
    return np.array([float(cap) for cap in mu]), float(theta)


def _steps(Y: np.ndarray) -> np.ndarray:
    big = np.full([3 * size + 1 for size in Y.shape], np.nan, dtype=Y.dtype)
    view = big[tuple(slice(1, 3 * size + 1, 3) for size in Y.shape)]
    view[...] = Y
    return view


def _reversed(Y: np.ndarray) -> np.ndarray:
    flip = (slice(None, None, -1),) * Y.ndim
    return np.ascontiguousarray(Y[flip])[flip]


def _inner_window(Y: np.ndarray) -> np.ndarray:
    big = np.full([size + 5 for size in Y.shape], np.nan, dtype=Y.dtype)
    view = big[tuple(slice(2, size + 2) for size in Y.shape)]
    view[...] = Y
    return view


def _mixed(Y: np.ndarray) -> np.ndarray:
    big = np.full([2 * size for size in Y.shape[::-1]], np.nan, dtype=Y.dtype)
    view = big.T[tuple(slice(None, None, -2) for _ in Y.shape)]
    view[...] = Y
    return view


def _read_only(Y: np.ndarray) -> np.ndarray:
    copy = Y.copy()
    copy.flags.writeable = False
    return copy


def _unaligned(Y: np.ndarray) -> np.ndarray:
    buffer = np.zeros(Y.nbytes + 1, dtype=np.uint8)
    view = buffer[1:].view(Y.dtype).reshape(Y.shape)
    view[...] = Y
    return view


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": lambda Y: Y.copy(order="C"),
    "F": lambda Y: Y.copy(order="F"),
    "steps": _steps,
    "reversed": _reversed,
    "window": _inner_window,
    "mixed": _mixed,
    "read_only": _read_only,
    "unaligned": _unaligned,
}
