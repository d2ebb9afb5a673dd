"""Constraints inside the forward pass."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized, register_parametrization

from normball.balls import Ball
from normball.balls._ball import Rule
from normball.nn.patterns import ball_for
from normball.nn.radii import at_step

__all__ = ["made_plain", "parametrize"]


class Projected(nn.Module):
    """The projection onto a ball, as a module. A radius that is a parameter becomes a parameter of it."""

    def __init__(self, ball: Ball) -> None:
        super().__init__()
        self.ball = ball
        if isinstance(ball.radius, nn.Parameter):
            self.radius = ball.radius

    def forward(self, Y: Tensor) -> Tensor:
        """Project."""
        ball = self.ball
        if "radius" in self._parameters:  # which may be another tensor by now than the one in the ball
            ball = dataclasses.replace(ball, radius=self.radius)
        return ball.project(Y)  # type: ignore[no-any-return]

    def right_inverse(self, X: Tensor) -> Tensor:
        """Take any value as the one to be projected."""
        return X

    def extra_repr(self) -> str:
        """Show the ball."""
        return repr(self.ball)


class Scheduled(Projected):
    """The projection onto a ball whose radius depends on the number of forward passes in training mode."""

    def __init__(self, ball: Ball, owner: nn.Module) -> None:
        super().__init__(ball)
        self.forwards = 0
        self._hook = owner.register_forward_pre_hook(self._count)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _count(self, owner: nn.Module, *_: Any) -> None:
        recomputed = torch._C._current_graph_task_id() != -1  # by a checkpoint, in the backward pass
        self.forwards += owner.training and not recomputed

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, Y: Tensor) -> Tensor:
        """Project."""
        return at_step(self.ball, max(self.forwards - 1, 0), Y).project(Y)  # type: ignore[no-any-return]

    def get_extra_state(self) -> Tensor:
        """Return the number of forward passes, for the state dict."""
        return torch.tensor(self.forwards)

    def set_extra_state(self, state: Tensor) -> None:
        """Take the number of forward passes from a state dict."""
        self.forwards = int(state)

    def release(self) -> None:
        """Stop counting."""
        self._hook.remove()


def parametrize(module: nn.Module, name: str, ball: Any) -> nn.Module:
    """Replace a parameter by its projection: the module sees a point of the ball, the optimizer the free parameter.

    The gradient flows through the projection. `constrain` costs less and keeps the parameter itself inside the ball;
    this one is for constraints that the loss should know of. Undo with
    ``torch.nn.utils.parametrize.remove_parametrizations``.

    Parameters
    ----------
    module : Module
        The module that has the parameter, as a layer of a model.
    name : str
        The name of the parameter in the module.
    ball : Ball or pair
        A ball such as ``normball.L1InfBall(0.3)``, or a pair of a name of `normball.BALLS` and a radius, as
        ``("l1inf", 0.3)``. The radius may be one of the following.

        - A number, or a tensor of one.
        - An ``nn.Parameter`` of one number. It becomes a parameter of the module, so that an optimizer trains it and
          the state dict holds it. It must not become negative.
        - A schedule, or `NGroups`. A schedule moves one step with each forward pass of `module` in training mode. It
          stands still in evaluation, when the parameter is only read, and while a checkpoint computes a forward pass
          again. Micro-batches of accumulated gradients count one by one. The state dict holds the number of steps.

    Returns
    -------
    Module
        The same module.

    Notes
    -----
    A schedule does not move where another module reads the parameter without a call of this one, as
    ``nn.MultiheadAttention`` does with its ``out_proj``. ``torch.compile`` breaks the graph at a schedule and at
    `NGroups`.

    Examples
    --------
    >>> import torch, normball
    >>> layer = normball.nn.parametrize(torch.nn.Linear(20, 5), "weight", normball.L1InfBall(0.3))
    >>> bool(normball.norm_l1inf(layer.weight) <= 0.3 * (1 + 1e-6))
    True

    A radius that is trained:

    >>> radius = torch.nn.Parameter(torch.tensor(0.3))
    >>> layer = normball.nn.parametrize(torch.nn.Linear(20, 5), "weight", normball.L1InfBall(radius))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original', 'parametrizations.weight.0.radius']
    """
    parameters = dict(module.named_parameters(recurse=False))
    if name not in parameters:
        raise ValueError(f"name: expected one of {', '.join(map(repr, parameters))}, got {name!r}")
    found = ball_for(ball, name, parameters[name], "ball")
    projected = Scheduled(found, module) if isinstance(found.radius, Rule) else Projected(found)
    return register_parametrization(module, name, projected)


@torch.no_grad()
def made_plain(model: nn.Module) -> nn.Module:
    """Make parametrized tensors plain ones, in place, with the values that they have in evaluation. Returns the model.

    That of torch, `remove_parametrizations`, changes the class of a layer, which copies of the layer share.
    """
    training = {module: module.training for module in model.modules()}
    model.eval()
    for module in filter(is_parametrized, training):
        lists: Any = module.parametrizations
        values = {name: getattr(module, name).detach().clone() for name in lists}
        module.__class__ = type(module).__bases__[0]
        del module.parametrizations
        for name, value in values.items():
            originals = list(lists[name].parameters(recurse=False))
            if originals:
                trained = any(original.requires_grad for original in originals)
                module.register_parameter(name, nn.Parameter(value, requires_grad=trained))
            else:
                module.register_buffer(name, value)
            for step in lists[name]:
                if isinstance(step, Scheduled):
                    step.release()
    for module, was in training.items():
        module.training = was
    return model
