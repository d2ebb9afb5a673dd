"""The projection on a GPU: ``python -m benchmarks.gpu [--out FILE]``. Needs torch, Triton and a CUDA device.

Every time is of a CUDA graph's replay, the median of many, and every result is checked by the optimality conditions in
double precision before its time counts. Radii are given by the share of zero groups that they leave.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor

import normball
from normball.backends.cuda import plain

SHAPES = {  # members x groups
    "1000x1000": (1000, 1000),
    "100x10000": (100, 10000),
    "10000x100": (10000, 100),
    "2048x2048": (2048, 2048),
    "4096x4096": (4096, 4096),
    "16384x16384": (16384, 16384),
}
MOVE = 1e-3


def replay(action: Callable[[], Any], repeats: int = 30) -> float:
    """Microseconds of one replay of the captured action."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            action()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    inner = 10
    with torch.cuda.graph(graph):
        for _ in range(inner):
            action()
    graph.replay()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / inner * 1e3)
    return median(times)


def eager(action: Callable[[], Any], calls: int = 50) -> float:
    """Microseconds of one call, many in a row."""
    for _ in range(5):
        action()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        action()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls * 1e6


def sorted_groups(A: Tensor) -> Tensor:
    return A.double().sort(dim=1, descending=True).values


def radius_for(Y: Tensor, axis: int, zeros: float) -> float:
    """Return the radius that leaves this share of the groups zero."""
    A = Y.abs()
    sums = A.sum(axis, dtype=torch.float64)
    theta = float(sums.quantile(zeros)) if zeros > 0 else 0.5 * float(sums.min())
    total = 0.0
    for part in A.movedim(axis, 1).split(max(1, (1 << 24) // A.shape[axis])):
        Z = sorted_groups(part)
        k = torch.arange(1, Z.shape[1] + 1, device=Y.device)
        total += float(((Z.cumsum(1) - theta) / k).amax(1).clamp(min=0).sum())
    return total


def residual(Y: Tensor, X: Tensor, radius: float, axis: int) -> float:
    """Return the greatest violation of the optimality conditions, over the largest entry, in units of rounding."""
    Y, X = Y.movedim(axis, 1), X.movedim(axis, 1)
    eps = torch.finfo(Y.dtype).eps
    caps, loss, counts = [], [], []
    exact = True
    for y, x in zip(Y.split(max(1, (1 << 26) // Y.shape[1])), X.split(max(1, (1 << 26) // Y.shape[1])), strict=True):
        cap = x.abs().amax(1)
        exact &= torch.equal(x, y.clamp(-cap[:, None], cap[:, None]))
        caps.append(cap.double())
        loss.append((y.abs().double() - x.abs().double()).sum(1))
        counts.append((y.abs() > cap[:, None]).sum(1))
    mu, lost, k = torch.cat(caps), torch.cat(loss), torch.cat(counts).double()
    if not exact or float(mu.sum()) > radius * (1 + 4 * eps):
        return float("inf")
    alive = mu > 0
    weight = 1.0 / k[alive].clamp(min=1)
    theta = float((lost[alive] * weight).sum() / weight.sum())
    worst = max(
        float(((lost[alive] - theta).abs() * weight).max()),
        (radius - float(mu.sum())) / int(alive.sum()),
        float(((lost[~alive] - theta) / Y.shape[1]).max()) if not alive.all() else 0.0,
    )
    return worst / float(Y.abs().max()) / eps


def by_sorting(Y: Tensor, radius: Tensor) -> Tensor:
    """Project the usual way: sort each group, then search theta, as `normball`'s plain version does."""
    mu, _ = plain.caps(Y.mT[None], radius)
    return plain.clip(Y.mT[None], mu)[0].mT


def by_newton(Y: Tensor, radius: Tensor) -> Tensor:
    """Project as one would write it for `torch.compile`: sort each group, running sums, a few Newton steps on theta."""
    Z = Y.abs().sort(1, descending=True).values
    S = Z.cumsum(1, dtype=torch.float64)
    k = torch.arange(1, Y.shape[1] + 1, device=Y.device, dtype=torch.float64)
    theta = torch.zeros((), dtype=torch.float64, device=Y.device)
    for _ in range(12):
        mu, count = ((S - theta) / k).max(1)
        alive = S[:, -1] > theta
        slope = torch.where(alive, 1.0 / (count + 1), 0.0).sum()
        theta = theta + (torch.where(alive, mu, 0.0).sum() - radius) / slope
    mu = torch.where(S[:, -1] > theta, ((S - theta) / k).amax(1), 0.0).to(Y.dtype)[:, None]
    return torch.clamp(Y, -mu, mu)


def measure(name: str, strided: bool, dtype: torch.dtype, zeros: float, rivals: bool) -> dict[str, Any]:
    n, m = SHAPES[name]
    generator = torch.Generator("cuda").manual_seed(0)
    shape = (n, m) if strided else (m, n)
    axis = 0 if strided else 1
    base = torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32).to(dtype)
    radius = radius_for(base, axis, zeros)
    moved = (base + MOVE * torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32)).to(dtype)
    X = torch.empty_like(base)
    record: dict[str, Any] = {"matrix": name, "strided": strided, "dtype": str(dtype)[6:], "zeros": zeros}
    copies = [replay(lambda: X.copy_(base)), replay(base.clone)]
    record["copy"] = min(copies)
    _, info = normball.project_l1inf(base, radius, axis=axis, return_info=True)
    X.fill_(float("nan"))
    normball.project_l1inf(base, radius, axis=axis, out=X)
    record["residual"] = residual(base, X, radius, axis)
    X.fill_(float("nan"))
    normball.project_l1inf(moved, radius, axis=axis, out=X, warm_start=info)
    record["warm residual"] = residual(moved, X, radius, axis)
    record["cold"] = replay(lambda: normball.project_l1inf(base, radius, axis=axis, out=X))
    record["warm"] = replay(lambda: normball.project_l1inf(moved, radius, axis=axis, out=X, warm_start=info))
    record["eager"] = eager(lambda: normball.project_l1inf(base, radius, axis=axis, out=X))
    if rivals:
        C = torch.tensor([radius], device="cuda", dtype=torch.float64)
        Z = base if strided else base.mT
        normball.project_l1inf(base, radius, axis=axis, out=X)
        record["sort"] = replay(lambda: by_sorting(Z, C), 5)
        if not strided:  # else Inductor gives up
            compiled = torch.compile(by_newton)
            record["compiled error"] = float((compiled(base, C) - X).abs().max())
            record["compiled"] = replay(lambda: compiled(base, C), 5)
    return record


# The rest of the family: (name, arguments) on a matrix of groups, or on a vector.
FAMILY = ("project_l12", "bilevel_l1inf", "bilevel_l11", "project_linf1", "project_l1", "project_simplex")


def measure_family(name: str, shape: tuple[int, ...], axis: int | None) -> dict[str, Any]:
    """Return times of one operator at a tenth of the norm, and of a copy; the result is compared with the core."""
    generator = torch.Generator("cuda").manual_seed(0)
    Y = torch.randn(shape, generator=generator, device="cuda")
    options = {} if axis is None else {"axis": axis}
    function = getattr(normball, name)
    norm = normball.norm_l1(Y) if name in ("project_l1", "project_simplex", "bilevel_l11") else None
    norm = normball.norm_l12(Y, axis=axis) if name == "project_l12" else norm
    norm = normball.norm_linf1(Y, axis=axis) if name == "project_linf1" else norm
    norm = normball.norm_l1inf(Y, axis=axis) if norm is None else norm
    radius = 0.1 * float(norm)
    truth = function(Y.double().cpu().numpy(), radius, **options)
    error = float((function(Y, radius, **options).double().cpu() - torch.from_numpy(truth)).abs().max())
    out = torch.empty_like(Y)
    there = torch.tensor(radius, dtype=torch.float64, device="cuda")
    wide = Y.clone().requires_grad_()  # differentiable: by torch operations, as one would write it with torch.sort
    return {
        "operator": name, "shape": list(shape), "axis": axis, "error": error / float(Y.abs().max()),
        "copy": replay(lambda: out.copy_(Y)), "ours": replay(lambda: function(Y, radius, **options)),
        "sort": replay(lambda: function(wide, there, **options), 5),
    }  # fmt: skip


def family() -> list[dict[str, Any]]:
    records = []
    print(f"{'operator':16s} {'shape':>14s} {'axis':>5s} {'copy':>8s} {'ours':>8s} {'by sort':>9s}  ratio  error")
    for name in FAMILY:
        vector = name in ("project_l1", "project_simplex")
        for shape in ((1_000_000,), (10_000_000,)) if vector else ((1000, 1000), (4096, 4096)):
            for axis in (None,) if vector else (0, 1):
                r = measure_family(name, shape, axis)
                records.append(r)
                print(f"{name:16s} {'x'.join(map(str, shape)):>14s} {axis!s:>5s} {r['copy']:8.1f} {r['ours']:8.1f} "
                      f"{r['sort']:9.1f} {r['ours'] / r['copy']:6.2f} {r['error']:7.1e}", flush=True)  # fmt: skip
    return records


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--only", nargs="+", default=list(SHAPES))
    parser.add_argument("--zeros", nargs="+", type=float, default=[0.99, 0.9, 0.5, 0.0])
    parser.add_argument("--dtypes", nargs="+", default=["float32"])
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--family", action="store_true", help="the other operators instead")
    parser.add_argument("--out")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    if options.family:
        save(family(), options.out)
        return
    print(f"{'matrix':12s} {'groups':10s} {'dtype':9s} {'zeros':>5s} {'copy':>8s} {'cold':>9s} {'warm':>9s} "
          f"{'eager':>9s} {'residuals':>12s}  ratios")  # fmt: skip
    records = []
    for dtype in options.dtypes:
        for name in options.only:
            for strided in (False, True):
                for zeros in options.zeros:
                    r = measure(name, strided, getattr(torch, dtype), zeros, options.rivals and zeros == 0.9)
                    records.append(r)
                    more = " ".join(f"{key} {r[key]:.0f}" for key in ("sort", "compiled") if key in r)
                    print(f"{name:12s} {'strided' if strided else 'contiguous':10s} {dtype:9s} {zeros:5.2f} "
                          f"{r['copy']:8.1f} {r['cold']:9.1f} {r['warm']:9.1f} {r['eager']:9.1f} "
                          f"{r['residual']:6.2f}{r['warm residual']:6.2f}  {r['cold'] / r['copy']:5.2f} "
                          f"{r['warm'] / r['copy']:5.2f} {more}", flush=True)  # fmt: skip
    save(records, options.out)


def save(records: list[dict[str, Any]], path: str | None) -> None:
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(r) + "\n" for r in records)


if __name__ == "__main__":
    main()
