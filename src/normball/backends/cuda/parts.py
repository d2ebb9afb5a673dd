"""What the Triton kernels share: tiles of groups, thresholds rounded down, members above them, blocks that meet.

A tile has three axes, (A, R, B). The second runs along members and stays inside each thread, so that the sums over it
cost nothing but additions; along the last, memory is contiguous: that is members, or with STRIDED groups; the first is
the other. The compiler shares out threads along the last axis, then the first, then the second.

A line of a group is what its members above some threshold make of theta: with `k` of them and an excess `e` over the
threshold `t` in all, ``t + (e - theta) / k`` never exceeds the group's cap and equals it once no member changes sides.
Members are magnitudes here.
"""

import triton
import triton.language as tl


@triton.jit
def rounded_down(x, DTYPE: tl.constexpr):
    """The largest DTYPE not above x, for x >= 0 in double precision."""
    if tl.float64 == DTYPE:
        return x
    else:
        near = x.to(tl.float32).to(DTYPE)
        above = near.to(tl.float64) > x
        # The bits of positive floats are ordered as integers are.
        if tl.float32 == DTYPE:
            return (near.to(tl.int32, bitcast=True) - above.to(tl.int32)).to(tl.float32, bitcast=True)
        else:
            return (near.to(tl.int16, bitcast=True) - above.to(tl.int16)).to(DTYPE, bitcast=True)


