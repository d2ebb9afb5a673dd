"""One file for each ball: its projection, its norm, its prox, its class; and the list of them all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from normball.balls._ball import Ball
from normball.balls.bilevel import BilevelBall
from normball.balls.l1 import L1Ball
from normball.balls.l1inf import L1InfBall
from normball.balls.l2 import L2Ball
from normball.balls.l12 import L12Ball
from normball.balls.linf import LinfBall
from normball.balls.linf1 import LInf1Ball
from normball.balls.linf2 import LInf2Ball
from normball.balls.simplex import SimplexBall

__all__ = ["BALLS", "Ball"]

# Tests, benchmarks, commands and documentation go through this list: a ball is entered here once.
BALLS: dict[str, Callable[..., Ball]] = {
    "l1": L1Ball,
    "simplex": SimplexBall,
    "l2": L2Ball,
    "linf": LinfBall,
    "l12": L12Ball,
    "l1inf": L1InfBall,
    "linf1": LInf1Ball,
    "linf2": LInf2Ball,
    "bilevel_l1inf": BilevelBall,
    "bilevel_l11": partial(BilevelBall, inner="l1"),
    "bilevel_l12": partial(BilevelBall, inner="l2"),
}
