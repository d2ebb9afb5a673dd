"""What a sharded projection costs: ``python -m benchmarks.distributed [--ranks 1 2 4] [--members M] [--groups N]``.

Launches itself with torchrun for each number of ranks, with gloo on this machine, and prints a line of JSON for each
placement: seconds, median over the repetitions; the same in copies of a rank's part, made by all ranks at once; the
collectives; and the bytes that a rank puts into them. A warm start comes from the same matrix with every entry moved by
a thousandth of its standard deviation. Each result is verified against one process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import normball


@contextmanager
def counted() -> Iterator[list[int]]:
    """Collect the bytes of each collective that the projection makes."""
    seen: list[int] = []
    originals = {name: getattr(dist, name) for name in ("all_reduce", "all_gather_into_tensor")}

    def watched(original: Any, place: int) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            seen.append(arguments[place].numel() * arguments[place].element_size())
            return original(*arguments, **options)

        return call

    try:
        dist.all_reduce = watched(originals["all_reduce"], 0)
        dist.all_gather_into_tensor = watched(originals["all_gather_into_tensor"], 1)
        yield seen
    finally:
        for name, original in originals.items():
            setattr(dist, name, original)


def seconds(action: Callable[[], Any], repeat: int) -> float:
    """Median over the repetitions of the time of the slowest rank."""
    times = []
    for _ in range(repeat):
        dist.barrier()
        begin = time.perf_counter()
        action()
        took = torch.tensor([time.perf_counter() - begin], dtype=torch.float64)
        dist.all_reduce(took, dist.ReduceOp.MAX)
        times.append(float(took))
    return statistics.median(times)


def measure(members: int, groups: int, repeat: int) -> None:
    ranks = dist.get_world_size()
    mesh = init_device_mesh("cpu", (ranks,))
    torch.manual_seed(0)
    Y = torch.randn(members, groups)
    moved = Y + 1e-3 * torch.randn(members, groups)
    norm = float(normball.norm_l1inf(Y))
    for where, placement in (("groups whole", Shard(1)), ("groups cut", Shard(0))):
        first, second = (distribute_tensor(Z, mesh, [placement], src_data_rank=None) for Z in (Y, moved))
        copy = seconds(first.to_local().clone, 3 * repeat)
        for part in (0.002, 0.1, 0.5):
            radius = part * norm
            with counted() as cold:
                X, info = normball.project_l1inf(first, radius, return_info=True)
            with counted() as warm:
                normball.project_l1inf(second, radius, warm_start=info)
            took = {
                "cold": seconds(partial(normball.project_l1inf, first, radius), repeat),
                "warm": seconds(partial(normball.project_l1inf, second, radius, warm_start=info), repeat),
            }
            off = float((X.full_tensor() - normball.project_l1inf(Y, radius)).abs().max())
            assert off <= 1e-6 * float(Y.abs().max()), off
            active = info.n_nonzero
            if dist.get_rank() == 0:
                for start, seen in (("cold", cold), ("warm", warm)):
                    told = {
                        "ranks": ranks, "members": members, "groups": groups, "where": where, "radius": part,
                        "active": active, "start": start, "seconds": took[start],
                        "copies": took[start] / copy, "collectives": len(seen), "bytes": sum(seen),
                    }  # fmt: skip
                    print(json.dumps(told), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--members", type=int, default=2048)
    parser.add_argument("--groups", type=int, default=2048)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    if "RANK" in os.environ:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        measure(options.members, options.groups, options.repeat)
        dist.destroy_process_group()
        return
    rest = ["--members", str(options.members), "--groups", str(options.groups), "--repeat", str(options.repeat)]
    for ranks in options.ranks:
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "NORMBALL_NUM_THREADS": "1"}
        subprocess.run([*launch, "-m", "benchmarks.distributed", *rest], env=environment, check=True)


if __name__ == "__main__":
    main()
