"""The derivative of the l1,inf projection in Triton kernels: one pass for the sums of the groups, one that writes.

Tiles are rows and columns of the matrix as it lies, so that groups may have any length. The first pass leaves two bits
for each entry, whether it is clipped and its sign, so that the second need not read the matrix again. Tiles of zero
groups are not read, only filled.
"""

import triton
import triton.language as tl


@triton.jit
def _packed(codes, STRIDED: tl.constexpr):
    """Four codes of two bits in a byte, of neighbours in memory."""
    shift = 2 * tl.arange(0, 4)
    if STRIDED:
        codes = tl.reshape(codes, [codes.shape[0] // 4, 4, codes.shape[1]])
        return tl.sum(codes << shift[None, :, None], 1).to(tl.uint8)
    else:
        codes = tl.reshape(codes, [codes.shape[0], codes.shape[1] // 4, 4])
        return tl.sum(codes << shift[None, None, :], 2).to(tl.uint8)


@triton.jit
def _unpacked(bytes, STRIDED: tl.constexpr):
    shift = 2 * tl.arange(0, 4)
    if STRIDED:
        codes = (bytes.to(tl.int32)[:, None, :] >> shift[None, :, None]) & 3
        return tl.reshape(codes, [bytes.shape[0] * 4, bytes.shape[1]])
    else:
        codes = (bytes.to(tl.int32)[:, :, None] >> shift[None, None, :]) & 3
        return tl.reshape(codes, [bytes.shape[0], bytes.shape[1] * 4])


@triton.jit
def _bytes_at(codes, block, start, groups, members, G: tl.constexpr, N: tl.constexpr, STRIDED: tl.constexpr):
    """Where the codes of a tile lie: rows of the axis that is not contiguous, each filled up to whole bytes."""
    if STRIDED:
        g = block * (G // 4) + tl.arange(0, G // 4)
        i = start + tl.arange(0, N)
        at = codes + i.to(tl.int64)[None, :] * ((groups + 3) // 4) + g[:, None]
        return at, (4 * g < groups)[:, None] & (i < members)[None, :]
    else:
        g = block * G + tl.arange(0, G)
        i = start // 4 + tl.arange(0, N // 4)
        at = codes + g.to(tl.int64)[:, None] * ((members + 3) // 4) + i[None, :]
        return at, (g < groups)[:, None] & (4 * i < members)[None, :]


@triton.jit
def _counts(work, groups, PARTS: tl.constexpr):
    """Where the numbers of clipped members lie: after the sums of all the parts, of the groups, and the shares."""
    return (work + (PARTS + 2) * groups).to(tl.pointer_type(tl.int32))


@triton.jit
def sums(
    y, v, mu, codes, work, groups, members, length, y_group, y_member, v_group, v_member,
    G: tl.constexpr, N: tl.constexpr, STRIDED: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """For each group, over its clipped members: the sum of the tangent with the members' signs, and their number.

    The second axis of the grid counts parts of the members, each with a row of sums of its own: so the order of the
    sums, and with it the result, is always the same.
    """
    g = tl.program_id(0) * G + tl.arange(0, G)
    cap = tl.load(mu + g, mask=g < groups, other=0.0).to(tl.float32)
    alive = (cap > 0)[:, None]
    a = tl.zeros([G, N], tl.float64)
    k = tl.zeros([G, N], tl.int32)
    far = g.to(tl.int64)[:, None]
    first = tl.program_id(1) * length
    last = tl.minimum(first + length, members)
    if tl.max(cap) > 0:
        for start in range(first, last, N):
            i = start + tl.arange(0, N)
            there = (g < groups)[:, None] & (i < members)[None, :]  # zero groups too, so that runs are read at once
            along = i.to(tl.int64)[None, :]
            value = tl.load(
                y + far * y_group + along * y_member, mask=there, other=0.0, eviction_policy="evict_first"
            ).to(tl.float32)  # so that the tangent may stay near for the second pass
            tangent = tl.load(v + far * v_group + along * v_member, mask=there, other=0.0).to(tl.float32)
            clipped = (tl.abs(value) > cap[:, None]) & alive
            negative = value < 0
            a += tl.where(clipped, tl.where(negative, -tangent, tangent), 0.0).to(tl.float64)
            k += clipped.to(tl.int32)
            at, exists = _bytes_at(codes, tl.program_id(0), start, groups, members, G, N, STRIDED)
            code = tl.where(clipped, tl.where(negative, 2, 1), 0)
            tl.store(at, _packed(code, STRIDED), mask=exists)
    row = tl.program_id(1).to(tl.int64) * groups
    tl.store(work + row + g, tl.sum(a, 1), mask=g < groups)
    tl.store(_counts(work, groups, PARTS) + row + g, tl.sum(k, 1), mask=g < groups)


@triton.jit
def moves(work, mean_out, groups, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    """How theta moves, from the sums of the groups, and what each group takes of it: one block does all of them."""
    by = work + PARTS * groups
    shares = by + groups
    counts = _counts(work, groups, PARTS)
    total = tl.zeros([BLOCK], tl.float64)
    weight = tl.zeros([BLOCK], tl.float64)
    for start in range(0, groups, BLOCK):
        g = start + tl.arange(0, BLOCK)
        a = tl.zeros([BLOCK], tl.float64)
        k = tl.zeros([BLOCK], tl.int32)
        for part in tl.static_range(PARTS):  # all of them on their way at once
            a += tl.load(work + part * groups + g, mask=g < groups, other=0.0)
            k += tl.load(counts + part * groups + g, mask=g < groups, other=0)
        share = tl.where(k > 0, 1.0 / tl.maximum(k, 1).to(tl.float64), 0.0)
        total += a * share
        weight += share
        tl.store(by + g, a, mask=g < groups)
        tl.store(shares + g, share, mask=g < groups)
    whole = tl.sum(weight)
    tl.store(mean_out, tl.where(whole > 0, tl.sum(total) / tl.maximum(whole, 1e-300), 0.0))


@triton.jit
def spread(
    v, x, mu, codes, work, theta, mean, groups, members, v_group, v_member, x_group, x_member,
    G: tl.constexpr, N: tl.constexpr, STRIDED: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """What each entry moves by: with its cap if it is clipped, as the tangent says if its group is not zero."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)  # what was read last may still be near
    g = block * G + tl.arange(0, G)
    i = tl.program_id(1) * N + tl.arange(0, N)
    far, along = g.to(tl.int64)[:, None], i.to(tl.int64)[None, :]
    there = (g < groups)[:, None] & (i < members)[None, :]
    cap = tl.load(mu + g, mask=g < groups, other=0.0).to(tl.float32)
    by = work + PARTS * groups + g
    move = tl.load(by, mask=g < groups, other=0.0) - tl.load(mean)
    move = (move * tl.load(by + groups, mask=g < groups, other=0.0)).to(tl.float32)[:, None]
    interior = tl.load(theta) == 0
    passes = tl.where(interior, 1.0, cap)[:, None] > 0
    tangent = tl.zeros([G, N], tl.float32)
    if tl.max(passes.to(tl.int32)) > 0:
        tangent = tl.load(v + far * v_group + along * v_member, mask=there, other=0.0).to(tl.float32)
        tangent = tl.where(passes, tangent, 0.0)
    code = tl.zeros([G, N], tl.int32)
    if tl.max(cap) > 0:
        at, exists = _bytes_at(codes, block, tl.program_id(1) * N, groups, members, G, N, STRIDED)
        code = tl.where((cap > 0)[:, None], _unpacked(tl.load(at, mask=exists, other=0), STRIDED), 0)
    moved = tl.where(code == 0, tangent, tl.where(code == 2, -move, move))
    tl.store(
        x + far * x_group + along * x_member, moved.to(x.dtype.element_ty), mask=there, eviction_policy="evict_first"
    )
