"""The contract on sharded tensors. Run under torchrun; every rank checks all of it, against one process.

    torchrun --nproc-per-node 2 -m tests.distributed.contract
"""

from __future__ import annotations

import itertools
import os
import sys
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

import normball
from tests.contract import data, judge
from tests.contract.registry import FAST_CASES

DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def shard(Y, mesh, placements):
    """Every rank cuts its part out of what all of them hold."""
    return distribute_tensor(torch.from_numpy(np.array(Y)), mesh, placements, src_data_rank=None)


def whole(X):
    """The whole result, and the proof that no rank has another."""
    full = X.full_tensor() if isinstance(X, DTensor) else X
    seen = [None] * dist.get_world_size()
    dist.all_gather_object(seen, full.contiguous().view(torch.uint8).numpy().tobytes() if full.ndim else float(full))
    assert all(other == seen[0] for other in seen), "ranks differ"
    return full


def meshes():
    """Every way that two axes can lie on a mesh of one or two dimensions."""
    ranks = dist.get_world_size()
    line = init_device_mesh("cpu", (ranks,))
    for placement in (Shard(0), Shard(1), Replicate()):
        yield line, (placement,)
    if ranks == 4:
        square = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        kinds = (Shard(0), Shard(1), Replicate())
        for pair in itertools.product(kinds, kinds):
            if pair != (Replicate(), Replicate()):
                yield square, pair


MATRICES = [
    ("normal", (33, 21), "float64"), ("normal", (64, 40), "float32"), ("normal", (40, 17), "float16"),
    ("ties", (31, 17), "float64"), ("zero_groups", (17, 31), "float64"), ("lognormal", (20, 9), "float64"),
    ("geometric", (16, 16), "float64"), ("constant", (9, 15), "float32"), ("one_hot", (8, 7), "float64"),
    ("sparse", (65, 12), "float64"), ("normal", (1, 5), "float64"), ("normal", (5, 1), "float64"),
    ("normal", (3, 2), "float64"), ("cauchy", (50, 10), "float64"),
]  # fmt: skip
RADII = (1e-6, 0.05, 0.3, 0.999)


@check
def l1inf_is_exact_for_every_placement():
    case = next(case for case in FAST_CASES if case.ball == "l1inf")
    for (mesh, placements), (name, shape, dtype) in itertools.product(list(meshes()), MATRICES):
        Y = data.matrix(name, shape, dtype)
        for axis, part in itertools.product((0, 1), RADII):
            radius = part * case.exact_norm(Y, axis)
            D = shard(Y, mesh, placements)
            X, info = normball.project_l1inf(D, radius, axis=axis, return_info=True)
            assert X.placements == D.placements, X.placements
            note = f"{name} {placements}"
            got = whole(X).numpy()
            judge.assert_optimal(case, Y, got, radius, axis, note=note)
            judge.assert_close(case, got, normball.project_l1inf(Y, radius, axis=axis), Y, axis, note=note)
            mu = info.mu.full_tensor().numpy()
            cap = np.expand_dims(mu, axis)
            assert np.array_equal(got, np.clip(Y, -cap, cap)), note
            again = normball.project_l1inf(D, radius, axis=axis)
            assert judge.same_bits(again.full_tensor().numpy(), got), note
            warm = normball.project_l1inf(D, radius, axis=axis, warm_start=info).full_tensor().numpy()
            judge.assert_optimal(case, Y, warm, radius, axis, note=f"{note} warm")


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    chosen = sys.argv[1:]
    for function in CHECKS:
        if not chosen or function.__name__ in chosen:
            function()
            if dist.get_rank() == 0:
                print("passed", function.__name__, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
