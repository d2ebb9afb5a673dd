"""Which channels of a network are one and the same, who writes and who reads them, and which always hold one value.

The model is traced by torch.fx. The features of each tensor, along one axis, are slots; an addition makes slots of its
operands one, a concatenation lines them up, flattening repeats them. What this module does not know pins its slots,
with the reason.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.fx.passes.shape_prop import ShapeProp

from normball.nn.attention import Heads

__all__ = ["CONVOLUTIONS", "NORMS", "Channels", "Use", "trace"]

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_ELEMENTWISE_MODULES = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Sigmoid, nn.Softplus,
    nn.Hardswish, nn.Hardsigmoid, nn.Identity,
)  # fmt: skip
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
_ELEMENTWISE: set[Any] = {
    F.relu, F.relu6, F.leaky_relu, F.elu, F.gelu, F.silu, F.mish, F.softplus, F.hardswish, F.hardsigmoid, F.tanh,
    F.sigmoid, torch.relu, torch.tanh, torch.sigmoid, torch.abs, "relu", "relu_", "tanh", "sigmoid", "abs",
    "contiguous",
}  # fmt: skip
_MAX_POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d)
_MEAN_POOLS = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
_GLOBAL_POOLS = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)
_POOLS: set[Any] = {F.max_pool1d, F.max_pool2d, F.max_pool3d, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d}
_ADDITIONS: set[Any] = {operator.add, operator.iadd, torch.add, "add", "add_"}
_PRODUCTS: set[Any] = {operator.mul, operator.imul, torch.mul, "mul", "mul_"}
_ABOUT_SHAPES: set[Any] = {"size", "dim", getattr, operator.getitem, operator.floordiv}


@dataclass
class Value:
    """The features of one tensor: along `axis`, the slot of each, and what it always is, NaN where it varies."""

    axis: int
    slots: list[int]
    always: Tensor


@dataclass
class Use:
    """How one module uses slots: those it reads, with what they always are, and those it writes."""

    reads: list[int]
    writes: list[int]
    always: Tensor


@dataclass
class Channels:
    """What the walk over a model found."""

    uses: dict[str, Use] = field(default_factory=dict)
    inputs: dict[str, Value] = field(default_factory=dict)
    varies: set[int] = field(default_factory=set)  # slots that some tensor holds with more than one value
    mixed: dict[int, str] = field(default_factory=dict)  # slots that a LayerNorm reads
    linked: list[tuple[int, int]] = field(default_factory=list)  # slots that can only go together
    follows: list[tuple[int, int]] = field(default_factory=list)  # slots that go if the other one goes
    pinned: dict[int, str] = field(default_factory=dict)  # slots that must stay, and why
    _parent: list[int] = field(default_factory=list)

    def new(self, n: int) -> list[int]:
        """Return fresh slots."""
        first = len(self._parent)
        self._parent += range(first, first + n)
        return list(range(first, first + n))

    def root(self, slot: int) -> int:
        """Return the representative of the slots that are one with this."""
        while self._parent[slot] != slot:
            self._parent[slot] = self._parent[self._parent[slot]]
            slot = self._parent[slot]
        return slot

    def join(self, a: list[int], b: list[int]) -> None:
        """Make slots one, pair by pair."""
        for x, y in zip(a, b, strict=True):
            self._parent[self.root(x)] = self.root(y)

    def settle(self) -> None:
        """Tell everything by representatives, once the walk is over."""
        for use in self.uses.values():
            use.reads = [self.root(s) for s in use.reads]
            use.writes = [self.root(s) for s in use.writes]
        for value in self.inputs.values():
            value.slots = [self.root(s) for s in value.slots]
        self.varies = {self.root(s) for s in self.varies}
        self.mixed = {self.root(s): name for s, name in self.mixed.items()}
        self.pinned = {self.root(s): reason for s, reason in self.pinned.items()}
        self.linked = [(self.root(a), self.root(b)) for a, b in self.linked]
        self.follows = [(self.root(a), self.root(b)) for a, b in self.follows]


def trace(model: nn.Module, example_inputs: tuple[Any, ...]) -> Channels:
    """Walk over the model."""
    try:
        graph = fx.GraphModule(model, _Tracer().trace(model))
    except Exception as error:
        raise TypeError(f"model: expected one that torch.fx can trace, got {type(model).__name__}: {error}") from error
    with torch.no_grad():
        ShapeProp(graph).propagate(*example_inputs)
    walk = _Walk(graph)
    for node in graph.graph.nodes:
        walk.visit(node)
    walk.found.settle()
    return walk.found


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, Heads) or super().is_leaf_module(m, module_qualified_name)


class _Walk:
    def __init__(self, graph: fx.GraphModule) -> None:
        self.graph = graph
        self.found = Channels()
        self.values: dict[fx.Node, Value | None] = {}

    def visit(self, node: fx.Node) -> None:
        value: Value | None = None
        if node.op == "placeholder":
            value = self._input(node)
        elif node.op == "call_module":
            value = self._module(node, self.graph.get_submodule(str(node.target)))
        elif node.op in ("call_function", "call_method"):
            value = self._function(node)
        elif node.op == "output":
            self._pin(node, "it is an output of the model")
        self.values[node] = value
        if value is not None:
            self._note(value)

    def _note(self, value: Value) -> None:
        self.found.varies |= {s for s, c in zip(value.slots, value.always.tolist(), strict=True) if math.isnan(c)}

    # Helpers

    @staticmethod
    def _shape(node: Any) -> tuple[int, ...]:
        meta = node.meta.get("tensor_meta") if isinstance(node, fx.Node) else None
        return tuple(getattr(meta, "shape", ()))

    def _fresh(self, n: int, axis: int, reason: str | None = None) -> Value:
        slots = self.found.new(n)
        if reason is not None:
            self.found.pinned.update(dict.fromkeys(slots, reason))
        return Value(axis, slots, torch.full((n,), math.nan, dtype=torch.float64))

    def _of(self, node: Any, axis: int) -> Value:
        """Return the features of a tensor along an axis, pinned if they are not known along it."""
        value = self.values.get(node)
        shape = self._shape(node)
        if value is not None and value.axis == axis % len(shape):
            return value
        self._pin_value(value, f"it is read along another axis by a later layer, at {node}")
        return self._fresh(shape[axis], axis % len(shape), f"{node} is not understood")

    def _pin(self, node: fx.Node, reason: str) -> None:
        for source in node.all_input_nodes:
            self._pin_value(self.values.get(source), reason)

    def _pin_value(self, value: Value | None, reason: str) -> None:
        if value is not None:
            for slot in value.slots:
                self.found.pinned.setdefault(slot, reason)

    def _opaque(self, node: fx.Node) -> None:
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
        self._pin(node, f"it passes through {name}, which is not understood")

    def _input(self, node: fx.Node) -> Value | None:
        shape = self._shape(node)
        if len(shape) < 2:
            return None
        axis = 1
        if len(shape) == 3:  # (batch, channel, place) or (batch, place, feature): the first reader tells
            readers = [self.graph.get_submodule(str(u.target)) for u in node.users if u.op == "call_module"]
            axis = 1 if any(isinstance(r, (*CONVOLUTIONS, *NORMS)) for r in readers) else 2
        self.found.inputs[str(node.target)] = value = self._fresh(shape[axis], axis)
        return value

    # Modules

    def _module(self, node: fx.Node, module: nn.Module) -> Value | None:
        name, source = str(node.target), node.args[0] if node.args else None
        if isinstance(module, nn.Linear):
            return self._layer(name, module, self._of(source, -1), len(self._shape(source)) - 1)
        if isinstance(module, CONVOLUTIONS) and module.groups == 1:
            return self._layer(name, module, self._of(source, 1), 1)
        if isinstance(module, CONVOLUTIONS) and module.groups == module.in_channels == module.out_channels:
            value = self._of(source, 1)
            quiet = _silent(module.weight, 0)
            bias = torch.zeros(len(value.slots)) if module.bias is None else module.bias.detach().cpu()
            always = torch.where(quiet | (value.always == 0), bias.double(), math.nan)
            return self._same(name, Value(1, value.slots, always), value)
        if isinstance(module, CONVOLUTIONS):
            return self._grouped(name, module, self._of(source, 1))
        if isinstance(module, nn.Embedding):
            return self._embedding(node, name, module)
        if isinstance(module, Heads):
            return self._attention(node, name, module)
        if isinstance(module, nn.TransformerEncoderLayer) and isinstance(module.self_attn, Heads):
            return self._encoder_layer(name, module, self._of(source, -1))
        if isinstance(module, nn.TransformerEncoder) and self._plain(module):
            value = self._of(source, -1)
            for number, each in enumerate(module.layers):
                value = self._encoder_layer(f"{name}.layers.{number}", each, value)
            return value if module.norm is None else self._layer_norm(f"{name}.norm", module.norm, value)  # type: ignore[arg-type]
        if isinstance(module, NORMS) and module.running_mean is not None and module.running_var is not None:
            value = self._of(source, 1)
            scale = (module.running_var + module.eps).rsqrt().detach().cpu().double()
            weight = 1.0 if module.weight is None else module.weight.detach().cpu().double()
            bias = 0.0 if module.bias is None else module.bias.detach().cpu().double()
            always = (value.always - module.running_mean.detach().cpu().double()) * scale * weight + bias
            return self._same(name, Value(1, value.slots, always), value)
        if isinstance(module, nn.LayerNorm) and len(module.normalized_shape) == 1:
            return self._layer_norm(name, module, self._of(source, -1))
        known = self.values.get(source) if isinstance(source, fx.Node) else None
        if isinstance(module, _ELEMENTWISE_MODULES) and known is not None:
            return Value(known.axis, known.slots, module(known.always.clone()))
        if isinstance(module, _DROPOUTS):
            return known
        if isinstance(module, (*_MAX_POOLS, *_GLOBAL_POOLS)):
            return self._of(source, 1)
        if isinstance(module, _MEAN_POOLS):
            value = self._of(source, 1)
            padded = any(_all(module.padding)) and module.count_include_pad
            always = torch.where(value.always == 0, 0.0, math.nan) if padded else value.always
            return Value(1, value.slots, always)
        if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
            return self._flattened(source)
        self._opaque(node)
        return None

    def _layer(self, name: str, module: Any, value: Value, axis: int) -> Value:
        n = module.weight.shape[0]
        bias = torch.zeros(n) if module.bias is None else module.bias.detach().cpu()
        always = torch.where(_silent(module.weight, 0), bias.double(), math.nan)
        if (known := self.found.uses.get(name)) is not None:  # called a second time: the same slots
            self.found.join(known.reads, value.slots)
            known.always = torch.where(known.always == value.always, value.always, math.nan)
            return Value(axis, known.writes, always)
        written = Value(axis, self.found.new(n), always)
        self.found.uses[name] = Use(value.slots, written.slots, value.always)
        return written

    def _same(self, name: str, written: Value, read: Value) -> Value:
        """Note a module with numbers for each channel, which stay what they are."""
        if (known := self.found.uses.get(name)) is not None:
            self.found.join(known.reads, read.slots)
        else:
            self.found.uses[name] = Use(read.slots, written.slots, read.always)
        return written

    def _layer_norm(self, name: str, module: nn.LayerNorm, value: Value) -> Value:
        n = len(value.slots)
        bias = torch.zeros(n) if module.bias is None else module.bias.detach().cpu()
        quiet = torch.zeros(n, dtype=torch.bool) if module.weight is None else (module.weight == 0).cpu()
        always = torch.where(quiet, bias.double(), math.nan)
        if name in self.found.uses:
            self._pin_value(value, f"{name} is used twice")
        written = Value(value.axis, self.found.new(n), always)
        self.found.uses[name] = Use(value.slots, written.slots, value.always)
        self.found.mixed.update(dict.fromkeys(value.slots, name))
        self.found.linked += zip(value.slots, written.slots, strict=True)
        return written

    def _grouped(self, name: str, module: Any, value: Value) -> Value:
        """Walk over a convolution whose groups of channels have nothing to do with each other: a group goes whole."""
        again = name in self.found.uses
        written = self._layer(name, module, value, 1)
        reads, writes = len(value.slots) // module.groups, len(written.slots) // module.groups
        for group in range(module.groups):
            mine = value.slots[group * reads : (group + 1) * reads]
            mine = [*mine, *written.slots[group * writes : (group + 1) * writes]]
            self.found.linked += pairwise(mine)
        if again:
            self._pin_value(value, f"{name} is used twice")
        return written

    def _embedding(self, node: fx.Node, name: str, module: nn.Embedding) -> Value:
        self._pin(node, f"it is an index into {name}")
        n, axis = module.embedding_dim, len(self._shape(node)) - 1
        if module.max_norm is not None:
            return self._fresh(n, axis, f"{name} shortens its rows to max_norm")
        table = module.weight.detach().cpu().double()
        always = torch.where((table == table[:1]).all(0), table[0], math.nan)
        if (known := self.found.uses.get(name)) is None:
            known = self.found.uses[name] = Use([], self.found.new(n), torch.zeros(0, dtype=torch.float64))
        return Value(axis, known.writes, always)

    def _attention(self, node: fx.Node, name: str, module: Heads) -> Value | None:
        named = dict(zip(("query", "key", "value"), node.args, strict=False)) | dict(node.kwargs)
        told = [user for user in node.users if user.target is not operator.getitem or user.args[1] != 0]
        if any(user.users or user.target is not operator.getitem for user in told):
            self._pin(node, f"the attention weights of {name} are read")
            return None
        return self._heads(name, module, [self._of(named[part], -1) for part in ("query", "key", "value")])

    def _heads(self, name: str, module: Heads, values: list[Value]) -> Value:
        axis = values[0].axis
        if f"{name}.q" in self.found.uses:
            for value in values:
                self._pin_value(value, f"{name} is used twice")
            return self._fresh(module.out.out_features, axis, f"{name} is used twice")
        q, k, v = (
            self._layer(f"{name}.{part}", getattr(module, part), value, axis)
            for part, value in zip("qkv", values, strict=True)
        )
        # What a head says is a mean of its values: the same channels, and constant where these are. It goes whole; its
        # queries and keys go with it, and by themselves never.
        for first in range(0, len(v.slots), module.width):
            self.found.linked += pairwise(v.slots[first : first + module.width])
        self._note(v)
        self.found.varies |= {*q.slots, *k.slots}
        self.found.follows += [*zip(q.slots, v.slots, strict=True), *zip(k.slots, v.slots, strict=True)]
        return self._layer(f"{name}.out", module.out, v, axis)

    @staticmethod
    def _plain(module: nn.TransformerEncoder) -> bool:
        """Whether the layers and the norm of an encoder are those that torch makes."""
        fits = all(isinstance(e, nn.TransformerEncoderLayer) and isinstance(e.self_attn, Heads) for e in module.layers)
        return fits and (module.norm is None or isinstance(module.norm, nn.LayerNorm))

    def _encoder_layer(self, name: str, module: nn.TransformerEncoderLayer, x: Value) -> Value:
        def plus(y: Value) -> Value:
            self.found.join(x.slots, y.slots)
            total = Value(x.axis, x.slots, x.always + y.always)
            self._note(total)
            return total

        def attend(y: Value) -> Value:
            return self._heads(f"{name}.self_attn", module.self_attn, [y, y, y])  # type: ignore[arg-type]

        def feed(y: Value) -> Value:
            z = self._layer(f"{name}.linear1", module.linear1, y, y.axis)
            self._note(z)
            act = module.activation
            if act in _ELEMENTWISE or isinstance(act, _ELEMENTWISE_MODULES):
                z = Value(z.axis, z.slots, act(z.always.clone()))
            else:
                self._pin_value(z, f"it passes through the activation of {name}, which is not understood")
            self._note(z)
            return self._layer(f"{name}.linear2", module.linear2, z, y.axis)

        def norm(which: str, y: Value) -> Value:
            self._note(y)
            return self._layer_norm(f"{name}.{which}", getattr(module, which), y)

        if module.norm_first:
            x = plus(attend(norm("norm1", x)))
            return plus(feed(norm("norm2", x)))
        x = norm("norm1", plus(attend(x)))
        return norm("norm2", plus(feed(x)))

    def _flattened(self, source: Any) -> Value:
        value = self._of(source, 1)
        times = math.prod(self._shape(source)[2:])
        slots = [slot for slot in value.slots for _ in range(times)]
        return Value(1, slots, value.always.repeat_interleave(times))

    # Functions and methods

    def _function(self, node: fx.Node) -> Value | None:
        target, args = node.target, node.args
        source = args[0] if args else None
        value = self.values.get(source) if isinstance(source, fx.Node) else None
        if target is operator.getitem and value is not None and self._is_attention(source):
            return value if args[1] == 0 else None
        if target in _ABOUT_SHAPES and not (target is operator.getitem and value is not None):
            return None
        if target in _ELEMENTWISE and value is not None:
            return Value(value.axis, value.slots, _applied(target, value.always, args[1:], dict(node.kwargs)))
        if target in (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d):
            return value
        if target in _ADDITIONS or target in _PRODUCTS:
            return self._combined(node, operator.add if target in _ADDITIONS else operator.mul)
        if target in (torch.cat, torch.concat):
            return self._concatenated(node)
        if target in _POOLS and value is not None:
            return self._of(source, 1)
        if self._flattens(node):
            return self._flattened(source)
        if target in (torch.mean, "mean") and value is not None and value.axis == 1:
            dims = _all(args[1] if len(args) > 1 else node.kwargs.get("dim", 1))
            if all(d % len(self._shape(source)) > 1 for d in dims):
                return value
        self._opaque(node)
        return None

    def _is_attention(self, node: Any) -> bool:
        return node.op == "call_module" and isinstance(self.graph.get_submodule(str(node.target)), Heads)

    def _flattens(self, node: fx.Node) -> bool:
        rest = node.args[1:]
        if node.target in (torch.flatten, "flatten"):
            return rest in ((1,), (1, -1)) or (not rest and bool(node.kwargs.get("start_dim") == 1))
        if node.target in ("view", "reshape"):
            whole = len(rest) == 2 and isinstance(rest[1], int) and rest[1] == -1
            return whole and self._shape(node)[0] == self._shape(node.args[0])[0]
        return False

    def _combined(self, node: fx.Node, combine: Callable[[Any, Any], Any]) -> Value | None:
        values = [self.values.get(a) if isinstance(a, fx.Node) else None for a in node.args[:2]]
        numbers = [a for a in node.args[:2] if isinstance(a, (int, float))]
        known = [v for v in values if v is not None]
        if len(known) == 1 and len(numbers) == 1:
            return Value(known[0].axis, known[0].slots, combine(known[0].always, numbers[0]))
        shapes = [self._shape(a) for a in node.args[:2]]
        if len(known) == 2 and shapes[0] == shapes[1] and known[0].axis == known[1].axis:
            self.found.join(known[0].slots, known[1].slots)
            return Value(known[0].axis, known[0].slots, combine(known[0].always, known[1].always))
        self._opaque(node)
        return None

    def _concatenated(self, node: fx.Node) -> Value | None:
        parts = [self.values.get(part) for part in node.args[0]]  # type: ignore[union-attr, arg-type]
        axis = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        known = [part for part in parts if part is not None]
        if len(known) == len(parts) and all(part.axis == axis % len(self._shape(node)) for part in known):  # type: ignore[operator]
            slots = [slot for part in known for slot in part.slots]
            return Value(known[0].axis, slots, torch.cat([part.always for part in known]))
        self._opaque(node)
        return None


def _silent(weight: Tensor, axis: int) -> Tensor:
    """Which groups of a weight along an axis are zero."""
    rest = [a for a in range(weight.ndim) if a != axis]
    return ((weight != 0).sum(rest) == 0).detach().cpu()


def _applied(target: Any, always: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    options.pop("inplace", None)
    always = always.clone()
    function = getattr(Tensor, target) if isinstance(target, str) else target
    applied: Tensor = function(always, *args, **options)
    return applied


def _all(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
