"""The contract of the l1,inf projection on a real GPU; skipped where there is none."""

import math

import numpy as np
import pytest
import torch

import normball
from normball.backends import cuda
from normball.backends.torch_rules import RULES
from normball.balls.sparsity import SPARSIFYING
from normball.nn import NGroups
from normball.nn.radii import at_step
from normball.reference import oracle

from ..contract.data import DISTRIBUTIONS, matrix

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

SHAPES = [(1, 1), (7, 7), (33, 2), (2, 33), (65, 65), (257, 40), (40, 257), (1000, 300), (3000, 20)]
PARTS = (1e-9, 1e-3, 0.05, 0.3, 0.7, 0.999)


def judge(Y, X, radius, axis, note):
    eps = torch.finfo(Y.dtype).eps
    wide = Y.double().cpu().numpy(), X.double().cpu().numpy()
    assert np.abs(wide[1]).max(axis=axis).sum() <= radius * (1 + 4 * eps), note
    scale = float(np.abs(wide[0]).max())
    tiny = torch.finfo(Y.dtype).smallest_normal / scale if scale else 0.0
    allowed = 4 * eps + (16 + 4 * math.sqrt(Y.shape[axis])) * 2.3e-16 + tiny
    assert oracle.kkt_residual(*wide, radius, axis) <= allowed, note


def run(distribution, shapes, dtype):
    count = 0
    for shape in shapes:
        base = torch.from_numpy(matrix(distribution, shape).copy()).to("cuda", dtype)
        for axis in (0, 1):
            norm = float(base.double().abs().amax(axis).sum())
            if norm == 0:
                continue
            for part in PARTS:
                note = (distribution, shape, axis, part, dtype)
                X, info = normball.project_l1inf(base, part * norm, axis=axis, return_info=True)
                judge(base, X, part * norm, axis, note)
                again = normball.project_l1inf(base, part * norm, axis=axis)
                assert torch.equal(X, again), note
                moved = (base.double() * 1.01 + 1e-4 * norm / shape[1 - axis] * base.double().sign()).to(dtype)
                W = normball.project_l1inf(moved, part * norm, axis=axis, warm_start=info)
                judge(moved, W, part * norm, axis, note)
                count += 2
            for radius in (norm * (1 + 1e-6), math.inf):
                assert torch.equal(normball.project_l1inf(base, radius, axis=axis), base)
    return count


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_single_precision(distribution):
    assert run(distribution, SHAPES, torch.float32) >= 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_other_dtypes(dtype):
    assert run("normal", [(33, 20), (257, 40)], dtype) > 0


@pytest.mark.parametrize("shape", [(1000, 300), (3000, 2500)], ids=str)
def test_steps_of_training(shape):
    # Most members lie at their caps and cross them at every step; theta is of the size of the steps, and changes more.
    generator = torch.Generator("cuda").manual_seed(0)
    Y = torch.randn(shape, generator=generator, device="cuda")
    for axis in (0, 1):
        radius = 0.2 * float(normball.norm_l1inf(Y, axis))
        X, info = normball.project_l1inf(Y, radius, axis=axis, return_info=True)
        for step in (1e-3, 1e-2, 1e-3, 1e-4):
            moved = X + step * torch.randn(shape, generator=generator, device="cuda")
            again = normball.project_l1inf(moved, radius, axis=axis, warm_start=info)
            X, info = normball.project_l1inf(moved, radius, axis=axis, warm_start=info, return_info=True)
            judge(moved, X, radius, axis, (shape, axis, step))
            assert torch.equal(X, again)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_derivative(dtype):
    for shape in [(7, 7), (3, 9000), (1000, 300), (3000, 2500)]:
        generator = torch.Generator("cuda").manual_seed(0)
        Y, V = (torch.randn(shape, generator=generator, device="cuda").to(dtype) for _ in range(2))
        for axis in (0, 1):
            for part in (0.01, 0.5, 2.0):
                note = (shape, axis, part, dtype)
                radius = part * float(normball.norm_l1inf(Y, axis))
                _, info = normball.project_l1inf(Y, radius, axis=axis, return_info=True)
                place = Y, info.mu, info.theta, V, [axis], []
                with torch.no_grad():
                    X, mean = cuda.tangent_l1inf(*place)
                    again = cuda.tangent_l1inf(*place)
                with torch.enable_grad():  # in torch operations
                    expected = RULES["l1inf"].tangent(Y.double(), info.mu.double(), info.theta, V.double(), [axis], [])
                assert float((X.double() - expected[0]).abs().max()) <= 8 * torch.finfo(dtype).eps, note
                assert float(mean) == pytest.approx(float(expected[1]), rel=1e-6, abs=1e-5), note
                assert torch.equal(X, again[0]), note
                assert torch.equal(mean, again[1]), note


def test_edges():
    Y = torch.randn(64, 48, device="cuda")
    assert not normball.project_l1inf(Y, 0.0).any()
    Y[3, 4] = math.nan
    assert normball.project_l1inf(Y, 1.0).isnan().all()


