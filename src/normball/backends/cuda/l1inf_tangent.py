"""The derivative of the l1,inf projection in one Triton kernel: sums over the clipped members, a meeting, the write.

Each block has some groups, or parts of some where there are few of them. It reads the matrix and the tangent in tiles,
and leaves two bits for each entry, whether it is clipped and its sign, so that it need not read the matrix again. The
last tile, which is larger, stays in the registers: of a small matrix, that is all. Zero groups are not read.
"""

import triton
import triton.language as tl

from normball.backends.cuda.meeting import arrive, ask, in_block, leave, meet, sums_in_block
from normball.backends.cuda.parts import R_AXIS, along_r, by_group, in_thread, settled, tile_at


@triton.jit
def _limits(mu, g, groups):
    """The caps of some groups, and above what their members are clipped: a zero group's are not."""
    cap = tl.load(mu + g, mask=g < groups, other=0.0).to(tl.float32)
    return cap, tl.where(cap > 0, cap, float("inf"))


@triton.jit
def _marks(value, clipped):
    """Which members are clipped, and which are below zero: bits along R."""
    r = along_r(tl.arange(0, value.shape[R_AXIS]))
    negative = (value.to(tl.uint32, bitcast=True) >> 31) << r
    return tl.sum(clipped.to(tl.int32) << r, R_AXIS), tl.sum(negative.to(tl.int32, bitcast=True), R_AXIS)


@triton.jit
def _marked(bits, R: tl.constexpr):
    return ((tl.expand_dims(bits, R_AXIS) >> along_r(tl.arange(0, R))) & 1) != 0


@triton.jit
def _turned(x, signs):
    """Numbers, with the opposite sign where the highest bit is set."""
    return (x.to(tl.int32, bitcast=True) ^ (signs & -(2**31))).to(tl.float32, bitcast=True)


@triton.jit
def _turned_by(x, bits, R: tl.constexpr):
    return _turned(x, tl.expand_dims(bits, R_AXIS) << (31 - along_r(tl.arange(0, R))))


@triton.jit
def _added(tangent, clipped):
    """Over the clipped members that a thread has: the sum of the tangent with the members' signs, and their number."""
    return in_thread(tl.where(clipped, tangent, 0.0)), tl.sum(clipped.to(tl.int32), R_AXIS)


@triton.jit
def _of_groups(a, k, STRIDED: tl.constexpr):
    """The same over all the clipped members of each group."""
    return tl.split(tl.sum(tl.join(a, k.to(tl.float64)), 0 if STRIDED else 1))


@triton.jit
def _moved(tangent, clipped, negative, move, passes, R: tl.constexpr, STRIDED: tl.constexpr):
    """What each entry moves by: with its cap if it is clipped, as the tangent says if its group is not zero."""
    if STRIDED:  # else those of zero groups were not read
        tangent = tl.where(by_group(passes, STRIDED), tangent, 0.0)
    by = tl.broadcast_to(by_group(move, STRIDED), tangent.shape)
    return tl.where(_marked(clipped, R), _turned_by(by, negative, R), tangent)


@triton.jit
def _read(passes, STRIDED: tl.constexpr):
    """What is read: the groups that pass, or where groups lie side by side all, if one does, so as to read runs."""
    if STRIDED:
        return tl.max(passes.to(tl.int32)) > 0
    else:
        return by_group(passes, STRIDED)


@triton.jit
def _move(sums, g, groups, mean, OWN: tl.constexpr):
    """How the caps of some groups move; their sums are the block's OWN, or those of others."""
    NEAR: tl.constexpr = "" if OWN else ".cg"
    a = tl.load(sums + g, mask=g < groups, other=0.0, cache_modifier=NEAR)
    return ((a - mean) * tl.load(sums + groups + g, mask=g < groups, other=0.0, cache_modifier=NEAR)).to(tl.float32)


