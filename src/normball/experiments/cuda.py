"""The work of the GPU experiment: the default on CUDA beside a copy there, and beside the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import normball
from normball.experiments.experiment import Row, work
from normball.experiments.projections import check_agreement, matrix, radius_at

__all__ = ["available", "on_gpu"]

REPEATS = 30


def available() -> bool:
    """Return whether there is a GPU that torch can use."""
    import torch

    return torch.cuda.is_available()


def _replayed(action: Callable[[], Any]) -> float:
    """Return the milliseconds of one action on the device: the median over replays of a captured graph."""
    import torch

    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            action()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            action()
    taken = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end) / 10)
    return float(median(taken[3:]))


def _clocked(action: Callable[[], Any]) -> float:
    taken = []
    for _ in range(9):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return 1e3 * median(taken)


@work(version=1, timed=True)
def on_gpu(members: int, groups: int, zeros: float, seed: int) -> list[Row]:
    """Project a float32 matrix that lies on the device, and the same one on the CPU with all its threads."""
    import torch

    host = matrix("uniform", members, groups, seed, "float32")
    radius = radius_at(host, "zeros", zeros)
    Y = torch.from_numpy(np.ascontiguousarray(host.T)).cuda().mT  # groups contiguous, as on the host
    X, out = torch.empty_like(Y), np.empty_like(host)
    here = normball.project_l1inf(host, radius)
    there = normball.project_l1inf(Y, radius).cpu().numpy()
    check_agreement({"CPU": here, "GPU": there}, host)
    found = {
        "GPU": _replayed(lambda: normball.project_l1inf(Y, radius, out=X)),
        "copy on the GPU": min(_replayed(lambda: X.copy_(Y)), _replayed(Y.clone)),
        "CPU": _clocked(lambda: normball.project_l1inf(host, radius, out=out)),
    }
    return [{"algorithm": name, "ms": ms} for name, ms in found.items()]
