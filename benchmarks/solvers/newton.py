"""The default method."""

from functools import partial

import normball
from benchmarks.harness import Solver

SOLVER = Solver("newton", partial(normball.project_l1inf, method="newton"), everywhere=True)
