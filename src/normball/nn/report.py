"""How sparse a network is, layer by layer."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from normball.nn.parametrize import made_plain

__all__ = ["LayerSparsity", "SparsityReport", "sparsity_report"]


@dataclass(frozen=True)
class LayerSparsity:
    """One weight: its input groups (axis 1), its output groups (axis 0), how many of them are zero."""

    name: str
    shape: tuple[int, ...]
    inputs: int
    zero_inputs: int
    outputs: int
    zero_outputs: int
    parameters: int
    zeros: int

    @property
    def saved(self) -> float:
        """Share of the parameters, and so of the floating-point operations, in groups that are zero."""
        left = (self.inputs - self.zero_inputs) * (self.outputs - self.zero_outputs)
        return 1.0 - left / max(self.inputs * self.outputs, 1)


@dataclass(frozen=True)
class SparsityReport:
    """The weights of a network with two axes or more, in order; ``print`` shows a table."""

    layers: tuple[LayerSparsity, ...]

    @property
    def saved(self) -> float:
        """Share of all these parameters that lie in groups that are zero."""
        total = sum(layer.parameters for layer in self.layers)
        return sum(layer.saved * layer.parameters for layer in self.layers) / max(total, 1)

    def __str__(self) -> str:
        head = f"{'weight':32s}{'zero inputs':>16s}{'zero outputs':>16s}{'parameters':>12s}{'zeros':>8s}{'saved':>8s}"
        lines = [head]
        for x in self.layers:
            inputs, outputs = f"{x.zero_inputs} of {x.inputs}", f"{x.zero_outputs} of {x.outputs}"
            zeros = x.zeros / max(x.parameters, 1)
            lines.append(f"{x.name:32s}{inputs:>16s}{outputs:>16s}{x.parameters:12d}{zeros:8.1%}{x.saved:8.1%}")
        return "\n".join([*lines, f"{'all':84s}{self.saved:8.1%}"])


def sparsity_report(model: nn.Module) -> SparsityReport:
    """Count the groups of every weight, and those that are zero.

    Of a parametrized weight, the value that the layer sees counts.

    Examples
    --------
    >>> import torch, normball
    >>> model = torch.nn.Linear(8, 4)
    >>> with torch.no_grad():
    ...     _ = model.weight[:, :6].zero_()
    >>> report = normball.nn.sparsity_report(model)
    >>> report.layers[0].zero_inputs, report.saved
    (6, 0.75)
    """
    if any(map(is_parametrized, model.modules())):
        model = made_plain(copy.deepcopy(model))
    layers = []
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            continue
        used = parameter.detach() != 0
        flat = used.flatten(2).any(2) if used.ndim > 2 else used
        outputs, inputs = flat.shape
        layers.append(
            LayerSparsity(
                name=name,
                shape=tuple(parameter.shape),
                inputs=inputs,
                zero_inputs=inputs - int(flat.any(0).sum()),
                outputs=outputs,
                zero_outputs=outputs - int(flat.any(1).sum()),
                parameters=parameter.numel(),
                zeros=parameter.numel() - int(used.sum()),
            )
        )
    return SparsityReport(tuple(layers))
