"""Constraints on parameters, kept by projecting after the optimizer's step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from normball._dispatch import is_sharded
from normball._info import OperatorInfo, ProjectionInfo
from normball.balls.l1inf import L1InfBall
from normball.nn.patterns import Pattern, matched
from normball.nn.radii import at_step
from normball.nn.replay import Recording

__all__ = ["Constraint", "constrain"]


class Constraint:
    """What `constrain` returns: remove it, save it, ask it.

    Attributes
    ----------
    balls : dict
        The ball of each constrained parameter, by the parameter's name.
    infos : dict
        What the last projection of each told; the next one onto an l1,inf ball starts from it. On CUDA the tensors of
        an info may be written to again at the next step.
    steps : int
        Steps of the optimizer seen so far.
    """

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, balls: dict[str, Any], every: int, warmup_steps: int
    ) -> None:
        parameters = dict(model.named_parameters())
        self.balls = balls
        self.infos: dict[str, ProjectionInfo | OperatorInfo] = {}
        self.steps = 0
        self.every, self.warmup_steps = every, warmup_steps
        self._parameters = {name: parameters[name] for name in balls}
        self._recording = Recording()
        for name, parameter in self._parameters.items():
            # What torch.distributed.checkpoint loads into must be there, in its place.
            if is_sharded(parameter) and isinstance(balls[name], L1InfBall):
                self.infos[name] = _nothing_done(balls[name], parameter)
        self._hook = optimizer.register_step_post_hook(self._after_step)

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if not _moves(optimizer):
            return
        self.steps += 1
        since = self.steps - self.warmup_steps
        if since > 0 and (since - 1) % self.every == 0:
            self.project()

    def project(self) -> None:
        """Project all constrained parameters now."""
        step = max(self.steps - self.warmup_steps - 1, 0)
        balls = {name: at_step(self.balls[name], step, parameter) for name, parameter in self._parameters.items()}
        if self._recording.replay(self._parameters, balls, self.infos):
            return
        for name, whole in self._parameters.items():
            parameter = whole.detach()  # which costs less than to forbid gradients for a while
            ball = balls[name]
            options: dict[str, Any] = {}
            if isinstance(ball, L1InfBall):
                start = self.infos.get(name)
                moved = start is not None and start.mu.device != parameter.device
                options["warm_start"] = None if moved else start  # a start only saves time
            try:
                _, self.infos[name] = ball.project(parameter, out=parameter, return_info=True, **options)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error

    def remove(self) -> None:
        """Stop projecting."""
        self._hook.remove()

    def state_dict(self) -> dict[str, Any]:
        """Return the step count and where the next projections start from."""
        starts = {
            name: {"theta": info.theta, "mu": info.mu}
            for name, info in self.infos.items()
            if isinstance(info, ProjectionInfo)
        }
        return {"steps": self.steps, "starts": starts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        unknown = sorted(set(state["starts"]) - set(self.balls))
        if unknown:
            raise ValueError(f"state: expected the constrained parameters {sorted(self.balls)}, got also {unknown}")
        self.steps = int(state["steps"])
        self.infos = {
            name: ProjectionInfo(
                torch.as_tensor(start["theta"]), start["mu"].to(self._parameters[name].device), None, None, None
            )
            for name, start in state["starts"].items()
        }


def _moves(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a step may have moved anything: torch.distributed.checkpoint takes one with all the rates at 0."""
    for group in optimizer.param_groups:
        rate = group.get("lr")
        if isinstance(rate, torch.Tensor) and rate.device.type != "cpu":
            return True  # to look would make the host wait
        if rate is None or float(rate) != 0.0:
            return True
    return False


@torch.no_grad()
def _nothing_done(ball: L1InfBall, parameter: torch.Tensor) -> ProjectionInfo:
    """Return the info of a projection that changes nothing: of the right shape and placement."""
    _, info = dataclasses.replace(ball, radius=math.inf).project(parameter.detach(), return_info=True)
    return info  # type: ignore[no-any-return]


def constrain(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    balls: Mapping[Pattern, Any],
    *,
    every: int = 1,
    warmup_steps: int = 0,
) -> Constraint:
    """Keep parameters inside balls: each is projected, in place, after the optimizer's step.

    It hooks the optimizer's step and changes nothing else: schedulers, automatic mixed precision, accumulated gradients
    and checkpoints work as before. Under ``fully_shard`` every rank projects its own part of the parameters, which are
    never gathered; wrap the model first, then make the optimizer, then constrain.

    Parameters
    ----------
    model : Module
        Whose parameters to constrain.
    optimizer : Optimizer
        Whose steps to follow.
    balls : mapping
        From patterns to balls. A pattern is a parameter's name, a regular expression that matches whole names, or a
        class of modules and a parameter's name, as ``(nn.Linear, "weight")``. The ball's radius may be a number, a
        schedule (`Linear`, `Cosine`, `Cubic`, counted in steps after the warm-up) or `NGroups`.
    every : int
        Project after every so many steps.
    warmup_steps : int
        Steps to leave alone at the beginning.

    Returns
    -------
    Constraint
        With ``remove()``, ``project()``, ``state_dict()`` and ``load_state_dict()``.

    Examples
    --------
    >>> import torch, normball
    >>> model = torch.nn.Linear(20, 5)
    >>> optimizer = torch.optim.Adam(model.parameters())
    >>> constraint = normball.nn.constrain(model, optimizer, {"weight": normball.L1InfBall(0.3)})
    >>> model(torch.ones(4, 20)).square().sum().backward()
    >>> optimizer.step()
    >>> bool(normball.norm_l1inf(model.weight) <= 0.3 * (1 + 1e-6))
    True
    >>> constraint.remove()
    """
    if every < 1:
        raise ValueError(f"every: expected a positive int, got {every}")
    if warmup_steps < 0:
        raise ValueError(f"warmup_steps: expected an int >= 0, got {warmup_steps}")
    return Constraint(model, optimizer, matched(model, balls), every, warmup_steps)
