"""What the Triton kernels share: tiles of groups, thresholds rounded down, members above them, blocks that meet.

A tile has three axes, (A, R, B). The second runs along members and stays inside each thread, so that the sums over it
cost nothing but additions; along the last, memory is contiguous: that is members, or with STRIDED groups; the first is
the other. The compiler shares out threads along the last axis, then the first, then the second.

A line of a group is what its members above some threshold make of theta: with `k` of them and an excess `e` over the
threshold `t` in all, ``t + (e - theta) / k`` never exceeds the group's cap and equals it once no member changes sides.
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
    d = tl.abs(v.to(WIDE)) - by_group(t, STRIDED)
    return _sum((d > 0).to(tl.int32), STRIDED), _sum(tl.maximum(d, 0.0), STRIDED), t.to(tl.float64)


@triton.jit
def sums_of(v, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """Sum of the magnitudes of each group; not finite if a member is not."""
    return _sum(tl.abs(v.to(WIDE)), STRIDED)


@triton.jit
def peaks_of(v, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """Largest magnitude of each group."""
    return tl.max(tl.max(tl.abs(v.to(WIDE)), 1), 0 if STRIDED else 1).to(tl.float64)


@triton.jit
def _line(v, t, theta, alive, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """The line of the members above t, at theta, and how many they are."""
    k, e, at = above(v, t, STRIDED, WIDE)
    line = tl.where(k > 0, at + (e - theta) / tl.maximum(k, 1), 0.0)  # with t above all members: back to the start
    return tl.where(alive, tl.maximum(line, 0.0), 0.0), tl.where(alive, tl.maximum(k, 1), 0)


@triton.jit
def refined(v, t, theta, alive, least, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """Two steps towards the caps at theta, from thresholds t: new ones, the members above, and what still moves.

    One step from anywhere leads below the cap. From there thresholds only rise, and never fall below `least` times t,
    which is 1 once t is such a bound, so that rounding cannot make two lines of a group take turns.
    """
    first, k = _line(v, t, theta, alive, STRIDED, WIDE)
    first = tl.maximum(first, t * least)
    second, count = _line(v, first, theta, alive, STRIDED, WIDE)
    return tl.maximum(first, second), count, (count != k).to(tl.float64)


@triton.jit
def moved_along(t, k, by):
    """What lines of k members come to when theta rises."""
    return tl.maximum(t - by / tl.maximum(k, 1), 0.0)


@triton.jit
def meet(slots, counter, meeting, programs, a, b, c, d, SLOTS: tl.constexpr):
    """Each block brings four numbers; all leave with the sums, taken in the same order by every one of them.

    Two sets of slots take turns, because a block may be one meeting ahead of another.
    """
    base = slots + (meeting % 2) * 4 * SLOTS
    mine = base + tl.program_id(0) * 4
    tl.store(mine, a)
    tl.store(mine + 1, b)
    tl.store(mine + 2, c)
    tl.store(mine + 3, d)
    tl.debug_barrier()  # a block on its own reads with other threads than it writes with, too
    if programs > 1:
        tl.atomic_add(counter, 1, sem="release", scope="gpu")
        while tl.atomic_add(counter, 0, sem="acquire", scope="gpu") < (meeting + 1) * programs:
            pass
        tl.debug_barrier()
    p = tl.arange(0, SLOTS)[:, None, None] * 4 + tl.arange(0, 2)[None, :, None] * 2 + tl.arange(0, 2)[None, None, :]
    sums = tl.sum(tl.load(base + p, mask=p < programs * 4, other=0.0, cache_modifier=".cg"), 0)
    even, odd = tl.split(sums)
    a, c = tl.split(even)
    b, d = tl.split(odd)
    return a, b, c, d


@triton.jit
def leave(counter, programs):
    """The last block out resets the counters, for the next launch."""
    if programs > 1:  # noqa: SIM102
        if tl.atomic_add(counter + 1, 1, sem="acq_rel", scope="gpu") == programs - 1:
            tl.atomic_xchg(counter, 0)
            tl.atomic_xchg(counter + 1, 0)


@triton.jit
def newton(theta, g, slope, C, low):
    """The next theta: the root of the sum of the lines, never below a bound that is known."""
    return tl.maximum(tl.where(slope > 0, theta + (g - C) / tl.maximum(slope, 1e-300), low), low)
