"""Sparse networks: constraints on parameters, masks, double descent, and the small network that remains.

Needs PyTorch: ``pip install normball[torch]``.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("normball.nn needs PyTorch: pip install normball[torch]") from error

from normball.nn.compact import Compacted, compact, rebuild
from normball.nn.constrain import Constraint, constrain
from normball.nn.double_descent import DoubleDescent
from normball.nn.parametrize import parametrize
from normball.nn.radii import CosineSchedule, CubicSchedule, LinearSchedule, NGroups
from normball.nn.report import SparsityReport, sparsity_report

__all__ = [
    "Compacted",
    "Constraint",
    "CosineSchedule",
    "CubicSchedule",
    "DoubleDescent",
    "LinearSchedule",
    "NGroups",
    "SparsityReport",
    "compact",
    "constrain",
    "parametrize",
    "rebuild",
    "sparsity_report",
]
