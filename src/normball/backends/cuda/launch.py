"""How a projection is cut into tiles, and the launch."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from normball.backends.cuda import l1inf

__all__ = ["project_l1inf"]

INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"
ELEMENTS = 1 << 15  # of a tile: what the registers of one multiprocessor hold beside the work on it
LINES = 1 << 14  # groups whose lines one block can hold
STREAMED = 1 << 13  # of a tile that is read again: two blocks share a multiprocessor, and one loads while one works


@dataclass(frozen=True)
class Plan:
    """The three axes of a tile, how many tiles there are, and how many blocks share them."""

    shape: tuple[int, int, int]
    groups: int  # of a tile
    tiles: int
    programs: int
    resident: bool
    warps: int

    @property
    def registers(self) -> int:
        """Registers that a thread may have, so that the blocks of one launch are all there at the same time."""
        return 128 if not self.resident or self.warps > 8 else 255


@lru_cache(maxsize=1024)
def plan(groups: int, members: int, strided: bool, processors: int) -> Plan | None:
    """Return how to cut a problem, or None where a group is too long for one block."""
    N = triton.next_power_of_2(members)
    G = 1
    while triton.cdiv(groups, G) > processors and 2 * G * N <= ELEMENTS:
        G *= 2
    resident = triton.cdiv(groups, G) <= processors
    if not resident:
        # Neighbouring groups that lie side by side are read together: a sector of memory holds eight.
        G = max(8 if strided else 1, STREAMED // N)
    if G * N > ELEMENTS:
        return None
    tiles = triton.cdiv(groups, G)
    # At most 32 elements for each thread, as far as there are threads.
    warps = max(1, min(16, G * N // 1024))
    if strided:
        A = min(N, max(1, 128 * warps // G))
        shape = (A, N // A, G)
    else:
        B = min(N, max(32, 128 * warps // G))
        shape = (G, N // B, B)
    # Two smaller blocks share a multiprocessor: one loads while one works.
    share = 2 if not resident and warps <= 8 and processors > 1 else 1
    return Plan(shape, G, tiles, min(share * processors, tiles), resident, warps)


@lru_cache(maxsize=64)
def _processors(device: torch.device) -> int:
    return 1 if device.type == "cpu" else torch.cuda.get_device_properties(device).multi_processor_count


def _together(groups: int, members: int, *strides: tuple[int, ...]) -> tuple[int, int]:
    """Return how many neighbouring groups, and members, can be read at once: powers of two up to 8."""
    side_by_side = [all(stride[axis] == 1 for stride in strides) for axis in (1, 2)]
    wide = [
        math.gcd(8, size, *(n for stride in strides for n in (stride[0], stride[3 - axis])))
        for size, axis in ((groups, 1), (members, 2))
    ]
    VN = wide[1] if side_by_side[1] else 1
    return wide[0] if side_by_side[0] and VN == 1 else 1, VN


class _Counters:
    """Where blocks that meet count each other, always left at zero by the kernels.

    Launches that may run at the same time must not share any: each stream has its own, and so has each launch that is
    captured in a graph, as long as there are some left; then the graph clears one each time.
    """

    CAPTURED = 4096

    def __init__(self, device: torch.device) -> None:
        self.of_stream: dict[int, Tensor] = {}
        self.for_graphs = torch.zeros((self.CAPTURED, 2), dtype=torch.int32, device=device)
        self.given = 0

    def take(self, device: torch.device) -> Tensor:
        if torch.cuda.is_current_stream_capturing():
            if self.given == self.CAPTURED:
                return torch.zeros(2, dtype=torch.int32, device=device)
            self.given += 1
            return self.for_graphs[self.given - 1]
        stream = torch.cuda.current_stream(device).cuda_stream
        if stream not in self.of_stream:
            self.of_stream[stream] = torch.zeros(2, dtype=torch.int32, device=device)
        return self.of_stream[stream]


_counters: dict[torch.device, _Counters] = {}


def _counter(device: torch.device) -> Tensor:
    counters = _counters.get(device)
    if counters is None:
        if device.type == "cpu" or torch.cuda.is_current_stream_capturing():
            return torch.zeros(2, dtype=torch.int32, device=device)
        counters = _counters[device] = _Counters(device)
    return counters.take(device)


def project_l1inf(
    Y: Tensor, X: Tensor, radius: Tensor, start: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor] | None:
    """Project `Y`, which is (problem, group, member), into `X`; None where the kernels cannot."""
    problems, groups, members = Y.shape
    device = Y.device
    strided = Y.stride(1) < Y.stride(2)
    cut = plan(groups, members, strided, _processors(device))
    if cut is None:
        if strided and plan(groups, members, False, _processors(device)) is not None:
            packed = Y.contiguous()
            done = project_l1inf(packed, packed, radius, start)
            X.copy_(packed)
            return done
        return None
    mu = torch.empty((problems, groups), dtype=Y.dtype, device=device)
    theta = torch.empty(problems, dtype=torch.float64, device=device)
    SLOTS = max(2, triton.next_power_of_2(cut.programs))
    # Problems of one block each are independent blocks of one launch; larger ones follow one another.
    together = problems if cut.programs == 1 and cut.resident else 1
    by_pointer = INTERPRETED or radius.device.type != "cpu" or radius.numel() > 1
    value = 0.0 if by_pointer else float(radius)
    radii = radius.to(device).broadcast_to(problems).contiguous() if by_pointer else theta
    old_mu, old_theta = (None, None) if start is None else start
    # Groups whose two lines every block reads to begin with: all, or those of the sample.
    M = triton.next_power_of_2(groups if cut.resident else cut.programs * cut.groups)
    M = M if 1 < M <= LINES and start is None and together == 1 else 0
    state = groups if not cut.resident else 0
    scratch = torch.empty(together * 8 * SLOTS + M + 3 * state, dtype=torch.float64, device=device)
    slots, lines, caps, totals, counts = scratch.split([together * 8 * SLOTS, M, state, state, state])
    kernel: Any = l1inf.streaming if state else l1inf.resident
    memory = (slots, _counter(device), lines.view(torch.float32))
    if state:
        memory += (caps, totals, counts.view(torch.int32))
    VG, VN = _together(groups, members, Y.stride(), X.stride())
    strides = [stride // v for T in (Y, X) for stride, v in zip(T.stride(), (VG * VN, VN, VG), strict=True)]
    far = max((groups - 1) * T.stride(1) + (members - 1) * T.stride(2) for T in (Y, X)) >= 2**31
    A, R, B = cut.shape
    options = {} if INTERPRETED else {"launch_cooperative_grid": cut.programs > 1, "maxnreg": cut.registers}
    for first in range(0, problems, together):
        some = slice(first, first + together)
        kernel[(cut.programs, together)](
            Y[some], X[some], mu[some], theta[some], value, radii[some],
            None if old_mu is None else old_mu[some], None if old_theta is None else old_theta[some],
            *memory, groups, members, *strides, cut.tiles, cut.programs,
            A=A, R=R, B=B, STRIDED=strided, VG=VG, VN=VN, INDEX=tl.int64 if far else tl.int32,
            M=M, SLOTS=SLOTS, BY_POINTER=by_pointer, WARM=start is not None, num_warps=cut.warps, **options,
        )  # fmt: skip
    return mu, theta
