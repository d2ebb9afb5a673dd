"""Small networks that compute the same."""

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

import normball
from normball.nn import LinearSchedule, NGroups, compact, parametrize, rebuild


def silence(weight, *, rows=(), columns=()):
    with torch.no_grad():
        for row in rows:
            weight[row] = 0
        for column in columns:
            weight[:, column] = 0


def settle(model, *inputs):
    """Give the running statistics of BatchNorm some values."""
    model.train()
    for _ in range(3):
        model(*inputs)
    return model.eval()


def agree(model, result, *inputs):
    with torch.no_grad():
        torch.testing.assert_close(result(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)


def restored(make, result):
    text = json.dumps(result.record)
    again = rebuild(make(), json.loads(text))
    again.load_state_dict(result.model.state_dict())
    return again.eval()


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(20, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.5), nn.Linear(16, 10), nn.ReLU(),
        nn.Linear(10, 4),
    )  # fmt: skip


def test_a_perceptron():
    x = torch.randn(32, 20)
    model = settle(mlp(), x)
    silence(model[0].weight, rows=[3, 7], columns=[0, 5, 19])
    silence(model[4].weight, rows=[2], columns=[1, 8])
    silence(model[6].weight, columns=[9])
    result = compact(model, x)
    agree(model, result, x)
    assert result.inputs == {"input": [i for i in range(20) if i not in (0, 5, 19)]}
    assert result.model[0].weight.shape == (12, 17)
    assert result.model[1].num_features == 12
    assert result.model[4].weight.shape == (8, 12)
    assert result.model[6].weight.shape == (4, 8)
    assert result.after["parameters"] < result.before["parameters"]
    assert result.after["flops"] < result.before["flops"]
    assert "flops" in str(result)
    again = restored(mlp, result)
    with torch.no_grad():
        torch.testing.assert_close(again(*result.select(x)), result.model.eval()(*result.select(x)))


def test_what_a_dead_neuron_says_moves_into_the_bias():
    x = torch.randn(8, 6)
    model = nn.Sequential(nn.Linear(6, 5), nn.Sigmoid(), nn.Linear(5, 3, bias=False))
    silence(model[0].weight, rows=[1, 4])
    result = compact(model, x)
    assert result.model[2].in_features == 3
    assert result.model[2].bias is not None
    agree(model, result, x)


class Residual(nn.Module):
    def __init__(self, conv=nn.Conv2d, norm=nn.BatchNorm2d, pool=nn.AdaptiveAvgPool2d):
        super().__init__()
        self.stem = conv(3, 8, 3, padding=1)
        self.norm = norm(8)
        self.a = conv(8, 12, 3, padding=1)
        self.b = conv(12, 8, 1)
        self.depth = conv(8, 8, 3, padding=1, groups=8)
        self.pool = pool(2)
        self.head = nn.LazyLinear(5)

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)))
        x = x + self.b(torch.relu(self.a(x)))
        x = self.depth(x)
        return self.head(self.pool(x).flatten(1))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions_with_a_residual(dims):
    conv, norm, pool = (getattr(nn, f"{name}{dims}d") for name in ("Conv", "BatchNorm", "AdaptiveAvgPool"))
    x = torch.randn(4, 3, *[6] * dims)
    torch.manual_seed(0)
    model = settle(Residual(conv, norm, pool), x)
    model(x)
    silence(model.a.weight, rows=[0, 3])
    silence(model.b.weight, columns=[0, 5])
    with torch.no_grad():
        model.a.bias[3] = 0.0
        model.a.bias[0] = -1.0  # which the ReLU makes zero
        for each in (model.stem, model.b):
            each.weight[2] = 0
            each.bias[2] = 0
        model.norm.bias[2] = -0.5
        model.norm.running_mean[2] = 0
        model.depth.bias[2] = 0
    result = compact(model, x)
    agree(model, result, x)
    assert result.model.a.weight.shape[0] == 9
    assert result.model.stem.weight.shape[0] == 7
    assert result.model.depth.groups == 7
    assert result.model.head.in_features == 7 * 2**dims

    def make():
        fresh = Residual(conv, norm, pool)
        fresh(x)
        return fresh

    agree(model, type("R", (), {"__call__": lambda self, *i: restored(make, result)(*result.select(*i))})(), x)


