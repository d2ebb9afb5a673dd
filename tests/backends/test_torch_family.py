"""The rest of the family on tensors: the core's values, and derivatives, of the same operators in torch operations."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import normball
from normball.balls import BALLS

VECTORS = ("project_l1", "project_simplex", "project_l2", "project_linf", "prox_l1", "prox_l2", "prox_linf")
GROUPS = (
    "project_l12", "project_linf1", "project_linf2", "bilevel_l1inf", "bilevel_l11", "bilevel_l12", "prox_l1inf",
    "prox_l12", "prox_linf1",
)  # fmt: skip
CASES = [
    *((name, {}) for name in VECTORS),
    *((name, {"axis": 1}) for name in (*VECTORS[:4], *GROUPS)),
    ("project_l12", {"axis": (0, 2)}),
    ("bilevel_l1inf", {"axis": 2, "batch_axis": 0}),
]


def tensor(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize(("name", "options"), CASES)
def test_equals_the_array_s(name, options):
    function = getattr(normball, name)
    Y = tensor(5, 4, 3)
    for radius in (0.0, 0.3, 2.0, 50.0):
        expected, told = function(Y.numpy(), radius, return_info=True, **options)
        X, info = function(Y, radius, return_info=True, **options)
        assert np.array_equal(X.numpy(), expected)
        y = Y.clone().requires_grad_()
        traced, second = function(y, radius, return_info=True, **options)
        np.testing.assert_allclose(traced.detach().numpy(), expected, atol=1e-14)
        for each in (info, second):
            np.testing.assert_allclose(each.theta.numpy(), told.theta, atol=1e-13)
            np.testing.assert_allclose(each.mu.numpy(), told.mu, atol=1e-13)
            assert "OperatorInfo" in repr(each)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            close = function(Y.to(dtype), radius, **options)
            assert close.dtype == dtype
            np.testing.assert_allclose(close.double().numpy(), expected, atol=16 * torch.finfo(dtype).eps)
        out = torch.full_like(Y, torch.nan)
        assert function(Y, radius, out=out, **options) is out
        assert np.array_equal(out.numpy(), expected)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_gradients_are_exact(name, options):
    function = getattr(normball, name)
    for radius in (0.3, 2.0, 50.0):
        Y = tensor(3, 3, 2).requires_grad_()
        r = torch.tensor(radius, dtype=torch.float64, requires_grad=True)
        assert gradcheck(lambda y, r: function(y, r, **options), (Y, r), check_forward_ad=True)


def test_compiled_and_mapped():
    Y = tensor(4, 6)
    for name in ("project_l1", "project_simplex", "project_l12", "bilevel_l1inf"):
        options = {"axis": 0} if name in GROUPS else {}
        function = getattr(normball, name)
        compiled = torch.compile(lambda y, f=function, o=options: f(y, 1.0, **o), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(Y), function(Y, 1.0, **options))
        B = tensor(3, 4, 6, seed=1)
        mapped = torch.func.vmap(lambda y, f=function, o=options: f(y, 1.0, **o))(B)
        torch.testing.assert_close(mapped[1], function(B[1], 1.0, **options))


def test_weights():
    Y, W = tensor(6), tensor(6, seed=1).abs()
    expected = normball.project_l1(Y.numpy(), 1.0, weights=W.numpy())
    for y in (Y, Y.clone().requires_grad_()):
        np.testing.assert_allclose(normball.project_l1(y, 1.0, weights=W).detach().numpy(), expected, atol=1e-14)
    assert gradcheck(lambda y: normball.project_l1(y, 1.0, weights=W), (Y.clone().requires_grad_(),))


def test_norms_radii_boxes_and_levels():
    Y = tensor(5, 4, 3)
    for name, options in (("l1", {}), ("l2", {"axis": 1}), ("linf", {}), ("l12", {"axis": 1}), ("linf2", {"axis": 0})):
        norm = getattr(normball, f"norm_{name}")
        np.testing.assert_allclose(norm(Y, **options).numpy(), norm(Y.numpy(), **options))
    assert normball.radius_for_sparsity(Y[0], n_groups=2) == normball.radius_for_sparsity(Y[0].numpy(), n_groups=2)
    assert torch.equal(normball.project_box(Y, -0.1, 0.2), Y.clamp(-0.1, 0.2))
    levels = (1.0, ("l1", "linf", "l2"), (0, 1, 2))
    np.testing.assert_allclose(normball.multilevel(Y, *levels).numpy(), normball.multilevel(Y.numpy(), *levels))
    assert normball.L12Ball(1.0, 0).contains(normball.L12Ball(1.0, 0).project(Y[0].float()))


def test_refusals():
    with pytest.raises(ValueError, match="Y"):
        normball.project_l1(torch.tensor([1.0, torch.nan], requires_grad=True), 1.0)
    with pytest.raises(ValueError, match="radius"):
        normball.project_l1(torch.ones(3), -1.0)
    with pytest.raises(TypeError, match="Y"):
        normball.project_l1(torch.ones(3, dtype=torch.int32), 1.0)
    with pytest.raises(ValueError, match="Y"):
        normball.project_l1(torch.ones(3, requires_grad=True), 1.0, out=torch.ones(3))


def test_balls_tell_whether_they_contain_a_tensor():
    for name, ball in BALLS.items():
        Y = tensor(5, 4)
        X = ball(0.7).project(Y)
        assert ball(0.7).contains(X), name
        assert not ball(0.7).contains(Y), name
