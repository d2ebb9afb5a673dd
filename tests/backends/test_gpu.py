"""The contract of the l1,inf projection on a real GPU; skipped where there is none."""

import math

import numpy as np
import pytest
import torch

import normball
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
