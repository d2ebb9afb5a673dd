"""The work behind "2.2 times faster in the autoencoder": what projecting costs, beside a step of training."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

import normball
from normball.experiments.experiment import Row, work
from normball.experiments.projections import ALGORITHMS, by_turns, check_agreement, projector

__all__ = ["share"]


def _network(features: int, hidden: int, seed: int) -> tuple[Any, Any, Any]:
    """Return the paper's network, its first weight and one step of training on random samples."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Linear(features, hidden), nn.SiLU(), nn.Linear(hidden, 2))
    decoder = nn.Sequential(nn.Linear(2, hidden), nn.SiLU(), nn.Linear(hidden, features))
    model = nn.ModuleList([encoder, decoder])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    X, y = torch.randn(768, features), torch.randint(2, (768,))
    X[:, :64] += 0.8 * (2 * y[:, None] - 1)

    def step(number: int) -> None:
        rows = slice(32 * (number % 24), 32 * (number % 24) + 32)
        optimizer.zero_grad()
        Z = encoder(X[rows])
        loss = nn.functional.cross_entropy(Z, y[rows]) + 5e-5 * nn.functional.smooth_l1_loss(decoder(Z), X[rows])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return model, encoder[0].weight, step


@work(version=2, timed=True)
def share(
    features: int, hidden: int, steps: int, radius: float, projected: bool, looks: Sequence[int], seed: int
) -> list[Row]:
    """Train, and at some steps time every algorithm on the weight as it is then; all see the same weights.

    With `projected`, the weight is projected after each step, so the algorithms see what a step has moved; else they
    see weights that were never projected, as at the end of the paper's first descent.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _, weight, step = _network(features, hidden, seed)
        spent: list[float] = []
        rows: list[Row] = []
        for number in range(steps):
            start = time.process_time()
            step(number)
            spent.append(time.process_time() - start)
            W = weight.detach().numpy()
            if number + 1 in looks:
                rows += [row | {"step": number + 1} for row in _timed(W, radius)]
            if projected:
                normball.project_l1inf(W, radius, axis=0, out=W, threads=1)
    finally:
        torch.set_num_threads(before)
    return [row | {"step_ms": 1e3 * median(spent)} for row in rows]


def _timed(W: Any, radius: float) -> list[Row]:
    X = np.empty_like(W)
    results = {m: normball.project_l1inf(W, radius, axis=0, method=m, threads=1) for m in ALGORITHMS}
    check_agreement(results, W)
    _, info = normball.project_l1inf(W, radius, axis=0, return_info=True)
    actions = {m: projector(W, X, radius, m) for m in ALGORITHMS}
    zeros = 1.0 - info.n_nonzero / W.shape[1]
    return [row | {"zeros": zeros} for row in by_turns(actions, budget=0.2)]
