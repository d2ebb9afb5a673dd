"""Balls and their radii as JSON holds them: the constraints of an estimator, in its file."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Mapping
from typing import Any

from torch import nn

from normball.balls import BALLS
from normball.nn.radii import CosineSchedule, CubicSchedule, LinearSchedule, NGroups

__all__ = ["constraints_of", "told"]

# What may stand in a file, by name: nothing else is ever made of one.
_RULES = (LinearSchedule, CosineSchedule, CubicSchedule, NGroups)
KINDS: dict[str, type] = {kind.__name__: kind for kind in (*_RULES, *{type(make(1.0)) for make in BALLS.values()})}


def told(constraints: Mapping[Any, Any] | None) -> list[Any] | None:
    """Return the constraints as JSON holds them: pairs of a pattern and a ball."""
    if constraints is None:
        return None
    return [[_pattern_told(pattern), _told(ball)] for pattern, ball in constraints.items()]


def constraints_of(pairs: list[Any] | None) -> dict[Any, Any] | None:
    """Return the constraints that `told` has told of."""
    if pairs is None:
        return None
    named = ((p if isinstance(p, str) else (getattr(nn, p[0]), p[1]), ball) for p, ball in pairs)
    return {pattern: _made(ball) for pattern, ball in named}


def _pattern_told(pattern: Any) -> Any:
    if isinstance(pattern, str):
        return pattern
    kind, suffix = pattern
    name: str = kind.__name__
    if getattr(nn, name, None) is not kind:
        raise TypeError(f"save: expected constraints on modules of torch.nn, got {name}")
    return [name, suffix]


def _told(value: Any) -> Any:
    kind = type(value)
    if KINDS.get(kind.__name__) is kind:
        fields = {field.name: _told(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"kind": kind.__name__, **fields}
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, (tuple, list)):
        return [_told(each) for each in value]
    raise TypeError(
        f"save: expected constraints that are balls of normball, with a number or a rule of normball.nn for "
        f"their radius, got {value!r}"
    )


def _made(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {name: _made(each) for name, each in value.items() if name != "kind"}
        return KINDS[value["kind"]](**fields)
    return tuple(map(_made, value)) if isinstance(value, list) else value
