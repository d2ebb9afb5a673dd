"""Data that come in chunks: two networks that go on learning, and the moments of all that was seen."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from normball.estimators import _path
from normball.estimators._descents import RANKING_STEPS, Plan, layer, narrowed, ranker, ranking_steps
from normball.estimators._fitting import Data, Fitted, Request, choice_of
from normball.estimators._heads import Network
from normball.estimators._network import Autoencoder
from normball.estimators._rows import Rows, deviations, sums
from normball.estimators._selection import grid
from normball.estimators._states import flattened, put_slots, slots_of, under, unflattened
from normball.estimators._training import train
from normball.nn.constrain import constrain

__all__ = ["Stream"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

RATE = 1e-2  # of Adam, as for the small network of "refit"


class Stream:
    """What one call of ``partial_fit`` leaves to the next.

    One network ranks the features, as in "refit"; the other learns from those that are ranked best, the rest being set
    to their means, and predicts. Both make one pass over each chunk, unless `epochs` says more.
    """

    def __init__(self, seed: int, network: Autoencoder, rate: float | None = None) -> None:
        features = network.first.in_features
        self.seed, self.dtype = seed, network.first.weight.dtype
        self.count: int | None = None
        self.path: dict[str, npt.NDArray[Any]] = {}
        self._calls = self._steps = 0
        self._total, self._mean, self._square = 0.0, np.zeros(features), np.zeros(features)
        self._network = network
        self._adam = torch.optim.Adam(network.parameters(), lr=rate or RATE)
        self._ranks: Any = None  # the other network and its optimizer, made when the first samples tell their length
        self._constraint: dict[str, Any] | None = None

    def written(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return all of it, as what JSON holds and as tensors."""
        told: dict[str, Any] = {
            "seed": self.seed, "count": self.count, "calls": self._calls, "steps": self._steps, "total": self._total,
            "rate": self._adam.defaults["lr"], "activation": self._network.activation,
        }  # fmt: skip
        tensors = {"mean": torch.from_numpy(self._mean), "square": torch.from_numpy(self._square)}
        tensors |= {f"network/{name}": value.cpu() for name, value in self._network.state_dict().items()}
        tensors |= slots_of(self._adam, "adam/")
        if self._ranks is not None:
            network, sgd = self._ranks
            told["ranking_rate"] = sgd.defaults["lr"]
            tensors |= {f"ranks/{name}": value.cpu() for name, value in network.state_dict().items()}
            tensors |= slots_of(sgd, "sgd/")
        if self._constraint is not None:
            tensors |= flattened(self._constraint, "constraint/")
        return told, tensors

    @classmethod
    def read(cls, told: dict[str, Any], tensors: Mapping[str, Tensor], path: dict[str, npt.NDArray[Any]]) -> Stream:
        """Return the stream that `written` has told of; it goes on to the same bits."""
        stream = cls(told["seed"], Autoencoder.of(under(tensors, "network/"), told["activation"]), told["rate"])
        put_slots(stream._adam, under(tensors, "adam/"))
        stream.count, stream.path, stream._total = told["count"], path, told["total"]
        stream._calls, stream._steps = told["calls"], told["steps"]
        stream._mean, stream._square = tensors["mean"].numpy(), tensors["square"].numpy()
        if "ranking_rate" in told:
            network = Autoencoder.of(under(tensors, "ranks/"), told["activation"])
            sgd = ranking_steps(network, told["ranking_rate"])
            put_slots(sgd, under(tensors, "sgd/"))
            stream._ranks = network, sgd
        constraint = under(tensors, "constraint/")
        stream._constraint = unflattened(constraint) if constraint else None
        return stream

    def _move(self, device: torch.device) -> None:
        """Go on on another device, as after a file was read."""
        if self._network.first.weight.device.type != device.type:
            for network, optimizer in ((self._network, self._adam), *([self._ranks] if self._ranks else [])):
                network.to(device)
                optimizer.load_state_dict(optimizer.state_dict())  # which puts the slots where the parameters are

    def learn(self, X: Any, y: Indices, weight: Floats, plan: Plan, request: Request) -> Fitted:
        """Learn from a chunk."""
        self._move(plan.device)
        plan = replace(plan, dtype=self.dtype, schooling=replace(plan.schooling, seed=self.seed + self._calls))
        inside = np.flatnonzero(weight > 0)
        mean, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if request.standardize:
            self._see(*sums(X, inside, weight))
            mean, scale = self._mean, deviations(self._total, self._mean, self._square)
        rows = Rows(X, mean, scale, plan.dtype, plan.device).hold(inside)
        data = Data(X, y, weight, plan, request.standardize)
        targets, weights = data.tensors(inside)
        how: dict[str, Any] = {"schooling": plan.schooling, "progress": plan.progress}

        chosen = np.arange(X.shape[1])
        score = theta = radius = None
        if plan.norm is not None:
            if self._ranks is None:
                start = None if request.start is None else torch.from_numpy(request.start)
                self._ranks = ranker(plan, rows, X.shape[1], len(inside), start)
                if request.radius is None:
                    self._settle_count(data, request)
            network, sgd = self._ranks
            # A dozen steps at the full rate, as in "refit"; then every chunk has the same say.
            rate = sgd.defaults["lr"] * min(1.0, RANKING_STEPS / max(self._steps, 1))
            sgd.param_groups[0]["lr"] = rate
            train(network, sgd, rows, targets, weights, epochs=1, stage="ranking", **how)
            self._steps += -(-len(inside) // plan.schooling.batch_size)
            W = layer(network)
            score = _path.scores(W, plan.norm)
            count = _path.left(W, plan.norm, request.radius) if request.radius is not None else self.count
            assert count is not None
            chosen = np.sort(_path.ranked(score)[:count])
            theta, radius = _path.threshold(W, plan.norm, count)

        constraints = [constrain(self._network, self._adam, plan.constraints)] if plan.constraints else []
        for constraint in constraints:
            if self._constraint is not None:
                constraint.load_state_dict(self._constraint)
        part = _Chosen(rows, chosen)
        train(
            self._network, self._adam, part, targets, weights,
            epochs=plan.epochs or 1, stage="chunk", constraints=constraints, **how,
        )  # fmt: skip
        for constraint in constraints:
            self._constraint = constraint.state_dict()
            constraint.remove()
        self._calls += 1
        small = narrowed(copy.deepcopy(self._network), chosen)
        if score is None:
            score = _path.scores(layer(small), "l1inf")
        kept = layer(self._ranks[0]) if self._ranks is not None else None
        return Fitted(
            small, "network", Network(small), chosen, mean, scale, score, request.radius or radius, theta, self.path,
            kept, False,
        )  # fmt: skip

    def _see(self, total: float, mean: Floats, square: Floats) -> None:
        """Add the moments of a chunk to those of all before."""
        both = self._total + total
        apart = mean - self._mean
        self._square = self._square + square + np.square(apart) * (self._total * total / both)
        self._mean = self._mean + apart * (total / both)
        self._total = both

    def _settle_count(self, data: Data, request: Request) -> None:
        """Settle how many features, on the first chunk where the number was left open."""
        self.count = request.count
        if self.count is None:
            assert data.plan.norm is not None
            choice = choice_of(data, request, data.plan.norm, grid(data.X.shape[1]), self.seed)
            self.count, self.path = choice.count, {name: np.array(values) for name, values in choice.path.items()}


class _Chosen(Rows):
    """Rows in which all but the chosen columns stand at their means."""

    def __init__(self, rows: Rows, chosen: Indices) -> None:
        super().__init__(rows._X, rows.mean, rows.scale, rows.dtype, rows.device)
        self._all = rows
        self._mask = torch.zeros(len(rows.mean), dtype=rows.dtype, device=rows.device)
        self._mask[torch.as_tensor(chosen, device=rows.device)] = 1.0

    def batch(self, index: Any) -> Tensor:
        """See `Rows`."""
        return self._all.batch(index) * self._mask
