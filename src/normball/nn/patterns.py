"""Which parameters a pattern means, and which ball is asked for."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from normball.balls import BALLS, Ball
from normball.nn.radii import Rule

__all__ = ["ball_for", "matched"]

Pattern = str | tuple[type[nn.Module], str]


def matched(model: nn.Module, balls: Mapping[Pattern, Any], argument: str = "balls") -> dict[str, Ball]:
    """Return the ball of each parameter that a pattern matches.

    A pattern is the name of a parameter, a regular expression that matches a whole name, or a class of modules with
    the name of their parameter. Errors name the `argument`.
    """
    if not isinstance(balls, Mapping):
        raise TypeError(f"{argument}: expected a mapping from patterns to balls, got {type(balls).__name__}")
    parameters = dict(model.named_parameters())
    found: dict[str, Ball] = {}
    for pattern, asked in balls.items():
        names = _names(model, pattern, list(parameters), argument)
        if not names:
            raise ValueError(f"{argument}: {_no_match(pattern, list(parameters))}")
        for name in names:
            if name in found:
                raise ValueError(f"{argument}: expected one pattern for a parameter, got two for {name}: {pattern!r}")
            ball = ball_for(asked, name, parameters[name], argument)
            if isinstance(ball.radius, nn.Parameter):
                raise TypeError(
                    f"{argument}: expected a number, a schedule or NGroups as the radius for {name}, got an "
                    "nn.Parameter, to which no gradient flows here; normball.nn.parametrize trains one"
                )
            found[name] = ball
    return found


def ball_for(asked: Any, name: str, parameter: Tensor, argument: str) -> Ball:
    """Return the ball that is asked for, as a value or as a pair of a name and a radius, if it fits the parameter."""
    if isinstance(asked, (tuple, list)) and len(asked) == 2 and _is_name(asked[0]):
        try:
            asked = BALLS[asked[0]](asked[1])
        except (TypeError, ValueError) as error:
            raise type(error)(f"{argument}: {name}: {error}") from None
    if not isinstance(asked, Ball):
        raise TypeError(f"{argument}: expected a ball for {name}, got {_instead(asked)}")
    if is_lazy(parameter):
        raise ValueError(f"{argument}: expected {name} to have a shape; call the model once to initialize it")
    radius = asked.radius
    if isinstance(radius, Rule):
        radius = 1.0
    elif isinstance(radius, Tensor):
        radius = torch.empty_like(radius, device="meta")
    try:  # a projection that computes nothing but the shape
        with torch.no_grad():
            trial = torch.empty(parameter.shape, dtype=parameter.dtype, device="meta")
            dataclasses.replace(asked, radius=radius).project(trial)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{argument}: {name}: {error}") from None
    return asked


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value in BALLS


def _instead(asked: Any) -> str:
    """Return what was given in the place of a ball, and how to write one."""
    if isinstance(asked, type) and issubclass(asked, Ball):
        return f"the class {asked.__name__}; make one, as {asked.__name__}(0.3)"
    if _is_name(asked):
        return f"{asked!r}; a name needs a radius, as ({asked!r}, 0.3)"
    return f"{asked!r}; a ball is normball.L1InfBall(0.3) or ('l1inf', 0.3), by one of the names {', '.join(BALLS)}"


def _names(model: nn.Module, pattern: Pattern, names: list[str], argument: str) -> list[str]:
    if isinstance(pattern, tuple):
        kind, suffix = pattern
        modules = [name for name, module in model.named_modules() if isinstance(module, kind)]
        wanted = {f"{name}.{suffix}".lstrip(".") for name in modules}
        return [name for name in names if name in wanted]
    if not isinstance(pattern, str):
        raise TypeError(f"{argument}: expected a name, a regular expression or (module class, suffix), got {pattern!r}")
    if pattern in names:
        return [pattern]
    try:
        return [name for name in names if re.fullmatch(pattern, name)]
    except re.error as error:
        raise ValueError(f"{argument}: expected a name or a regular expression, got {pattern!r}: {error}") from None


def _no_match(pattern: Pattern, names: list[str]) -> str:
    asked = pattern if isinstance(pattern, str) else f"{pattern[0].__name__}.{pattern[1]}"
    near = difflib.get_close_matches(asked, names, n=3, cutoff=0.3) or names[:3]
    return f"expected a pattern that matches a parameter, got {asked!r}; near names: {', '.join(near)}"
