"""Matrices to project, and radii chosen by what the projection leaves of them. The groups are the columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

SIZES = ((1000, 1000), (100, 10000), (1000, 10000), (10000, 1000), (4096, 4096))  # members, groups
DTYPES = ("float64", "float32")
LAYOUTS = {"contiguous": "F", "strided": "C"}  # how the members of a column lie


@dataclass(frozen=True)
class Point:
    """A radius, given by the share of the groups that become zero, or as a part of the norm of the matrix."""

    zero_share: float | None = None
    part: float | None = None

    def __str__(self) -> str:
        return f"{100 * self.zero_share:g} %" if self.zero_share is not None else f"r={self.part:g}"


POINTS = (*(Point(zero_share=z) for z in (0.999, 0.99, 0.9, 0.5)), *(Point(part=p) for p in (0.1, 0.3, 0.5, 0.9)))


def _one_hot(rng: np.random.Generator, shape: tuple[int, int]) -> Matrix:
    Y = np.zeros(shape)
    Y[np.arange(shape[0]), rng.integers(shape[1], size=shape[0])] = rng.standard_normal(shape[0])
    return Y


# Each fills (groups, members): the transpose then has contiguous groups.
DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Matrix]] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "lognormal": lambda rng, shape: rng.lognormal(sigma=2.0, size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "ties": lambda rng, shape: rng.integers(-3, 4, size=shape).astype(np.float64),
    "one_hot": _one_hot,
    "geometric": lambda rng, shape: rng.standard_normal(shape) * np.geomspace(1.0, 1e-6, shape[0])[:, None],
}


def make(distribution: str, members: int, groups: int, seed: int = 0) -> Matrix:
    """Make the same matrix for the same arguments; members down, groups across, in Fortran order."""
    rng = np.random.default_rng([seed, members, groups])
    return DISTRIBUTIONS[distribution](rng, (groups, members)).T


def laid_out(Y: Matrix, dtype: str, layout: str) -> npt.NDArray[np.floating]:
    return np.array(Y, dtype=dtype, order=LAYOUTS[layout], copy=True)  # type: ignore[call-overload,no-any-return]


def radii(Y: Matrix, points: tuple[Point, ...]) -> dict[Point, float]:
    """Find the radius of each point, by sorting; points at which nothing would be left are dropped."""
    sums, norm = np.abs(Y).sum(axis=0), float(np.abs(Y).max(axis=0).sum())
    ordered = np.sort(sums)
    thetas = {}
    for point in points:
        if point.zero_share is not None:
            zeros = min(round(point.zero_share * len(sums)), len(sums) - 1)
            thetas[point] = float(ordered[zeros - 1] + ordered[zeros]) / 2
    found = dict(zip(thetas, _cap_sums(Y, sums, list(thetas.values())), strict=True))
    found |= {point: point.part * norm for point in points if point.part is not None}
    return {point: radius for point, radius in found.items() if radius > 0}


def _cap_sums(Y: Matrix, sums: Matrix, thetas: list[float]) -> list[float]:
    """g(theta) = sum of the caps mu_j(theta): a column clips k members when S_k - k Z_k < theta."""
    n = Y.shape[0]
    totals = [0.0] * len(thetas)
    k = np.arange(1, n + 1)[:, None]
    above = np.flatnonzero(sums > min(thetas, default=np.inf))
    for block in np.array_split(above, max(1, len(above) * n // 1_000_000)):
        Z = -np.sort(-np.abs(Y[:, block]), axis=0)
        S = np.cumsum(Z, axis=0)
        joins = S - k * Z
        for i, theta in enumerate(thetas):
            alive = np.flatnonzero(S[-1] > theta)
            count = np.maximum(np.count_nonzero(joins[:, alive] < theta, axis=0), 1)
            totals[i] += float(((S[count - 1, alive] - theta) / count).sum())
    return totals
