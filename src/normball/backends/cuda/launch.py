"""How a projection is cut into tiles, and the launch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from normball.backends.cuda import beside, turned
from normball.backends.cuda import write as writing
from normball.backends.cuda.host import INTERPRETED, Launch, in_runs, meeting, place_on, processors_on
from normball.backends.cuda.resident import resident
from normball.backends.cuda.streaming import streaming
from normball.backends.cuda.tangent import tangent_l1inf

__all__ = ["Task", "project_l1", "project_l1inf", "tangent_l1inf", "totals", "write"]

ELEMENTS = 1 << 15  # of a tile: what the registers of one multiprocessor hold beside the work on it
LINES = 1 << 14  # groups whose lines one block can hold
MOST_PROBLEMS = 65535  # of one launch: what a grid may count along its second and third axes
TURNED = 64  # side of the squares in which a matrix is transposed
CLIPPED = (32, 128)  # groups and members of the rectangles in which it is written, where groups lie side by side
AT_ONCE = 1 << 11  # groups that a block thinks of at once
SHARED = 200 << 10  # bytes of a multiprocessor that hold tiles on their way
ROW_BYTES = 1 << 17  # of a row that one block projects by itself
LONG = 1 << 13  # entries of such a row that a block adds up at once
LONG_ROWS = 64  # that follow one another, each a launch
FEW_PROBLEMS = 4  # below, problems follow one another, each on the whole device
STREAMED = 1 << 14  # of a tile that is read again: there are others on their way beside it


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
        return 128 if self.warps > 8 else 255

    def stages(self, itemsize: int) -> int:
        """How many tiles a block has at work, all but one of them on their way."""
        return max(1, min(3, 1 + SHARED // (math.prod(self.shape) * itemsize)))


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
    # 32 elements for each thread, or what its registers hold: the fewer threads, the less they have to exchange.
    warps = max(1, min(8 if itemsize <= 4 else 16, G * N // 1024))
    wide = 32 * 16 // max(itemsize, 4)  # what a warp reads at once, 16 bytes for each thread
    if strided:
        A = min(N, max(1, wide * warps // G))
        shape = (A, N // A, G)
    else:
        B = min(N, max(wide // 4, wide * warps // G))
        shape = (G, N // B, B)
    return Plan(shape, G, tiles, min(processors, tiles), resident, warps)


@dataclass(frozen=True)
class Prepared:
    """All of a launch that does not depend on where the tensors lie, kept for the next call on the same shapes."""

    together: int  # problems of one launch
    alone: bool  # each block a problem of its own
    programs: int  # blocks that share a problem
    work: int  # doubles of scratch memory
    sizes: tuple[int, ...]
    launch: Launch


@lru_cache(maxsize=1024)
def _prepared(
    shape: tuple[int, int, int],
    y_strides: tuple[int, ...],
    x_strides: tuple[int, ...] | None,
    device: torch.device,
    dtype: torch.dtype,
    warm: bool,
    by_pointer: bool,
) -> Prepared | None:
    """Return how to project such an array, or, with nowhere to write, how to find the caps; None if there is no way."""
    problems, groups, members = shape
    strided = y_strides[1] < y_strides[2]
    processors = processors_on(device)
    cut = plan(groups, members, strided, processors, dtype.itemsize, problems)
    if cut is None or (strided and not cut.resident):
        return None
    # Problems of one block each are independent blocks of one launch; larger ones follow one another.
    alone = cut.programs == 1
    together = problems if alone and cut.resident else 1
    # Groups whose two lines every block reads to begin with: all, or those of the sample.
    M = triton.next_power_of_2(groups if cut.resident else cut.programs * cut.groups)
    M = M if 1 < M <= LINES and not warm and together == 1 else 0
    both = (y_strides, y_strides if x_strides is None else x_strides)
    VG, VN = in_runs(groups, members, *both)
    strides = [stride // v for each in both for stride, v in zip(each, (VG * VN, VN, VG), strict=True)]
    far = max((groups - 1) * each[1] + (members - 1) * each[2] for each in both) >= 2**31
    A, R, B = cut.shape
    constants = {
        "A": A, "R": R, "B": B, "STRIDED": strided, "VG": VG, "VN": VN, "INDEX": tl.int64 if far else tl.int32,
        "EVEN": members == A * R * B // cut.groups and groups == cut.tiles * cut.groups, "M": M,
        **meeting(cut.programs, cut.warps),
        "BY_POINTER": by_pointer, "WARM": warm,
    }  # fmt: skip
    if not cut.resident:
        most = triton.next_power_of_2(triton.cdiv(cut.tiles, cut.programs))
        J = max(1, min(most, AT_ONCE // cut.groups))
        stages = cut.stages(dtype.itemsize)
        constants |= {"WRITE": x_strides is not None, "STAGES": stages, "J": J}
    elif x_strides is None:
        return None
    else:
        constants |= {"INTERPRETED": INTERPRETED}
    options: dict[str, Any] = {"num_warps": cut.warps}
    if not INTERPRETED:
        options |= {"launch_cooperative_grid": not alone, "maxnreg": cut.registers}
    kernel: Any = resident if cut.resident else streaming
    return Prepared(
        together=together,
        alone=alone,
        programs=cut.programs,
        work=M if cut.resident else M + 6 * groups,
        sizes=(groups, members, *strides, cut.tiles, cut.programs),
        launch=Launch(kernel, (cut.programs, together), constants, **options),
    )


class Task(NamedTuple):
    """What to project, seen as (problem, group, member), and where to write the result, the caps and theta."""

    Y: Tensor
    X: Tensor | None  # without it, the caps and theta alone
    mu: Tensor
    theta: Tensor
    shape: tuple[int, int, int]
    y_strides: tuple[int, ...]
    x_strides: tuple[int, ...] | None
    radius: Tensor | float
    start: tuple[Tensor, Tensor] | None


def project_l1inf(task: Task) -> bool:
    """Carry out a task that has a place for the result; False if it cannot."""
    Y, X, mu, theta, shape, y_strides, x_strides, radius, start = task
    assert X is not None
    assert x_strides is not None
    if shape[0] == 1 or _whole(shape, y_strides, x_strides, Y):
        return _launched(task)
    radii = radius if isinstance(radius, float) else radius.reshape(-1).broadcast_to(shape[0])
    y, x = Y.as_strided(shape, y_strides), X.as_strided(shape, x_strides)
    mu, theta = mu.view(shape[:2]), theta.view(shape[0])
    count = MOST_PROBLEMS if _whole((MOST_PROBLEMS, *shape[1:]), y_strides, x_strides, Y) else 1
    for i in range(0, shape[0], count):
        some = slice(i, i + count)
        part = (min(count, shape[0] - i), *shape[1:])
        C = radii if isinstance(radii, float) else radii[some]
        old = None if start is None else (start[0][some], start[1][some])
        if not _launched(Task(y[some], x[some], mu[some], theta[some], part, y_strides, x_strides, C, old)):
            return False
    return True


def _whole(shape: tuple[int, int, int], y_strides: tuple[int, ...], x_strides: tuple[int, ...], Y: Tensor) -> bool:
    """Whether one launch takes all the problems."""
    ready = _prepared(shape, y_strides, x_strides, Y.device, Y.dtype, False, False)
    return shape[0] <= MOST_PROBLEMS and ready is not None and ready.together == shape[0]


def _launched(task: Task) -> bool:
    """Carry out a task whose problems one launch can take."""
    Y, X, mu, theta, shape, y_strides, x_strides, radius, start = task
    device = Y.device
    if INTERPRETED:  # which cannot take numbers in double precision
        radius = torch.as_tensor(radius, dtype=torch.float64)
    elif not isinstance(radius, float) and radius.device.type == "cpu" and radius.numel() == 1:
        radius = float(radius)
    by_pointer = not isinstance(radius, float)
    ready = _prepared(shape, y_strides, x_strides, device, Y.dtype, start is not None, by_pointer)
    if ready is None:
        task = task._replace(radius=radius)
        return X is not None and (_beside(task) or _packed(task))
    work = torch.empty(ready.work, dtype=torch.float64, device=device) if ready.work else theta
    old_mu, old_theta = (None, None) if start is None else start
    radii = theta if isinstance(radius, float) else radius.to(device).reshape(-1).broadcast_to(shape[0]).contiguous()
    X = Y if X is None else X
    places = Y.data_ptr() | X.data_ptr() | mu.data_ptr() | theta.data_ptr()
    same = not by_pointer
    if old_mu is not None and old_theta is not None:
        places |= old_mu.data_ptr() | old_theta.data_ptr()
        same = same and old_mu.dtype == Y.dtype
    ready.launch(
        (Y, X, mu, theta, 0.0 if by_pointer else radius, radii, old_mu, old_theta,
         theta if ready.alone else place_on(device, ready.programs), work, *ready.sizes),
        same and places & 15 == 0,
    )  # fmt: skip
    return True


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
    tiles = triton.cdiv(n, LONG)
    programs = min(2 * processors_on(device), tiles) if device.type == "cuda" else 1
    options: dict[str, Any] = {"N": LONG, **meeting(programs, 8), "num_warps": 8}
    if not INTERPRETED:
        options |= {"launch_cooperative_grid": programs > 1, "maxnreg": 128}
    launch: Any = writing.long[(programs,)]
    for i, row in enumerate(values.contiguous()):
        launch(row, X[i], radii[i:], theta[i:], place_on(device, programs), n, tiles, programs, **options)
    return theta


def totals(Y: Tensor, square: bool) -> Tensor:
    """Return the sums of the magnitudes of `Y`, (problem, group, member), or of their squares, in double precision."""
    problems, groups, members = Y.shape
    strided = Y.stride(1) < Y.stride(2)
    N = min(32 if strided else 2048, triton.next_power_of_2(members))
    G = min(64 if strided else 2048 // N, triton.next_power_of_2(groups))
    blocks = triton.cdiv(groups, G) * problems
    parts = min(triton.cdiv(members, N), triton.cdiv(8 * processors_on(Y.device), blocks))
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


def _beside(task: Task) -> bool:
    """Project groups that lie side by side and do not fit the device all at once, from a start: as they lie."""
    Y, X, mu, theta, shape, y_strides, x_strides, radius, start = task
    assert X is not None
    assert x_strides is not None
    if start is None or shape[0] > 1 or y_strides[1] != 1:
        return False
    by_pointer = not isinstance(radius, float)
    ready = beside.prepared(*shape[1:], y_strides[1:], x_strides[1:], Y.device, Y.dtype, by_pointer)
    if ready is None:
        return False
    programs, sizes, launch = ready
    radii = theta if isinstance(radius, float) else radius.to(Y.device).reshape(-1)
    old_mu, old_theta = start
    places = Y.data_ptr() | X.data_ptr() | mu.data_ptr() | theta.data_ptr() | old_mu.data_ptr() | old_theta.data_ptr()
    launch(
        (Y, X, mu, theta, 0.0 if by_pointer else radius, radii, old_mu, old_theta,
         theta if programs == 1 else place_on(Y.device, programs), *sizes),
        not by_pointer and old_mu.dtype == Y.dtype and places & 15 == 0,
    )  # fmt: skip
    return True


def _packed(task: Task) -> bool:
    """Project groups that lie side by side and do not fit the device all at once: a turned copy tells their caps."""
    Y, X, mu, theta, shape, y_strides, x_strides, _, _ = task
    assert X is not None
    assert x_strides is not None
    problems, groups, members = shape
    if y_strides[1] > y_strides[2] or problems > 1:
        return False
    device = Y.device
    strides = (groups * members, members, 1)
    if _prepared(shape, strides, None, device, Y.dtype, False, False) is None:
        return False
    packed = torch.empty(shape, dtype=Y.dtype, device=device)
    turn, clip = _around(shape, y_strides, x_strides, device, Y.dtype)
    same = (Y.data_ptr() | X.data_ptr() | mu.data_ptr() | theta.data_ptr()) & 15 == 0
    turn((Y, packed, groups, members, *y_strides, *strides), same)
    _launched(task._replace(Y=packed, X=None, y_strides=strides, x_strides=None))
    clip((Y, X, mu, theta, groups, members, *y_strides, *x_strides), same)
    return True


@lru_cache(maxsize=1024)
def _around(
    shape: tuple[int, int, int], y_strides: tuple[int, ...], x_strides: tuple[int, ...], *_: object
) -> tuple[Launch, Launch]:
    """Return the launches before and after the search on a turned copy, for each device and dtype."""
    problems, groups, members = shape
    G, N = CLIPPED
    return (
        Launch(turned.turned, (triton.cdiv(groups, TURNED), triton.cdiv(members, TURNED), problems), {"SIDE": TURNED}),
        Launch(turned.clip, (triton.cdiv(groups, G), triton.cdiv(members, N), problems), {"G": G, "N": N}, num_warps=8),
    )