@triton.jit
def tile_at(
    pointer, tile, groups, members, group_stride, member_stride,
    A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, STRIDED: tl.constexpr,
    VG: tl.constexpr, VN: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Pointers to the groups of a tile, which of the entries exist, and the numbers of the groups.

    VG groups or VN members lie side by side and exist or not together, so that the compiler may read them at once; for
    the same reason the other stride comes as a multiple of that number.
    """
    r = tl.arange(0, R)[None, :, None]
    a = tl.arange(0, A)
    b = tl.arange(0, B)
    if STRIDED:
        number = tile * B + b
        g = number[None, None, :]
        i = r * A + a[:, None, None]
    else:
        number = tile * A + a
        g = number[:, None, None]
        i = r * B + b[None, None, :]
    there = (g // VG < groups // VG) & (i // VN < members // VN)
    where = g.to(INDEX) * (group_stride * VN) + i.to(INDEX) * (member_stride * VG)
    return pointer + where, there, number


@triton.jit
def by_group(x, STRIDED: tl.constexpr):
    """One number for each group, to be compared with its members."""
    if STRIDED:
        return x[None, None, :]
    else:
        return x[:, None, None]


@triton.jit
def _sum(x, STRIDED: tl.constexpr):
    """Sums over the groups, in double precision beyond runs of eight members."""
    AXIS: tl.constexpr = 0 if STRIDED else 1
    if x.dtype == tl.int32 or x.dtype == tl.float64 or x.shape[1] <= 8:  # noqa: PLR1714
        x = tl.sum(x, 1)
    else:
        x = tl.sum(tl.reshape(x, [x.shape[0], x.shape[1] // 8, 8, x.shape[2]]), 2)
        x = tl.sum(x.to(tl.float64), 1)
    if x.dtype == tl.int32:
        return tl.sum(x, AXIS)
    else:
        return tl.sum(x.to(tl.float64), AXIS)


@triton.jit
def above(v, t, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """How many members of each group exceed t, by how much in all, and t as it was compared."""
    t = rounded_down(t, WIDE)
    d = v.to(WIDE) - by_group(t, STRIDED)
    if STRIDED:  # noqa: SIM108 - known to the compiler
        exceeds = d > 0
    else:  # the same, and no difference must be kept for it
        exceeds = v.to(WIDE) > by_group(t, STRIDED)
    return _sum(exceeds.to(tl.int32), STRIDED), _sum(tl.maximum(d, 0.0), STRIDED), t.to(tl.float64)


@triton.jit
def gap_at(v, t, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """The members of each group next to t: the greatest that does not exceed it, and the least that does."""
    AXIS: tl.constexpr = 0 if STRIDED else 1
    wide = v.to(WIDE)
    exceeds = wide > by_group(rounded_down(t, WIDE), STRIDED)
    under = tl.max(tl.max(tl.where(exceeds, 0.0, wide), 1), AXIS)
    over = tl.min(tl.min(tl.where(exceeds, wide, float("inf")), 1), AXIS)
    return under, over


@triton.jit
def sums_of(v, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """Sum of each group of magnitudes; not finite if a member is not."""
    return _sum(v.to(WIDE), STRIDED)


@triton.jit
def peaks_of(v, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """Largest member of each group."""
    return tl.max(tl.max(v.to(WIDE), 1), 0 if STRIDED else 1).to(tl.float64)


@triton.jit
def _line(v, t, theta, alive, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """The line of the members above t, at theta, and how many they are."""
    k, e, at = above(v, t, STRIDED, WIDE)
    line = tl.where(k > 0, at + (e - theta) / tl.maximum(k, 1), 0.0)  # with t above all members: back to the start
    return tl.where(alive, tl.maximum(line, 0.0), 0.0), tl.where(alive, tl.maximum(k, 1), 0)


@triton.jit
def refined(v, t, theta, alive, least, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """Two steps towards the caps at theta, from thresholds t: new ones, how many members are clipped, and above what.

    One step from anywhere leads below the cap. From there thresholds only rise, and never fall below `least` times t,
    which is 1 once t is such a bound, so that rounding cannot make two lines of a group take turns.
    """
    first, _ = _line(v, t, theta, alive, STRIDED, WIDE)
    first = tl.maximum(first, t * least)
    second, k = _line(v, first, theta, alive, STRIDED, WIDE)
    return tl.maximum(first, second), k, first


@triton.jit
def moved_along(t, k, by):
    """What lines of k members come to when theta rises; 0, a bound for any group, where there is no line."""
    return tl.where(k > 0, tl.maximum(t - by / tl.maximum(k, 1), 0.0), 0.0)


@triton.jit
def in_gap(t, k, under, over, alive):
    """Whether a cap is known: of a zero group, or still on the line of its k members, none of which changed sides."""
    return ~alive | ((k > 0) & (t >= under.to(tl.float64)) & (t <= over.to(tl.float64)))


@triton.jit
def meet(place, turn, programs, a, b, c, d, SLOTS: tl.constexpr, ROOM: tl.constexpr, ALONE: tl.constexpr):
    """Each block brings four numbers; all leave with the sums, taken in the same order by every one of them.

    A place has three sets of slots, which take turns from launch to launch. A word of 0 means that its block is still
    to come, and no number is written as 0. Who has seen all the numbers of a turn knows that those of the turn before
    have been read by all, and clears its own; who comes to the next turn makes that known with its numbers. So no block
    finds old numbers in the set that it looks at. Slots of more blocks than there are now are shared out to be cleared.
    """
    if ALONE:
        return a, b, c, d
    else:
        me = tl.program_id(0)
        now = place + (turn % 3) * (4 * ROOM)
        lane = tl.arange(0, 4)
        mine = tl.where(lane < 2, tl.where(lane == 0, a, b), tl.where(lane == 2, c, d))
        word = mine.to(tl.int64, bitcast=True)
        word = tl.where(word == 0, -(2**63), word)  # which is -0.0
        tl.debug_barrier()
        tl.atomic_xchg(now + me * 4 + lane, word, sem="release", scope="gpu")
        p = tl.arange(0, SLOTS)[:, None, None] * 4 + tl.arange(0, 2)[None, :, None] * 2 + tl.arange(0, 2)[None, None, :]
        there = p < programs * 4
        seen = tl.load(now + p, mask=there, other=1, volatile=True)
        while tl.min(tl.min(tl.min((seen != 0).to(tl.int32), 2), 1), 0) == 0:
            seen = tl.load(now + p, mask=there, other=1, volatile=True)
        slot = tl.arange(0, ROOM)[:, None]
        before = place + ((turn + 2) % 3) * (4 * ROOM) + slot * 4 + lane[None, :]
        tl.store(before, tl.zeros([ROOM, 4], tl.int64), mask=slot % programs == me)
        even, odd = tl.split(tl.sum(tl.where(there, seen.to(tl.float64, bitcast=True), 0.0), 0))
        a, c = tl.split(even)
        b, d = tl.split(odd)
        return a, b, c, d


@triton.jit
def arrive(place, ROOM: tl.constexpr, ALONE: tl.constexpr):
    """The turn of the first meeting of this launch."""
    if ALONE:
        return 0
    else:
        return tl.load(place + 12 * ROOM)


@triton.jit
def leave(place, turn, ROOM: tl.constexpr, ALONE: tl.constexpr):
    """Leave the turn to the next launch. All blocks have read this launch's before the first meeting."""
    if not ALONE:  # noqa: SIM102
        if tl.program_id(0) == 0:
            tl.store(place + 12 * ROOM, turn)


@triton.jit
def newton(theta, g, slope, C, low):
    """The next theta: the root of the sum of the lines, never below a bound that is known."""
    return tl.maximum(tl.where(slope > 0, theta + (g - C) / tl.maximum(slope, 1e-300), low), low)
