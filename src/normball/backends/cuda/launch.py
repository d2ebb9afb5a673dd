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

from normball.backends.cuda import l1inf, l1inf_tangent
from normball.backends.cuda import write as writing

__all__ = ["project_l1", "project_l1inf", "tangent_l1inf", "totals", "write"]

INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"
ELEMENTS = 1 << 15  # of a tile: what the registers of one multiprocessor hold beside the work on it
LINES = 1 << 14  # groups whose lines one block can hold
MOST_PROBLEMS = 65535  # of one launch: what a grid may count along its second and third axes
TURNED = 64  # side of the squares in which a matrix is transposed
ROW_BYTES = 1 << 17  # of a row that one block projects by itself
LONG_ROWS = 64  # that follow one another, each a launch
FEW_PROBLEMS = 4  # below, problems follow one another, each on the whole device
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


def _fits(groups: int, members: int, processors: int) -> int:
    """Return the groups of a tile if one tile for each multiprocessor holds them all, else 0."""
    N, G = triton.next_power_of_2(members), 1
    while triton.cdiv(groups, G) > processors and 2 * G * N <= ELEMENTS:
        G *= 2
    return G if triton.cdiv(groups, G) <= processors and G * N <= ELEMENTS else 0


@lru_cache(maxsize=1024)
def plan(groups: int, members: int, strided: bool, processors: int, itemsize: int, problems: int = 1) -> Plan | None:
    """Return how to cut a problem, or None where a group is too long for one block."""
    N = triton.next_power_of_2(members)
    # Many problems are solved side by side, if each fits one block.
    G = _fits(groups, members, 1) if problems >= FEW_PROBLEMS else 0
    G = G or _fits(groups, members, processors)
    resident = G > 0
    if not resident:
        # Neighbouring groups that lie side by side are read together: a sector of memory holds eight.
        G = max(8 if strided else 1, STREAMED // N)
    if G * N > ELEMENTS:
        return None
    tiles = triton.cdiv(groups, G)
    # At most 32 elements for each thread, as far as there are threads.
    warps = max(1, min(16, G * N // 1024))
    wide = 32 * 16 // itemsize  # what a warp reads at once, 16 bytes for each thread
    if strided:
        A = min(N, max(1, wide * warps // G))
        shape = (A, N // A, G)
    else:
        B = min(N, max(wide // 4, wide * warps // G))
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


@dataclass(frozen=True)
class Prepared:
    """All of a launch that does not depend on where the tensors lie, kept for the next call on the same shapes."""

    together: int  # problems of one launch
    slots: int
    lines: int
    state: int
    sizes: tuple[int, ...]
    launch: Any
    options: dict[str, Any]


@lru_cache(maxsize=1024)
def _prepared(
    shape: tuple[int, int, int],
    y_strides: tuple[int, ...],
    x_strides: tuple[int, ...],
    device: torch.device,
    itemsize: int,
    warm: bool,
    by_pointer: bool,
) -> Prepared | None:
    problems, groups, members = shape
    strided = y_strides[1] < y_strides[2]
    cut = plan(groups, members, strided, _processors(device), itemsize, problems)
    if cut is None:
        return None
    # Problems of one block each are independent blocks of one launch; larger ones follow one another.
    together = problems if cut.programs == 1 and cut.resident else 1
    SLOTS = max(2, triton.next_power_of_2(cut.programs))
    # Groups whose two lines every block reads to begin with: all, or those of the sample.
    M = triton.next_power_of_2(groups if cut.resident else cut.programs * cut.groups)
    M = M if 1 < M <= LINES and not warm and together == 1 else 0
    VG, VN = _together(groups, members, y_strides, x_strides)
    both = (y_strides, x_strides)
    strides = [stride // v for each in both for stride, v in zip(each, (VG * VN, VN, VG), strict=True)]
    far = max((groups - 1) * each[1] + (members - 1) * each[2] for each in both) >= 2**31
    A, R, B = cut.shape
    options = {
        "A": A, "R": R, "B": B, "STRIDED": strided, "VG": VG, "VN": VN, "INDEX": tl.int64 if far else tl.int32,
        "M": M, "SLOTS": SLOTS, "BY_POINTER": by_pointer, "WARM": warm, "num_warps": cut.warps,
    }  # fmt: skip
    if not INTERPRETED:
        options |= {"launch_cooperative_grid": cut.programs > 1, "maxnreg": cut.registers}
    kernel: Any = l1inf.resident if cut.resident else l1inf.streaming
    return Prepared(
        together=together,
        slots=together * 8 * SLOTS,
        lines=max(2 * M, 1),
        state=0 if cut.resident else groups,
        sizes=(groups, members, *strides, cut.tiles, cut.programs),
        launch=kernel[(cut.programs, together)],
        options=options,
    )


def project_l1inf(
    Y: Tensor, X: Tensor, radius: Tensor, start: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor] | None:
    """Project `Y`, which is (problem, group, member), into `X`; None where the kernels cannot."""
    problems, groups, members = Y.shape
    device = Y.device
    if problems > MOST_PROBLEMS:
        radii = radius.to(device).broadcast_to(problems)
        parts = []
        for i in range(0, problems, MOST_PROBLEMS):
            some = slice(i, i + MOST_PROBLEMS)
            old = None if start is None else (start[0][some], start[1][some])
            parts.append(project_l1inf(Y[some], X[some], radii[some], old))
        done = [part for part in parts if part is not None]
        return (torch.cat([d[0] for d in done]), torch.cat([d[1] for d in done])) if len(done) == len(parts) else None
    by_pointer = INTERPRETED or radius.device.type != "cpu" or radius.numel() > 1
    ready = _prepared(
        (problems, groups, members), Y.stride(), X.stride(), device, Y.itemsize, start is not None, by_pointer
    )
    if ready is None or (ready.state and Y.stride(1) < Y.stride(2)):
        return _packed(Y, X, radius, start)
    mu = torch.empty((problems, groups), dtype=Y.dtype, device=device)
    theta = torch.empty(problems, dtype=torch.float64, device=device)
    value = 0.0 if by_pointer else float(radius)
    radii = radius.to(device).broadcast_to(problems).contiguous() if by_pointer else theta
    old_mu, old_theta = (None, None) if start is None else start
    memory: tuple[Tensor, ...] = (
        torch.empty(ready.slots, dtype=torch.float64, device=device),
        _counter(device),
        torch.empty(ready.lines, dtype=torch.float32, device=device),
    )
    if ready.state:
        memory += (
            torch.empty(groups, dtype=torch.float64, device=device),
            torch.empty(groups, dtype=torch.float64, device=device),
            torch.empty(groups, dtype=torch.int32, device=device),
        )
    if ready.together == problems:
        ready.launch(
            Y, X, mu, theta, value, radii, old_mu, old_theta, *memory, *ready.sizes, **ready.options
        )
        return mu, theta
    for i in range(problems):
        ready.launch(
            Y[i], X[i], mu[i], theta[i:], value, radii[i:], None if old_mu is None else old_mu[i],
            None if old_theta is None else old_theta[i:], *memory, *ready.sizes, **ready.options,
        )  # fmt: skip
    return mu, theta


def project_l1(values: Tensor, X: Tensor, radii: Tensor) -> Tensor | None:
    """Project the rows of `values` onto l1 balls, into the contiguous `X`; return theta of each.

    A row that fits one block has one, a longer one has them all; None for many long ones.
    """
    problems, n = values.shape
    device = values.device
    theta = torch.empty(problems, dtype=torch.float64, device=device)
    if n * values.itemsize <= ROW_BYTES:
        N = triton.next_power_of_2(n)
        short: Any = writing.rows[(problems,)]
        short(values, X, radii.contiguous(), theta, n, *values.stride(), N=N, num_warps=max(1, min(16, N // 512)))
        return theta
    if problems > LONG_ROWS or values.itemsize < 4:
        return None
    tiles = triton.cdiv(n, STREAMED)
    programs = min(2 * _processors(device), tiles) if device.type == "cuda" else 1
    SLOTS = max(2, triton.next_power_of_2(programs))
    slots = torch.empty(8 * SLOTS, dtype=torch.float64, device=device)
    options: dict[str, Any] = {"N": STREAMED, "SLOTS": SLOTS, "num_warps": 8}
    if not INTERPRETED:
        options |= {"launch_cooperative_grid": programs > 1, "maxnreg": 128}
    launch: Any = writing.long[(programs,)]
    for i, row in enumerate(values.contiguous()):
        launch(row, X[i], radii[i:], theta[i:], slots, _counter(device), n, tiles, programs, **options)
    return theta


def totals(Y: Tensor, square: bool) -> Tensor:
    """Return the sums of the magnitudes of `Y`, (problem, group, member), or of their squares, in double precision."""
    problems, groups, members = Y.shape
    strided = Y.stride(1) < Y.stride(2)
    N = min(32 if strided else 2048, triton.next_power_of_2(members))
    G = min(64 if strided else 2048 // N, triton.next_power_of_2(groups))
    blocks = triton.cdiv(groups, G) * problems
    parts = min(triton.cdiv(members, N), triton.cdiv(8 * _processors(Y.device), blocks))
    length = triton.cdiv(members, parts)
    sums = torch.empty((parts, problems, groups), dtype=torch.float64, device=Y.device)
    launch: Any = writing.totals[(triton.cdiv(groups, G), parts, problems)]
    launch(Y, sums, groups, members, length, *Y.stride(), SQUARE=square, G=G, N=N, num_warps=4)
    return sums.sum(0) if parts > 1 else sums[0]


_KINDS = {"scale": writing.SCALE, "clip": writing.CLIP, "shrink": writing.SHRINK}


def write(kind: str, Y: Tensor, X: Tensor, numbers: Tensor) -> None:
    """Write `X` from `Y`, which is (problem, group, member), and one number for each group."""
    problems, groups, members = Y.shape
    strided = Y.stride(1) < Y.stride(2)
    N = min(32 if strided else 4096, triton.next_power_of_2(members))
    G = min(4096 // N if not strided else 64, triton.next_power_of_2(groups))
    launch: Any = writing.write[(triton.cdiv(groups, G), triton.cdiv(members, N), problems)]
    launch(
        Y, X, numbers.contiguous(), groups, members, *Y.stride(), *X.stride(),
        KIND=_KINDS[kind], G=G, N=N, num_warps=8 if N * G > 2048 else 4,
    )  # fmt: skip


def _packed(
    Y: Tensor, X: Tensor, radius: Tensor, start: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor] | None:
    """Project groups that lie side by side and do not fit the device all at once: turned, and turned back."""
    problems, groups, members = Y.shape
    if Y.stride(1) > Y.stride(2) or plan(groups, members, False, _processors(Y.device), Y.itemsize) is None:
        return None
    packed = torch.empty((problems, groups, members), dtype=Y.dtype, device=Y.device)
    grid = (triton.cdiv(groups, TURNED), triton.cdiv(members, TURNED), problems)
    turn: Any = l1inf.turned[grid]
    turn(Y, packed, groups, members, *Y.stride(), *packed.stride(), SIDE=TURNED)
    done = project_l1inf(packed, packed, radius, start)
    turn(packed, X, groups, members, *packed.stride(), *X.stride(), SIDE=TURNED)
    return done


def tangent_l1inf(Y: Tensor, mu: Tensor, theta: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Jacobian at `Y`, which is (group, member), times `V`, and the derivative by the radius times `V`."""
    groups, members = Y.shape
    X = torch.empty_like(V)
    strided = Y.stride(0) < Y.stride(1)
    G, N = (32, 64) if strided else (1, 2048)
    N = min(N, triton.next_power_of_2(members))
    # Enough blocks to fill the device, where a block takes many groups.
    parts = min(triton.cdiv(members, N), max(1, 8 * _processors(Y.device) * G // groups)) if strided else 1
    part = triton.cdiv(members, parts)
    signed = torch.empty((parts, groups), dtype=torch.float64, device=Y.device)
    counts = torch.empty((parts, groups), dtype=torch.int32, device=Y.device)
    first: Any = l1inf_tangent.sums[(triton.cdiv(groups, G), parts)]
    sizes = (*Y.stride(), *V.stride())
    first(Y, V, mu, signed, counts, groups, members, part, *sizes, G=G, N=N, num_warps=8 if N * G > 1024 else 4)
    by = torch.empty(groups, dtype=torch.float64, device=Y.device)
    mean = torch.empty((), dtype=torch.float64, device=Y.device)
    between: Any = l1inf_tangent.moves[(1,)]
    between(signed, counts, by, mean, groups, parts, BLOCK=min(4096, triton.next_power_of_2(groups)), num_warps=8)
    G, N = (64, 32) if strided else (1, 4096)
    N = min(N, triton.next_power_of_2(members))
    second: Any = l1inf_tangent.spread[(triton.cdiv(groups, G), triton.cdiv(members, N))]
    second(
        Y, V, X, mu, by, theta, groups, members, *sizes, *X.stride(),
        G=G, N=N, num_warps=8 if N * G > 2048 else 4,
    )  # fmt: skip
    return X, mean