def test_what_padding_makes_visible_stays_and_is_named():
    x = torch.randn(2, 3, 6, 6)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 2, 3, padding=1))
    silence(model[0].weight, rows=[1])
    with torch.no_grad():
        model[0].bias[1] = 2.0
    result = compact(model, x)
    assert result.model[0].out_channels == 4
    assert any("border" in reason for reason in result.stays.values())
    agree(model, result, x)


class Concatenating(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.out = nn.Linear(6, 4), nn.Linear(6, 5), nn.Linear(9, 2)

    def forward(self, x):
        return self.out(torch.cat([F.relu(self.left(x)), torch.tanh(self.right(x))], dim=1))


def test_concatenation():
    x = torch.randn(7, 6)
    model = Concatenating()
    silence(model.out.weight, columns=[1, 6])
    result = compact(model, x)
    assert result.model.left.out_features == 3
    assert result.model.right.out_features == 4
    agree(model, result, x)


class Block(nn.Module):
    """A transformer's layer with projections of its own."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.embed = nn.Linear(5, width)
        self.before, self.after, self.last = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.embed(x)
        y = self.before(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.o(y)
        x = x + self.down(F.gelu(self.up(self.after(x))))
        return self.head(self.last(x))


def test_attention_projections_and_layer_norms():
    torch.manual_seed(0)
    x = torch.randn(3, 7, 5)
    model = Block().eval()
    silence(model.up.weight, rows=[1, 2, 3])
    silence(model.down.weight, columns=[10, 11])
    with torch.no_grad():
        for writer in (model.embed, model.o, model.down):  # features 4 and 9 of the residual stream
            for j, value in ((4, 0.0), (9, 0.25)):
                writer.weight[j] = 0
                writer.bias[j] = value
        for reader in (model.q, model.k, model.v, model.up, model.head):
            reader.weight[:, [4, 9]] = 0
    result = compact(model, x)
    agree(model, result, x)
    assert result.model.up.weight.shape == (64 - 5, 14)
    assert result.model.q.weight.shape == (16, 14)
    assert result.model.o.weight.shape == (14, 16)
    assert result.model.embed.weight.shape == (14, 5)
    again = restored(Block, result)
    with torch.no_grad():
        torch.testing.assert_close(again(x), model(x), rtol=1e-4, atol=1e-5)


def test_what_a_layer_norm_reads_stays_and_is_named():
    x = torch.randn(4, 6)
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 2))
    silence(model[2].weight, columns=[3])
    result = compact(model, x)
    assert result.model[0].out_features == 8
    assert any("mean of 1" in reason for reason in result.stays.values())
    agree(model, result, x)


def test_unknown_operations_pin():
    class Sorting(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 5), nn.Linear(5, 2)

        def forward(self, x):
            return self.b(torch.sort(self.a(x), dim=1)[0])

    x = torch.randn(4, 6)
    model = Sorting()
    silence(model.a.weight, rows=[2], columns=[1])
    result = compact(model, x)
    assert result.model.a.weight.shape == (5, 5)
    assert any("sort" in reason for reason in result.stays.values())
    agree(model, result, x)


def test_a_layer_used_twice():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.b(torch.relu(self.a(torch.relu(self.a(x)))))

    x = torch.randn(5, 4)
    model = Twice()
    silence(model.a.weight, columns=[1])
    silence(model.b.weight, columns=[1])
    result = compact(model, x)
    agree(model, result, x)
    assert result.inputs == {"x": [0, 2, 3]}


def test_nothing_and_everything():
    x = torch.randn(3, 4)
    dense = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
    assert compact(dense, x).record["layers"] == {}
    dead = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
    silence(dead[0].weight, rows=range(5))
    result = compact(dead, x)
    assert result.model[0].weight.numel() >= 1
    agree(dead, result, x)
    assert dead[0].weight.shape == (5, 4)


def test_a_model_that_cannot_be_traced():
    class Branching(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(TypeError, match="model"):
        compact(Branching(), torch.ones(2, 2))
    with pytest.raises(ValueError, match="record"):
        rebuild(nn.Linear(2, 2), {})


class Parametrized(nn.Module):
    """Every kind of weight that can be parametrized, and one that is so by torch."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = parametrize(nn.Conv2d(3, 8, 3), "weight", normball.L1InfBall(NGroups(5), axis=(1, 2, 3)))
        self.norm = nn.BatchNorm2d(8)
        self.embed = parametrize(nn.Linear(8, 12), "weight", ("l12", NGroups(LinearSchedule(8, 4, steps=2))))
        self.attention = nn.MultiheadAttention(12, 4, batch_first=True)
        parametrize(self.attention, "in_proj_weight", normball.L1InfBall(nn.Parameter(torch.tensor(0.5)), axis=1))
        self.up = parametrizations.weight_norm(nn.Linear(12, 16))
        self.out = parametrize(nn.Linear(16, 2), "weight", normball.L1InfBall(NGroups(6)))

    def forward(self, x):
        x = self.norm(self.conv(x)).flatten(2).transpose(1, 2)
        x = self.embed(x)
        x = x + self.attention(x, x, x)[0]
        return self.out(F.relu(self.up(x)))


def test_parametrized_weights_count_as_layers_see_them():
    x = torch.randn(4, 3, 5, 5)
    model = settle(Parametrized(), x).train()
    model.embed(torch.ones(1, 8))
    model.embed(torch.ones(1, 8))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    result = compact(model, x)
    assert result.model.training
    assert result.model.out.weight.shape == (2, 6)
    assert result.model.up.weight.shape == (6, 12)
    assert result.model.conv.weight.shape[0] == 8  # its channels become places of a sequence, which is not understood
    assert not any("parametrizations" in name for name in result.model.state_dict())
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in result.model.parameters())
    small = result.model.eval()
    agree(model.eval(), result, x)
    assert not any(module._forward_pre_hooks for module in small.modules())
    # The model is as it was: its weights, its classes, its schedule.
    assert type(model.out).__name__ == "ParametrizedLinear"
    assert {*state} == {*model.state_dict()}
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    model.train()
    model(x).sum().backward()
    assert model.embed.parametrizations.weight[0].forwards > int(state["embed.parametrizations.weight.0._extra_state"])
    model.eval()
    again = restored(Parametrized, compact(model, x))
    with torch.no_grad():
        torch.testing.assert_close(again(x), model(x), rtol=1e-4, atol=1e-5)


