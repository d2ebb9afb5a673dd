"""Tensors of every kind: subclasses, parameters, meta, sparse, nested, quantised, empty, on other devices."""

import pytest
import torch
from torch import nn

import normball


class Plain(torch.Tensor):
    pass


class Watched(torch.Tensor):
    """One that looks at every call."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


FUNCTIONS = [
    normball.project_l1inf, normball.project_l12, normball.project_l1, normball.project_simplex,
    normball.bilevel_l1inf, normball.prox_l1, normball.prox_linf1,
]  # fmt: skip


@pytest.mark.parametrize("kind", [Plain, Watched, nn.Parameter])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_subclasses_give_the_same_numbers_and_their_kind(kind, function):
    torch.manual_seed(0)
    T = torch.randn(7, 5)
    want = function(T, 0.8)
    Y = nn.Parameter(T.clone()) if kind is nn.Parameter else T.clone().as_subclass(kind)
    X = function(Y, 0.8)
    torch.testing.assert_close(X.detach().as_subclass(torch.Tensor), want)
    assert type(X) is (torch.Tensor if kind is nn.Parameter else kind)
    grown = Y.detach().clone().requires_grad_()
    plain = T.clone().requires_grad_()
    function(grown, 0.8).square().sum().backward()
    function(plain, 0.8).square().sum().backward()
    torch.testing.assert_close(grown.grad.as_subclass(torch.Tensor), plain.grad)


def test_subclasses_in_place_and_with_out():
    torch.manual_seed(0)
    T = torch.randn(7, 5)
    want = normball.project_l1inf(T, 0.8)
    for kind in (Plain, Watched):
        Y = T.clone().as_subclass(kind)
        out = torch.empty_like(Y)
        assert normball.project_l1inf(Y, 0.8, out=out) is out
        assert normball.project_l1inf_(Y, 0.8) is Y
        for X in (Y, out):
            assert torch.equal(X.as_subclass(torch.Tensor), want)
    model = nn.Linear(5, 7)
    model.weight = nn.Parameter(T.clone().as_subclass(Plain))
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    normball.nn.constrain(model, steps, {"weight": normball.L1InfBall(0.8)})
    model(torch.randn(3, 5)).square().sum().backward()
    steps.step()
    assert normball.L1InfBall(0.8).contains(model.weight.detach().as_subclass(torch.Tensor))


@pytest.mark.parametrize("function", [*FUNCTIONS, normball.norm_l1inf], ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore")
def test_kinds_that_are_right_and_kinds_that_are_refused(function):
    def call(Y):
        return function(Y) if function is normball.norm_l1inf else function(Y, 1.0)

    dense = torch.randn(4, 3)
    meta = call(dense.to("meta"))
    assert meta.device.type == "meta"
    assert meta.shape == call(dense).shape
    assert call(torch.empty(0, 3)).numel() in (0, 1)
    for Y, match in (
        (dense.to_sparse(), "dense tensor, got layout"),
        (dense.to_sparse_csr(), "dense tensor, got layout"),
        (torch.nested.nested_tensor([dense, dense]), "dense tensor, got a nested one"),
        (torch.quantize_per_tensor(dense, 0.1, 0, torch.qint8), "qint8"),
        (dense.int(), "int32"),
        (dense.bool(), "bool"),
        (dense.to(torch.complex64), "complex64"),
        (dense.to(torch.float8_e4m3fn), "float8"),
    ):
        with pytest.raises(TypeError, match=rf"^Y: expected .*{match}"):
            call(Y)


def test_tensors_on_different_devices():
    Y, other = torch.randn(4, 3), torch.randn(4, 3, device="meta")
    with pytest.raises(ValueError, match="out: expected a tensor on cpu, as Y, got one on meta"):
        normball.project_l1inf(Y, 1.0, out=other)
    with pytest.raises(ValueError, match="radius: expected a tensor on meta, as Y, got one on cpu"):
        normball.project_l1inf(other, torch.ones(3), batch_axis=1)
    _, info = normball.project_l1inf(Y, 1.0, return_info=True)
    with pytest.raises(ValueError, match="warm_start: expected an info on meta, as Y, got one on cpu"):
        normball.project_l1inf(other, 1.0, warm_start=info)
    with pytest.raises(TypeError, match="out"):
        normball.project_l1inf(Y.numpy(), 1.0, out=torch.empty(4, 3))
