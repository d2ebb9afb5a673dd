"""Small modules in the place of large ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from normball.nn.channels import CONVOLUTIONS, NORMS

__all__ = ["PartialLayerNorm", "blank", "shrunk"]


class PartialLayerNorm(nn.Module):
    """A LayerNorm over features of which some, that always hold one value, are left out of the tensor.

    They still count in the mean and in the variance, through their number, their sum and the sum of their squares.
    """

    removed_sum: Tensor
    removed_squares: Tensor

    def __init__(self, kept: int, removed: int, eps: float, affine: bool, bias: bool) -> None:
        super().__init__()
        self.removed, self.eps = removed, eps
        self.weight = nn.Parameter(torch.ones(kept)) if affine else None
        self.bias = nn.Parameter(torch.zeros(kept)) if affine and bias else None
        self.register_buffer("removed_sum", torch.zeros(()))
        self.register_buffer("removed_squares", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis."""
        n = x.shape[-1] + self.removed
        mean = (x.sum(-1, keepdim=True) + self.removed_sum) / n
        off = (x - mean).square().sum(-1, keepdim=True)
        off = off + self.removed_squares - 2 * mean * self.removed_sum + self.removed * mean.square()
        x = (x - mean) * (off / n + self.eps).rsqrt()
        if self.weight is not None:
            x = x * self.weight
        return x if self.bias is None else x + self.bias


def blank(module: nn.Module, record: dict[str, Any]) -> nn.Module:
    """Return a module of the kind of `module` and of the sizes recorded, on its device, with nothing learnt."""
    example = next(iter(module.parameters()), None)
    place: dict[str, Any] = {} if example is None else {"device": example.device, "dtype": example.dtype}
    kind: Any = type(module)
    small: nn.Module
    if isinstance(module, nn.Linear):
        small = nn.Linear(record["in"], record["out"], bias=record["bias"], **place)
    elif isinstance(module, CONVOLUTIONS):
        small = kind(
            record["in"], record["out"], module.kernel_size, module.stride, module.padding, module.dilation,
            groups=record.get("groups", 1), bias=record["bias"], padding_mode=module.padding_mode, **place,
        )  # fmt: skip
    elif isinstance(module, nn.Embedding):
        small = nn.Embedding(
            module.num_embeddings, record["out"], module.padding_idx, scale_grad_by_freq=module.scale_grad_by_freq,
            sparse=module.sparse, **place,
        )  # fmt: skip
    elif isinstance(module, NORMS):
        small = kind(record["out"], module.eps, module.momentum, module.affine, module.track_running_stats, **place)
    elif isinstance(module, nn.LayerNorm):
        removed = module.normalized_shape[0] - record["out"]
        affine, bias = module.elementwise_affine, module.bias is not None
        small = PartialLayerNorm(record["out"], removed, module.eps, affine, bias).to(**place)
    else:
        raise TypeError(f"record: expected a layer that can be made smaller, got {type(module).__name__}")
    return small.train(module.training)


@torch.no_grad()
def shrunk(module: nn.Module, record: dict[str, Any], reads: Tensor, writes: Tensor, always: Tensor) -> nn.Module:
    """Return `module` with the features `reads` and `writes` alone.

    What it read of the others, which are always the same, goes into its bias.
    """
    small = blank(module, record)
    state = module.state_dict()
    if isinstance(module, (nn.Linear, *CONVOLUTIONS)):
        weight = state["weight"]
        grouped = isinstance(module, CONVOLUTIONS) and module.groups > 1
        if record["bias"]:
            bias = state.get("bias", weight.new_zeros(weight.shape[0]))
            if not grouped:
                bias = bias + read_of_the_rest(weight, reads, always)
            state["bias"] = bias[writes]
        state["weight"] = weight[writes] if grouped else weight[writes][:, reads]
    elif isinstance(module, nn.Embedding):
        state = {"weight": state["weight"][:, writes]}
    elif isinstance(module, nn.LayerNorm):
        gone = torch.ones(len(always), dtype=torch.bool)
        gone[reads.cpu()] = False
        state = {name: value[writes] for name, value in state.items()}
        state["removed_sum"] = always[gone].sum()
        state["removed_squares"] = always[gone].square().sum()
    else:
        state = {name: value[writes] if value.ndim else value for name, value in state.items()}
    small.load_state_dict(state)
    return small


def read_of_the_rest(weight: Tensor, reads: Tensor, always: Tensor) -> Tensor:
    """Return what the features that are not among `reads` add to each output of a layer."""
    columns = weight.double().flatten(2).sum(2) if weight.ndim > 2 else weight.double()
    used = (columns != 0).any(0)
    used[reads] = False
    # A feature that is not always the same can only be left out where nothing reads it.
    value = torch.where(used, always.to(weight.device), 0.0)
    return (columns @ value).to(weight.dtype)
