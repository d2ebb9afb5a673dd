"""The contract on sharded tensors. Run under torchrun; every rank checks all of it, against one process.

    torchrun --nproc-per-node 2 -m tests.distributed.contract
"""

from __future__ import annotations

import hashlib
import itertools
import sys
import time
from datetime import timedelta

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

import normball
from tests.contract import data, judge
from tests.contract.registry import FAST_CASES
from tests.distributed import training

DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
CHECKS = []  # on any number of ranks
ON_TWO = []  # and those that four would tell no more of


def check(function):
    CHECKS.append(function)
    return function


def check_on_two(function):
    ON_TWO.append(function)
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
RADII = (1e-6, 0.05, 0.7)


def cases():
    """Placements and matrices: every placement with some matrices, every matrix with some placements."""
    placed = list(meshes())
    for number, (name, shape, dtype) in enumerate(MATRICES):
        for other, (mesh, placements) in enumerate(placed):
            if len(placed) == 3 or (number + other) % 8 == 0:
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
    for mesh, placements, Y, name in list(cases())[:: 3 if dist.get_world_size() == 2 else 2]:
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


@check_on_two
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


def line():
    return init_device_mesh("cpu", (dist.get_world_size(),))


@check_on_two
def few_collectives_and_few_bytes():
    rng = np.random.default_rng(3)
    Y = rng.normal(size=(512, 256))
    moved = Y + 1e-3 * rng.normal(size=Y.shape)
    norm = float(np.abs(Y).max(0).sum())
    for placement, part in itertools.product((Shard(0), Shard(1)), (0.003, 0.05, 0.5)):
        first, second = (shard(Z, line(), (placement,)) for Z in (Y, moved))
        with CommDebugMode() as cold:
            _, info = normball.project_l1inf(first, part * norm, return_info=True)
        with CommDebugMode() as warm:
            X = normball.project_l1inf(second, part * norm, warm_start=info)
        found = cold.get_total_counts(), warm.get_total_counts()
        assert 0 < found[0] <= 6, (placement, part, found)
        assert 0 < found[1] <= 3, (placement, part, found)
        case = next(case for case in FAST_CASES if case.ball == "l1inf")
        judge.assert_optimal(case, moved, whole(X), part * norm)


@check
def batches_and_more_axes():
    rng = np.random.default_rng(4)
    Y = rng.normal(size=(5, 6, 7, 4))
    radii = np.array([0.0, 0.5, 2.0, 1e-3, np.inf])
    ranks = dist.get_world_size()
    ways = [(line(), (Shard(a),)) for a in range(4)]
    if ranks == 4:
        square = init_device_mesh("cpu", (2, 2))
        ways = [(square, (Shard(a), Shard(b))) for a, b in ((0, 1), (1, 2), (3, 1), (2, 3), (1, 1))]
    for mesh, placements in ways:
        D = shard(Y, mesh, placements)
        for axis, batch in (((1, 3), 0), (2, 0), ((0, 1), None), (3, None)):
            radius = radii if batch == 0 else 3.0
            options = {"axis": axis, "batch_axis": batch}
            X, info = normball.project_l1inf(D, radius, return_info=True, **options)
            wanted, told = normball.project_l1inf(Y, radius, return_info=True, **options)
            assert np.abs(whole(X) - wanted).max() < 1e-14, (placements, axis, batch)
            theta = info.theta.full_tensor() if isinstance(info.theta, DTensor) else info.theta
            assert np.allclose(theta.numpy(), told.theta, rtol=1e-13, atol=0), (placements, axis, batch)
            assert np.abs(info.mu.full_tensor().numpy() - told.mu).max() < 1e-14
            for name in ("l12", "linf1", "linf2"):
                project = getattr(normball, f"project_{name}")
                assert np.abs(whole(project(D, radius, **options)) - project(Y, radius, **options)).max() < 1e-14
            bilevel = normball.bilevel_l11
            assert np.abs(whole(bilevel(D, radius, **options)) - bilevel(Y, radius, **options)).max() < 1e-13


