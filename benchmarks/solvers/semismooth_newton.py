"""Chu et al."""

from functools import partial

import normball
from benchmarks.harness import Solver

SOLVER = Solver("semismooth_newton", partial(normball.project_l1inf, method="semismooth_newton"))
