"""The descents: how a network comes to read few features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from normball.estimators._network import FIRST, Autoencoder
from normball.estimators._path import ball_of, scores, threshold
from normball.estimators._rows import Rows
from normball.estimators._training import Progress, Schooling, train
from normball.nn.constrain import constrain
from normball.nn.double_descent import Frozen
from normball.nn.radii import Rule

__all__ = [
    "DESCENTS",
    "RANKING_STEPS",
    "Plan",
    "compacted",
    "final",
    "first_descent",
    "layer",
    "narrowed",
    "ranker",
    "ranking_steps",
    "whole",
]

DESCENTS = ("refit", "double", "masked", "projected")

Indices = npt.NDArray[np.intp]

RANKING_STEPS = 12  # of gradient descent with momentum: more of them fit the noise, and rank worse
RANKING_HIDDEN = 32  # more neurons rank no better
LEAST_STEPS = 60  # of Adam, however few the batches of an epoch


@dataclass(frozen=True)
class Plan:
    """All that the descents of one fit share."""

    hidden: Sequence[int]
    classes: int
    activation: str
    norm: str | None
    descent: str
    epochs: int | None
    learning_rate: float | None
    schooling: Schooling
    progress: Progress
    dtype: torch.dtype
    device: torch.device
    constraints: Mapping[Any, Any] = field(default_factory=dict)  # balls of other layers than the first

    def network(self, features: int, outputs: int | None = None) -> Autoencoder:
        """Return a network with its initial weights."""
        made = Autoencoder(
            features,
            self.hidden,
            self.classes,
            self.activation,
            seed=self.schooling.seed,
            outputs=outputs,
            dtype=self.dtype,
        )
        return made.to(self.device)

    def taught(
        self,
        network: Autoencoder,
        rows: Rows,
        y: Tensor,
        weight: Tensor,
        stage: str,
        rate: float,
        ball: Any = None,
    ) -> Autoencoder:
        """Train with Adam, the first layer projected onto the ball after each epoch if there is one.

        Returns the network.
        """
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learning_rate or rate)
        batches = math.ceil(len(y) / self.schooling.batch_size)
        epochs = self.epochs or max(20, math.ceil(LEAST_STEPS / batches))
        constraints = []
        if ball is not None:
            each = {"every": batches, "warmup_steps": batches - 1}
            constraints.append(constrain(network, optimizer, {FIRST: ball}, **each))
        if self.constraints:
            constraints.append(constrain(network, optimizer, self.constraints))
        train(
            network,
            optimizer,
            rows,
            y,
            weight,
            epochs=epochs,
            schooling=self.schooling,
            stage=stage,
            progress=self.progress,
            constraints=constraints,
        )
        return network


@dataclass(frozen=True)
class _Leaving(Rule):
    """The radius that leaves so many columns, for every norm that has a path."""

    norm: str
    count: int

    def radius(self, step: float, Y: Tensor, ball: Any) -> float:
        """See `Rule`."""
        return threshold(Y.detach().cpu().numpy(), self.norm, self.count)[1]


def first_descent(
    plan: Plan, rows: Rows, y: Tensor, weight: Tensor, features: int, stage: str, start: Tensor | None = None
) -> Autoencoder:
    """Train a network on all the features, for the sake of its first layer.

    The paper's way is Adam from random weights. The fast way, "refit", needs a ranking alone: no decoder, a first layer
    that starts at zero, so that nothing random is ranked, and plain gradient descent with momentum, because Adam
    gives steps of one size to the features that matter and to those that do not.
    """
    if plan.descent != "refit":
        network = plan.network(features)
        if start is not None:
            with torch.no_grad():
                network.first.weight.copy_(start)
        return plan.taught(network, rows, y, weight, stage, 1e-3)
    network, optimizer = ranker(plan, rows, features, len(y), start)
    train(
        network,
        optimizer,
        rows,
        y,
        weight,
        epochs=math.ceil(RANKING_STEPS / math.ceil(len(y) / plan.schooling.batch_size)),
        schooling=plan.schooling,
        stage=stage,
        progress=plan.progress,
    )
    return network


def ranker(
    plan: Plan, rows: Rows, features: int, samples: int, start: Tensor | None
) -> tuple[Autoencoder, torch.optim.SGD]:
    """Return the network that ranks for "refit", and its optimizer."""
    plan = replace(plan, hidden=[min(size, RANKING_HIDDEN) for size in plan.hidden])
    network = plan.network(features, outputs=0)
    with torch.no_grad():
        if start is None:
            network.first.weight.zero_()
        else:
            network.first.weight.copy_(start)
        some = torch.arange(min(samples, plan.schooling.batch_size))
        squares = rows.batch(rows.mine(some)).square().sum()
        # The curvature grows with the length of the samples.
        size = float(plan.schooling.ranks.total(np.array(float(squares)))) / len(some)
    return network, ranking_steps(network, min(100.0 / max(size, 1e-12), 1.0))


def ranking_steps(network: Autoencoder, rate: float) -> torch.optim.SGD:
    """Return the optimizer of the network that ranks."""
    return torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9)


def layer(network: Autoencoder) -> npt.NDArray[Any]:
    """Return the first layer's weights."""
    return np.asarray(network.first.weight.detach().cpu().numpy())


