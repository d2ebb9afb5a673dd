"""Heads, embeddings and groups of channels: gone whole, or named with the reason."""

import pytest
import torch
from torch import nn

from normball.nn import compact
from normball.nn.attention import Heads

from .test_compact import agree, restored, silence


class Attending(nn.Module):
    def __init__(self, weights=False, **options):
        super().__init__()
        self.weights = weights
        self.embed, self.head = nn.Linear(5, 12), nn.Linear(12, 3)
        self.attention = nn.MultiheadAttention(12, 4, **options)

    def forward(self, x):
        x = self.embed(x)
        y, weights = self.attention(x, x, x)
        return self.head(x + y) + (weights.sum() if self.weights else 0.0)


def mute(attention, *, unread=(), constant=()):
    """Silence heads, by what reads them, and by their values, which leaves their bias."""
    width = attention.head_dim
    with torch.no_grad():
        attention.in_proj_bias.normal_()
        for head in unread:
            attention.out_proj.weight[:, head * width : (head + 1) * width] = 0
        for head in constant:
            first = 2 * attention.embed_dim + head * width
            attention.in_proj_weight[first : first + width] = 0


@pytest.mark.parametrize("batch_first", [True, False])
def test_whole_heads_go(batch_first):
    torch.manual_seed(0)
    x = torch.randn(3, 7, 5)
    model = Attending(batch_first=batch_first).eval()
    mute(model.attention, unread=[1], constant=[3])
    result = compact(model, x)
    agree(model, result, x)
    small = result.model.attention
    assert isinstance(small, Heads)
    assert small.num_heads == 2
    assert small.q.weight.shape == small.v.weight.shape == (6, 12)
    assert small.out.weight.shape == (12, 6)
    again = restored(lambda: Attending(batch_first=batch_first), result)
    with torch.no_grad():
        torch.testing.assert_close(again(x), model(x), rtol=1e-4, atol=1e-5)
    assert isinstance(model.attention, nn.MultiheadAttention)


def test_half_a_head_stays_and_so_do_heads_whose_weights_are_read():
    torch.manual_seed(0)
    x = torch.randn(3, 7, 5)
    model = Attending(batch_first=True).eval()
    silence(model.attention.out_proj.weight, columns=[3, 4])
    result = compact(model, x)
    assert isinstance(result.model.attention, nn.MultiheadAttention)
    assert any("attention" in name and "go with" in reason for name, reason in result.stays.items())
    agree(model, result, x)
    told = Attending(weights=True, batch_first=True).eval()
    mute(told.attention, unread=[0])
    silence(told.embed.weight, rows=[2])
    result = compact(told, x)
    assert isinstance(result.model.attention, nn.MultiheadAttention)
    assert any("attention weights of attention are read" in reason for reason in result.stays.values())
    agree(told, result, x)


@pytest.mark.parametrize("mask", [None, "causal", "ends", "both", "bool"])
def test_attention_taken_apart_is_the_same(mask):
    torch.manual_seed(0)
    whole = nn.MultiheadAttention(12, 4, kdim=5, vdim=6, batch_first=True).double().eval()
    q, k, v = (torch.randn(3, 7, n, dtype=torch.float64) for n in (12, 5, 6))
    causal = nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64)
    ends = torch.arange(7) >= torch.tensor([[7], [5], [6]])
    options = {}
    if mask in ("causal", "both", "bool"):
        options["attn_mask"] = causal < 0 if mask == "bool" else causal
    if mask in ("ends", "both"):
        added = torch.zeros(3, 7, dtype=torch.float64).masked_fill(ends, -torch.inf)
        options["key_padding_mask"] = ends if mask == "ends" else added
    for average in (True, False):
        options["average_attn_weights"] = average
        torch.testing.assert_close(Heads(whole)(q, k, v, **options), whole(q, k, v, **options))
    one = [x[0] for x in (q, k, v)]
    torch.testing.assert_close(Heads(whole)(*one)[0], whole(*one)[0])
    with pytest.raises(ValueError, match="attn_mask: expected one for all heads"):
        Heads(whole)(q, k, v, attn_mask=torch.zeros(12, 7, 7))


