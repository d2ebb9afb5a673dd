"""The same in PyTorch, with `torch.sort`. Empty where torch is not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


def threshold(values: Any, radius: Any) -> Any:
    """Sort, cumulate, find the last entry above its line: for each column."""
    Z = torch.sort(values, dim=0, descending=True).values
    k = torch.arange(1, len(Z) + 1, dtype=torch.float64).reshape(-1, *[1] * (Z.ndim - 1))
    lines = (torch.cumsum(Z, 0, dtype=torch.float64) - radius) / k
    last = (lines < Z).sum(0, keepdim=True) - 1
    return lines.gather(0, last)[0]


def _shrink(Y: Any, tau: Any) -> Any:
    return Y.sign() * (Y.abs() - tau.to(Y.dtype)).clamp_min(0)


def _l1(Y: Any, radius: float) -> Any:
    return _shrink(Y, threshold(Y.abs(), radius))


def _simplex(Y: Any, radius: float) -> Any:
    return (Y - threshold(Y, radius).to(Y.dtype)).clamp_min(0)


def _l12(Y: Any, radius: float) -> Any:
    lengths = torch.linalg.vector_norm(Y, dim=0)
    return Y * ((lengths - threshold(lengths, radius)).clamp_min(0) / lengths).to(Y.dtype)


def _linf1(Y: Any, radius: float) -> Any:
    A = Y.abs()
    return _shrink(Y, torch.where(A.sum(0) > radius, threshold(A, radius), 0.0))


def _bilevel_l1inf(Y: Any, radius: float) -> Any:
    peaks = Y.abs().amax(0)
    caps = (peaks - threshold(peaks, radius)).clamp_min(0).to(Y.dtype)
    return Y.clamp(-caps, caps)


def _bilevel_l11(Y: Any, radius: float) -> Any:
    A = Y.abs()
    sums = A.sum(0)
    left = (sums - threshold(sums, radius)).clamp_min(0)
    alive = left > 0
    X = torch.zeros_like(Y)
    X[:, alive] = _shrink(Y[:, alive], threshold(A[:, alive], left[alive]))
    return X


TORCH: dict[str, Callable[[Any, float], Any]] = {} if torch is None else {
    "l1": _l1,
    "simplex": _simplex,
    "l12": _l12,
    "linf1": _linf1,
    "bilevel_l1inf": _bilevel_l1inf,
    "bilevel_l11": _bilevel_l11,
}


def on_one_thread(name: str, Y: Any, radius: float) -> Any:
    """Project a NumPy array, which is not copied."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return TORCH[name](torch.from_numpy(Y), radius).numpy()
    finally:
        torch.set_num_threads(before)
