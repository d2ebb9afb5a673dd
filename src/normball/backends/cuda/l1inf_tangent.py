"""The derivative of the l1,inf projection in two Triton kernels: one pass for the sums of the groups, one that writes.

Tiles are rows and columns of the matrix as it lies, so that groups may have any length. Groups that are zero are
neither read nor, in the second pass, more than filled.
"""

import triton
import triton.language as tl


@triton.jit
def sums(
    y, v, mu, signed, counts, groups, members, y_group, y_member, v_group, v_member, G: tl.constexpr, N: tl.constexpr
):  # fmt: skip
    """For each group, over its clipped members: the sum of the tangent with the members' signs, and their number."""
    g = tl.program_id(0) * G + tl.arange(0, G)
    cap = tl.load(mu + g, mask=g < groups, other=0.0).to(tl.float32)
    alive = (cap > 0)[:, None]
    a = tl.zeros([G], tl.float64)
    k = tl.zeros([G], tl.int32)
    far = g.to(tl.int64)[:, None]
    for start in range(0, members, N):
        i = start + tl.arange(0, N)
        there = alive & (i < members)[None, :]
        along = i.to(tl.int64)[None, :]
        value = tl.load(y + far * y_group + along * y_member, mask=there, other=0.0).to(tl.float32)
        tangent = tl.load(v + far * v_group + along * v_member, mask=there, other=0.0).to(tl.float32)
        clipped = (tl.abs(value) > cap[:, None]) & there
        part = tl.where(clipped, tl.where(value < 0, -tangent, tangent), 0.0)
        a += tl.sum(part.to(tl.float64), 1)
        k += tl.sum(clipped.to(tl.int32), 1)
    tl.store(signed + g, a, mask=g < groups)
    tl.store(counts + g, k, mask=g < groups)


@triton.jit
def spread(
    y, v, x, mu, moves, theta, groups, members, y_group, y_member, v_group, v_member, x_group, x_member,
    G: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """What each entry moves by: with its cap if it is clipped, as the tangent says if its group is not zero."""
    g = tl.program_id(0) * G + tl.arange(0, G)
    i = tl.program_id(1) * N + tl.arange(0, N)
    far, along = g.to(tl.int64)[:, None], i.to(tl.int64)[None, :]
    there = (g < groups)[:, None] & (i < members)[None, :]
    cap = tl.load(mu + g, mask=g < groups, other=0.0).to(tl.float32)
    move = tl.load(moves + g, mask=g < groups, other=0.0)[:, None]
    interior = tl.load(theta) == 0
    passes = tl.where(interior, 1.0, cap)[:, None] > 0
    value = tl.load(y + far * y_group + along * y_member, mask=there & passes, other=0.0).to(tl.float32)
    tangent = tl.load(v + far * v_group + along * v_member, mask=there & passes, other=0.0).to(tl.float32)
    clipped = (tl.abs(value) > cap[:, None]) & (cap > 0)[:, None]
    by = tl.where(value < 0, -move, move).to(tl.float32)
    moved = tl.where(clipped, by, tangent)
    tl.store(x + far * x_group + along * x_member, moved.to(x.dtype.element_ty), mask=there)
