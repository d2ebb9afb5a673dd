"""The default method in all the ways it can be called: new array, out=, in place; cold and warm; one and all threads.

Warm starts come from the projection of a slightly different matrix. Two kinds: `warm`, every entry moved by a
thousandth of the standard deviation; `step`, what training does under a mask, the last projection itself with every
entry of its non-zero groups moved by as much.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Bench, describe, measure
from benchmarks.matrices import DTYPES, LAYOUTS, POINTS, SIZES, laid_out, make, radii

TITLE = "the default method in every mode, normal data"

TARGETS = ("new", "out", "in place")
MOVE = 1e-3


def run(bench: Bench) -> None:
    newton = bench.solvers["newton"]
    sizes = ((1000, 1000),) if bench.quick else SIZES
    points = tuple(p for p in POINTS if str(p) in ({"90 %"} if bench.quick else {"99 %", "90 %", "50 %", "r=0.5"}))
    counts = sorted({1, bench.machine.cpus})
    for members, groups in sizes:
        base = make("normal", members, groups)
        radius_at = radii(base, points)
        moves = MOVE * make("normal", members, groups, seed=1)
        for dtype in DTYPES:
            for layout in LAYOUTS:
                before = laid_out(base, dtype, layout)
                Y = laid_out(base + moves, dtype, layout)
                buffer = np.empty_like(Y)
                for point, radius in radius_at.items():
                    bench.progress(f"{members}x{groups} {dtype} {layout} {point} modes")
                    about = describe(bench, Y, layout=layout, distribution="normal", point=point, radius=radius)
                    about |= {"case": "modes", "method": "newton"}
                    X, info = newton.project(before, radius, return_info=True)
                    for threads in counts:
                        for target in TARGETS if threads == 1 else ("out",):
                            for warm in (None, info):
                                with bench.guarding(about | {"target": target, "start": "warm" if warm else "cold"}):
                                    result = measure(
                                        bench, newton, Y, radius,
                                        target=target, threads=threads, warm_start=warm, buffer=buffer,
                                    )  # fmt: skip
                                    bench.emit(about | result)
                    X += laid_out(moves, dtype, layout) * info.nonzero
                    with bench.guarding(about | {"target": "in place", "start": "step"}):
                        result = measure(bench, newton, X, radius, target="in place", warm_start=info, buffer=buffer)
                        bench.emit(about | result | {"start": "step"})
