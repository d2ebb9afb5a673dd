"""A small training under FSDP2 with constraints and checkpoints, whose ranks can be told to die.

    torchrun --nproc-per-node 2 -m tests.distributed.job FOLDER [STEP AT WHICH RANK 1 DIES]
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import normball
from normball.nn import constrain

STEPS, EVERY = 9, 3
BALLS = {"0.weight": normball.L1InfBall(1.0), "2.weight": normball.L1InfBall(0.6, axis=1)}


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(13, 10), nn.ReLU(), nn.Linear(10, 3)).double()


def batch(step):
    random = torch.Generator().manual_seed(100 + step)
    return torch.randn(16, 13, generator=random, dtype=torch.float64), torch.randint(3, (16,), generator=random)


def learn(model, optimizer, step, part=slice(None)):
    X, y = batch(step)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(X[part]), y[part]).backward()
    optimizer.step()


def made(model, balls=BALLS):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    return optimizer, constrain(model, optimizer, balls)


def alone(steps=STEPS):
    """The same training in one process, without any sharding."""
    model = network()
    optimizer, constraint = made(model)
    for step in range(steps):
        learn(model, optimizer, step)
    return model, constraint


def mine():
    return slice(dist.get_rank(), None, dist.get_world_size())


def sharded(mesh=None):
    mesh = mesh or init_device_mesh("cpu", (dist.get_world_size(),))
    model = network()
    fully_shard(model[0], mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def train(folder, dies_at=None):
    """Train from the last checkpoint in the folder, if there is one; return the model and where it began."""
    model = sharded()
    optimizer, constraint = made(model)
    done = max([int(path.name) for path in Path(folder).iterdir() if (path / ".metadata").exists()], default=0)

    def state_of():
        weights, moments = get_state_dict(model, optimizer)
        return {"model": weights, "optimizer": moments, "constraint": constraint.state_dict()}

    if done:
        state = state_of()
        dcp.load(state, checkpoint_id=str(Path(folder) / str(done)))
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        constraint.load_state_dict(state["constraint"])
        assert constraint.steps == done
    for step in range(done, STEPS):
        if step == dies_at and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        learn(model, optimizer, step, mine())
        if (step + 1) % EVERY == 0:
            dcp.save(state_of(), checkpoint_id=str(Path(folder) / str(step + 1)))
    return model, done


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    train(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
    dist.destroy_process_group()
