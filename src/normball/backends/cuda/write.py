"""Rows projected onto l1 balls of their own, and one pass that writes a result from one number for each group."""

import triton
import triton.language as tl

from normball.backends.cuda.parts import rounded_down

SCALE, CLIP, SHRINK = 0, 1, 2


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
