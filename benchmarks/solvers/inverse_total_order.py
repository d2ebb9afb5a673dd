"""Algorithm 2 of Perez, Condat and Barlaud."""

from functools import partial

import normball
from benchmarks.harness import Solver

SOLVER = Solver("inverse_total_order", partial(normball.project_l1inf, method="inverse_total_order"))
