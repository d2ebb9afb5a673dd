"""Figure 2: time against the radius for long and for many columns."""

from __future__ import annotations

import numpy as np

from normball.experiments.experiment import Cell, Experiment, Setting
from normball.experiments.figures import time
from normball.experiments.projections import sweep

RADII = tuple(float(f"{radius:.4g}") for radius in np.geomspace(1e-3, 8.0, 9))


def cells(setting: Setting) -> list[Cell]:
    """Both shapes of the paper."""
    if setting.quick:
        return sweep([(200, 2000), (2000, 200)], "radius", RADII[::2], budget=0.05)
    return sweep([(1000, 10000), (10000, 1000)], "radius", RADII)


EXPERIMENT = Experiment(
    id="fig:large",
    title="Time against the radius, larger matrices",
    place="Figure 2",
    claim="The same kind of results (faster than the best existing methods when the sparsity is at least 40 %) appears "
    "for matrices of 1000 x 10000 and 10000 x 1000.",
    rule="As for fig:time, over both shapes.",
    cells=cells,
    draw=time.draw_times,
    judge=time.judge,
)
