"""The naive algorithm with the column elimination of Bejar et al."""

from functools import partial

import normball
from benchmarks.harness import Solver

SOLVER = Solver("active_set", partial(normball.project_l1inf, method="active_set"))
