"""Warm starts where groups lie side by side and do not fit the registers: how they are cut, and the launch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl

from normball.backends.cuda.columns import columns
from normball.backends.cuda.host import INTERPRETED, Launch, in_runs, meeting, processors_on

__all__ = ["prepared"]

TILE = 1 << 13  # entries of a tile: there are others on their way beside it
STAGES = 4  # tiles at work, all but one of them on their way
MOST = 256  # groups of a block


@lru_cache(maxsize=1024)
def prepared(
    groups: int,
    members: int,
    y_strides: tuple[int, ...],
    x_strides: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype,
    by_pointer: bool,
) -> tuple[int, tuple[int, ...], Launch] | None:
    """Return the number of blocks, the sizes they are told, and the launch; None where it would not fill the device."""
    processors = processors_on(device)
    B = max(8, triton.next_power_of_2(triton.cdiv(groups, processors)))
    programs = triton.cdiv(groups, B)
    if 2 * programs < processors or B > MOST or dtype.itemsize > 4:
        return None
    N = min(TILE // B, triton.next_power_of_2(members))
    warps = max(1, min(8, N * B >> 10))
    A = max(1, min(N, 32 * 16 // dtype.itemsize * warps // B))
    VG, _ = in_runs(groups, members, (0, *y_strides), (0, *x_strides))
    steps = [n // v for each in (y_strides, x_strides) for n, v in zip(each, (1, VG), strict=True)]
    far = max((groups - 1) * each[0] + (members - 1) * each[1] for each in (y_strides, x_strides)) >= 2**31
    constants = {
        "A": A, "R": N // A, "B": B, "VG": VG, "INDEX": tl.int64 if far else tl.int32,
        "EVEN": groups == programs * B and members % N == 0, "STAGES": STAGES,
        **meeting(programs, warps), "BY_POINTER": by_pointer,
    }  # fmt: skip
    options: dict[str, Any] = {"num_warps": warps}
    if not INTERPRETED:
        options |= {"launch_cooperative_grid": programs > 1, "maxnreg": 255}
    return programs, (groups, members, *steps, programs), Launch(columns, (programs,), constants, **options)
