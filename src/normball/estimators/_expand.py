"""Features that the selected ones explain: an opt-in second look, kept only if it helps on held-out samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from normball.estimators._heads import HEADS
from normball.estimators._rows import Rows
from normball.estimators._selection import splits

__all__ = ["associated"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

ROUNDS = 3
LEVEL = 0.05


def _explained(S: Floats, X: Floats, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which columns the selected ones explain, by R squared: at 5 % after Bonferroni over all the columns.

    A selected column is explained by the other selected ones, for which its residual is read off the inverse of their
    covariance.
    """
    n, k = S.shape
    if n <= k + 2 or k < 2:
        return inside
    G = S.T @ S / n + 1e-8 * np.eye(k)
    inverse = np.linalg.inv(G)
    C = S.T @ X / n
    part = np.einsum("ij,ij->j", C, inverse @ C) / np.maximum(np.square(X).mean(0), 1e-300)
    part[inside] = 1.0 - 1.0 / np.maximum(np.diag(inverse) * np.diag(G), 1.0)
    used = np.where(inside, k - 1, k)
    part = np.clip(part, 0.0, 1.0 - 1e-12)
    F = (part / used) / ((1.0 - part) / (n - used - 1))
    return np.asarray(stats.f.sf(F, used, n - used - 1) * X.shape[1] < LEVEL)


def _grown(rows: Rows, index: Indices, seeds: Indices) -> Indices:
    """Grow a set by what it explains, drop what it does not, some times over."""
    every = rows.columns(index, np.arange(len(rows.mean)))
    every -= every.mean(0)
    inside = np.zeros(every.shape[1], bool)
    inside[seeds] = True
    for _ in range(ROUNDS):
        after = _explained(every[:, inside], every, inside)
        if after.sum() < 2 or after.sum() > len(index) // 4 or (after == inside).all():
            break
        inside = after
    return np.flatnonzero(inside)


def _hits(
    rows: Rows, y: Indices, weight: Floats, train: Indices, held_out: Indices, chosen: Indices, head: str, classes: int
) -> npt.NDArray[np.bool_]:
    made = HEADS[head].fit(rows.columns(train, chosen), y[train], weight[train], classes)
    return np.asarray(made.log_proba(rows.columns(held_out, chosen)).argmax(1) == y[held_out])


def associated(
    rows: Rows,
    everyone: Indices,
    y: Indices,
    weight: Floats,
    seeds: Indices,
    classes: int,
    cv: Any,
    seed: int,
) -> tuple[Indices, str] | None:
    """Return the grown set and its head, or None where it does not help.

    The guard: in each inner fold both sets are judged on samples that neither the growth nor the heads have seen. The
    grown set is kept if it is better, by more than one standard error of the paired difference.
    """
    names = tuple(HEADS)
    before: dict[str, list[npt.NDArray[np.bool_]]] = {name: [] for name in names}
    after: dict[str, list[npt.NDArray[np.bool_]]] = {name: [] for name in names}
    order = []
    for train, held_out in splits(cv, y, seed):
        inside = train[weight[train] > 0]
        grown = _grown(rows, inside, seeds)
        order.append(held_out)
        for name in names:
            before[name].append(_hits(rows, y, weight, inside, held_out, seeds, name, classes))
            after[name].append(_hits(rows, y, weight, inside, held_out, grown, name, classes))
    held = np.concatenate(order)
    w = weight[held] / weight[held].sum()
    old = {name: np.concatenate(parts).astype(float) for name, parts in before.items()}
    new = {name: np.concatenate(parts).astype(float) for name, parts in after.items()}
    best_old = max(names, key=lambda name: float(w @ old[name]))
    best_new = max(names, key=lambda name: float(w @ new[name]))
    gain = new[best_new] - old[best_old]
    mean = float(w @ gain)
    error = np.sqrt(max(float(w @ np.square(gain)) - mean * mean, 0.0) / weight[held].sum())
    grown = _grown(rows, everyone, seeds)
    if mean <= error or np.array_equal(grown, seeds):
        return None
    return grown, best_new
