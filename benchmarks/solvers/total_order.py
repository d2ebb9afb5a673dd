"""Quattoni et al.: sorts everything, so the largest matrices are left out to bound the time."""

from functools import partial

import normball
from benchmarks.harness import Solver

SOLVER = Solver("total_order", partial(normball.project_l1inf, method="total_order"), largest=1_000_000)
