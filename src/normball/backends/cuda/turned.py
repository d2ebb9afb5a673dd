"""Groups that lie side by side: a turned copy, in which each lies in one piece, and the write from their caps."""

import triton
import triton.language as tl


@triton.jit
def clip(
    y, x, mu, theta, groups, members, y_problem, y_group, y_member, x_problem, x_group, x_member,
    G: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Each group clipped at its cap, where groups lie side by side. NaN fills its group.

    Zero groups are not read, where many of them are neighbours.
    """
    g = tl.program_id(0).to(tl.int64) * G + tl.arange(0, G)[None, :]
    i = tl.program_id(1).to(tl.int64) * N + tl.arange(0, N)[:, None]
    problem = tl.program_id(2).to(tl.int64)
    there = (g < groups) & (i < members)
    WIDE: tl.constexpr = tl.float64 if tl.float64 == y.dtype.element_ty else tl.float32
    limit = tl.load(mu + problem * groups + g, mask=g < groups, other=0.0).to(WIDE)
    interior = tl.load(theta + problem) == 0
    remains = tl.where(interior, 1.0, limit) != 0
    v = tl.zeros([N, G], y.dtype.element_ty)
    if tl.max(tl.max(remains.to(tl.int32), 1), 0) > 0:  # all or none, so that runs are read at once
        v = tl.load(y + problem * y_problem + g * y_group + i * y_member, mask=there, other=0.0)
    wide = v.to(WIDE)
    left = tl.where(tl.abs(wide) > limit, tl.where(wide < 0, -limit, limit), wide)
    left = tl.where(remains, left, 0.0)
    left = tl.where(limit != limit, limit, left)  # noqa: PLR0124
    tl.store(x + problem * x_problem + g * x_group + i * x_member, left.to(v.dtype), mask=there)


@triton.jit
def turned(
    y, x, groups, members, y_problem, y_group, y_member, x_problem, x_group, x_member, SIDE: tl.constexpr
):  # fmt: skip
    """A copy from one layout to another, by squares, so that both sides of it are read and written in runs."""
    g = tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    i = tl.program_id(1).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    problem = tl.program_id(2).to(tl.int64)
    there = (g < groups)[:, None] & (i < members)[None, :]
    v = tl.load(y + problem * y_problem + g[:, None] * y_group + i[None, :] * y_member, mask=there)
    tl.store(x + problem * x_problem + g[:, None] * x_group + i[None, :] * x_member, v, mask=there)
