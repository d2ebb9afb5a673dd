"""Training on many ranks against training on one: DDP, FSDP2, and the autoencoder on a table on a disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel

import normball
from normball.balls import BALLS
from normball.balls.sparsity import SPARSIFYING
from normball.nn import LinearSchedule, NGroups
from tests.distributed import job


def full(parameter):
    return (parameter.full_tensor() if isinstance(parameter, DTensor) else parameter).detach()


def assert_like(model, other, note):
    for (name, a), b in zip(model.named_parameters(), other.parameters(), strict=True):
        off = float((full(a) - full(b)).abs().max())
        assert off < 1e-10, (note, name, off)


def ddp_trains_as_one_process():
    model = job.network()
    wrapped = DistributedDataParallel(model)
    optimizer, _ = job.made(model)
    for step in range(job.STEPS):
        job.learn(wrapped, optimizer, step, job.mine())
    assert_like(model, job.alone()[0], "ddp")


def fsdp_trains_as_one_process_and_gathers_no_weights():
    ranks = dist.get_world_size()
    meshes = [None] if ranks == 2 else [init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))]
    for mesh in meshes:
        model = job.sharded(mesh)
        optimizer, constraint = job.made(model)
        counts = []
        for step in range(job.STEPS):
            X, y = job.batch(step)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(X[job.mine()]), y[job.mine()]).backward()
            model.reshard()
            with CommDebugMode() as seen:
                optimizer.step()
            counts.append({str(name): number for name, number in seen.get_comm_counts().items() if number})
        assert_like(model, job.alone()[0], "fsdp")
        assert all(set(found) == {"c10d.allreduce_"} for found in counts), counts
        assert max(sum(found.values()) for found in counts[3:]) <= 2 * 6, counts
        for name, ball in job.BALLS.items():
            parameter = model.get_parameter(name)
            assert isinstance(parameter, DTensor)
            assert ball.contains(parameter)
            assert constraint.infos[name].n_nonzero == job.alone()[1].infos[name].n_nonzero


def so_many_groups_of_a_sharded_parameter():
    gathered = []
    plainly = DTensor.full_tensor

    def watched(self, **options):
        gathered.append(self.numel())
        return plainly(self, **options)

    for name in SPARSIFYING:
        for axis, n, left in ((0, 4, 4), (1, 0.3, 3), (0, LinearSchedule(1.0, 0.5, steps=2), 6)):
            if name == "l1":
                continue  # single entries, below
            model, plain = job.sharded(), job.network()
            balls = {"0.weight": BALLS[name](NGroups(n), axis)}
            gathered.clear()
            for network, part in ((model, job.mine()), (plain, slice(None))):
                optimizer, _ = job.made(network, balls)
                for step in range(3):
                    with pytest.MonkeyPatch.context() as patched:
                        patched.setattr(DTensor, "full_tensor", watched)
                        job.learn(network, optimizer, step, part)
            assert_like(model, plain, (name, axis, n))
            weight = full(model.get_parameter("0.weight"))
            assert int((weight != 0).any(axis).sum()) == left, (name, axis, n)
            assert gathered
            assert max(gathered) <= weight.shape[1 - axis], (name, axis, gathered)  # no entries
    model = job.sharded()
    optimizer, _ = job.made(model, {"0.weight": normball.L1Ball(NGroups(4))})
    with pytest.raises(ValueError, match=r"0\.weight: Y: expected a tensor that is not sharded"):
        job.learn(model, optimizer, 0, job.mine())


def the_autoencoder_reads_its_own_rows():
    from normball.estimators import SupervisedAutoencoder

    rng = np.random.default_rng(0)
    y = rng.integers(3, size=301)
    X = rng.normal(size=(301, 40))
    X[:, :3] += 2.0 * np.eye(3)[y]
    rank, ranks = dist.get_rank(), dist.get_world_size()
    with tempfile.TemporaryDirectory() as folder:
        # Each rank has a table of its own, in which the rows of the others cannot be used.
        mine = np.full_like(X, np.nan)
        rows = slice(rank * len(X) // ranks, (rank + 1) * len(X) // ranks)
        mine[rows] = X[rows]
        np.save(Path(folder) / "table.npy", mine)
        table = np.load(Path(folder) / "table.npy", mmap_mode="r")
        for options in ({"n_features_to_select": 3}, {"n_features_to_select": 3, "descent": "projected"}):
            options |= {"batch_size": 64, "head": "linear", "random_state": 0, "epochs": 3}
            found = SupervisedAutoencoder(distributed=True, **options).fit(table, y)
            wanted = SupervisedAutoencoder(**options).fit(X, y)
            assert np.array_equal(found.support_, wanted.support_), options
            assert np.allclose(found.predict_proba(X), wanted.predict_proba(X), atol=1e-8), options
            weights = found.network_.first.weight
            assert torch.allclose(weights, wanted.network_.first.weight, atol=1e-8), options
            sums = torch.stack([weights.sum(), -weights.sum()])
            dist.all_reduce(sums, dist.ReduceOp.MAX)
            assert sums[0] == -sums[1], "ranks differ"
        broken = mine.copy()
        if rank == ranks - 1:
            broken[-1, 0] = np.inf
        with pytest.raises(ValueError, match="finite"):
            SupervisedAutoencoder(3, distributed=True).fit(broken, y)


CHECKS = [fsdp_trains_as_one_process_and_gathers_no_weights]
ON_TWO = [ddp_trains_as_one_process, so_many_groups_of_a_sharded_parameter, the_autoencoder_reads_its_own_rows]
