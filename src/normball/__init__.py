"""Exact projections onto mixed-norm balls, at the speed of a copy."""

import importlib
from typing import TYPE_CHECKING, Any

from normball._info import ProjectionInfo
from normball.balls.l1inf import L1InfBall, norm_l1inf, norm_linf1, project_l1inf, project_l1inf_, prox_linf1

if TYPE_CHECKING:
    from normball import nn as nn

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


def __getattr__(name: str) -> Any:
    # What needs more than NumPy is imported when it is asked for.
    if name == "nn":
        return importlib.import_module("normball.nn")
    raise AttributeError(f"module 'normball' has no attribute {name!r}")
