"""Tensors that do not lie on the CPU: Triton kernels where Triton and the device allow, else plain torch operations.

Nothing here waits for the device, so that a projection can be captured in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from normball.backends.cuda import plain

__all__ = ["project_l1inf"]


def project_l1inf(
    Y: Tensor,
    X: Tensor,
    radius: Tensor,
    axis: Sequence[int],
    batch_axis: Sequence[int],
    start: tuple[Tensor, Tensor] | None,
) -> tuple[Tensor, Tensor]:
    """Project `Y` into `X`; return the caps in the dtype of `Y`, and theta."""
    groups = [a for a in range(Y.ndim) if a not in axis and a not in batch_axis]
    order = [*batch_axis, *groups, *axis]
    sizes = [[Y.shape[a] for a in axes] for axes in (batch_axis, groups, axis)]
    shape = [torch.Size(size).numel() for size in sizes]
    mu = Y.new_zeros(sizes[0] + sizes[1])
    theta = Y.new_zeros(sizes[0], dtype=torch.float64)
    if Y.numel():
        # As (problem, group, member); a copy only where the axes cannot be told as one.
        source = Y.permute(order).reshape(shape)
        target = X.permute(order).reshape(shape)
        solve = plain.caps
        radii = radius.to(Y.device, torch.float64).broadcast_to(sizes[0]).reshape(shape[0])
        caps, thetas = solve(source, radii)
        target.copy_(plain.clip(source, caps))
        mu, theta = caps.reshape(mu.shape), thetas.reshape(theta.shape)
        if target.data_ptr() != X.data_ptr():
            X.copy_(target.reshape([n for size in sizes for n in size]).permute(torch.tensor(order).argsort().tolist()))
    return mu, theta
