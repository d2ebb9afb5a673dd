"""The projections under contract. A new ball or method adds its cases here, and every generic test picks them up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import normball
from normball.reference import METHODS, oracle

Axes = int | tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One way to project onto one ball, and how to judge it without trusting it."""

    name: str
    ball: str
    project: Callable[..., Any]  # (Y, radius, *, axis, batch_axis, out, threads, ...) -> X
    norm: Callable[..., Any]  # the library's norm (Y, axis)
    exact_norm: Callable[[np.ndarray, Axes], float]  # the same, in double precision and rounded once
    oracle: Callable[[np.ndarray, float, Axes], tuple[np.ndarray, float]]  # (Y, radius, axis) -> X, theta
    kkt: Callable[[np.ndarray, np.ndarray, float, Axes], float]  # (Y, X, radius, axis) -> residual over max |Y|
    fast: bool = True  # fit for matrices of a million entries

    def __str__(self) -> str:
        return self.name


def exact_norm_l1inf(Y: np.ndarray, axis: Axes = 0) -> float:
    wide = np.abs(Y.astype(np.complex128 if Y.dtype.kind == "c" else np.float64))
    return math.fsum(wide.max(axis=axis, initial=0.0).ravel())


L1INF_METHODS = tuple(METHODS)

L1INF = [
    Case(
        name=f"l1inf-{method}",
        ball="l1inf",
        project=partial(normball.project_l1inf, method=method),
        norm=normball.norm_l1inf,
        exact_norm=exact_norm_l1inf,
        oracle=oracle.project_l1inf,
        kkt=oracle.kkt_residual,
        fast=method == "newton",
    )
    for method in L1INF_METHODS
]

CASES = [*L1INF]
FAST_CASES = [case for case in CASES if case.fast]
