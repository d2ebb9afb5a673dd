"""The derivative of the l1,inf projection: how it is cut into tiles, and the three launches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
import triton
from torch import Tensor

from normball.backends.cuda import l1inf_tangent
from normball.backends.cuda.host import Launch, processors_on

__all__ = ["tangent_l1inf"]


@dataclass(frozen=True)
class Prepared:
    """All of the launches that does not depend on where the tensors lie, kept for the next call on the same shapes."""

    codes: tuple[int, int]  # shape of the bytes that hold two bits for each entry
    work: int  # doubles of scratch memory
    length: int  # members that a block adds up
    sums: Launch
    moves: Launch
    spread: Launch


@lru_cache(maxsize=1024)
def _prepared(groups: int, members: int, strided: bool, processors: int, tensors: tuple[object, ...]) -> Prepared:
    """Return how to carry it out; calls whose `tensors` differ in strides or dtypes have launches of their own."""
    G, N = (128, 32) if strided else (1, max(4, min(2048, triton.next_power_of_2(members))))
    # Enough blocks to fill the device, where a block takes many groups.
    parts = min(triton.cdiv(members, N), 8, max(1, 8 * processors * G // groups)) if strided else 1
    wide = N if strided else max(4, min(4096, triton.next_power_of_2(members)))
    blocks = triton.cdiv(groups, G)
    rows, entries = (members, groups) if strided else (groups, members)
    return Prepared(
        codes=(rows, triton.cdiv(entries, 4)),
        work=(parts + 2) * groups + triton.cdiv(parts * groups, 2),
        length=N * triton.cdiv(members, N * parts),
        sums=Launch(
            l1inf_tangent.sums, (blocks, parts), {"G": G, "N": N, "STRIDED": strided, "PARTS": parts},
            num_warps=8 if N * G > 1024 else 4,
        ),
        moves=Launch(
            l1inf_tangent.moves, (1,), {"BLOCK": min(4096, triton.next_power_of_2(groups)), "PARTS": parts},
            num_warps=16,
        ),
        spread=Launch(
            l1inf_tangent.spread, (blocks, triton.cdiv(members, wide)),
            {"G": G, "N": wide, "STRIDED": strided, "PARTS": parts},
            num_warps=8 if wide * G > 2048 and not strided else 4,
        ),
    )  # fmt: skip


def tangent_l1inf(Y: Tensor, mu: Tensor, theta: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Jacobian at `Y`, which is (group, member), times `V`, and the derivative by the radius times `V`."""
    groups, members = Y.shape
    device = Y.device
    X = torch.empty_like(V)
    tensors = (Y.stride(), V.stride(), X.stride(), Y.dtype, V.dtype, mu.dtype, theta.dtype, device)
    ready = _prepared(groups, members, Y.stride(0) < Y.stride(1), processors_on(device), tensors)
    codes = torch.empty(ready.codes, dtype=torch.uint8, device=device)
    work = torch.empty(ready.work, dtype=torch.float64, device=device)
    mean = torch.empty((), dtype=torch.float64, device=device)
    same = (Y.data_ptr() | V.data_ptr() | X.data_ptr() | mu.data_ptr() | theta.data_ptr()) & 15 == 0
    ready.sums((Y, V, mu, codes, work, groups, members, ready.length, *Y.stride(), *V.stride()), same)
    ready.moves((work, mean, groups), same)
    ready.spread((V, X, mu, codes, work, theta, mean, groups, members, *V.stride(), *X.stride()), same)
    return X, mean
