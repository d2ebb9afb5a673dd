"""What a call costs when there is next to nothing to do: a 10x10 matrix, in microseconds over a copy."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

import normball
from benchmarks.harness import Action, Bench
from benchmarks.matrices import DTYPES, LAYOUTS, laid_out, make
from benchmarks.verify import verify

TITLE = "10x10 matrix, microseconds over a copy"

CALLS = 500


def run(bench: Bench) -> None:
    base = make("normal", 10, 10)
    radius = 0.5 * normball.norm_l1inf(base)
    rounds = 11 if bench.quick else 101
    for dtype in DTYPES:
        for layout in LAYOUTS:
            Y = laid_out(base, dtype, layout)
            X = np.empty_like(Y)
            verdict = verify(Y, normball.project_l1inf(Y, radius), radius)
            pairs = {
                "new": (lambda Y=Y: Y.copy(order="K"), lambda Y=Y: normball.project_l1inf(Y, radius)),
                "out": (lambda Y=Y, X=X: np.copyto(X, Y), lambda Y=Y, X=X: normball.project_l1inf(Y, radius, out=X)),
            }
            for target, (copy, solve) in pairs.items():
                bench.progress(f"10x10 {dtype} {layout} {target}")
                times = [(_per_call(copy), _per_call(solve)) for _ in range(rounds)]
                copy_seconds, seconds = (median(column) for column in zip(*times, strict=True))
                bench.emit(
                    {
                        "kind": "small",
                        "case": "small",
                        "method": "newton",
                        "members": 10,
                        "groups": 10,
                        "dtype": dtype,
                        "layout": layout,
                        "distribution": "normal",
                        "target": target,
                        "seconds": seconds,
                        "copy_seconds": copy_seconds,
                        "overhead_us": 1e6 * (seconds - copy_seconds),
                        "repeats": rounds,
                        "residual": verdict.residual,
                    }
                )


def _per_call(action: Action) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        action()
    return (time.perf_counter() - start) / CALLS
