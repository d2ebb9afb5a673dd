"""Every method at every radius: cold, one thread, into an array that exists."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Bench, describe, measure
from benchmarks.matrices import DISTRIBUTIONS, DTYPES, LAYOUTS, POINTS, SIZES, laid_out, make, radii

TITLE = "cold, one thread, into out="


def run(bench: Bench) -> None:
    sizes = ((1000, 1000), (1000, 10000)) if bench.quick else SIZES
    points = POINTS[1::2] if bench.quick else POINTS
    for members, groups in sizes:
        for distribution in ("uniform", "normal") if bench.quick else DISTRIBUTIONS:
            base = make(distribution, members, groups)
            radius_at = radii(base, points)
            for dtype in DTYPES:
                for layout in LAYOUTS:
                    Y = laid_out(base, dtype, layout)
                    buffer = np.empty_like(Y)
                    for point, radius in radius_at.items():
                        for solver in bench.solvers.values():
                            if not solver.takes(distribution, Y.size):
                                continue
                            if bench.quick and solver.name != "newton" and Y.size > 1_000_000:
                                continue
                            bench.progress(f"{members}x{groups} {distribution} {dtype} {layout} {point} {solver.name}")
                            about = describe(
                                bench, Y, layout=layout, distribution=distribution, point=point, radius=radius
                            )
                            about |= {"case": "projection", "method": solver.name}
                            with bench.guarding(about):
                                bench.emit(about | measure(bench, solver, Y, radius, buffer=buffer))