@triton.jit(do_not_specialize=["items", "owned", "programs"])
def tangent_kernel(
    y, v, x, mu, theta, mean_out, place, codes, work, groups, members, y_group, y_member, v_group, v_member,
    x_group, x_member, length, items, owned, programs,
    A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, KEPT: tl.constexpr, STRIDED: tl.constexpr,
    VG: tl.constexpr, VN: tl.constexpr, INDEX: tl.constexpr, EVEN: tl.constexpr, STREAMS: tl.constexpr,
    APART: tl.constexpr, PARTS: tl.constexpr, P: tl.constexpr, W: tl.constexpr, STAGES: tl.constexpr,
    SLOTS: tl.constexpr, WORDS: tl.constexpr, ALONE: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """An item is a part, `length` members long, of as many groups as a tile has; a block has so many of them in a row.

    The blocks' sums of the parts are added up by those who own the groups: always in the same order, so that the result
    is always the same. KEPT is to the last tile what R is to the others.
    """
    me = tl.program_id(0)
    G: tl.constexpr = B if STRIDED else A
    N: tl.constexpr = A * R * B // G
    LONGEST: tl.constexpr = A * KEPT * B // G
    VECTOR: tl.constexpr = VG if VG > VN else VN
    turn = arrive(place, SLOTS, ALONE)
    counts = work + PARTS * groups
    sums = counts + PARTS * groups
    shares = sums + groups
    words = codes + tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    per = (length + N - 1) // N
    tail = (tl.maximum(length - LONGEST, 0) + N - 1) // N
    streamed = (items - 1) * per + tail if STREAMS else 0
    a = tl.zeros([A, B], tl.float64)
    k = tl.zeros([A, B], tl.int32)
    for i in tl.range(0, streamed, num_stages=STAGES):
        item = me * items + i // per
        first = (item % PARTS) * length
        start = first + (i % per) * N
        last = tl.minimum(members, first + length)
        at, there, g = tile_at(
            y + start.to(tl.int64) * (y_member * VG), item // PARTS, groups, last - start, y_group, y_member,
            A, R, B, STRIDED, VG, VN, INDEX, EVEN, VECTOR,
        )  # fmt: skip
        cap, limit = _limits(mu, g, groups)
        there = there & _read(cap > 0, STRIDED)
        value = tl.load(at, mask=there, other=0.0, eviction_policy="evict_first").to(tl.float32)
        at, _there, g = tile_at(
            v + start.to(tl.int64) * (v_member * VG), item // PARTS, groups, last - start, v_group, v_member,
            A, R, B, STRIDED, VG, VN, INDEX, EVEN, VECTOR,
        )  # fmt: skip
        tangent = tl.load(at, mask=there, other=0.0).to(tl.float32)
        above = tl.abs(value) > by_group(limit, STRIDED)
        clipped, negative = _marks(value, above)
        word = (clipped | (negative << R)).to(codes.dtype.element_ty)
        tl.store(words + (me * streamed + i).to(tl.int64) * (A * B), word)
        more, number = _added(_turned(tangent, value.to(tl.int32, bitcast=True)), above)
        a = tl.where(i % per == 0, 0.0, a) + more
        k = tl.where(i % per == 0, 0, k) + number
        if i % per == per - 1:
            total, clips = _of_groups(a, k, STRIDED)
            own = (item % PARTS) * groups + g
            tl.store(work + own, total, mask=g < groups)
            tl.store(counts + own, clips, mask=g < groups)

    item = me * items + items - 1
    block = item // PARTS
    first = (item % PARTS) * length
    start = first + tail * N
    last = tl.minimum(members, first + length)
    interior = tl.load(theta) == 0
    at, there, g = tile_at(
        y + start.to(tl.int64) * (y_member * VG), block, groups, last - start, y_group, y_member,
        A, KEPT, B, STRIDED, VG, VN, INDEX, EVEN, VECTOR,
    )  # fmt: skip
    cap, limit = _limits(mu, g, groups)
    value = tl.load(at, mask=there & _read(cap > 0, STRIDED), other=0.0, eviction_policy="evict_first").to(tl.float32)
    clipped, negative = _marks(value, tl.abs(value) > by_group(limit, STRIDED))
    if APART:  # there are no registers for both at once
        clipped, negative = settled(clipped, INTERPRETED), settled(negative, INTERPRETED)
    passes = tl.where(interior, 1.0, cap) > 0
    at, there, g = tile_at(
        v + start.to(tl.int64) * (v_member * VG), block, groups, last - start, v_group, v_member,
        A, KEPT, B, STRIDED, VG, VN, INDEX, EVEN, VECTOR,
    )  # fmt: skip
    kept = tl.load(at, mask=there & _read(passes, STRIDED), other=0.0, eviction_policy="evict_first")
    more, number = _added(_turned_by(kept.to(tl.float32), negative, KEPT), _marked(clipped, KEPT))
    a = tl.where(tail == 0, 0.0, a) + more
    k = tl.where(tail == 0, 0, k) + number
    final, last_clips = _of_groups(a, k, STRIDED)
    own = (item % PARTS) * groups + g
    tl.store(work + own, final, mask=g < groups)
    tl.store(counts + own, last_clips, mask=g < groups)

    tl.debug_barrier()
    if PARTS > 1:  # the other parts are known after a meeting, at which nothing is said
        nothing = interior.to(tl.float64)
        meet(place, turn, programs, in_block(nothing, nothing, nothing, nothing), SLOTS, WORDS, ALONE, True)
        turn += 1
        if not ALONE:
            work += ask(place, SLOTS)
    up = tl.zeros([W], tl.float64)
    down = tl.zeros([W], tl.float64)
    weight = tl.zeros([W], tl.float64)
    for begin in range(0, owned, W):
        some = begin + tl.arange(0, W)
        mine = me * owned + some
        exists = (some < owned) & (mine < groups)
        part = tl.arange(0, P)[:, None]
        each = work + part * groups + mine[None, :]
        known = exists[None, :] & (part < PARTS)
        total = tl.sum(tl.load(each, mask=known, other=0.0, cache_modifier=".cg"), 0)
        clips = tl.sum(tl.load(each + PARTS * groups, mask=known, other=0.0, cache_modifier=".cg"), 0)
        share = tl.where(clips > 0, 1.0 / tl.maximum(clips, 1.0), 0.0)
        tl.store(sums + mine, total, mask=exists)
        tl.store(shares + mine, share, mask=exists)
        by = total * share
        up += tl.maximum(by, 0.0, propagate_nan=tl.PropagateNan.ALL)
        down += tl.maximum(-by, 0.0, propagate_nan=tl.PropagateNan.ALL)
        weight += share
    up, down, whole, _whole = meet(
        place, turn, programs, sums_in_block(up, down, weight, weight), SLOTS, WORDS, ALONE, PARTS > 1
    )
    turn += 1
    tl.debug_barrier()
    if PARTS > 1:  # noqa: SIM102
        if not ALONE:
            sums += ask(place, SLOTS)
    mean = tl.where(whole > 0, (up - down) / tl.maximum(whole, 1e-300), 0.0)
    if me == 0:
        tl.store(mean_out, mean)

    at, there, g = tile_at(
        x + start.to(tl.int64) * (x_member * VG), block, groups, last - start, x_group, x_member,
        A, KEPT, B, STRIDED, VG, VN, INDEX, EVEN, VECTOR,
    )  # fmt: skip
    if APART:  # what was made of them before is not kept
        clipped, negative = settled(clipped, INTERPRETED), settled(negative, INTERPRETED)
    moved = _moved(
        kept.to(tl.float32), clipped, negative, _move(sums, g, groups, mean, PARTS == 1), passes, KEPT, STRIDED
    )  # fmt: skip
    tl.store(at, moved.to(x.dtype.element_ty), mask=there, eviction_policy="evict_first")
    for back in tl.range(0, streamed, num_stages=STAGES):  # what was read last may still be near
        i = streamed - 1 - back
        item = me * items + i // per
        first = (item % PARTS) * length
        start = first + (i % per) * N
        last = tl.minimum(members, first + length)
        to, exist, g = tile_at(
            v + start.to(tl.int64) * (v_member * VG), item // PARTS, groups, last - start, v_group, v_member,
            A, R, B, STRIDED, VG, VN, INDEX, EVEN, VECTOR,
        )  # fmt: skip
        cap, limit = _limits(mu, g, groups)
        passes = tl.where(interior, 1.0, cap) > 0
        along = tl.load(to, mask=exist & _read(passes, STRIDED), other=0.0, eviction_policy="evict_first")
        word = tl.load(words + (me * streamed + i).to(tl.int64) * (A * B)).to(tl.int32)
        change = _moved(
            along.to(tl.float32), word, word >> R, _move(sums, g, groups, mean, PARTS == 1), passes, R, STRIDED
        )  # fmt: skip
        to, exist, g = tile_at(
            x + start.to(tl.int64) * (x_member * VG), item // PARTS, groups, last - start, x_group, x_member,
            A, R, B, STRIDED, VG, VN, INDEX, EVEN, VECTOR,
        )  # fmt: skip
        tl.store(to, change.to(x.dtype.element_ty), mask=exist, eviction_policy="evict_first")
    leave(place, turn, SLOTS, ALONE)
