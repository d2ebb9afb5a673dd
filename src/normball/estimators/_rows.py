"""Rows of a table as tensors, standardised on the way: dense, sparse, or on a disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Rows", "moments"]

_CHUNK = 1 << 18  # entries that are looked at in one go
_HELD = 1 << 22  # entries of a table in memory of which a second, standardised one is made

Floats = npt.NDArray[np.float64]


def _dense(part: Any) -> npt.NDArray[Any]:
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part)


def _on_disk(X: Any) -> bool:
    """Whether an array is, or looks into, a memory map; or is no array at all, but can be asked for rows."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        if X.base is None:
            return False
        X = X.base
    return not isinstance(X, (np.ndarray, bytes, memoryview))


def moments(X: Any, index: npt.NDArray[np.intp], weight: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the columns over some rows; a constant column has deviation 1."""
    step = max(_CHUNK // max(X.shape[1], 1), 1)
    total = weight[index].sum()
    parts = [index[start : start + step] for start in range(0, len(index), step)]
    mean, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for part in parts:
        mean += weight[part] @ _dense(X[part]).astype(np.float64, copy=False)
    mean /= total
    for part in parts:
        D = _dense(X[part]) - mean
        square += np.einsum("i,ij,ij->j", weight[part], D, D)
    scale = np.sqrt(square / total)
    # What is left of a constant column after rounding is not a deviation.
    scale[scale <= 1e-12 * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)] = 0.0
    scale[scale == 0.0] = 1.0
    return mean, scale


class Rows:
    """The rows of a table, by index, less the mean and over the scale of each column.

    A small table in memory is standardised once, and so is one that goes to a GPU; any other, large, sparse or on a
    disk, batch by batch: to the same bits, without a second table, and hardly slower.
    """

    def __init__(self, X: Any, mean: Floats, scale: Floats, dtype: torch.dtype, device: torch.device) -> None:
        self.mean, self.scale, self.dtype, self.device = mean, scale, dtype, device
        self._X = X
        self._table: Tensor | None = None

    def hold(self, index: npt.NDArray[np.intp]) -> Rows:
        """Return these rows alone, numbered from 0, held in memory where the table is."""
        large = self.device.type == "cpu" and len(index) * self._X.shape[1] > _HELD
        if large or hasattr(self._X, "toarray") or _on_disk(self._X):
            return _Part(self, index)
        held = Rows(self._X, self.mean, self.scale, self.dtype, self.device)
        held._table = self.batch(index)
        return held

    def batch(self, index: npt.NDArray[np.intp] | Tensor) -> Tensor:
        """Return some rows as a tensor."""
        if self._table is not None:
            return self._table[torch.as_tensor(index, device=self._table.device)]
        part = _dense(self._X[np.asarray(index)])
        exact = np.float32 if self.dtype == torch.float32 else np.float64
        part = part - self.mean.astype(exact)
        part /= self.scale.astype(exact)
        return torch.from_numpy(np.ascontiguousarray(part)).to(self.device, self.dtype)

    def columns(self, index: npt.NDArray[np.intp], which: npt.NDArray[np.intp]) -> Floats:
        """Return some rows of some columns, in double precision."""
        step = max(_CHUNK // max(self._X.shape[1], 1), 1)
        parts = [index[start : start + step] for start in range(0, len(index), step)] or [index]
        chosen = [_dense(self._X[part][:, which]).astype(np.float64, copy=False) for part in parts]
        return np.asarray((np.concatenate(chosen) - self.mean[which]) / self.scale[which])


class _Part(Rows):
    """Some rows of a table that is not held in memory."""

    def __init__(self, whole: Rows, index: npt.NDArray[np.intp]) -> None:
        super().__init__(whole._X, whole.mean, whole.scale, whole.dtype, whole.device)
        self._index = index

    def batch(self, index: npt.NDArray[np.intp] | Tensor) -> Tensor:
        """See `Rows`."""
        return super().batch(self._index[np.asarray(index)])