def test_neurons_and_channels_of_parametrized_layers_go():
    x = torch.randn(4, 3, 6, 6)

    def make():
        torch.manual_seed(0)
        first, last = nn.Conv2d(3, 8, 3), nn.Linear(32, 2)
        parametrize(first, "weight", normball.L1InfBall(NGroups(5), axis=(1, 2, 3)))
        parametrize(last, "weight", normball.BilevelBall(NGroups(0.25)))
        return nn.Sequential(first, nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), last)

    model = make()
    result = compact(model, x)
    agree(model, result, x)
    assert result.model[0].out_channels <= 5
    assert type(result.model[0]) is nn.Conv2d
    assert type(result.model[4]) is nn.Linear
    assert result.model[4].in_features == 4 * result.model[0].out_channels
    agree(model, lambda *i: restored(make, result)(*result.select(*i)), x)


@pytest.mark.parametrize(
    ("example", "error", "match"),
    [
        (torch.ones(3, 7), ValueError, r"example_inputs: expected inputs that Sequential accepts, got \(3, 7\): mat1"),
        (torch.ones(20), ValueError, r"example_inputs: .*got \(20,\)"),  # BatchNorm wants two axes
        (torch.ones(3, 20, dtype=torch.long), ValueError, r"example_inputs: .*\(3, 20\).*dtype"),
        ((torch.ones(3, 20), torch.ones(3)), ValueError, r"example_inputs: .*\(3, 20\), \(3,\): .*positional"),
        ((), ValueError, "example_inputs: "),
        (np.ones((3, 20)), TypeError, r"example_inputs: .*got numpy\.ndarray; use torch\.from_numpy"),
        ({"input": torch.ones(3, 20)}, TypeError, r"example_inputs: expected a tensor, or a tuple .*got dict"),
        ([[1.0] * 20], TypeError, "example_inputs: .*got a list with list"),
        (None, ValueError, "example_inputs: .*got None"),
        ((torch.ones(3, 20), "x"), TypeError, "example_inputs: .*got a tuple with str"),
    ],
)
def test_example_inputs_that_do_not_fit(example, error, match):
    with pytest.raises(error, match=match) as caught:
        compact(mlp(), example)
    while caught is not None:  # nothing of torch.fx is in what the user sees
        value = getattr(caught, "value", caught)
        assert "fx" not in str(value)
        frames, traceback = [], value.__traceback__
        while traceback is not None:
            frames.append(traceback.tb_frame.f_code.co_filename)
            traceback = traceback.tb_next
        assert not any("/fx/" in frame for frame in frames)
        caught = value.__cause__