def test_graphs_and_streams_do_not_disturb_each_other():
    Y = torch.randn(1000, 300, device="cuda")
    big = torch.randn(4096, 4096, device="cuda")
    once, large = normball.project_l1inf(Y, 3.0), normball.project_l1inf(big, 3.0, axis=1)
    torch.cuda.synchronize()
    captured = []
    for _ in range(3):  # more launches than there are spare places
        graph, results = torch.cuda.CUDAGraph(), []
        with torch.cuda.graph(graph):
            for _ in range(40):
                results.append(normball.project_l1inf(Y, 3.0))
        captured.append((graph, results))
    other = torch.cuda.Stream()
    for _ in range(3):
        for graph, results in captured:
            for X in results:
                X.fill_(math.nan)
            other.wait_stream(torch.cuda.current_stream())
            graph.replay()
            with torch.cuda.stream(other):
                beside = normball.project_l1inf(big, 3.0, axis=1)
            torch.cuda.current_stream().wait_stream(other)
            assert torch.equal(beside, large)
            assert all(torch.equal(X, once) for X in results)


def steps_of(model, constraint, count, seed):
    """Move the parameters as an optimizer would, and project them; return copies of what came out."""
    generator = torch.Generator("cuda").manual_seed(seed)
    results = []
    for _ in range(count):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=generator, device="cuda"), alpha=1e-2)
        constraint.project()
        results.append([parameter.detach().clone() for parameter in model.parameters()])
    return results


def constrained(recorded):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(300, 200, device="cuda"), torch.nn.Linear(200, 50, device="cuda"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    balls = {"0.weight": normball.L1InfBall(3.0), "1.weight": normball.L1InfBall(2.0, axis=1)}
    constraint = normball.nn.constrain(model, optimizer, balls)
    if not recorded:
        constraint._recording.replay = lambda *_: False
    return model, constraint


def test_recorded_steps_are_the_same_steps():
    both = [constrained(recorded) for recorded in (True, False)]

    def same(seed, count=5):
        results = [steps_of(model, constraint, count, seed) for model, constraint in both]
        assert all(torch.equal(X, Y) for a, b in zip(*results, strict=True) for X, Y in zip(a, b, strict=True))

    same(0)
    recording = both[0][1]._recording
    graph = recording._graph
    assert graph is not None
    same(1)
    assert recording._graph is graph
    for model, _ in both:  # elsewhere in memory
        model[0].weight.data = model[0].weight.data.clone()
    same(2)
    assert recording._graph is not graph
    for _, constraint in both:  # onto another ball
        constraint.balls["1.weight"] = normball.L1InfBall(1.0, axis=1)
    same(3)
    for _, constraint in both:  # from an earlier state
        constraint.load_state_dict({"steps": 3, "starts": {}})
    same(4)
    assert float(normball.norm_l1inf(both[0][0][1].weight, 1)) <= 1.0 * (1 + 1e-6)


def test_recorded_steps_inside_another_graph():
    model, constraint = constrained(recorded=True)
    steps_of(model, constraint, 4, 0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        constraint.project()
    with torch.no_grad():
        model[0].weight += 1.0
    graph.replay()
    assert float(normball.norm_l1inf(model[0].weight)) <= 3.0 * (1 + 1e-6)


def test_the_host_never_waits():
    Y = torch.randn(300, 200, device="cuda")
    large = torch.randn(4096, 4096, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        for Z in (Y, Y.T, Y.to(torch.bfloat16), large, large.T):
            for _ in range(2):
                _, info = normball.project_l1inf(Z, 3.0, return_info=True)
                normball.project_l1inf(Z, 3.0, warm_start=info)
        W = Y.clone().requires_grad_()
        normball.project_l1inf(W, 3.0).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert W.grad.isfinite().all()


@pytest.mark.parametrize("name", SPARSIFYING)
def test_a_number_of_groups_is_kept_without_waiting(name):
    generator = torch.Generator("cuda").manual_seed(0)
    for shape in [(33, 20), (1000, 300), (300, 1000)]:
        for dtype in (torch.float32, torch.bfloat16):
            Y = torch.randn(shape, generator=generator, device="cuda").to(dtype)
            Y[:, :3] = 0.0
            for n in (1, 7, 0.25, 0.98, 1.0):
                note = (shape, dtype, n)
                ball = normball.BALLS[name](NGroups(n))
                at_step(ball, 0, Y).project(Y)  # compiles the kernels
                torch.cuda.set_sync_debug_mode("error")
                try:
                    found = at_step(ball, 0, Y)
                    X = found.project(Y)
                finally:
                    torch.cuda.set_sync_debug_mode("default")
                wide = Y.double().cpu()
                wanted = at_step(ball, 0, wide)
                assert float(found.radius) == pytest.approx(float(wanted.radius), rel=1e-12), note
                kept, expected = (Z.cpu() != 0 for Z in (X, wanted.project(wide)))
                if name != "l1":
                    kept, expected = kept.any(0), expected.any(0)
                assert torch.equal(kept, expected), note
