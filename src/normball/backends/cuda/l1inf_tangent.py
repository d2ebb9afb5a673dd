"""The derivative of the l1,inf projection in Triton kernels: one pass for the sums of the groups, one that writes.

Tiles are rows and columns of the matrix as it lies, so that groups may have any length. Groups that are zero are
neither read nor, in the second pass, more than filled.
"""

import triton
import triton.language as tl


@triton.jit
def _whole(signed, counts, start, groups, parts, BLOCK: tl.constexpr):
    """Sums and numbers of some groups, over all the parts of their members."""
    g = start + tl.arange(0, BLOCK)
    a = tl.zeros([BLOCK], tl.float64)
    k = tl.zeros([BLOCK], tl.int32)
    for part in range(0, parts):
        a += tl.load(signed + part * groups + g, mask=g < groups, other=0.0)
        k += tl.load(counts + part * groups + g, mask=g < groups, other=0)
    return a, k, g


@triton.jit
def sums(
    y, v, mu, signed, counts, groups, members, length, y_group, y_member, v_group, v_member,
    G: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """For each group, over its clipped members: the sum of the tangent with the members' signs, and their number.

    The second axis of the grid counts parts of the members, each with a row of sums of its own: so the order of the
    sums, and with it the result, is always the same.
    """
    g = tl.program_id(0) * G + tl.arange(0, G)
    cap = tl.load(mu + g, mask=g < groups, other=0.0).to(tl.float32)
    alive = (cap > 0)[:, None]
    a = tl.zeros([G], tl.float64)
    k = tl.zeros([G], tl.int32)
    far = g.to(tl.int64)[:, None]
    first = tl.program_id(1) * length
    last = tl.minimum(first + length, members)
    for start in range(first, last, N):
        i = start + tl.arange(0, N)
        there = alive & (i < last)[None, :]
        along = i.to(tl.int64)[None, :]
        value = tl.load(y + far * y_group + along * y_member, mask=there, other=0.0).to(tl.float32)
        tangent = tl.load(v + far * v_group + along * v_member, mask=there, other=0.0).to(tl.float32)
        clipped = (tl.abs(value) > cap[:, None]) & there
        part = tl.where(clipped, tl.where(value < 0, -tangent, tangent), 0.0)
        a += tl.sum(part.to(tl.float64), 1)
        k += tl.sum(clipped.to(tl.int32), 1)
    row = tl.program_id(1).to(tl.int64) * groups
    tl.store(signed + row + g, a, mask=g < groups)
    tl.store(counts + row + g, k, mask=g < groups)


@triton.jit
def moves(signed, counts, by, mean_out, groups, parts, BLOCK: tl.constexpr):
    """How the caps move, from the sums of the groups: one block does all of them, and theta with them."""
    total = tl.zeros([BLOCK], tl.float64)
    weight = tl.zeros([BLOCK], tl.float64)
    for start in range(0, groups, BLOCK):
        a, k, g = _whole(signed, counts, start, groups, parts, BLOCK)
        each = tl.where(k > 0, 1.0 / tl.maximum(k, 1).to(tl.float64), 0.0)
        total += a * each
        weight += each
    whole = tl.sum(weight)
    mean = tl.where(whole > 0, tl.sum(total) / tl.maximum(whole, 1e-300), 0.0)
    for start in range(0, groups, BLOCK):
        a, k, g = _whole(signed, counts, start, groups, parts, BLOCK)
        move = tl.where(k > 0, (a - mean) / tl.maximum(k, 1).to(tl.float64), 0.0)
        tl.store(by + g, move, mask=g < groups)
    tl.store(mean_out, mean)


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
