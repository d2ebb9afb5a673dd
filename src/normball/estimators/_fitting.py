"""One fit, from the checked data to the network, the head and the path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from normball.estimators import _path
from normball.estimators._descents import Plan, compacted, final, first_descent, layer, whole
from normball.estimators._expand import associated
from normball.estimators._growth import POOL, Growth
from normball.estimators._heads import HEADS, Head, Network
from normball.estimators._network import Autoencoder
from normball.estimators._rows import Rows, moments
from normball.estimators._selection import Choice, Fold, choose, grid, splits

__all__ = ["Data", "Fitted", "Request", "choice_of", "fit"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


REPEATS = 3  # of the inner folds, where samples are few and features many: there one partition tells little
FEW_SAMPLES = 200
CHOICE_SAMPLES = 20000  # on which the number of features and the head are chosen; a choice needs no more


@dataclass(frozen=True)
class Request:
    """What the user asked for, apart from how to train."""

    count: int | None
    radius: float | None
    grown: bool
    head: str
    cv: Any
    standardize: bool
    expand: str | None
    start: npt.NDArray[Any] | None


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves."""

    network: Autoencoder
    head_name: str
    head: Head
    chosen: Indices
    mean: Floats
    scale: Floats
    score: Floats
    radius: float | None
    theta: float | None
    path: dict[str, npt.NDArray[Any]]
    layer: npt.NDArray[Any] | None
    expanded: bool


class Data:
    """The table, the classes as numbers and the weights; and parts of them, standardised by their own moments."""

    def __init__(self, X: Any, y: Indices, weight: Floats, plan: Plan, standardize: bool) -> None:
        self.X, self.y, self.weight, self.plan, self.standardize = X, y, weight, plan, standardize
        self.ranks = plan.schooling.ranks

    def rows(self, index: Indices) -> Rows:
        features = self.X.shape[1]
        mean, scale = np.zeros(features), np.ones(features)
        if self.standardize:
            mean, scale = moments(self.X, index, self.weight, self.ranks)
        return Rows(self.X, mean, scale, self.plan.dtype, self.plan.device, self.ranks)

    def tensors(self, index: Indices) -> tuple[Tensor, Tensor]:
        y = torch.from_numpy(self.y[index].astype(np.int64)).to(self.plan.device)
        return y, torch.from_numpy(self.weight[index]).to(self.plan.device, self.plan.dtype)


class _Ranking:
    """The columns from the best on: those of the first layer, in the order of its scores or in that of growth."""

    def __init__(self, data: Data, rows: Rows, train: Indices, order: Indices, top: int, grown: bool) -> None:
        self.columns = order[: max(POOL, 2 * top) if grown else top]
        self.table = rows.columns(train, self.columns)
        y, weight = data.y[train], data.weight[train]
        self._growth = Growth(self.table, y, weight, data.plan.classes) if grown else None

    def first(self, count: int) -> Indices:
        """Return the places of the best in `columns`."""
        return np.arange(count) if self._growth is None else self._growth.first(count)


def _fold(data: Data, norm: str, train: Indices, held_out: Indices, top: int, grown: bool, stage: str) -> Fold:
    """Rank on one part; judge on the other, with as many of the best as are asked for."""
    plan = data.plan
    train = train[data.weight[train] > 0]
    rows = data.rows(train)
    y, weight = data.tensors(train)
    network = first_descent(plan, rows.hold(train), y, weight, data.X.shape[1], stage)
    order = _path.ranked(_path.scores(layer(network), norm))
    ranking = _Ranking(data, rows, train, order, top, grown)
    table = rows.columns(held_out, ranking.columns)

    def log_proba(head: str, count: int) -> Floats:
        best = ranking.first(count)
        A = ranking.table[:, best]
        if head == "network":
            part = Rows(A, np.zeros(count), np.ones(count), torch.float64, plan.device, data.ranks)
            name = f"{stage}, network of {count}"
            made: Head = Network(compacted(plan, part, y, weight, np.arange(count), name))
        else:
            made = HEADS[head].fit(A, data.y[train], data.weight[train], plan.classes)
        return made.log_proba(table[:, best])

    return Fold(held_out, log_proba)


