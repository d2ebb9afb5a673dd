"""One thread against all, by turns, beside the same for a plain copy: what the memory allows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness import Bench, by_turns, describe
from benchmarks.matrices import DTYPES, LAYOUTS, POINTS, laid_out, make, radii
from benchmarks.verify import verify

TITLE = "threads, normal data"


def run(bench: Bench) -> None:
    count = bench.machine.cpus
    if count == 1:
        return
    newton = bench.solvers["newton"]
    members, groups = (1000, 10000) if bench.quick else (4096, 4096)
    points = tuple(p for p in POINTS if str(p) in ({"99 %"} if bench.quick else {"99 %", "50 %", "r=0.5"}))
    base = make("normal", members, groups)
    radius_at = radii(base, points)
    with ThreadPoolExecutor(count) as pool:
        for dtype in DTYPES:
            for layout in LAYOUTS:
                Y = laid_out(base, dtype, layout)
                X = np.empty_like(Y)
                for point, radius in radius_at.items():
                    bench.progress(f"{members}x{groups} {dtype} {layout} {point} threads")
                    about = describe(bench, Y, layout=layout, distribution="normal", point=point, radius=radius)
                    about |= {"case": "threads", "method": "newton"}
                    with bench.guarding(about):
                        verdict = verify(Y, newton.project(Y, radius, out=X, threads=count), radius)
                        times = by_turns(
                            {
                                "copy": lambda Y=Y, X=X: np.copyto(X, Y),
                                "one": lambda Y=Y, X=X, r=radius: newton.project(Y, r, out=X, threads=1),
                                "copies": lambda Y=Y, X=X: _copy_by_parts(pool, count, Y, X),
                                "all": lambda Y=Y, X=X, r=radius: newton.project(Y, r, out=X, threads=count),
                            },
                            prepare=lambda: None,
                            budget=8 * bench.budget,
                            fewest=5,
                        )
                        seconds = {name: median(values) for name, values in times.items()}
                        bench.emit(
                            about
                            | {
                                "kind": "threads",
                                "threads": count,
                                "seconds": seconds["all"],
                                "one_thread_seconds": seconds["one"],
                                "speedup": seconds["one"] / seconds["all"],
                                "copy_speedup": seconds["copy"] / seconds["copies"],
                                "repeats": len(times["one"]),
                                "residual": verdict.residual,
                                "zero_share": verdict.zero_share,
                            }
                        )


def _copy_by_parts(pool: ThreadPoolExecutor, count: int, Y: npt.NDArray[Any], X: npt.NDArray[Any]) -> None:
    flat_x, flat_y = X.ravel(order="K"), Y.ravel(order="K")
    parts = zip(np.array_split(flat_x, count), np.array_split(flat_y, count), strict=True)
    list(pool.map(lambda part: np.copyto(*part), parts))
