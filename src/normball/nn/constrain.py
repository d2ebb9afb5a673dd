"""Constraints on parameters, kept by projecting after the optimizer's step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import nn

from normball._dispatch import is_sharded
from normball._info import OperatorInfo, ProjectionInfo
from normball.backends import torch_checks
from normball.balls import Ball
from normball.balls.l1inf import L1InfBall
from normball.nn.patterns import Pattern, matched
from normball.nn.radii import at_step
from normball.nn.replay import Recording

__all__ = ["Constraint", "constrain", "expect_keys"]


class Constraint:
    """Parameters that are kept inside balls: what `constrain` returns.

    As a context manager it is removed at the end of the block.

    Attributes
    ----------
    balls : dict
        The ball of each constrained parameter, by the parameter's name.
    infos : dict
        The info of the last projection of each parameter. The next projection onto an l1,inf ball starts from it. On
        CUDA the tensors of an info may be written to again at the next step.
    steps : int
        Steps of the optimizer seen so far.
    """

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, balls: dict[str, Ball], every: int, warmup_steps: int
    ) -> None:
        parameters = dict(model.named_parameters())
        self.balls = balls
        self.infos: dict[str, ProjectionInfo | OperatorInfo] = {}
        self.steps = 0
        self.every, self.warmup_steps = every, warmup_steps
        self._parameters = {name: parameters[name] for name in balls}
        self._recording = Recording()
        for name, parameter in self._parameters.items():
            ball = balls[name]
            # What torch.distributed.checkpoint loads into must be there, in its place.
            if is_sharded(parameter) and isinstance(ball, L1InfBall):
                self.infos[name] = _nothing_done(ball, parameter)
        self._hook = optimizer.register_step_post_hook(self._after_step)

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # a compiled step of the optimizer ends here
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
        name = ""
        try:
            balls = {}
            for name, parameter in self._parameters.items():
                balls[name] = at_step(self.balls[name], step, parameter)
            if self._recording.replay(self._parameters, balls, self.infos):
                return
            for name, parameter in self._parameters.items():
                self._project_one(name, parameter.detach(), balls[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error

    def _project_one(self, name: str, parameter: torch.Tensor, ball: Ball) -> None:
        options: dict[str, Any] = {}
        if isinstance(ball, L1InfBall):
            start = self.infos.get(name)
            moved = start is not None and start.mu.device != parameter.device
            options["warm_start"] = None if moved else start  # a start only saves time
        _, self.infos[name] = ball.project(parameter, out=parameter, return_info=True, **options)

    def remove(self) -> None:
        """Stop projecting."""
        self._hook.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        head = f"steps={self.steps}, every={self.every}, warmup_steps={self.warmup_steps}"
        return "\n".join([f"Constraint({head})", *(f"  {name}: {ball}" for name, ball in self.balls.items())])

    def state_dict(self) -> dict[str, Any]:
        """Return the step count and the infos that the next projections start from."""
        starts = {
            name: {"theta": info.theta, "mu": info.mu}
            for name, info in self.infos.items()
            if isinstance(info, ProjectionInfo)
        }
        return {"steps": self.steps, "starts": starts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state.

        Raises
        ------
        ValueError
            For a state that is not that of a constraint, or that is of other parameters.
        """
        expect_keys(state, ("steps", "starts"), "Constraint")
        known = sorted(name for name, ball in self.balls.items() if isinstance(ball, L1InfBall))
        unknown = sorted(set(state["starts"]) - set(known))
        if unknown:
            raise ValueError(f"state: expected starts for parameters with l1,inf balls, {known}, got also {unknown}")
        for name, start in state["starts"].items():
            expect_keys(start, ("theta", "mu"), f"Constraint for {name}")
            shape, groups = tuple(start["mu"].shape), _shape_of_groups(self._parameters[name], self.balls[name])
            if shape != groups:
                raise ValueError(f"state: expected caps of shape {groups} for {name}, got {shape}")
        self.steps = int(state["steps"])
        self.infos = {
            name: ProjectionInfo(
                torch.as_tensor(start["theta"]), start["mu"].to(self._parameters[name].device), None, None, None
            )
            for name, start in state["starts"].items()
        }


def expect_keys(state: Any, keys: Sequence[str], kind: str) -> None:
    """Raise for a state dict that does not hold these keys."""
    if not isinstance(state, Mapping) or not set(keys) <= set(state):
        got = f"the keys {list(state)}" if isinstance(state, Mapping) else type(state).__name__
        raise ValueError(f"state: expected a state_dict() of {kind}, with the keys {list(keys)}, got {got}")


def _shape_of_groups(parameter: torch.Tensor, ball: Ball) -> tuple[int, ...]:
    members, _ = torch_checks.axes(parameter.ndim, ball.axis, None)  # type: ignore[arg-type]
    return tuple(size for axis, size in enumerate(parameter.shape) if axis not in members)


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
        The model whose parameters to constrain.
    optimizer : Optimizer
        The optimizer whose steps to follow.
    balls : mapping
        From patterns to balls. A pattern is a parameter's name, a regular expression that matches whole names, or a
        class of modules and a parameter's name, as ``(nn.Linear, "weight")``. A ball is a value such as
        ``normball.L1InfBall(0.3)``, or a pair of a name of `normball.BALLS` and a radius, as ``("l1inf", 0.3)``. The
        radius may be a number, a schedule (`LinearSchedule`, `CosineSchedule`, `CubicSchedule`, counted in steps of
        the optimizer after the warm-up) or `NGroups`.
    every : int
        Project after every so many steps.
    warmup_steps : int
        Steps to leave alone at the beginning.

    Returns
    -------
    Constraint
        With ``remove()``, ``project()``, ``state_dict()`` and ``load_state_dict()``; also a context manager, which
        removes the constraint at the end of the block.

    Raises
    ------
    TypeError, ValueError
        For a pattern that matches no parameter, and for a ball that does not fit the parameter's shape. The message
        names the parameter.

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
