"""Constraints inside the forward pass."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

__all__ = ["parametrize"]


class Projected(nn.Module):
    """The projection onto a ball, as a module."""

    def __init__(self, ball: Any) -> None:
        super().__init__()
        self.ball = ball

    def forward(self, Y: Tensor) -> Tensor:
        """Project."""
        return self.ball.project(Y)  # type: ignore[no-any-return]

    def right_inverse(self, X: Tensor) -> Tensor:
        """Take any value as the one to be projected."""
        return X


def parametrize(module: nn.Module, name: str, ball: Any) -> nn.Module:
    """Replace a parameter by its projection: the module sees a point of the ball, the optimizer the free parameter.

    The gradient flows through the projection. `constrain` costs less and keeps the parameter itself inside the ball;
    this one is for constraints that the loss should know of. Undo with
    ``torch.nn.utils.parametrize.remove_parametrizations``.

    Examples
    --------
    >>> import torch, normball
    >>> layer = normball.nn.parametrize(torch.nn.Linear(20, 5), "weight", normball.L1InfBall(0.3))
    >>> bool(normball.norm_l1inf(layer.weight) <= 0.3 * (1 + 1e-6))
    True
    """
    parameters = dict(module.named_parameters(recurse=False))
    if name not in parameters:
        raise ValueError(f"name: expected one of {', '.join(map(repr, parameters))}, got {name!r}")
    return register_parametrization(module, name, Projected(ball))
