"""The derivative of the l1,inf projection: how it is cut into tiles, and the launch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from normball.backends.cuda.host import INTERPRETED, Launch, in_runs, meeting, place_on, processors_on
from normball.backends.cuda.l1inf_tangent import tangent_kernel

__all__ = ["tangent_l1inf"]

KEPT = 1 << 15  # entries of a tile that stays in the registers
STREAMED = 1 << 13  # of one that is read twice: there are others on their way beside it, of two matrices
BOTH = 1 << 14  # of a tile so small that there are registers for two
SIDE_BY_SIDE = 8, 32  # groups of a tile that lie side by side, at least and at most
STAGES = 3  # tiles at work, all but one of them on their way
LEAST = 1 << 12  # entries of a part, or it is not worth a block


@dataclass(frozen=True)
class Cut:
    """How many groups a tile has, members an item, items a block, and parts a group."""

    groups: int
    length: int
    items: int
    parts: int
    programs: int
    kept: int  # members of the tile that is kept
    streamed: int  # of the others


def cut(groups: int, members: int, strided: bool, processors: int) -> Cut:
    """Return groups and members of tiles such that every block has about as much to do."""
    N = triton.next_power_of_2(members)
    each = triton.cdiv(groups, processors)
    low, high = SIDE_BY_SIDE if strided else (1, KEPT)
    G = min(high, triton.next_power_of_2(groups) if strided else max(1, KEPT // N))
    while low < G and G * triton.cdiv(triton.cdiv(groups, G), processors) > 1.25 * each:
        G //= 2
    blocks = triton.cdiv(groups, G)
    items = triton.cdiv(blocks, processors)
    parts = max(1, min(processors // blocks, members * G // LEAST))
    kept = min(KEPT // G, triton.next_power_of_2(triton.cdiv(members, parts)))
    streamed = min(STREAMED // G, kept)
    length = streamed * triton.cdiv(members, streamed * parts)
    parts = triton.cdiv(members, length)
    return Cut(G, length, items, parts, triton.cdiv(blocks * parts, items), kept, streamed)


@dataclass(frozen=True)
class Prepared:
    """All of the launch that does not depend on where the tensors lie, kept for the next call on the same shapes."""

    programs: int
    codes: int
    code: torch.dtype  # which holds two bits for each member of a tile that one thread has
    work: int  # doubles of scratch memory
    sizes: tuple[int, ...]
    launch: Launch


@lru_cache(maxsize=1024)
def _prepared(
    groups: int, members: int, strides: tuple[tuple[int, ...], ...], dtypes: tuple[torch.dtype, ...], processors: int
) -> Prepared:
    strided = strides[0][1] < strides[0][2]
    itemsize = dtypes[0].itemsize
    plan = cut(groups, members, strided, processors)
    G, N = plan.groups, plan.streamed
    warps = max(1, min(8, G * plan.kept >> 10))
    wide = 32 * 16 // itemsize * warps  # what the threads read at once, 16 bytes each
    while wide * 32 < G * plan.kept:  # two bits for each member that a thread has
        wide *= 2
    along = max(1, min(N, wide // G))  # members that the threads read at once
    R = N // along
    A, B = (along, G) if strided else (G, along)
    VG, VN = in_runs(groups, members, *strides)
    tail = triton.cdiv(max(0, plan.length - plan.kept), N)
    streamed = (plan.items - 1) * triton.cdiv(plan.length, N) + tail
    owned = triton.cdiv(groups, plan.programs) if plan.parts > 1 else plan.items * G
    far = max((groups - 1) * g + (members - 1) * n for _, g, n in strides) >= 2**31
    P = triton.next_power_of_2(plan.parts)
    constants = {
        "A": A, "R": R, "B": B, "KEPT": plan.kept * R // N, "STRIDED": strided, "VG": VG, "VN": VN,
        "INDEX": tl.int64 if far else tl.int32,
        "EVEN": plan.programs * plan.items * G == groups * plan.parts and members == plan.parts * plan.length
        and tail * N + plan.kept == plan.length,
        "STREAMS": streamed > 0, "APART": G * plan.kept > BOTH, "PARTS": plan.parts, "P": P,
        "W": min(triton.next_power_of_2(owned), max(1, 2048 // P)), "STAGES": STAGES,
        **meeting(plan.programs, warps), "INTERPRETED": INTERPRETED,
    }  # fmt: skip
    options: dict[str, Any] = {"num_warps": warps}
    if not INTERPRETED:
        options |= {"launch_cooperative_grid": plan.programs > 1, "maxnreg": 255}
    flat = [n // v for _, *each in strides for n, v in zip(each, (VN, VG), strict=True)]
    return Prepared(
        programs=plan.programs,
        codes=plan.programs * streamed * A * B,
        code=torch.int8 if R <= 4 else torch.int16 if R <= 8 else torch.int32,
        work=2 * (plan.parts + 1) * groups,
        sizes=(groups, members, *flat, plan.length, plan.items, owned, plan.programs),
        launch=Launch(tangent_kernel, (plan.programs,), constants, **options),
    )


def tangent_l1inf(
    Y: Tensor, V: Tensor, X: Tensor, mu: Tensor, theta: Tensor, shape: tuple[int, int],
    strides: tuple[tuple[int, ...], ...],
) -> Tensor:  # fmt: skip
    """Write the Jacobian at `Y`, seen as (group, member), times `V` to `X`; return the derivative by the radius."""
    device = Y.device
    ready = _prepared(*shape, strides, (Y.dtype, V.dtype, X.dtype, mu.dtype), processors_on(device))
    codes = torch.empty(ready.codes, dtype=ready.code, device=device)
    work = torch.empty(ready.work + 1, dtype=torch.float64, device=device)
    mean = work[-1]
    same = (Y.data_ptr() | V.data_ptr() | X.data_ptr() | mu.data_ptr() | theta.data_ptr()) & 15 == 0
    place = place_on(device, ready.programs) if ready.programs > 1 else work
    ready.launch((Y, V, X, mu, theta, mean, place, codes, work, *ready.sizes), same)
    return mean
