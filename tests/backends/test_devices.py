"""The device kernels, run on the CPU by Triton's interpreter, and the plain version that replaces them elsewhere."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import normball
from normball.backends import cuda
from normball.backends.cuda import plain
from normball.backends.torch_rules import RULES
from normball.reference import oracle

from ..contract.data import DISTRIBUTIONS, matrix

pytest.importorskip("triton")
import triton
import triton.language as tl

from normball.backends.cuda import beside, launch, parts, tangent

if not launch.INTERPRETED:
    pytest.skip("a GPU runs the kernels themselves", allow_module_level=True)

# Triton's interpreter computes with NumPy, which warns of infinities and of what is no number; a GPU does not.
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning:triton.runtime.interpreter"),
    pytest.mark.filterwarnings("ignore:overflow encountered in reduce:RuntimeWarning:numpy._core.fromnumeric"),
]

DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
PARTS = (1e-9, 0.02, 0.4, 0.999)
WIDE = {torch.float64: tl.float64, torch.float32: tl.float32}
TILES = {"resident": (1 << 15, 1 << 13), "streaming": (1 << 12, 1 << 7)}


@pytest.fixture(params=["plain", *TILES])
def way(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(cuda, "_kernels_for", lambda Y: None)
    else:
        elements, streamed = TILES[request.param]
        monkeypatch.setattr(launch, "ELEMENTS", elements)
        monkeypatch.setattr(launch, "STREAMED", streamed)
        if request.param == "streaming":  # or all would fit into one block
            monkeypatch.setattr(launch, "_fits", lambda groups, members, processors: 0)
            monkeypatch.setattr(beside, "TILE", streamed)
    for kept in (launch.plan, launch._prepared, beside.prepared):
        kept.cache_clear()
    yield request.param
    for kept in (launch.plan, launch._prepared, beside.prepared):
        kept.cache_clear()


def project(Y, radius, axis=0, batch=(), start=None):
    X = torch.full_like(Y, math.nan)
    mu, theta = cuda.project_l1inf(Y, X, torch.tensor(radius, dtype=torch.float64), [axis], list(batch), start)
    return X, mu, theta


def judge(Y, X, radius, axis, note):
    """The optimality conditions to a few units of rounding, and the norm."""
    eps = torch.finfo(Y.dtype).eps
    wide = Y.double().numpy(), X.double().numpy()
    n = Y.shape[axis]
    scale = float(np.abs(wide[0]).max())
    assert np.abs(wide[1]).max(axis=axis).sum() <= radius * (1 + 4 * eps), note
    tiny = torch.finfo(Y.dtype).smallest_normal / scale if scale else 0.0
    allowed = 4 * eps + (16 + 4 * math.sqrt(n)) * 2.3e-16 + tiny
    assert oracle.kkt_residual(*wide, radius, axis) <= allowed, note


@pytest.mark.parametrize(
    ("distribution", "dtype"),
    [*((name, "float32") for name in DISTRIBUTIONS), *(("normal", dtype) for dtype in DTYPES if dtype != "float32")],
)
def test_optimal(way, distribution, dtype):
    for shape, layouts in [((1, 1), 1), ((20, 12), 2)]:
        base = torch.from_numpy(matrix(distribution, shape).copy()).to(DTYPES[dtype])
        for axis, Y in ((0, base), (1, base))[:layouts]:
            norm = float(np.abs(Y.double().numpy()).max(axis=axis).sum())
            if norm == 0:
                continue
            for part in PARTS:
                note = (way, distribution, dtype, shape, axis, part)
                X, mu, theta = project(Y, part * norm, axis)
                judge(Y, X, part * norm, axis, note)
                cap = mu.unsqueeze(axis)
                assert torch.equal(X.abs(), Y.abs().minimum(cap)), note
                moved = (Y.double() * 1.01 + 1e-3 * norm / Y.shape[1 - axis] * Y.double().sign()).to(Y.dtype)
                judge(moved, project(moved, part * norm, axis, start=(mu, theta))[0], part * norm, axis, note)


def test_steps_of_training(way):
    # Most members lie at their caps and cross them at every step; theta is of the size of the steps, and changes more.
    rng = np.random.default_rng(3)
    Y = torch.from_numpy(rng.normal(size=(40, 12))).float()
    for axis in (0, 1):
        radius = 0.2 * float(Y.abs().amax(axis).sum())
        X, *start = project(Y, radius, axis)
        for step in (1e-3, 1e-2, 2e-3, 1e-4):
            moved = X + step * torch.from_numpy(rng.normal(size=X.shape)).float()
            X, *start = project(moved, radius, axis, start=start)
            judge(moved, X, radius, axis, (way, axis, step))


def test_edges(way):
    Y = torch.from_numpy(matrix("normal", (12, 9)).copy()).float()
    X, mu, theta = project(Y, 0.0)
    assert not X.any()
    assert not mu.any()
    assert float(theta) == pytest.approx(float(Y.abs().sum(0).max()), rel=1e-6)
    for radius in (1e3, math.inf):
        X, mu, theta = project(Y, radius)
        assert torch.equal(X, Y)
        assert torch.equal(mu, Y.abs().amax(0))
        assert float(theta) == 0.0
    assert not project(torch.zeros(4, 5), 1.0)[0].any()
    for bad in (math.nan, math.inf, -math.inf):
        Z = Y.clone()
        Z[3, 4] = bad
        X, mu, theta = project(Z, 1.0)
        assert X.isnan().all()
        assert mu.isnan().all()
        assert theta.isnan()
    assert project(Y, -1.0)[0].isnan().all()
    if way != "plain":
        huge = Y.double() * 5e306  # the sum of all of them overflows, that of a group does not
        assert huge.abs().sum(0).isfinite().all()
        for start in (None, (torch.zeros(9, dtype=torch.float64), torch.zeros((), dtype=torch.float64))):
            assert project(huge, 1e306, start=start)[0].isnan().all()


def test_equal_groups_and_a_tiny_radius(way):
    # Rounding leads theta beyond all the groups, and it must find back.
    Y = torch.full((8, 40), -0.1)
    for axis in (0, 1):
        for part in (1e-6, 1e-9, 1e-12):
            radius = part * float(Y.double().abs().amax(axis).sum())
            X, _, _ = project(Y, radius, axis)
            assert float(X.double().abs().amax(axis).sum()) == pytest.approx(radius, rel=1e-6)
            judge(Y, X, radius, axis, (way, axis, part))


def test_batches_and_axes(way):
    Y = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 5, 3, 4))).float()
    for axis, batch in (((1, 2), (0,)), ((0, 2, 3), ()), ((3,), (1,)), ((1,), (0, 3))):
        for radius in (0.5,):
            X = torch.full_like(Y, math.nan)
            value = torch.tensor(radius, dtype=torch.float64)
            mu, theta = cuda.project_l1inf(Y, X, value, list(axis), list(batch), None)
            expected, info = normball.project_l1inf(Y, radius, axis=axis, batch_axis=batch or None, return_info=True)
            torch.testing.assert_close(X, expected)
            torch.testing.assert_close(mu, info.mu)
            torch.testing.assert_close(theta, info.theta, rtol=1e-6, atol=0)


def test_out_in_any_place(way):
    Y = torch.from_numpy(matrix("normal", (16, 12)).copy()).float()
    expected = normball.project_l1inf(Y, 2.0)
    big = torch.zeros(40, 40)
    for X in (big[:16, :12], big.T[:16, :12], big[3:35:2, 1:37:3]):
        cuda.project_l1inf(Y, X, torch.tensor(2.0, dtype=torch.float64), [0], [], None)
        torch.testing.assert_close(X, expected)
    W = Y.clone()
    cuda.project_l1inf(W, W, torch.tensor(2.0, dtype=torch.float64), [0], [], None)
    torch.testing.assert_close(W, expected)
    W = torch.zeros(20, 12)
    W[:16] = Y
    cuda.project_l1inf(W[:16], W[4:], torch.tensor(2.0, dtype=torch.float64), [0], [], None)  # across one another
    torch.testing.assert_close(W[4:], expected)


@settings(max_examples=8)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 10**6), st.sampled_from([1e-6, 0.05, 0.5, 0.95]))
def test_starts_of_nonsense_change_nothing(groups, members, seed, part):
    rng = np.random.default_rng(seed)
    Y = torch.from_numpy(rng.normal(size=(members, groups))).float()
    radius = part * float(Y.abs().amax(0).double().sum())
    mu = torch.from_numpy(rng.choice([0.0, math.nan, math.inf, -1.0, 1e30, 0.1], size=groups)).float()
    theta = torch.tensor(rng.choice([0.0, math.nan, math.inf, -1.0, 1e30, 3.0]))
    judge(Y, project(Y, radius, start=(mu, theta))[0], radius, 0, "nonsense")
    _, mu, theta = project(Y, radius)
    far = rng.choice([0.0, 0.1, 0.9, 1.0, 1.1, 10.0], size=2)
    judge(Y, project(Y, radius, start=(mu * float(far[0]), theta * far[1]))[0], radius, 0, far)


def test_the_same_bits_on_every_call():
    Y = torch.from_numpy(matrix("normal", (40, 30)).copy()).float()
    results = [project(Y, 5.0)[0] for _ in range(3)]
    assert all(torch.equal(result, results[0]) for result in results)


@triton.jit
def neighbours(v, t, under, over, A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, WIDE: tl.constexpr):
    at, there, g = parts.tile_at(v, 0, A, R * B, R * B, 1, A, R, B, False, 1, 1, tl.int32, True)
    low, high = parts.gap_at(tl.load(at, mask=there), tl.load(t + g), False, WIDE)
    tl.store(under + g, low)
    tl.store(over + g, high)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_members_next_to_a_threshold(dtype):
    rows = torch.tensor([[1.0, 2, 3, 4, 5, 6, 7, 8], [0] * 8, [2] * 8, [1e-38, 3e38, 0, 2, 2, 1, 2, 1]]).to(dtype)
    tiny = float(torch.finfo(dtype).smallest_normal)
    for t, under, over in (
        ([4.5, 0.0, 2.0, 2.0], [4, 0, 2, 2], [5, math.inf, math.inf, float(rows[3, 1])]),
        ([8.0, 1.0, 1.9, 1e-30], [8, 0, 0, float(rows[3, 0])], [math.inf, math.inf, 2, 1]),
        ([0.0, tiny, 0.0, 0.0], [0, 0, 0, 0], [1, math.inf, 2, float(rows[3, 0])]),
    ):
        got = torch.empty(2, 4, dtype=dtype)
        neighbours[(1,)](rows, torch.tensor(t, dtype=torch.float64), *got, A=4, R=2, B=4, WIDE=WIDE[dtype])
        assert got.tolist() == [under, over]


def test_rounding_down():
    values = torch.from_numpy(np.random.default_rng(0).random(500) * np.geomspace(1e-1, 1e4, 500) + 1e-3)
    for dtype in DTYPES.values():
        down = plain.rounded_down(values, dtype)
        assert (down.double() <= values).all()
        assert (values - down.double() <= values * torch.finfo(dtype).eps).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kept", [tangent.KEPT, 1 << 8])
def test_the_derivative(dtype, kept, monkeypatch):
    monkeypatch.setattr(tangent, "KEPT", kept)
    monkeypatch.setattr(tangent, "STREAMED", kept // 4)
    tangent._prepared.cache_clear()
    for shape, axis in (((33, 20), (0,)), ((20, 33), (1,)), ((6, 5, 4), (0, 2)), ((5, 4), (0, 1))):
        Y, V = (torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).to(dtype) for seed in (0, 1))
        for radius in (0.7, 4.0, 1e3):
            _, info = normball.project_l1inf(Y, radius, axis=axis, return_info=True)
            with torch.enable_grad():
                expected = RULES["l1inf"].tangent(Y.double(), info.mu.double(), info.theta, V.double(), list(axis), [])
            with torch.no_grad():
                got = cuda.tangent_l1inf(Y, info.mu, info.theta, V, list(axis), [])
            torch.testing.assert_close(got[0].double(), expected[0], rtol=0, atol=8 * torch.finfo(dtype).eps)
            torch.testing.assert_close(got[1], expected[1].double(), rtol=1e-6, atol=1e-9)
    tangent._prepared.cache_clear()
