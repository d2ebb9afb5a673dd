"""Who trains and who is tested: stratified folds, in which a group is never split."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

__all__ = ["inner", "outer", "shuffled"]

Indices = npt.NDArray[np.intp]
Splits = list[tuple[Indices, Indices]]


def _splits(y: Indices, groups: Indices | None, folds: int, seed: int) -> Splits:
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        made = splitter(folds, shuffle=True, random_state=seed).split(np.zeros((len(y), 1)), y, groups)
        return list(made)


def outer(y: Indices, groups: Indices | None, folds: int, seed: int, names: list[str]) -> Splits:
    """Return the outer folds; each class is in each training part, or it says why that cannot be."""
    members = np.bincount(y, minlength=len(names))
    if groups is None:
        if members.min() < folds:
            k = int(members.argmin())
            raise ValueError(
                f"folds: expected at most the {members[k]} samples of class {names[k]!r}, got {folds};"
                " ask for fewer folds, or leave the class out"
            )
    else:
        spread = [len(np.unique(groups[y == k])) for k in range(len(names))]
        if min(spread) < 2 or len(np.unique(groups)) < folds:
            k = int(np.argmin(spread))
            raise ValueError(
                f"groups: expected two or more groups with samples of each class, and {folds} or more in all; class"
                f" {names[k]!r} is in {spread[k]} of the {len(np.unique(groups))} groups"
            )
    splits = _splits(y, groups, folds, seed)
    for train, test in splits:
        absent = np.flatnonzero(np.bincount(y[train], minlength=len(names)) == 0)
        if len(absent) or not len(test):
            fault = f"class {names[absent[0]]!r} is all in one fold" if len(absent) else "a fold has no samples"
            raise ValueError(f"groups: expected groups that fill {folds} folds; with seed {seed} {fault}")
    return splits


def inner(y: Indices, groups: Indices | None, folds: int, seed: int) -> Splits:
    """Return splits of a training part, for choices; those with one class alone to learn from are left out."""
    most = int(np.bincount(y).max()) if groups is None else len(np.unique(groups))
    splits = _splits(y, groups, max(2, min(folds, most)), seed)
    return [(train, test) for train, test in splits if len(test) and len(np.unique(y[train])) > 1]


def shuffled(y: Indices, groups: Indices | None, seed: Any) -> Indices:
    """Return the labels in another order: among the groups, where each group has one label, else among the samples."""
    random = np.random.default_rng(seed)
    if groups is None:
        return random.permutation(y)
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    if (y == y[first][number]).all():
        return random.permutation(y[first])[number]
    return random.permutation(y)
