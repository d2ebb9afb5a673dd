"""What the family needs: sums of groups, projections onto l1 balls, and the write from one number for each group."""

import triton
import triton.language as tl

from normball.backends.cuda.meeting import arrive, in_block, leave, meet
from normball.backends.cuda.parts import rounded_down

SCALE, CLIP, SHRINK = 0, 1, 2


@triton.jit
def totals(
    y, sums, groups, members, length, y_problem, y_group, y_member,
    SQUARE: tl.constexpr, G: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Sum of the magnitudes of each group, or of their squares, in double precision.

    The second axis of the grid counts parts of the members, each with sums of its own; the third, problems.
    """
    g = tl.program_id(0).to(tl.int64) * G + tl.arange(0, G)
    first = tl.program_id(1) * length
    last = tl.minimum(first + length, members)
    problem = tl.program_id(2).to(tl.int64)
    at = y + problem * y_problem + g[:, None] * y_group
    total = tl.zeros([G, N], tl.float64)
    for start in range(first, last, N):
        i = (start + tl.arange(0, N))[None, :]
        v = tl.load(at + i.to(tl.int64) * y_member, mask=(g < groups)[:, None] & (i < last), other=0.0)
        WIDE: tl.constexpr = tl.float64 if tl.float64 == v.dtype else tl.float32
        size = tl.abs(v.to(WIDE)).to(tl.float64)
        total += size * size if SQUARE else size
    row = tl.program_id(1).to(tl.int64) * tl.num_programs(2) + problem
    tl.store(sums + row * groups + g, tl.sum(total, 1), mask=g < groups)


@triton.jit(do_not_specialize=["tiles", "programs"])
def long(
    y, x, radius, theta_out, place, n, tiles, programs,
    N: tl.constexpr, SLOTS: tl.constexpr, WORDS: tl.constexpr, ALONE: tl.constexpr,
):  # fmt: skip
    """One long vector projected onto the l1 ball by all the blocks together, which read it again in each round.

    As in `rows`, theta rises from the line of all entries until no entry changes sides.
    """
    me = tl.program_id(0)
    lanes = tl.arange(0, N)
    C = tl.load(radius)
    sums = tl.zeros([N], tl.float64)
    for tile in range(me, tiles, programs):
        i = tile.to(tl.int64) * N + lanes
        sums += tl.abs(tl.load(y + i, mask=i < n, other=0.0)).to(tl.float64)
    turn = arrive(place, SLOTS, ALONE)
    total = tl.sum(sums)
    total, _, _, _ = meet(place, turn, programs, in_block(total, total, total, total), SLOTS, WORDS, ALONE)
    turn += 1
    bad = ~((total < float("inf")) & (C >= 0))
    inside = total <= C
    theta = tl.maximum((total - C) / n, 0.0)
    before = total * 0.0 - 1.0
    searching = (~bad & ~inside).to(tl.int32)
    while searching > 0:
        sums = tl.zeros([N], tl.float64)
        counts = tl.zeros([N], tl.int32)
        for tile in range(me, tiles, programs):
            i = tile.to(tl.int64) * N + lanes
            size = tl.abs(tl.load(y + i, mask=i < n, other=0.0)).to(tl.float64)
            above = size > theta
            sums += tl.where(above, size, 0.0)
            counts += above.to(tl.int32)
        mass, count = tl.sum(sums), tl.sum(counts).to(tl.float64)
        mass, count, _, _ = meet(place, turn, programs, in_block(mass, count, count, count), SLOTS, WORDS, ALONE)
        turn += 1
        ahead = (mass - C) / tl.maximum(count, 1.0)
        theta = tl.where(count > 0, tl.maximum(ahead, theta), theta)
        searching = ((count != before) & (count > 0)).to(tl.int32)
        before = count
    for tile in range(me, tiles, programs):
        i = tile.to(tl.int64) * N + lanes
        v = tl.load(y + i, mask=i < n, other=0.0)
        left = rounded_down(tl.maximum(tl.abs(v).to(tl.float64) - theta, 0.0), v.dtype)
        left = tl.where(inside, v, tl.where(v < 0, -left, left))
        tl.store(x + i, tl.where(bad, float("nan"), left).to(v.dtype), mask=i < n)
    if me == 0:
        theta = tl.where(inside, 0.0, theta)
        tl.store(theta_out, tl.where(bad, float("nan"), theta))
    leave(place, turn, SLOTS, ALONE)


@triton.jit
def rows(y, x, radii, thetas, n, y_row, y_entry, N: tl.constexpr):
    """A row for each block, projected onto the l1 ball: Newton's method on theta, with the row in registers.

    From the line of all entries theta rises until no entry changes sides. `x` is contiguous.
    """
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    C = tl.load(radii + row)
    v = tl.load(y + row * y_row + i.to(tl.int64) * y_entry, mask=i < n, other=0.0)
    WIDE: tl.constexpr = tl.float64 if tl.float64 == v.dtype else tl.float32
    wide = v.to(WIDE)
    size = tl.abs(wide).to(tl.float64)
    total = tl.sum(size)
    bad = ~((total < float("inf")) & (C >= 0))
    inside = total <= C
    theta = tl.maximum((total - C) / n, 0.0)
    theta = tl.where(C > 0, theta, tl.max(size))
    before = -1
    count = n * 1
    while (count != before) & (C > 0) & ~bad & ~inside:
        before = count
        above = size > theta
        count = tl.sum(above.to(tl.int32))
        ahead = (tl.sum(tl.where(above, size, 0.0)) - C) / tl.maximum(count, 1)
        theta = tl.where(count > 0, tl.maximum(ahead, theta), theta)
    left = rounded_down(tl.maximum(size - theta, 0.0), v.dtype).to(WIDE)
    left = tl.where(inside, wide, tl.where(wide < 0, -left, left))
    left = tl.where(bad, float("nan"), left).to(v.dtype)
    tl.store(x + row * n + i, left, mask=i < n)
    theta = tl.where(inside, 0.0, theta)
    tl.store(thetas + row, tl.where(bad, float("nan"), theta))


@triton.jit
def write(
    y, x, numbers, groups, members, y_problem, y_group, y_member, x_problem, x_group, x_member,
    KIND: tl.constexpr, G: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Each entry scaled by its group's number, clipped to it, or shrunk towards zero by it, and rounded towards zero.

    NaN fills its group. What would leave a group as it is copies its bits; what leaves nothing does not read it.
    """
    g = tl.program_id(0).to(tl.int64) * G + tl.arange(0, G)
    i = tl.program_id(1).to(tl.int64) * N + tl.arange(0, N)
    problem = tl.program_id(2).to(tl.int64)
    there = (g < groups)[:, None] & (i < members)[None, :]
    number = tl.load(numbers + problem * groups + g, mask=g < groups, other=0.0)[:, None]
    if KIND == 2:
        gone, same = number == float("inf"), number == 0.0
    elif KIND == 1:
        gone, same = number == 0.0, number == float("inf")
    else:
        gone, same = number == 0.0, number == 1.0
    v = tl.load(y + problem * y_problem + g[:, None] * y_group + i[None, :] * y_member, mask=there & ~gone, other=0.0)
    WIDE: tl.constexpr = tl.float64 if tl.float64 == v.dtype else tl.float32
    wide = v.to(WIDE)
    size = tl.abs(wide).to(tl.float64)
    if KIND == 2:
        size = tl.maximum(size - tl.where(gone, 0.0, number), 0.0)
    elif KIND == 1:
        size = tl.minimum(size, number)
    else:
        size = size * number
    left = rounded_down(size, v.dtype).to(WIDE)
    left = tl.where(same, wide, tl.where(wide < 0, -left, left))
    left = tl.where(number != number, float("nan"), left).to(v.dtype)  # noqa: PLR0124
    tl.store(x + problem * x_problem + g[:, None] * x_group + i[None, :] * x_member, left, mask=there)
