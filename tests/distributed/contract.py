"""The contract on sharded tensors. Run under torchrun; every rank checks all of it, against one process.

    torchrun --nproc-per-node 2 -m tests.distributed.contract
"""

from __future__ import annotations

import hashlib
import itertools
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


def same_everywhere(number):
    """Whether all ranks have the same number."""
    seen = torch.tensor([number, -number], dtype=torch.int64)
    dist.all_reduce(seen, dist.ReduceOp.MAX)
    return int(seen[0]) == -int(seen[1])


def whole(X):
    """The whole result, and the proof that no rank has another."""
    full = X.full_tensor() if isinstance(X, DTensor) else X
    bits = full.contiguous().numpy().tobytes()
    assert same_everywhere(int.from_bytes(hashlib.blake2b(bits, digest_size=7).digest())), "ranks differ"
    return full.numpy()


TURN = itertools.count()


def my_turn():
    """Judging is dear: each result is judged by one rank, in turn. A failure ends the job on all of them."""
    return next(TURN) % dist.get_world_size() == dist.get_rank()


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


def cases():
    """Placements and matrices: every placement with some matrices, every matrix with some placements."""
    placed = list(meshes())
    for number, (name, shape, dtype) in enumerate(MATRICES):
        for other, (mesh, placements) in enumerate(placed):
            if len(placed) == 3 or (number + other) % 4 == 0:
                yield mesh, placements, data.matrix(name, shape, dtype), name


@check
def l1inf_is_exact_for_every_placement():
    case = next(case for case in FAST_CASES if case.ball == "l1inf")
    for (mesh, placements, Y, name), axis in itertools.product(list(cases()), (0, 1)):
        D = shard(Y, mesh, placements)
        info = None
        for part in RADII:
            radius = part * case.exact_norm(Y, axis)
            X, info = normball.project_l1inf(D, radius, axis=axis, return_info=True)
            assert X.placements == D.placements, X.placements
            note = f"{name} {placements}"
            got, mu = whole(X), info.mu.full_tensor().numpy()
            warm = normball.project_l1inf(D, radius, axis=axis, warm_start=info).full_tensor().numpy()
            again = normball.project_l1inf(D, radius, axis=axis)
            assert judge.same_bits(again.to_local().numpy(), X.to_local().numpy()), note
            if my_turn():
                judge.assert_optimal(case, Y, got, radius, axis, note=note)
                judge.assert_optimal(case, Y, warm, radius, axis, note=f"{note} warm")
                judge.assert_close(case, got, normball.project_l1inf(Y, radius, axis=axis), Y, axis, note=note)
                cap = np.expand_dims(mu, axis)
                assert np.array_equal(got, np.clip(Y, -cap, cap)), note
                if placements == (Replicate(),):
                    assert np.array_equal(got, normball.project_l1inf(Y, radius, axis=axis)), note


@check
def the_family_is_exact_for_every_placement():
    for mesh, placements, Y, name in list(cases())[::3]:
        D = shard(Y, mesh, placements)
        for case in FAST_CASES:
            if case.ball == "l1inf":
                continue
            for axis, part in itertools.product((0, 1) if case.groups else (0,), (1e-3, 0.3)):
                radius = part * float(case.exact_norm(Y, axis))
                if radius == 0.0:
                    continue
                X, info = case.project(D, radius, axis=axis, return_info=True)
                assert X.placements == D.placements, X.placements
                got = whole(X)
                if my_turn():
                    note = f"{name} {placements}"
                    judge.assert_optimal(case, Y, got, radius, axis, note=note)
                    alone, told = case.project(torch.from_numpy(Y.copy()), radius, axis=axis, return_info=True)
                    judge.assert_close(case, got, alone.numpy(), Y, axis, note=f"{case} {note}")
                    assert info.theta.shape == told.theta.shape
                    assert info.mu.shape == told.mu.shape


@check
def proximal_operators_and_norms():
    names = ("l1", "l2", "linf", "l1inf", "l12", "linf1", "linf2")
    for mesh, placements, Y, name in list(cases())[::5]:
        D, plain = shard(Y, mesh, placements), torch.from_numpy(Y.astype(np.float64))
        for ball in names:
            for axis in (0, 1):
                norm = getattr(normball, f"norm_{ball}")
                got, wanted = norm(D, axis), norm(plain, axis)
                got = got.full_tensor() if isinstance(got, DTensor) else got
                assert torch.allclose(got, wanted, rtol=1e-12, atol=0.0), (ball, axis, placements)
                if ball == "linf2":
                    continue
                prox = getattr(normball, f"prox_{ball}")
                scale = 0.2 * float(wanted.max())
                X = whole(prox(D, scale, axis=axis))
                off = np.abs(X - prox(torch.from_numpy(Y.copy()), scale, axis=axis).numpy().astype(np.float64)).max()
                assert off <= judge.rounding(Y.dtype, Y.size) * np.abs(Y).max(), (ball, axis, placements, name, off)


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
