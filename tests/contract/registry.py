"""The projections under contract: every ball of `normball.BALLS`, and every method of the l1,inf projection.

A new ball needs an entry in `normball.BALLS` and its textbook form in `normball.reference.family.FAMILY`; every generic
test picks it up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import normball
from normball.reference import METHODS, oracle
from normball.reference.family import FAMILY

Axes = int | tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One way to project onto one ball, and how to judge it without trusting it."""

    name: str
    ball: str
    project: Callable[..., Any]  # (Y, radius, *, axis, batch_axis, out, threads, ...) -> X
    exact_norm: Callable[[np.ndarray, Axes], float]  # the norm, in double precision and rounded once
    wide_norm: Callable[[np.ndarray, Axes], Any]  # the same, beyond the range of double
    oracle: Callable[[np.ndarray, float, Axes], tuple[np.ndarray, Any]]  # (Y, radius, axis) -> X, theta
    kkt: Callable[[np.ndarray, np.ndarray, float, Axes], float]  # (Y, X, radius, axis) -> residual over max |Y|
    fast: bool = True  # fit for matrices of a million entries
    groups: bool = True  # else one vector: the axis means nothing
    each: bool = False  # groups do not depend on each other, and have a theta each
    euclidean: bool = True  # else it is no nearest point
    of_a_norm: bool = True  # else it is no ball: neither symmetric nor with an inside

    def __str__(self) -> str:
        return self.name


def wide_norm_l1inf(Y: np.ndarray, axis: Axes = 0) -> Any:
    wide = np.abs(Y.astype(np.clongdouble if Y.dtype.kind == "c" else np.longdouble))
    return wide.max(axis=axis, initial=0.0).sum()


def exact_norm_l1inf(Y: np.ndarray, axis: Axes = 0) -> float:
    wide = np.abs(Y.astype(np.complex128 if Y.dtype.kind == "c" else np.float64))
    return math.fsum(wide.max(axis=axis, initial=0.0).ravel())


L1INF_METHODS = tuple(METHODS)

L1INF = [
    Case(
        name=f"l1inf-{method}",
        ball="l1inf",
        project=partial(normball.project_l1inf, method=method),
        exact_norm=exact_norm_l1inf,
        wide_norm=wide_norm_l1inf,
        oracle=oracle.project_l1inf,
        kkt=oracle.kkt_residual,
        fast=method == "newton",
    )
    for method in L1INF_METHODS
]


def _project(name: str, groups: bool, Y: Any, radius: Any, *, axis: Axes = 0, **options: Any) -> Any:
    return normball.BALLS[name](radius, axis if groups else None).project(Y, **options)


def _textbook(name: str, Y: Any, radius: float, axis: Axes = 0) -> tuple[np.ndarray, Any]:
    Y = np.asarray(Y)
    if not FAMILY[name].groups:
        axis = tuple(range(Y.ndim))
    return FAMILY[name].project(Y, radius, axis)


def _distance(name: str, Y: np.ndarray, X: np.ndarray, radius: float, axis: Axes) -> float:
    """The largest error of an entry, against the largest entry of Y."""
    if not np.isfinite(X).all():
        return math.inf
    expected, _ = _textbook(name, Y, radius, axis)
    scale = float(np.abs(Y.astype(expected.dtype)).max(initial=0.0))
    if not FAMILY[name].groups and name == "simplex":
        scale = max(scale, radius)
    error = float(np.abs(X.astype(expected.dtype) - expected).max(initial=0.0))
    if name == "bilevel_l11":  # each radius is a difference of sums, which are rounded
        error = max(0.0, error - float(np.abs(Y).sum(axis=axis, dtype=np.float64).max(initial=0.0)) * 2.0**-52)
    return error / scale if scale > 0 else error


OTHERS = [
    Case(
        name=name,
        ball=name,
        project=partial(_project, name, FAMILY[name].groups),
        exact_norm=lambda Y, axis=0, name=name: float(FAMILY[name].norm(Y, axis)),
        wide_norm=FAMILY[name].norm,
        oracle=partial(_textbook, name),
        kkt=partial(_distance, name),
        groups=FAMILY[name].groups,
        each=name in ("linf1", "linf2"),
        euclidean=FAMILY[name].euclidean,
        of_a_norm=name != "simplex",
    )
    for name in normball.BALLS
    if name not in ("l1inf", "bilevel_l12")  # the one is above, the other is l12
]

CASES = [*L1INF, *OTHERS]
FAST_CASES = [case for case in CASES if case.fast]
NORM_BALLS = [case for case in CASES if case.of_a_norm]
EUCLIDEAN = [case for case in CASES if case.euclidean]
