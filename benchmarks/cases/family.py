"""Every other ball of `normball.BALLS`, against a copy, and plain NumPy and PyTorch with a sort: one thread, into out=.

Vectors of ten million entries; matrices of the largest sizes, with radii that leave few or half of the groups, or at
parts of the norm. Each result is held against the plain one before its time counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

import normball
from benchmarks.harness import Bench, Record, by_turns, timed
from benchmarks.matrices import DISTRIBUTIONS, DTYPES, LAYOUTS, laid_out, make
from benchmarks.plain_numpy import PLAIN
from benchmarks.plain_torch import TORCH, on_one_thread
from benchmarks.verify import WrongResultError

TITLE = "the rest of the family"

VECTORS = ("l1", "simplex", "l2", "linf")
SPARSE_BY_GROUPS = ("l12", "bilevel_l1inf", "bilevel_l11")
LENGTH = 10_000_000
SIZES = ((1000, 10000), (4096, 4096))


def run(bench: Bench) -> None:
    for Y, about in _arrays(bench):
        out = np.empty_like(Y)
        names = VECTORS if Y.ndim == 1 else [n for n in normball.BALLS if n not in (*VECTORS, "l1inf", "bilevel_l12")]
        for name in names:
            for point, radius in _radii(name, Y, bench.quick):
                here = about | {"method": name, "point": point, "radius": radius}
                bench.progress(f"{about['members']}x{about['groups']} {about['dtype']} {name} {point}")
                with bench.guarding(here):
                    bench.emit(here | _measure(bench, name, Y, radius, out))
        if Y.ndim == 2:
            bench.emit(about | {"point": "10 % left"} | _radius_for_sparsity(bench, Y, out))


def _arrays(bench: Bench) -> Iterator[tuple[npt.NDArray[Any], Record]]:
    length = LENGTH // 10 if bench.quick else LENGTH
    for distribution in ("normal", "uniform", "cauchy", "lognormal"):
        values = DISTRIBUTIONS[distribution](np.random.default_rng(0), (1, length))[0]
        for dtype in DTYPES:
            yield values.astype(dtype), _about(bench, length, 1, dtype, "contiguous", distribution)
    for members, groups in ((1000, 1000),) if bench.quick else SIZES:
        base = make("normal", members, groups)
        for dtype in DTYPES:
            for layout in LAYOUTS:
                yield laid_out(base, dtype, layout), _about(bench, members, groups, dtype, layout, "normal")


def _about(bench: Bench, members: int, groups: int, dtype: str, layout: str, distribution: str) -> Record:
    return {
        "case": "family", "members": members, "groups": groups, "dtype": dtype, "layout": layout,
        "distribution": distribution,
        "fits_cache": members * groups * np.dtype(dtype).itemsize <= bench.machine.last_cache,
    }  # fmt: skip


def _radii(name: str, Y: npt.NDArray[Any], quick: bool) -> Iterator[tuple[str, float]]:
    if name in SPARSE_BY_GROUPS:
        for share in (0.01, 0.5):
            yield f"{100 * (1 - share):g} %", normball.radius_for_sparsity(Y, name, n_groups=int(share * Y.shape[1]))
        return
    norm = normball.BALLS[name](1.0).norm(Y)
    for part in (0.1,) if quick or name in ("l2", "linf", "linf2") else (1e-3, 0.1, 0.5, 0.9):
        yield f"r={part:g}", part * float(norm)


def _measure(bench: Bench, name: str, Y: npt.NDArray[Any], radius: float, out: npt.NDArray[Any]) -> Record:
    ball = normball.BALLS[name](radius)
    X = ball.project(Y, out=out, threads=1)
    rivals = {"plain_ratio": timed(lambda: PLAIN[name](Y, radius))}
    expected, peak = PLAIN[name](Y.astype(np.float64), radius), float(np.abs(Y).max())
    error = float(np.abs(X - expected).max()) / peak
    if not error <= 4 * float(np.finfo(Y.dtype).eps) + 1e-11:  # plain NumPy cumulates one after another
        raise WrongResultError(f"differs from plain NumPy by {error:.2e} of the largest entry")
    if name in TORCH:
        found: list[npt.NDArray[Any]] = []
        rivals["torch_ratio"] = timed(lambda: found.append(on_one_thread(name, Y, radius)))
        if not float(np.abs(found[0] - expected).max()) <= 1e-3 * peak:  # it adds up in the dtype
            raise WrongResultError("what is written in PyTorch to compare with differs from plain NumPy")
    times = by_turns(
        {"copy": lambda: np.copyto(out, Y), "solve": lambda: ball.project(Y, out=out, threads=1)},
        prepare=lambda: None, budget=2 * bench.budget, fewest=3 if bench.quick else 7,
    )  # fmt: skip
    seconds, copy_seconds = median(times["solve"]), median(times["copy"])
    return {key: value / copy_seconds for key, value in rivals.items()} | {
        "kind": "family", "threads": 1, "seconds": seconds, "copy_seconds": copy_seconds,
        "ratio": seconds / copy_seconds, "residual": error, "repeats": len(times["solve"]),
    }  # fmt: skip


def _radius_for_sparsity(bench: Bench, Y: npt.NDArray[Any], out: npt.NDArray[Any]) -> Record:
    k = Y.shape[1] // 10
    radius = normball.radius_for_sparsity(Y, n_groups=k)
    found = normball.project_l1inf(Y, radius, return_info=True)[1].n_nonzero
    if found != k:
        return {"kind": "wrong", "method": "radius_for_sparsity", "error": f"{found} groups in place of {k}"}
    times = by_turns(
        {
            "copy": lambda: np.copyto(out, Y),
            "solve": lambda: normball.radius_for_sparsity(Y, n_groups=k, threads=1),
        },
        prepare=lambda: None, budget=2 * bench.budget, fewest=3 if bench.quick else 7,
    )  # fmt: skip
    seconds, copy_seconds = median(times["solve"]), median(times["copy"])
    return {
        "kind": "family", "method": "radius_for_sparsity", "threads": 1, "seconds": seconds,
        "copy_seconds": copy_seconds, "ratio": seconds / copy_seconds, "repeats": len(times["solve"]),
    }  # fmt: skip