class Stack(nn.Module):
    def __init__(self, norm_first=False):
        super().__init__()
        self.embed, self.head = nn.Embedding(20, 8), nn.Linear(8, 3)
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8), enable_nested_tensor=False)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x)))


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_transformer_loses_neurons_heads_and_features(norm_first):
    torch.manual_seed(0)
    x = torch.randint(20, (3, 7))
    model = Stack(norm_first).eval()
    first, second = model.encoder.layers
    mute(first.self_attn, unread=[1])
    silence(first.linear1.weight, rows=[2, 3])
    silence(first.linear2.weight, columns=[5])
    silence(second.linear1.weight, rows=[0])
    result = compact(model, x)
    agree(model, result, x)
    small = result.model.encoder.layers
    assert small[0].self_attn.num_heads == 1
    assert small[0].linear1.weight.shape == (13, 8)
    assert small[1].linear1.weight.shape == (15, 8)
    assert isinstance(small[1].self_attn, nn.MultiheadAttention)
    again = restored(lambda: Stack(norm_first), result)
    with torch.no_grad():
        torch.testing.assert_close(again(x), model(x), rtol=1e-4, atol=1e-5)

    with torch.no_grad():  # feature 6 of the residual stream is zero wherever it is written, and no one reads it
        model.embed.weight[:, 6] = 0
        for layer in (first, second):
            for writer in (layer.self_attn.out_proj, layer.linear2):
                writer.weight[6], writer.bias[6] = 0, 0
            layer.self_attn.in_proj_weight[:, 6] = 0
            layer.linear1.weight[:, 6] = 0
            for norm in (layer.norm1, layer.norm2):
                norm.weight[6], norm.bias[6] = 0, 0
        model.encoder.norm.weight[6], model.encoder.norm.bias[6] = 0, 0
        model.head.weight[:, 6] = 0
    result = compact(model, x)
    agree(model, result, x)
    assert result.model.embed.weight.shape == (20, 7)
    assert result.model.encoder.layers[1].linear1.weight.shape == (15, 7)
    assert result.model.head.weight.shape == (3, 7)
    again = restored(lambda: Stack(norm_first), result)
    with torch.no_grad():
        torch.testing.assert_close(again(x), model(x), rtol=1e-4, atol=1e-5)


def test_columns_of_an_embedding():
    torch.manual_seed(0)
    x = torch.randint(10, (4, 6))

    def make(**options):
        return nn.Sequential(nn.Embedding(10, 7, padding_idx=0, **options), nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 2))

    model = make()
    with torch.no_grad():
        model[0].weight[:, 2] = 0.0
        model[0].weight[:, 3] = 1.5  # for every word the same
        model[1].weight[:, 5] = 0.0  # which no one reads
    result = compact(model, x)
    agree(model, result, x)
    assert result.model[0].weight.shape == (10, 4)
    assert result.model[0].padding_idx == 0
    assert result.inputs == {"input": list(range(6))}  # numbers of words are not features
    short = make(max_norm=1.0)
    silence(short[1].weight, columns=[5])
    result = compact(short, x)
    assert result.model[0].embedding_dim == 7
    assert any("max_norm" in reason for reason in result.stays.values())


@pytest.mark.parametrize("groups", [2, 4])
def test_groups_of_channels_go_whole(groups):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 6, 6)

    def make():
        torch.manual_seed(1)
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1, groups=groups), nn.ReLU(),
            nn.Conv2d(16, 2, 1),
        )  # fmt: skip

    model = make()
    each = 16 // groups
    silence(model[2].weight, rows=[*range(each), each])  # the first group, and one channel of the second
    result = compact(model, x)
    agree(model, result, x)
    assert result.model[2].groups == groups - 1
    assert result.model[2].weight.shape[0] == 16 - each
    assert result.model[0].out_channels == 8 - 8 // groups
    assert any("go with" in reason or "groups go only whole" in reason for reason in result.stays.values())
    agree(model, lambda *i: restored(make, result)(*result.select(*i)), x)


def test_depthwise_with_a_multiplier():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 9)
    model = nn.Sequential(nn.Conv1d(3, 4, 1), nn.Conv1d(4, 8, 3, groups=4), nn.Conv1d(8, 2, 1))
    silence(model[1].weight, rows=[4, 5])
    result = compact(model, x)
    agree(model, result, x)
    assert (result.model[0].out_channels, result.model[1].groups, result.model[2].in_channels) == (3, 3, 6)
