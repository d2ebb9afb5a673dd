"""Made-up rows, as the cells would give them, for the rules."""

import numpy as np
import pandas as pd

ALGORITHMS = ("newton", "inverse_total_order", "semismooth_newton", "active_set", "total_order", "copy")


def times(points, **ms):
    """Rows of all the algorithms at each point; milliseconds are numbers, or functions of the point."""
    given = {"newton": 1.0, "inverse_total_order": 2.0, "semismooth_newton": 4.0, "active_set": 3.0}
    given |= {"total_order": 90.0, "copy": 0.5} | ms
    return pd.DataFrame(
        {
            "members": 1000, "groups": 1000, "dtype": "float64", "distribution": "uniform", "at": "radius",
            "value": point.get("radius", 1.0), "algorithm": name,
            "ms": given[name](point) if callable(given[name]) else given[name], **point,
        }
        for point in points
        for name in ALGORITHMS
    )  # fmt: skip


def radii(zeros=(0.999, 0.9, 0.7, 0.5, 0.2)):
    return [{"radius": -np.log(share), "zeros": share} for share in zeros]


def accuracies(means, *, seeds=3, data="stated", kept=None, column_sparsity=99.6, spread=0.5, **more):
    """Rows of fits whose mean accuracies are these."""
    step = spread * (np.arange(seeds) - (seeds - 1) / 2)
    return pd.DataFrame(
        {
            "data": data, "method": method, "seed": seed, "accuracy": mean + step[seed],
            "kept": (kept or {}).get(method, 40), "informative_kept": 20, "seconds": 1.0,
            "column_sparsity": column_sparsity, **more,
        }
        for method, mean in means.items()
        for seed in range(seeds)
    )  # fmt: skip
