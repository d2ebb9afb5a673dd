"""Exact projections onto mixed-norm balls, at the speed of a copy."""

import importlib
from typing import TYPE_CHECKING, Any

from normball._info import OperatorInfo, ProjectionInfo
from normball._version import __version__
from normball.balls import BALLS, Ball
from normball.balls.bilevel import (
    BilevelBall,
    bilevel_l1inf,
    bilevel_l11,
    bilevel_l12,
    multilevel,
    norm_multilevel,
)
from normball.balls.box import project_box
from normball.balls.l1 import L1Ball, norm_l1, project_l1, prox_l1
from normball.balls.l1inf import L1InfBall, norm_l1inf, project_l1inf, project_l1inf_, prox_l1inf
from normball.balls.l2 import L2Ball, norm_l2, project_l2, prox_l2
from normball.balls.l12 import L12Ball, norm_l12, project_l12, prox_l12
from normball.balls.linf import LinfBall, norm_linf, project_linf, prox_linf
from normball.balls.linf1 import LInf1Ball, norm_linf1, project_linf1, prox_linf1
from normball.balls.linf2 import LInf2Ball, norm_linf2, project_linf2
from normball.balls.simplex import SimplexBall, project_simplex
from normball.balls.sparsity import radius_for_sparsity, radius_path

if TYPE_CHECKING:
    from normball import nn as nn

__all__ = [
    "BALLS",
    "Ball",
    "BilevelBall",
    "L1Ball",
    "L1InfBall",
    "L2Ball",
    "L12Ball",
    "LInf1Ball",
    "LInf2Ball",
    "LinfBall",
    "OperatorInfo",
    "ProjectionInfo",
    "SimplexBall",
    "__version__",
    "bilevel_l1inf",
    "bilevel_l11",
    "bilevel_l12",
    "multilevel",
    "norm_l1",
    "norm_l1inf",
    "norm_l2",
    "norm_l12",
    "norm_linf",
    "norm_linf1",
    "norm_linf2",
    "norm_multilevel",
    "project_box",
    "project_l1",
    "project_l1inf",
    "project_l1inf_",
    "project_l2",
    "project_l12",
    "project_linf",
    "project_linf1",
    "project_linf2",
    "project_simplex",
    "prox_l1",
    "prox_l1inf",
    "prox_l2",
    "prox_l12",
    "prox_linf",
    "prox_linf1",
    "radius_for_sparsity",
    "radius_path",
]


def __getattr__(name: str) -> Any:
    # What needs more than NumPy is imported when it is asked for.
    if name in ("nn", "estimators", "omics"):
        return importlib.import_module(f"normball.{name}")
    raise AttributeError(f"module 'normball' has no attribute {name!r}")