@torch.no_grad()
def project_(network: Autoencoder, norm: str, radius: float) -> None:
    """Project the first layer."""
    weight = network.first.weight
    weight.copy_(torch.from_numpy(ball_of(norm, radius).project(layer(network))))


def whole(plan: Plan, rows: Rows, y: Tensor, weight: Tensor, features: int) -> Autoencoder:
    """Train on all the features, without a projection."""
    return plan.taught(plan.network(features), rows, y, weight, "whole", 1e-3)


def compacted(plan: Plan, rows: Rows, y: Tensor, weight: Tensor, chosen: Indices, stage: str) -> Autoencoder:
    """Train a network that reads and reconstructs the chosen columns alone; in double precision, for it is small."""
    plan = replace(plan, dtype=torch.float64)
    index = np.arange(len(y))
    mean, scale = np.zeros(len(chosen)), np.ones(len(chosen))
    part = Rows(
        rows.columns(index, chosen), mean, scale, plan.dtype, plan.device, plan.schooling.ranks
    ).hold(index)
    return plan.taught(plan.network(len(chosen)), part, y, weight.double(), stage, 1e-2)


def final(
    plan: Plan, first: Autoencoder, rows: Rows, y: Tensor, weight: Tensor, chosen: Indices, radius: float | None
) -> tuple[Autoencoder, Indices]:
    """Return the network of the end, and the columns that it reads: those chosen, or those left by projecting anew.

    With a `radius` the chosen columns are those that its ball leaves; without, the ball follows from their number.
    """
    if plan.descent == "refit":
        return compacted(plan, rows, y, weight, chosen, "refit"), chosen
    norm = plan.norm or "l1inf"
    features = first.first.in_features
    mask = torch.zeros(features, dtype=torch.bool, device=plan.device)
    mask[torch.as_tensor(chosen, device=plan.device)] = True
    network = plan.network(features)

    if plan.descent == "projected":
        wanted: Any = radius if radius is not None else _Leaving(norm, len(chosen))
        plan.taught(network, rows, y, weight, "projected", 1e-3, ball_of(norm, wanted))
        kept = np.flatnonzero(scores(layer(network), norm) > 0.0)
        return narrowed(network, kept), kept
    bound = radius if radius is not None else threshold(layer(first), norm, len(chosen))[1]
    if plan.descent == "masked":
        network.load_state_dict(first.state_dict())
        project_(network, norm, bound)
        entries = network.first.weight.detach() != 0
    else:
        shrunk = torch.from_numpy(ball_of(norm, bound).project(layer(first)))
        entries = (shrunk != 0).to(plan.device)  # the survivors go back to their initial values
    frozen = Frozen({FIRST: network.get_parameter(FIRST)}, {FIRST: entries & mask})
    try:
        plan.taught(network, rows, y, weight, plan.descent, 1e-3)
    finally:
        frozen.remove()
    return narrowed(network, chosen), chosen


@torch.no_grad()
def narrowed(network: Autoencoder, chosen: Indices) -> Autoencoder:
    """Return the same network, reading the chosen columns alone; the others have weight zero."""
    old = network.first
    small = torch.nn.Linear(len(chosen), old.out_features, dtype=old.weight.dtype, device=old.weight.device)
    small.weight.copy_(old.weight[:, torch.as_tensor(chosen, device=old.weight.device)])
    small.bias.copy_(old.bias)
    network.encoder[0] = small
    return network.eval()
