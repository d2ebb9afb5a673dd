"""The network without what is zero: input features, neurons and channels are taken out of the layers."""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass
from statistics import median
from types import NoneType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from normball.nn.attention import attentions, split
from normball.nn.channels import CONVOLUTIONS, Channels, Use, trace
from normball.nn.parametrize import made_plain
from normball.nn.shrink import blank, shrunk

__all__ = ["Compacted", "compact", "rebuild"]

_PARTS = ("q", "k", "v", "out")  # of an attention that was taken apart


@dataclass(frozen=True)
class Compacted:
    """A smaller network that computes the same.

    Attributes
    ----------
    model : Module
        The small network. It takes the kept input features alone: see `select`.
    inputs : dict
        For each input of the model, the list of the features kept, along `axes`.
    axes : dict
        For each input of the model, the axis of its features.
    record : dict
        What `rebuild` needs, beside a ``state_dict``; goes through JSON.
    stays : dict
        What is zero but could not be removed: the layer, and why.
    before, after : dict
        ``parameters``, ``flops`` and ``seconds`` of the two networks on the example.
    """

    model: nn.Module
    inputs: dict[str, list[int]]
    axes: dict[str, int]
    record: dict[str, Any]
    stays: dict[str, str]
    before: dict[str, float]
    after: dict[str, float]

    def select(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the inputs with the kept features alone."""
        return _select(inputs, self.inputs, self.axes)

    def __call__(self, *inputs: Tensor) -> Any:
        """Run the small network on inputs with all their features."""
        return self.model(*self.select(*inputs))

    def __str__(self) -> str:
        lines = [f"{'':12s}{'before':>14s}{'after':>14s}{'ratio':>8s}"]
        for name, unit in (("parameters", 1.0), ("flops", 1.0), ("seconds", 1.0)):
            a, b = self.before[name] * unit, self.after[name] * unit
            shape = "14.6f" if name == "seconds" else "14.0f"
            lines.append(f"{name:12s}{a:{shape}}{b:{shape}}{b / a if a else math.nan:8.3f}")
        lines += [f"stays: {name}: {reason}" for name, reason in self.stays.items()]
        return "\n".join(lines)


def compact(model: nn.Module, example_inputs: Any) -> Compacted:
    """Remove zero input features, neurons and channels, through the layers that depend on them.

    A feature goes if nothing reads it, or if it always holds one value, which then moves into the biases of its
    readers. Linear, Conv1d to 3d, BatchNorm, LayerNorm, Embedding, MultiheadAttention, TransformerEncoder, activations,
    pooling, flattening, residual additions and concatenations are understood; what passes through anything else stays.
    The groups of a convolution and the heads of an attention go whole. An attention that loses something becomes a
    module of another kind; it gives no attention weights once a head is gone.

    Of a parametrized weight, as `parametrize` makes, the value that the layer sees counts, which is the projection. In
    the small network it is a plain parameter: the small network is for use, and its weights lie in the ball already.

    Parameters
    ----------
    model : Module
        The network, which is left as it is. BatchNorm is taken as in evaluation. torch.fx must be able to trace it.
    example_inputs : Tensor or tuple
        Inputs to run the network on, for shapes, for the check that both networks agree, and for the times.

    Returns
    -------
    Compacted
        The small network and what is known about it.

    Raises
    ------
    TypeError
        For example inputs that are no tensors, and for a network that torch.fx cannot trace.
    ValueError
        For example inputs that the network does not accept, as those of a wrong shape.

    Examples
    --------
    >>> import torch, normball
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    >>> with torch.no_grad():
    ...     _ = model[0].weight[:, 1:3].zero_()
    ...     _ = model[2].weight[:, 5].zero_()
    >>> small = normball.nn.compact(model, torch.ones(3, 8))
    >>> small.inputs
    {'input': [0, 3, 4, 5, 6, 7]}
    >>> small.model[0]
    Linear(in_features=6, out_features=5, bias=True)
    """
    inputs = _checked(example_inputs)
    model = getattr(model, "_orig_mod", model)  # what torch.compile has wrapped
    before = copy.deepcopy(model).eval()
    wanted = _outputs(before, inputs)
    model = made_plain(copy.deepcopy(model))
    large = copy.deepcopy(model).eval()
    split(large, attentions(large))
    channels = trace(large, inputs)
    gone, stays = _removable(large, channels)

    small = copy.deepcopy(model)
    touched = {name for name, use in channels.uses.items() if not gone.isdisjoint([*use.reads, *use.writes])}
    apart = [name for name in attentions(small) if not touched.isdisjoint(f"{name}.{part}" for part in _PARTS)]
    split(small, apart)
    layers: dict[str, dict[str, Any]] = {}
    for name, use in channels.uses.items():
        if name in touched:
            module = large.get_submodule(name)
            place = next(module.parameters()).device
            reads, writes = (
                torch.tensor([i for i, s in enumerate(side) if s not in gone], device=place)
                for side in (use.reads, use.writes)
            )
            bias = getattr(module, "bias", None) is not None or _moves_into_bias(module, use, gone)
            layers[name] = {"in": len(reads), "out": len(writes), "bias": bias}
            if isinstance(module, CONVOLUTIONS) and module.groups > 1:
                layers[name]["groups"] = module.groups * len(reads) // len(use.reads)
            layer = shrunk(module, layers[name], reads, writes, use.always)
            _replace(small, name, layer.train(small.get_submodule(name).training))
    kept = {n: [i for i, s in enumerate(v.slots) if s not in gone] for n, v in channels.inputs.items()}
    axes = {n: v.axis for n, v in channels.inputs.items()}
    record: dict[str, Any] = {"format": 1, "layers": layers, "attentions": apart, "inputs": kept, "axes": axes}
    fewer = _select(inputs, kept, axes)
    _check(wanted, small, fewer)
    return Compacted(small, kept, axes, record, stays, _cost(before, inputs), _cost(small, fewer))


def rebuild(model: nn.Module, record: dict[str, Any]) -> nn.Module:
    """Give a fresh large network the layers of a compacted one, ready for ``load_state_dict``.

    Parametrized weights of the fresh network become plain parameters, as in the compacted one.

    Examples
    --------
    >>> import json, torch, normball
    >>> make = lambda: torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    >>> model = make()
    >>> with torch.no_grad():
    ...     _ = model[2].weight[:, 5].zero_()
    >>> small = normball.nn.compact(model, torch.ones(3, 8))
    >>> again = normball.nn.rebuild(make(), json.loads(json.dumps(small.record)))
    >>> again.load_state_dict(small.model.state_dict())
    <All keys matched successfully>
    """
    if record.get("format") != 1:
        raise ValueError(f"record: expected one of format 1, got {record.get('format')!r}")
    made_plain(model)
    split(model, record.get("attentions", ()))
    for name, layer in record["layers"].items():
        _replace(model, name, blank(model.get_submodule(name), layer))
    return model


def _checked(example_inputs: Any) -> tuple[Any, ...]:
    """Return the arguments of the model's forward."""
    several = isinstance(example_inputs, (tuple, list))
    inputs = tuple(example_inputs) if several else (example_inputs,)
    for x in inputs:
        if not isinstance(x, (Tensor, bool, int, float, NoneType)):
            kind = f"{type(x).__module__.partition('.')[0]}.{type(x).__name__}".removeprefix("builtins.")
            got = f"a {type(example_inputs).__name__} with {kind}" if several else kind
            remedy = "; use torch.from_numpy" if kind == "numpy.ndarray" else ""
            raise TypeError(
                "example_inputs: expected a tensor, or a tuple of the arguments of the model's forward, got "
                f"{got}{remedy}"
            )
    return inputs


@torch.no_grad()
def _outputs(model: nn.Module, inputs: tuple[Any, ...]) -> Any:
    """Run the model, so that inputs that do not fit are told of before it is traced."""
    try:
        return model(*inputs)
    except Exception as error:
        shapes = ", ".join(str(tuple(x.shape)) if isinstance(x, Tensor) else repr(x) for x in inputs)
        raise ValueError(
            f"example_inputs: expected inputs that {type(model).__name__} accepts, got {shapes}: {error}"
        ) from error


def _removable(model: nn.Module, channels: Channels) -> tuple[set[int], dict[str, str]]:
    """Return the slots to remove, and why others that are zero must stay."""
    unread: dict[int, bool] = {}
    steady: dict[int, bool] = {}
    reasons: dict[int, str] = dict(channels.pinned)
    named: dict[int, str] = {}
    for name, use in channels.uses.items():
        module = model.get_submodule(name)
        silence = _silence(module)
        if silence is None:
            continue
        groups = getattr(module, "groups", 1)
        for slot, silent, value in zip(use.reads, silence[0], use.always.tolist(), strict=True):
            unread[slot] = unread.get(slot, True) and silent
            foldable = silent or isinstance(module, nn.Linear) or (groups == 1 and (value == 0 or not _pads(module)))
            steady[slot] = steady.get(slot, True) and foldable
            if not foldable and groups > 1:
                reasons.setdefault(slot, f"{name} reads it; its groups go only whole")
            elif not foldable:
                reasons.setdefault(slot, f"it is not zero at the border of {name}, which pads with zeros")
        for slot, silent in zip(use.writes, silence[1], strict=True):
            if silent:
                named.setdefault(slot, f"an output of {name}")
        for slot, silent in zip(use.reads, silence[0], strict=True):
            if silent:
                named.setdefault(slot, f"an input of {name}")
    slots = {s for use in channels.uses.values() for s in (*use.reads, *use.writes)}
    slots |= {s for value in channels.inputs.values() for s in value.slots}
    gone = set()
    for slot in slots:
        constant = slot not in channels.varies and steady.get(slot, True)
        free = unread.get(slot, False) and slot not in channels.mixed
        if slot not in channels.pinned and (free or constant):
            gone.add(slot)
        elif slot in channels.mixed:
            reasons.setdefault(slot, f"it takes part in the mean of {channels.mixed[slot]}")
    pairs = [*channels.linked, *((b, a) for a, b in channels.linked)]
    while loose := {a: b for a, b in pairs if a in gone and b not in gone}:
        gone -= set(loose)
        for slot, partner in loose.items():
            reasons.setdefault(slot, reasons.get(partner, f"it can only go with {named.get(partner, 'what is used')}"))
    for slot, _ in channels.follows:
        reasons.setdefault(slot, "queries and keys go only with their whole head")
    _keep_one(channels, gone, reasons)
    gone |= {slot for slot, leader in channels.follows if leader in gone}
    stays: dict[str, str] = {}
    for slot, name in named.items():
        if slot not in gone:
            reason = reasons.get(slot, "it is written and read elsewhere")
            stays.setdefault(name, reason)
    return gone, stays


def _keep_one(channels: Channels, gone: set[int], reasons: dict[int, str]) -> None:
    """Let every layer keep one feature at least, with all that can only go with it."""
    near: dict[int, set[int]] = {}
    for a, b in channels.linked:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    for use in channels.uses.values():
        for side in (use.reads, use.writes):
            if side and gone.issuperset(side):
                kept = [side[0]]
                while kept:
                    slot = kept.pop()
                    gone.discard(slot)
                    reasons.setdefault(slot, "a layer keeps one feature at least")
                    kept += [other for other in near.get(slot, ()) if other in gone]


def _silence(module: nn.Module) -> tuple[list[bool], list[bool]] | None:
    """Which inputs a layer never reads, and which outputs it never writes; None for layers without such weights."""
    if isinstance(module, nn.Embedding):
        return [], (module.weight == 0).all(0).tolist()
    groups = getattr(module, "groups", 1)
    if not isinstance(module, (nn.Linear, *CONVOLUTIONS)) or groups == getattr(module, "in_channels", 0) == len(
        module.weight
    ):
        return None
    used = (module.weight.detach()[..., None].flatten(2) != 0).any(2)
    reads = used.view(groups, -1, used.shape[1]).any(1).flatten()
    return (~reads).tolist(), (~used.any(1)).tolist()


def _pads(module: Any) -> bool:
    padding = module.padding
    return padding == "same" or (padding != "valid" and any(padding))


def _moves_into_bias(module: nn.Module, use: Use, gone: set[int]) -> bool:
    """Whether a layer without a bias needs one for what it read of features that are gone."""
    if not isinstance(module, (nn.Linear, *CONVOLUTIONS)) or getattr(module, "groups", 1) > 1:
        return False
    return any(s in gone and v != 0 and not math.isnan(v) for s, v in zip(use.reads, use.always.tolist(), strict=True))


def _replace(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def _select(inputs: tuple[Any, ...], kept: dict[str, list[int]], axes: dict[str, int]) -> tuple[Any, ...]:
    chosen = list(inputs)
    for i, (name, features) in enumerate(kept.items()):
        x = inputs[i]
        if len(features) < x.shape[axes[name]]:
            chosen[i] = x.index_select(axes[name], torch.tensor(features, device=x.device))
    return tuple(chosen)


@torch.no_grad()
def _check(wanted: Any, small: nn.Module, fewer: tuple[Any, ...]) -> None:
    training = {module: module.training for module in small.modules()}
    got = small.eval()(*fewer)
    for module, was in training.items():
        module.training = was
    for a, b in zip(_tensors(wanted), _tensors(got), strict=True):
        scale = float(a.abs().max()) if a.numel() else 0.0
        if not torch.allclose(b, a, rtol=1e-3, atol=1e-4 * scale + 1e-12):
            raise RuntimeError("model: expected the compacted one to agree with it, got other outputs")


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return [tensor for item in items for tensor in _tensors(item)]


@torch.no_grad()
def _cost(model: nn.Module, inputs: tuple[Any, ...]) -> dict[str, float]:
    training = {module: module.training for module in model.modules()}
    model.eval()
    with FlopCounterMode(display=False) as counter:
        model(*inputs)
    times = []
    for _ in range(11):
        start = time.perf_counter()
        model(*inputs)
        if any(isinstance(x, Tensor) and x.is_cuda for x in inputs):
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    for module, was in training.items():
        module.training = was
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": parameters, "flops": counter.get_total_flops(), "seconds": median(times)}
