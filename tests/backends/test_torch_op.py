"""The projection of tensors: values, derivatives, transforms, in place, and what is refused."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck

import normball

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
RADIUS = 3.0


def matrix(*shape, dtype=torch.float64, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).to(dtype)


def arguments(Y, radius=RADIUS, axis=(0,), batch=()):
    radius = torch.tensor(radius, dtype=torch.float64)
    return (Y, radius, "l1inf", list(axis), list(batch), "newton", True, None, None, None)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("axis", [0, 1, (0, 2), -1])
def test_equals_the_array_s(dtype, axis):
    Y = matrix(9, 7, 5, dtype=dtype)
    for radius in (0.0, 0.5, 4.0, 1e3):
        X, info = normball.project_l1inf(Y, radius, axis=axis, return_info=True)
        expected, told = normball.project_l1inf(Y.double().numpy(), radius, axis=axis, return_info=True)
        eps = torch.finfo(dtype).eps
        assert X.dtype == dtype
        np.testing.assert_allclose(X.double().numpy(), expected, rtol=0, atol=2 * eps * float(Y.abs().max()))
        assert normball.norm_l1inf(X, axis) <= radius * (1 + 4 * eps)
        assert info.theta.dtype == torch.float64
        assert float(info.theta) == pytest.approx(told.theta, rel=max(1e-12, 64 * eps))
        assert info.mu.shape == told.mu.shape
        assert info.mu.dtype == dtype
        axes = [a % 3 for a in ((axis,) if isinstance(axis, int) else axis)]
        cap = info.mu.reshape([1 if a in axes else n for a, n in enumerate(Y.shape)])
        assert torch.equal(X, Y.clamp(-cap, cap)) or torch.equal(X.abs(), Y.abs().minimum(cap))


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_the_memory_of_the_tensor_itself_is_read_and_written(dtype):
    W = matrix(40, 30, dtype=dtype)
    for view in (W, W.T, W[::2, 1::3], W[3:20, 4:25].T):
        Y = view.clone()
        expected = normball.project_l1inf(Y, RADIUS)
        out = torch.empty_like(view)
        assert normball.project_l1inf(view, RADIUS, out=out) is out
        torch.testing.assert_close(out, expected)
        storage = W.clone()
        target = storage.as_strided(view.shape, view.stride(), view.storage_offset())
        version = target._version
        assert normball.project_l1inf_(target, RADIUS) is target
        torch.testing.assert_close(target, expected)
        assert target._version > version


def test_interior_points_keep_their_bits():
    Y = matrix(12, 9, dtype=torch.float32)
    Y[0, 0] = -0.0
    X, info = normball.project_l1inf(Y, 1e3, return_info=True)
    assert X.numpy().tobytes() == Y.numpy().tobytes()
    assert float(info.theta) == 0.0


def test_gradients_are_exact():
    for axis, batch in ((0, None), ((0, 2), None), (1, 0)):
        Y = matrix(4, 3, 2).requires_grad_()
        for radius in (0.6, 2.5, 100.0):
            r = torch.tensor(radius, dtype=torch.float64, requires_grad=True)

            def project(y, r, axis=axis, batch=batch):
                return normball.project_l1inf(y, r, axis=axis, batch_axis=batch)

            assert gradcheck(
                project, (Y, r), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
            )
            assert gradgradcheck(project, (Y, r), check_fwd_over_rev=True)


def test_the_gradient_is_the_formula_s():
    Y = matrix(6, 8)
    G = matrix(6, 8, seed=1)
    radius = torch.tensor(RADIUS, dtype=torch.float64, requires_grad=True)
    y = Y.clone().requires_grad_()
    X, info = normball.project_l1inf(y, radius, return_info=True)
    X.backward(G)
    mu, expected = info.mu, torch.zeros_like(Y)
    clipped = (Y.abs() > mu) & (mu > 0)
    alive = [j for j in range(8) if mu[j] > 0]
    a = {j: (torch.sign(Y) * G)[clipped[:, j], j].sum() for j in alive}
    k = {j: clipped[:, j].sum() for j in alive}
    abar = sum(a[j] / k[j] for j in alive) / sum(1 / k[j] for j in alive)
    for j in alive:
        expected[:, j] = torch.where(clipped[:, j], torch.sign(Y[:, j]) * (a[j] - abar) / k[j], G[:, j])
    torch.testing.assert_close(y.grad, expected)
    torch.testing.assert_close(radius.grad, abar)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_in_every_dtype(dtype):
    y = matrix(8, 6, dtype=dtype).requires_grad_()
    normball.project_l1inf(y, RADIUS).square().sum().backward()
    wide = y.detach().double().requires_grad_()
    normball.project_l1inf(wide, RADIUS).square().sum().backward()
    assert y.grad.dtype == dtype
    torch.testing.assert_close(y.grad.double(), wide.grad, rtol=0.05, atol=20 * torch.finfo(dtype).eps)


def test_radii_of_a_batch_are_learnt():
    Y = matrix(3, 6, 4)
    radii = torch.tensor([0.5, 2.0, 90.0], dtype=torch.float64, requires_grad=True)
    normball.project_l1inf(Y, radii, axis=1, batch_axis=0).abs().sum().backward()
    assert radii.grad.shape == (3,)
    assert (radii.grad[:2] > 0).all()
    assert radii.grad[2] == 0


def test_a_batch_along_any_axis_is_that_of_arrays():
    Y = matrix(3, 6, 4)
    for axis, batch in ((1, 0), (0, 1), (1, -1), ((1, 2), 0), (2, (0, 1)), (0, ())):
        X, info = normball.project_l1inf(Y, 0.7, axis=axis, batch_axis=batch, return_info=True)
        expected, told = normball.project_l1inf(Y.numpy(), 0.7, axis=axis, batch_axis=batch, return_info=True)
        np.testing.assert_array_equal(X.numpy(), expected)
        np.testing.assert_array_equal(info.theta.numpy(), told.theta)
        np.testing.assert_array_equal(normball.project_l1inf(Y, 0.7, axis=axis, batch_axis=batch).numpy(), expected)


def test_operator_checks():
    Y = matrix(5, 4)
    opcheck(torch.ops.normball.project.default, arguments(Y.clone().requires_grad_()))
    opcheck(torch.ops.normball.project.default, arguments(matrix(3, 5, 4), (1.0), (1,), (0,)))
    opcheck(torch.ops.normball.project_in_place.default, arguments(Y.clone()))
    opcheck(torch.ops.normball.project_into.default, (Y, torch.empty_like(Y), *arguments(Y)[1:]))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_whole(backend):
    def loss(y, r):
        return normball.project_l1inf(2 * y, r, axis=1).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    y, z = (matrix(7, 5).requires_grad_() for _ in range(2))
    r = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    s = r.detach().clone().requires_grad_()
    compiled(y, r).backward()
    loss(z, s).backward()
    torch.testing.assert_close(y.grad, z.grad)
    torch.testing.assert_close(r.grad, s.grad)


def test_compiled_in_place():
    def step(y):
        normball.project_l1inf_(y, 2.0)
        return y + 1

    y = matrix(7, 5)
    expected = normball.project_l1inf(y, 2.0) + 1
    torch.testing.assert_close(torch.compile(step, fullgraph=True, backend="aot_eager")(y), expected)


def test_function_transforms():
    B = matrix(4, 3, 5)
    radii = torch.tensor([1.0, 2.0, 0.5])
    got = torch.func.vmap(normball.project_l1inf, in_dims=(1, 0))(B, radii)
    for i in range(3):
        torch.testing.assert_close(got[i], normball.project_l1inf(B[:, i], float(radii[i])))
    same = torch.func.vmap(lambda r: normball.project_l1inf(B[:, 0], r))(radii)
    torch.testing.assert_close(same[1], normball.project_l1inf(B[:, 0], 2.0))
    reverse = torch.func.jacrev(normball.project_l1inf)(B[0], 1.0)
    forward = torch.func.jacfwd(normball.project_l1inf)(B[0], 1.0)
    torch.testing.assert_close(reverse, forward)
    torch.testing.assert_close(reverse, reverse.permute(2, 3, 0, 1))  # a projection's Jacobian is symmetric


def test_warm_start_and_counts():
    Y = matrix(30, 40)
    X, info = normball.project_l1inf(Y, RADIUS, return_info=True)
    again, second = normball.project_l1inf(Y + 1e-3, RADIUS, warm_start=info, return_info=True)
    torch.testing.assert_close(again, normball.project_l1inf(Y + 1e-3, RADIUS))
    assert info.clipped == int(((X != Y) & info.nonzero).sum())
    assert "ProjectionInfo" in repr(second)
    y = Y.clone().requires_grad_()
    _, traced = normball.project_l1inf(y, RADIUS, warm_start=info, return_info=True)
    assert traced.clipped is None
    assert "ProjectionInfo" in repr(traced)


def test_the_other_functions_take_tensors():
    Y = matrix(6, 4)
    assert normball.norm_l1inf(Y).item() == pytest.approx(normball.norm_l1inf(Y.numpy()))
    assert normball.norm_linf1(Y, 1).item() == pytest.approx(normball.norm_linf1(Y.numpy(), 1))
    torch.testing.assert_close(normball.prox_linf1(Y, 1.0), Y - normball.project_l1inf(Y, 1.0))
    ball = normball.L1InfBall(1.0)
    assert not ball.contains(Y)
    assert ball.contains(ball.project(Y.bfloat16()))


def test_empty_tensors():
    for shape, axis in (((0, 5), 0), ((5, 0), 0), ((5, 0), 1), ((0,), 0)):
        Y = torch.empty(shape)
        assert normball.project_l1inf(Y, 1.0, axis=axis).shape == shape
        assert float(normball.norm_l1inf(Y, axis)) == 0.0


def test_meta_tensors_have_a_shape():
    assert normball.project_l1inf(torch.empty(3, 4, device="meta"), 1.0).device.type == "meta"


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        (lambda: normball.project_l1inf(torch.ones(3, 3, dtype=torch.int64), 1.0), TypeError, "Y"),
        (lambda: normball.project_l1inf(torch.ones(3, 3, dtype=torch.complex64), 1.0), TypeError, "Y"),
        (lambda: normball.project_l1inf(torch.ones(3, 3).to_sparse(), 1.0), TypeError, "Y"),
        (lambda: normball.project_l1inf(torch.tensor(3.0), 1.0), ValueError, "Y"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), -1.0), ValueError, "radius"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), torch.tensor(-1.0)), ValueError, "radius"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), torch.tensor(1j)), TypeError, "radius"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), torch.ones(2)), ValueError, "radius"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), 1.0, axis=2), ValueError, "axis"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), 1.0, method="none"), ValueError, "method"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), 1.0, out=np.ones((3, 3))), TypeError, "out"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), 1.0, out=torch.ones(3, 2)), ValueError, "out"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), 1.0, out=torch.ones(3, 3).double()), TypeError, "out"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), 1.0, out=torch.ones(3, 3, device="meta")), ValueError, "out"),
        (lambda: normball.project_l1inf_(torch.ones(3, 3, requires_grad=True), 1.0), ValueError, "Y"),
        (lambda: normball.project_l1inf(torch.ones(3, 3), 1.0, warm_start=3), TypeError, "warm_start"),
        (lambda: normball.project_l1inf(torch.full((3, 3), torch.nan), 1.0), ValueError, "Y"),
    ],
)
def test_refusals_name_the_argument(call, error, name):
    with pytest.raises(error, match=rf"\b{name}\b"):
        call()


def test_in_place_without_grad():
    W = torch.nn.Parameter(matrix(4, 5, dtype=torch.float32))
    with torch.no_grad():
        assert normball.project_l1inf_(W, 0.5) is W
    assert normball.norm_l1inf(W.detach()) <= 0.5 * (1 + 1e-6)