@check_on_two
def edges():
    rng = np.random.default_rng(5)
    Y = rng.normal(size=(9, 7))
    norm = float(np.abs(Y).max(0).sum())
    for placement in (Shard(0), Shard(1)):
        D = shard(Y, line(), (placement,))
        for radius in (norm, 2 * norm, np.inf):  # points of the ball come back bit for bit
            assert judge.same_bits(whole(normball.project_l1inf(D, radius)), Y)
            assert judge.same_bits(whole(normball.project_l12(D, np.inf)), Y)
        X, info = normball.project_l1inf(D, 0.0, return_info=True)
        assert not whole(X).any()
        assert abs(float(info.theta) - np.abs(Y).sum(0).max()) < 1e-14
        for scale in (1e300, 1e-300, 2.0**-1060):
            Z = Y * scale
            wanted = normball.project_l1inf(Z, scale)
            got = whole(normball.project_l1inf(shard(Z, line(), (placement,)), scale))
            assert np.abs(got - wanted).max() <= 8e-16 * np.abs(Z).max() + 5e-324, (placement, scale)
            for name in ("l12", "linf1", "l2", "l1"):
                project = getattr(normball, f"project_{name}")
                off = np.abs(whole(project(shard(Z, line(), (placement,)), scale)) - project(Z, scale)).max()
                assert off <= 8e-16 * np.abs(Z).max() + 5e-324, (placement, scale, name, off)
        bad = Y.copy()
        bad[0, 0] = np.nan
        B = shard(bad, line(), (placement,))
        for project in (normball.project_l1inf, normball.project_l12, normball.bilevel_l1inf):
            with pytest.raises(ValueError, match="finite"):
                project(B, 1.0)
            assert np.isnan(whole(project(B, 1.0, check_finite=False))).all(), project.__name__
        empty = shard(np.zeros((0, 4)), line(), (placement,))
        assert normball.project_l1inf(empty, 1.0).shape == (0, 4)
        half = distribute_tensor(torch.randn(40, 20).bfloat16(), line(), (placement,), src_data_rank=0)
        small = normball.project_l1inf(half, 4.0)
        assert small.dtype == torch.bfloat16
        assert float(normball.norm_l1inf(small)) <= 4.0
        # In place, into another, and not at all where it cannot be.
        target = shard(Y, line(), (placement,))
        assert normball.project_l1inf_(target, 1.0) is target
        assert judge.same_bits(whole(target), whole(normball.project_l1inf(D, 1.0)))
        assert normball.project_l12(D, 1.0, out=target) is target
        for wrong, what in ((torch.zeros(9, 7), TypeError), (D.redistribute(placements=[Replicate()]), ValueError)):
            with pytest.raises(what, match="out"):
                normball.project_l1inf(D, 1.0, out=wrong)
        box = normball.project_box(D, -0.5, np.full(7, 0.25))
        assert np.array_equal(whole(box), np.clip(Y, -0.5, 0.25))
        radius = normball.radius_for_sparsity(D, n_groups=3)
        assert abs(radius - normball.radius_for_sparsity(Y, n_groups=3)) < 1e-14
        ties = np.array([[3.0, 2.0, 2.0, 2.0, 1.0, 0.0]] * 4)
        for count in range(7):
            radius = normball.radius_for_sparsity(shard(ties, line(), (placement,)), n_groups=count)
            assert abs(radius - normball.radius_for_sparsity(ties, n_groups=count)) < 1e-14
    with pytest.raises(TypeError, match="redistribute"):
        normball.multilevel(D, 1.0, ("l1", "linf"), (1, 0))
    with pytest.raises(ValueError, match="redistribute"):
        normball.project_l1(D.redistribute(placements=[Shard(0)]), 1.0, axis=0, weights=np.ones((9, 7)))
    heavy = np.linspace(0.5, 2.0, 63).reshape(9, 7)
    light = normball.project_l1(D.redistribute(placements=[Shard(1)]), 1.0, axis=0, weights=heavy)
    assert np.abs(whole(light) - normball.project_l1(Y, 1.0, axis=0, weights=heavy)).max() < 1e-15
    with pytest.raises(ValueError, match="gradient"):
        normball.project_l12(D.detach().requires_grad_(), 1.0)
    assert "sharded" in repr(info)
    partial = DTensor.from_local(torch.ones(4, 4), line(), [Partial()])
    for project in (normball.project_l1inf, normball.project_l12):
        with pytest.raises(ValueError, match="redistribute"):
            project(partial, 1.0)


@check
def derivatives():
    torch.manual_seed(0)
    Y, V = torch.randn(8, 6, dtype=torch.float64), torch.randn(8, 6, dtype=torch.float64)
    for axis, part in itertools.product((0, 1), (1.5, 100.0)):
        plain, radius = Y.clone().requires_grad_(), torch.tensor(part, requires_grad=True, dtype=torch.float64)
        (normball.project_l1inf(plain, radius, axis=axis) * V).sum().backward()
        for mesh, placements in meshes():
            D = distribute_tensor(Y, mesh, placements, src_data_rank=None).requires_grad_()
            mine = torch.tensor(part, requires_grad=True, dtype=torch.float64)
            G = distribute_tensor(V, mesh, placements, src_data_rank=None)
            (normball.project_l1inf(D, mine, axis=axis) * G).sum().backward()
            assert torch.allclose(D.grad.full_tensor(), plain.grad, atol=1e-13), (axis, placements)
            assert torch.allclose(mine.grad, radius.grad, atol=1e-13), (axis, placements)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    chosen = sys.argv[1:]
    more = [*ON_TWO, *training.ON_TWO] if dist.get_world_size() == 2 else []
    for function in [*CHECKS, *training.CHECKS, *more]:
        if not chosen or function.__name__ in chosen:
            begin = time.process_time()
            function()
            if dist.get_rank() == 0:
                print(f"passed {function.__name__} ({time.process_time() - begin:.1f} s of one CPU)", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
