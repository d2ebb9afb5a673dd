"""Sharded tensors: every rank projects its own part, and speaks to the others in a few numbers.

`layout` knows the ranks, `shard` the part of this one, `brackets` how to find caps from few looks; `l1inf` and
`family` are the operators.
"""

from __future__ import annotations

from normball.backends.distributed.family import aggregate, caps, magnitudes, norm, operate, path, project_box
from normball.backends.distributed.operators import eps, norms, project_l1inf

__all__ = [
    "aggregate",
    "caps",
    "eps",
    "magnitudes",
    "norm",
    "norms",
    "operate",
    "path",
    "project_box",
    "project_l1inf",
]
