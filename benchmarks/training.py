"""What the constraint costs a training step: ``python -m benchmarks.training [--device cuda]``.

On the CPU the supervised autoencoder 10000-100-2, batch 32, its first weight projected at every step; on CUDA a
transformer of four layers and width 1024, the first weight of every feed-forward block projected at every step. Steps
with and without the projection take turns; medians. Weights that are constrained train otherwise, and a step may then
take longer for reasons of its own; so, on the CPU, also a step from the same weights, projected when its time is over.
Also the projection of a tensor against that of an array, the derivative against a copy, and the memory of both at its
peak.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

import normball
from benchmarks.cases.memory import ALLOCATOR, status


def seconds(action: Callable[[], Any], device: str) -> float:
    start = time.perf_counter()
    action()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def by_turns(
    actions: dict[str, Callable[[], Any]],
    device: str,
    rounds: int,
    of: Callable[[list[float]], float] = median,
    after: dict[str, Callable[[], Any]] | None = None,
) -> dict[str, float]:
    """Time the actions in turn; what comes `after` one of them is not timed."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(3 + rounds):
        for name, action in actions.items():
            times[name].append(seconds(action, device))
            if after is not None and name in after:
                after[name]()
    return {name: of(values[3:]) for name, values in times.items()}


class Autoencoder(nn.Module):
    def __init__(self, features: int = 10000) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, 100), nn.ReLU(), nn.Linear(100, 2))
        self.decoder = nn.Sequential(nn.Linear(2, 100), nn.ReLU(), nn.Linear(100, features))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = self.encoder(x)
        return z, self.decoder(z)


def autoencoder_step(radius: float | None) -> Callable[[], None]:
    return _autoencoder(radius)[0]


def _autoencoder(radius: float | None) -> tuple[Callable[[], None], normball.nn.Constraint | None]:
    torch.manual_seed(0)
    model, x, y = Autoencoder(), torch.randn(32, 10000), torch.randint(2, (32,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    constraint = None
    if radius is not None:
        constraint = normball.nn.constrain(model, optimizer, {"encoder.0.weight": normball.L1InfBall(radius)})

    def step() -> None:
        optimizer.zero_grad()
        z, back = model(x)
        (nn.functional.cross_entropy(z, y) + 5e-5 * nn.functional.smooth_l1_loss(back, x)).backward()
        optimizer.step()

    return step, constraint


def transformer_step(share: float | None) -> Callable[[], None]:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, device="cuda")
    model = nn.TransformerEncoder(layer, 4)
    x = torch.randn(16, 512, 1024, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    if share is not None:
        radius = share * float(normball.norm_l1inf(model.layers[0].linear1.weight.detach()))
        normball.nn.constrain(model, optimizer, {r"layers\..*\.linear1\.weight": normball.L1InfBall(radius)})

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()

    return step


def steps(device: str, rounds: int) -> None:
    after = {}
    if device == "cpu":
        actions = {"without": autoencoder_step(None), "with": autoencoder_step(1.0)}
        actions["from the same weights"], constraint = _autoencoder(1.0)
        constraint.remove()
        after["from the same weights"] = constraint.project
        name = "autoencoder 10000-100-2, batch 32"
    else:
        actions = {"without": transformer_step(None), "with": transformer_step(0.2)}
        name = "transformer, 4 layers, width 1024, batch 16 x 512, bfloat16 autocast"
    times = by_turns(actions, device, rounds, after=after)
    took = times.pop("with")
    told = ", ".join(f"{100 * (took / t - 1):+.1f} % over {1e3 * t:.2f} ms {what}" for what, t in times.items())
    print(f"{name}: {1e3 * took:.2f} ms a step with the projection: {told}")


def tensors_and_arrays(rounds: int) -> None:
    for shape in ((100, 10000), (1000, 1000), (4096, 4096)):
        T = torch.randn(shape)
        X = torch.empty_like(T)
        Y, out = T.numpy(), X.numpy()  # the same memory: where it lies makes a difference too
        radius = 0.01 * float(normball.norm_l1inf(T))
        times = by_turns(
            {
                "array": lambda Y=Y, r=radius, out=out: normball.project_l1inf(Y, r, out=out),
                "tensor": lambda T=T, r=radius, X=X: normball.project_l1inf(T, r, out=X),
            },
            "cpu",
            4 * rounds,
            min,  # what is asked for is the overhead of a call, not the noise of the machine
        )
        print(f"{shape}: a tensor takes {times['tensor'] / times['array']:.3f} of the time of an array")


def backward(device: str, rounds: int) -> None:
    for shape, axis in (((4096, 4096), 0), ((4096, 4096), 1)):
        W = torch.randn(shape, device=device, requires_grad=True)
        G = torch.randn(shape, device=device)
        for share in (0.01, 0.5):
            radius = share * float(normball.norm_l1inf(W.detach(), axis))
            X = normball.project_l1inf(W, radius, axis=axis)
            times = by_turns(
                {
                    "copy": lambda G=G: G.clone(),
                    "backward": lambda X=X, W=W, G=G: torch.autograd.grad(X, W, G, retain_graph=True),
                },
                device,
                rounds,
            )
            ratio = times["backward"] / times["copy"]
            print(f"derivative {shape} axis {axis} radius {share} of the norm: {ratio:.2f} copies")


def peak(action: Callable[[], Any], device: str) -> int:
    """Return the bytes that a call takes at its peak beyond what was held before; Linux only, on the CPU."""
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        action()
        return torch.cuda.max_memory_allocated() - before
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = status("VmRSS")
    action()
    return max(status("VmHWM") - before, 0)


def memory(device: str) -> None:
    """Print the memory of a projection, and of one with its derivative, in matrices; the result and the grad count."""
    torch.set_num_threads(1)
    for shape, axis in (((4096, 4096), 0), ((4096, 4096), 1)):
        W = torch.randn(shape, device=device)
        G = torch.randn(shape, device=device)
        size = W.numel() * W.element_size()
        radius = 0.1 * float(normball.norm_l1inf(W, axis))
        small = torch.randn(8, 8, device=device, requires_grad=True)
        normball.project_l1inf(small, 1.0).sum().backward()

        def both(W: torch.Tensor = W, G: torch.Tensor = G, radius: float = radius, axis: int = axis) -> None:
            Y = W.detach().requires_grad_()
            normball.project_l1inf(Y, radius, axis=axis).backward(G)

        alone = peak(lambda W=W, r=radius, a=axis: normball.project_l1inf(W, r, axis=a), device) / size
        whole = peak(both, device) / size
        print(f"memory {shape} axis {axis}: projection {alone:.2f} matrices, with its derivative {whole:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--memory", action="store_true", help="measure the memory alone, in this process")
    options = parser.parse_args()
    if options.memory:
        memory(options.device)
        return
    steps(options.device, options.rounds)
    if options.device == "cpu":
        tensors_and_arrays(options.rounds)
    backward(options.device, options.rounds)
    if options.device == "cuda" or Path("/proc/self/clear_refs").exists():  # in a process whose allocator hides nothing
        command = [sys.executable, "-m", "benchmarks.training", "--memory", "--device", options.device]
        subprocess.run(command, env=os.environ | ALLOCATOR, check=True)


if __name__ == "__main__":
    main()
