"""Rows of a table as tensors, standardised on the way: dense, sparse, or on a disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from normball.estimators._ranks import ALONE, Ranks
from normball.estimators._tables import chunks, dense

__all__ = ["Rows", "deviations", "moments", "sums"]

_HELD = 1 << 22  # entries of a table in memory of which a second, standardised one is made

Floats = npt.NDArray[np.float64]


def sums(
    X: Any, index: npt.NDArray[np.intp], weight: Floats, ranks: Ranks = ALONE
) -> tuple[float, Floats, Floats]:
    """Return the weight of some rows, the mean of each column, and the squares of what is off the mean, added up."""
    total = float(weight[index].sum())
    parts = chunks(index[ranks.mine(index, X.shape[0])], X.shape[1])
    mean, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for part in parts:
        mean += weight[part] @ dense(X[part]).astype(np.float64, copy=False)
    mean = ranks.total(mean) / total
    for part in parts:
        D = dense(X[part]) - mean
        square += np.einsum("i,ij,ij->j", weight[part], D, D)
    return total, mean, ranks.total(square)


def deviations(total: float, mean: Floats, square: Floats) -> Floats:
    """Return the standard deviation of each column; a constant one has 1."""
    scale = np.sqrt(square / total)
    # What is left of a constant column after rounding is not a deviation.
    scale[scale <= 1e-12 * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)] = 0.0
    scale[scale == 0.0] = 1.0
    return np.asarray(scale)


def moments(
    X: Any, index: npt.NDArray[np.intp], weight: Floats, ranks: Ranks = ALONE
) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the columns over some rows; a constant column has deviation 1."""
    total, mean, square = sums(X, index, weight, ranks)
    return mean, deviations(total, mean, square)


class Rows:
    """The rows of a table, by index, less the mean and over the scale of each column.

    A small table in memory is standardised once, and so is one that goes to a GPU; any other, large, sparse or on a
    disk, batch by batch: to the same bits, without a second table, and hardly slower.
    """

    def __init__(
        self, X: Any, mean: Floats, scale: Floats, dtype: torch.dtype, device: torch.device, ranks: Ranks = ALONE
    ) -> None:
        self.mean, self.scale, self.dtype, self.device = mean, scale, dtype, device
        self.ranks = ranks
        self._X = X
        self._table: Tensor | None = None

    def hold(self, index: npt.NDArray[np.intp]) -> Rows:
        """Return these rows alone, numbered from 0, held in memory where the table is."""
        large = self.device.type == "cpu" and len(index) * self._X.shape[1] > _HELD
        if large or not isinstance(self._X, np.ndarray):
            return _Part(self, index)
        held = Rows(self._X, self.mean, self.scale, self.dtype, self.device, self.ranks)
        held._table = self.batch(index)
        return held

    def batch(self, index: npt.NDArray[np.intp] | Tensor) -> Tensor:
        """Return some rows as a tensor."""
        if self._table is not None:
            return self._table[torch.as_tensor(index, device=self._table.device)]
        part = dense(self._X[np.asarray(index)])
        exact = np.float32 if self.dtype == torch.float32 else np.float64
        part = part - self.mean.astype(exact)
        part /= self.scale.astype(exact)
        return torch.from_numpy(np.ascontiguousarray(part)).to(self.device, self.dtype)

    def columns(self, index: npt.NDArray[np.intp], which: npt.NDArray[np.intp]) -> Floats:
        """Return some rows of some columns, in double precision; what other ranks have read, comes from them."""
        here = np.flatnonzero(self.ranks.mine(index, self._X.shape[0]))
        chosen = np.zeros((len(index), len(which)))
        first = 0
        for part in chunks(index[here], self._X.shape[1]):
            chosen[here[first : first + len(part)]] = dense(self._X[part][:, which])
            first += len(part)
        chosen = self.ranks.total(chosen)
        chosen -= self.mean[which]
        chosen /= self.scale[which]
        return chosen

    def mine(self, index: Tensor) -> Tensor:
        """Return those of some rows that are for this rank to read."""
        if self.ranks.size == 1:
            return index
        return index[torch.from_numpy(self.ranks.mine(self._numbers(index), self._X.shape[0]))]

    def _numbers(self, index: Tensor) -> npt.NDArray[np.intp]:
        """Return the numbers that rows have in the table."""
        return np.asarray(index)


class _Part(Rows):
    """Some rows of a table that is not held in memory."""

    def __init__(self, whole: Rows, index: npt.NDArray[np.intp]) -> None:
        super().__init__(whole._X, whole.mean, whole.scale, whole.dtype, whole.device, whole.ranks)
        self._index = index

    def batch(self, index: npt.NDArray[np.intp] | Tensor) -> Tensor:
        """See `Rows`."""
        return super().batch(self._index[np.asarray(index)])

    def _numbers(self, index: Tensor) -> npt.NDArray[np.intp]:
        return np.asarray(self._index[np.asarray(index)])
