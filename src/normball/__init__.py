"""Exact projections onto mixed-norm balls, at the speed of a copy."""

from normball._info import ProjectionInfo
from normball.balls.l1inf import L1InfBall, norm_l1inf, norm_linf1, project_l1inf, project_l1inf_, prox_linf1

__version__ = "0.1.0"

__all__ = [
    "L1InfBall",
    "ProjectionInfo",
    "__version__",
    "norm_l1inf",
    "norm_linf1",
    "project_l1inf",
    "project_l1inf_",
    "prox_linf1",
]
