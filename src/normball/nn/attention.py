"""Attention that can lose heads: nn.MultiheadAttention taken apart into four linear layers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["Heads", "attentions", "split"]


class Heads(nn.Module):
    """What `nn.MultiheadAttention` computes, with any number of heads and of input features.

    It takes the same arguments. Once a head is gone it gives no attention weights, for their mean would miss those of
    that head: the second result is None.
    """

    in_proj_bias = None  # so that the transformer layers of torch take no shortcut past `forward`
    _qkv_same_embed_dim = False

    def __init__(self, attention: nn.MultiheadAttention) -> None:
        super().__init__()
        self.width, self.dropout, self.batch_first = attention.head_dim, attention.dropout, attention.batch_first
        self.heads = attention.num_heads  # at first
        inner = attention.num_heads * attention.head_dim
        bias = attention.in_proj_bias is not None
        place: dict[str, Any] = {"device": attention.out_proj.weight.device, "dtype": attention.out_proj.weight.dtype}
        self.q = nn.Linear(attention.embed_dim, inner, bias=bias, **place)
        self.k = nn.Linear(attention.kdim, inner, bias=bias, **place)
        self.v = nn.Linear(attention.vdim, inner, bias=bias, **place)
        self.out = nn.Linear(inner, attention.embed_dim, bias=attention.out_proj.bias is not None, **place)
        with torch.no_grad():
            weights: Any = (attention.q_proj_weight, attention.k_proj_weight, attention.v_proj_weight)
            if attention.in_proj_weight is not None:
                weights = attention.in_proj_weight.chunk(3)
            for layer, weight in zip((self.q, self.k, self.v), weights, strict=True):
                layer.weight.copy_(weight)
            if attention.in_proj_bias is not None:
                for layer, part in zip((self.q, self.k, self.v), attention.in_proj_bias.chunk(3), strict=True):
                    layer.bias.copy_(part)
            self.out.load_state_dict(attention.out_proj.state_dict())
        self.train(attention.training)

    @property
    def num_heads(self) -> int:
        """The heads that are there."""
        return int(self.q.out_features // self.width)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """See `nn.MultiheadAttention`; a mask that differs from head to head is refused."""
        turned = query.dim() == 3 and not self.batch_first
        if turned:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)
            for layer, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        mask = None if attn_mask is None else _added(attn_mask, q.dtype)
        if mask is not None and mask.dim() != 2:
            raise ValueError(f"attn_mask: expected one for all heads, of two axes, got shape {tuple(mask.shape)}")
        if key_padding_mask is not None:
            ends = _added(key_padding_mask, q.dtype)[..., None, None, :]
            mask = ends if mask is None else mask + ends
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.dropout if self.training else 0.0)
        y = self.out(y.transpose(-3, -2).flatten(-2))
        weights = None
        if need_weights and self.heads == self.num_heads:
            scores = q @ k.transpose(-2, -1) * self.width**-0.5
            weights = (scores if mask is None else scores + mask).softmax(-1)
            weights = weights.mean(-3) if average_attn_weights else weights
        return y.transpose(0, 1) if turned else y, weights


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a mask as numbers to be added; in torch's attention True means: do not look."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -torch.inf)


def attentions(model: nn.Module) -> list[str]:
    """Return the names of the attentions that can be taken apart."""
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.MultiheadAttention) and module.bias_k is None and not module.add_zero_attn
    ]


def split(model: nn.Module, names: Iterable[str]) -> None:
    """Take attentions apart, in place."""
    for name in names:
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, Heads(model.get_submodule(name)))  # type: ignore[arg-type]
        for outer, module in model.named_modules():
            if isinstance(module, nn.TransformerEncoder) and name.startswith(f"{outer}." if outer else ""):
                module.use_nested_tensor = False  # a shortcut that asks for the weights of the attention it knows
