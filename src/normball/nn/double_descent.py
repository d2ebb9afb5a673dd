"""Masks that hold under any optimizer, and the double descent built on them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from normball.nn.constrain import expect_keys
from normball.nn.patterns import Pattern, matched
from normball.nn.radii import at_step

__all__ = ["DoubleDescent"]


class Frozen:
    """Entries of parameters that stay zero, exactly, whatever optimizer steps.

    Their gradients are cleared when they arrive, so that methods which look at the gradient more than once in a step
    never see them; and the entries themselves after each step, because momentum and weight decay move parameters
    without a gradient.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], masks: Mapping[str, Tensor]) -> None:
        self._held = [(parameters[name], ~mask) for name, mask in masks.items()]
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._clear_grad(zero))  # type: ignore[no-untyped-call]
            for parameter, zero in self._held
        ]
        self._hooks.append(register_optimizer_step_post_hook(self._after_step))
        self._clear()

    @staticmethod
    def _clear_grad(zero: Tensor) -> Any:
        def clear(parameter: Tensor) -> None:
            if parameter.grad is not None:
                parameter.grad.masked_fill_(zero.to(parameter.device), 0.0)

        return clear

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if any(id(parameter) in stepped for parameter, _ in self._held):
            self._clear()

    @torch.no_grad()
    def _clear(self) -> None:
        for parameter, zero in self._held:
            parameter.masked_fill_(zero.to(parameter.device), 0.0)  # the model may have been moved

    def remove(self) -> None:
        """Let them go."""
        for hook in self._hooks:
            hook.remove()


class DoubleDescent:
    """Train, project, rewind what survives to its initial values, and train again with the zeros frozen.

    Parameters
    ----------
    model : Module
        The model with its initial weights, which are remembered.
    balls : mapping
        From patterns to balls, as in `constrain`.

    Raises
    ------
    TypeError, ValueError
        For a pattern that matches no parameter, and for a ball that does not fit the parameter's shape. The message
        names the parameter.

    Notes
    -----
    The variant of Perez, Condat and Barlaud, *Near-linear time projection onto the l1,inf ball; application to sparse
    neural networks* (2023), rewinds; ``project(rewind=False)`` goes on from the projected weights instead. Give the
    second descent an optimizer of its own, whose momenta start at zero.

    Examples
    --------
    >>> import torch, normball
    >>> model = torch.nn.Linear(20, 5)
    >>> descent = normball.nn.DoubleDescent(model, {"weight": normball.L1InfBall(0.3)})
    >>> # ... the first descent ...
    >>> masks = descent.project()
    >>> # ... the second descent, with any optimizer ...
    >>> optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    >>> model(torch.ones(4, 20)).square().sum().backward()
    >>> optimizer.step()
    >>> bool((model.weight[~masks["weight"]] == 0).all())
    True
    """

    def __init__(self, model: nn.Module, balls: Mapping[Pattern, Any]) -> None:
        self.balls = matched(model, balls)
        self.masks: dict[str, Tensor] = {}
        self._model = model
        self._frozen: Frozen | None = None
        self._initial = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def project(self, *, rewind: bool = True) -> dict[str, Tensor]:
        """End the first descent: project, rewind, freeze the zeros. Returns where each parameter is not zero.

        A radius that is a schedule, or `NGroups` of one, stands at its end. Rewinding puts back every parameter and
        buffer of the model, those without a ball too.
        """
        self.release()
        parameters = dict(self._model.named_parameters())
        for name, ball in self.balls.items():
            parameter = parameters[name]
            try:
                at_step(ball, math.inf, parameter).project(parameter, out=parameter)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
            self.masks[name] = parameter != 0
        if rewind:
            self._model.load_state_dict(self._initial)
        self._freeze()
        return self.masks

    def release(self) -> None:
        """Let the zeros go."""
        if self._frozen is not None:
            self._frozen.remove()
            self._frozen = None

    def _freeze(self) -> None:
        self.release()
        self._frozen = Frozen(dict(self._model.named_parameters()), self.masks)

    def state_dict(self) -> dict[str, Any]:
        """Return the initial weights, and the masks if there are any."""
        return {"initial": dict(self._initial), "masks": dict(self.masks)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state, with the zeros frozen if they were."""
        expect_keys(state, ("initial", "masks"), "DoubleDescent")
        unknown = sorted(set(state["masks"]) - set(self.balls))
        if unknown:
            raise ValueError(f"state: expected masks of {sorted(self.balls)}, got also {unknown}")
        self._initial = {name: value.clone() for name, value in state["initial"].items()}
        device = {name: parameter.device for name, parameter in self._model.named_parameters()}
        self.masks = {name: mask.to(device[name]) for name, mask in state["masks"].items()}
        if self.masks:
            self._freeze()
        else:
            self.release()
