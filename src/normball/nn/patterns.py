"""Which parameters a pattern means."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from torch import nn

__all__ = ["matched"]

Pattern = str | tuple[type[nn.Module], str]


def matched(model: nn.Module, balls: Mapping[Pattern, Any], argument: str = "balls") -> dict[str, Any]:
    """Return the ball of each parameter that a pattern matches.

    A pattern is the name of a parameter, a regular expression that matches a whole name, or a class of modules with
    the name of their parameter. Errors name the `argument`.
    """
    parameters = dict(model.named_parameters())
    found: dict[str, Any] = {}
    for pattern, ball in balls.items():
        names = _names(model, pattern, list(parameters), argument)
        if not names:
            raise ValueError(f"{argument}: {_no_match(pattern, list(parameters))}")
        for name in names:
            if name in found:
                raise ValueError(f"{argument}: expected one pattern for a parameter, got two for {name}: {pattern!r}")
            found[name] = ball
    return found


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
