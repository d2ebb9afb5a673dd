"""The training loop: weighted batches, one generator for each epoch, and a state that can be laid down and taken up."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from normball.estimators._network import Autoencoder, generator
from normball.estimators._ranks import ALONE, Ranks
from normball.estimators._rows import Rows
from normball.estimators._states import expecting, flattened, put_slots, read, slots_of, under, unflattened, write
from normball.nn.constrain import Constraint

__all__ = ["Progress", "Schooling", "train"]

Callback = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Schooling:
    """How to train: what stays the same in all the descents of one fit."""

    batch_size: int
    reconstruction_weight: float
    seed: int
    ranks: Ranks = ALONE


class Progress:
    """Tells a callback of each epoch, and keeps what a checkpoint holds.

    A fit is a row of stages. Of those that are over the checkpoint holds the weights, of the one under way the state
    of the optimizer and of the constraints too. All else is computed anew, from the same seed.
    """

    def __init__(
        self, callback: Callback | None, path: str | Path | None, fingerprint: str, ranks: Ranks = ALONE
    ) -> None:
        self._callback, self._fingerprint = callback, fingerprint
        self._writes = ranks.rank == 0  # all of them read it
        self._path = None if path is None else Path(path)
        self._epochs: dict[str, int] = {}
        self._tensors: dict[str, Tensor] = {}
        if self._path is not None and self._path.exists():
            self._load(self._path)

    def _load(self, path: Path) -> None:
        with expecting("checkpoint: expected a file that an unfinished fit has left", path, "; remove it"):
            told, self._tensors = read(path)
            self._epochs, fingerprint = told["epochs"], told["fingerprint"]
        if fingerprint != self._fingerprint:
            raise ValueError(
                f"checkpoint: expected one of the same parameters and data, got another in {path}; remove it"
            )

    def resume(
        self,
        stage: str,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        constraints: Sequence[Constraint],
        epochs: int,
    ) -> int:
        """Put network, optimizer and constraints where the checkpoint left them; return the epochs that are done."""
        done = self._epochs.get(stage, 0)
        if done:
            mine = under(self._tensors, f"{stage}/")
            network.load_state_dict(under(mine, "network/"))
            if done < epochs:
                put_slots(optimizer, under(mine, "going on/optimizer/"))
                for number, constraint in enumerate(constraints):
                    constraint.load_state_dict(unflattened(under(mine, f"going on/constraint {number}/")))
        return done

    def after(
        self,
        stage: str,
        epoch: int,
        epochs: int,
        loss: float,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        constraints: Sequence[Constraint],
    ) -> None:
        """Lay the state down, then tell of the epoch: whoever stops the fit there can go on from there."""
        if self._path is not None and self._writes:
            gone = f"{stage}/going on/"
            self._tensors = {name: value for name, value in self._tensors.items() if not name.startswith(gone)}
            for name, value in network.state_dict().items():
                self._tensors[f"{stage}/network/{name}"] = value.detach().cpu().clone()
            if epoch < epochs:
                self._tensors |= slots_of(optimizer, f"{gone}optimizer/")
                for number, constraint in enumerate(constraints):
                    self._tensors |= flattened(constraint.state_dict(), f"{gone}constraint {number}/")
            self._epochs[stage] = epoch
            fresh = self._path.with_name(self._path.name + ".new")
            write({"fingerprint": self._fingerprint, "epochs": self._epochs}, self._tensors, fresh)
            os.replace(fresh, self._path)  # never half a checkpoint
        if self._callback is not None:
            self._callback({"stage": stage, "epoch": epoch, "epochs": epochs, "loss": loss})

    def finish(self) -> None:
        """Remove the checkpoint of a fit that is over."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def train(
    network: Autoencoder,
    optimizer: torch.optim.Optimizer,
    rows: Rows,
    y: Tensor,
    weight: Tensor,
    *,
    epochs: int,
    schooling: Schooling,
    stage: str,
    progress: Progress,
    constraints: Sequence[Constraint] = (),
) -> None:
    """Minimise ``reconstruction_weight * SmoothL1 + CrossEntropy``, each sample by its weight.

    Data that fit into one batch are taken in their order; others are shuffled anew in each epoch. The constraints
    follow the optimizer by themselves; they are named here so that a checkpoint holds their state.
    """
    count, ranks = len(y), schooling.ranks
    weight = weight * (count / weight.sum())
    network.train()
    for epoch in range(progress.resume(stage, network, optimizer, constraints, epochs), epochs):
        order = torch.arange(count)
        if count > schooling.batch_size:
            order = order[torch.randperm(count, generator=generator(schooling.seed, 2, epoch))]
        total = 0.0
        for index in torch.split(order, schooling.batch_size):
            mine = rows.mine(index)
            X = rows.batch(mine)
            w = weight[mine]
            Z, copy = network(X)
            each = functional.cross_entropy(Z, y[mine], reduction="none")
            if copy is not None and schooling.reconstruction_weight:
                apart = functional.smooth_l1_loss(copy, X, reduction="none").mean(1)
                each = each + schooling.reconstruction_weight * apart
            loss = (w * each).sum() / len(index)  # of all the ranks, when added up
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            ranks.add_up(parameter.grad for parameter in network.parameters())
            optimizer.step()
            total += float(loss.detach()) * len(index)
        total = float(ranks.total(np.array(total)))
        progress.after(stage, epoch + 1, epochs, total / count, network, optimizer, constraints)
    network.eval()