def choice_of(data: Data, request: Request, norm: str, counts: Sequence[int], seed: int) -> Choice:
    """Choose the number of features and the head by inner cross-validation."""
    names = ["linear", "gaussian", "network"] if request.head == "auto" else [request.head]
    if len(counts) == 1 and len(names) == 1:
        return Choice(counts[0], names[0], {})

    some = np.arange(len(data.y))
    if request.cv is None or isinstance(request.cv, int):
        some = _some(some, seed)

    repeats = REPEATS if request.cv is None and len(some) < min(data.X.shape[1], FEW_SAMPLES) else 1
    parts = [part for repeat in range(repeats) for part in splits(request.cv, data.y[some], seed + repeat)]

    def folds() -> Iterator[Fold]:
        for number, (train, held_out) in enumerate(parts):
            yield _fold(data, norm, some[train], some[held_out], max(counts), request.grown, f"fold {number + 1}")

    return choose(folds(), counts, names, data.y, data.weight, slow=("network",) if len(names) > 1 else ())


def _some(index: Indices, seed: int) -> Indices:
    """Return as many of the samples as a choice needs."""
    if len(index) <= CHOICE_SAMPLES:
        return index
    return np.sort(np.random.RandomState(seed).permutation(index)[:CHOICE_SAMPLES])


def fit(X: Any, y: Indices, weight: Floats, plan: Plan, request: Request) -> Fitted:
    """Rank, choose, fit again."""
    data = Data(X, y, weight, plan, request.standardize)
    everyone = np.flatnonzero(weight > 0)
    rows = data.rows(everyone)
    held = rows.hold(everyone)
    targets, weights = data.tensors(everyone)
    features = X.shape[1]
    if plan.norm is None:
        network = whole(plan, held, targets, weights, features)
        score = _path.scores(layer(network), "l1inf")
        return Fitted(
            network, "network", Network(network), np.arange(features), rows.mean, rows.scale, score,
            None, None, {}, layer(network), False,
        )  # fmt: skip
    norm = plan.norm
    start = None if request.start is None else torch.from_numpy(request.start)
    first = first_descent(plan, held, targets, weights, features, "first", start)
    W = layer(first)
    score = _path.scores(W, norm)
    order = _path.ranked(score)

    if request.radius is not None:
        counts = [_path.left(W, norm, request.radius)]
    else:
        counts = [request.count] if request.count is not None else grid(features)
    choice = choice_of(data, request, norm, counts, plan.schooling.seed)
    theta: float | None
    radius: float | None
    theta, radius = _path.threshold(W, norm, choice.count)
    if request.grown:
        some = _some(everyone, plan.schooling.seed)
        ranking = _Ranking(data, rows, some, order, choice.count, grown=True)
        order = ranking.columns[ranking.first(choice.count)]
        theta = radius = None  # no ball leaves them
    chosen = np.sort(order[: choice.count])
    expanded = False
    if request.expand is not None:
        grown = associated(rows, everyone, y, weight, chosen, plan.classes, request.cv, plan.schooling.seed)
        if grown is not None:
            chosen, choice, expanded = grown[0], replace(choice, head=grown[1]), True
    network, chosen = final(plan, first, _Indexed(rows, everyone, held), targets, weights, chosen, request.radius)
    head: Head = Network(network)
    if choice.head != "network":
        head = HEADS[choice.head].fit(rows.columns(everyone, chosen), y[everyone], weight[everyone], plan.classes)
    path = {name: np.array(values) for name, values in choice.path.items()}
    if path:
        both = np.array([_path.threshold(W, norm, int(k)) for k in path["n_features"]])
        path |= {"theta": both[:, 0], "radius": both[:, 1]}
    return Fitted(
        network, choice.head, head, chosen, rows.mean, rows.scale, score,
        request.radius or radius, theta, path, W, expanded,
    )  # fmt: skip


class _Indexed(Rows):
    """Rows numbered from 0, whose columns come from the table itself."""

    def __init__(self, rows: Rows, index: Indices, held: Rows) -> None:
        super().__init__(rows._X, rows.mean, rows.scale, rows.dtype, rows.device, rows.ranks)
        self._held, self._index = held, index

    def batch(self, index: Any) -> Tensor:
        """See `Rows`."""
        return self._held.batch(index)

    def mine(self, index: Tensor) -> Tensor:
        """See `Rows`."""
        return self._held.mine(index)

    def columns(self, index: Indices, which: Indices) -> Floats:
        """See `Rows`."""
        return super().columns(self._index[index], which)
