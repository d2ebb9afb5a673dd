"""What the Triton kernels share: tiles of groups, thresholds rounded down, the members above them.

A tile has three axes, (A, R, B). R runs along members and stays inside each thread, so that the sums over it cost
nothing but additions; along B, memory is contiguous: that is members, or with STRIDED groups; A is the other. The
compiler shares out threads along the last axis, and then along the first before the second, or since Triton 3.7 along
the second before the first; so R is the second axis, or since then the first.

A line of a group is what its members above some threshold make of theta: with `k` of them and an excess `e` over the
threshold `t` in all, ``t + (e - theta) / k`` never exceeds the group's cap and equals it once no member changes sides.
Members are magnitudes here.
"""

import triton
import triton.language as tl

CLOSE: tl.constexpr = tl.constexpr(2.0**-4)  # a step of theta after which a single step leads a group to its cap
SINCE_37 = tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 7)
R_AXIS: tl.constexpr = tl.constexpr(0 if SINCE_37 else 1)


@triton.jit
def along_r(x):
    """A vector along R."""
    if R_AXIS == 0:
        return x[:, None, None]
    else:
        return x[None, :, None]


@triton.jit
def along_a(x):
    """A vector along A."""
    if R_AXIS == 0:
        return x[None, :, None]
    else:
        return x[:, None, None]


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
    VG: tl.constexpr, VN: tl.constexpr, INDEX: tl.constexpr, EVEN: tl.constexpr,
    VECTOR: tl.constexpr = 0,
):  # fmt: skip
    """Pointers to the groups of a tile, which of the entries exist, and the numbers of the groups.

    VG groups or VN members lie side by side and exist or not together, so that the compiler may read them at once; for
    the same reason the other stride comes as a multiple of that number. EVEN tells that all of them exist. A thread
    reads VECTOR entries at once, or without it no more than four members, of one group, so that it keeps the numbers of
    one.
    """
    r = along_r(tl.arange(0, R))
    a = tl.arange(0, A)
    b = tl.arange(0, B)
    if STRIDED:
        number = tile * B + b
        g = number[None, None, :]
        i = r * A + along_a(a)
    else:
        number = tile * A + a
        g = along_a(number)
        i = r * B + b[None, None, :]
    if EVEN:
        there = tl.full([R, A, B] if R_AXIS == 0 else [A, R, B], 1, tl.int1)
    else:
        there = (g // VG < groups // VG) & (i // VN < members // VN)
    where = g.to(INDEX) * (group_stride * VN) + i.to(INDEX) * (member_stride * VG)
    if VECTOR > 0:
        return pointer + tl.multiple_of(where, [1, 1, VECTOR]), there, number
    else:
        return pointer + tl.multiple_of(where, [1, 1, min(VN, 4)]), there, number


@triton.jit
def by_group(x, STRIDED: tl.constexpr):
    """One number for each group, to be compared with its members."""
    if STRIDED:
        return x[None, None, :]
    else:
        return along_a(x)


@triton.jit
def in_thread(x):
    """Sums over R, in double precision beyond runs of eight members."""
    if x.dtype == tl.float64 or x.shape[R_AXIS] <= 8:
        return tl.sum(x, R_AXIS).to(tl.float64)
    elif R_AXIS == 0:
        x = tl.sum(tl.reshape(x, [x.shape[0] // 8, 8, x.shape[1], x.shape[2]]), 1)
        return tl.sum(x.to(tl.float64), 0)
    else:
        x = tl.sum(tl.reshape(x, [x.shape[0], x.shape[1] // 8, 8, x.shape[2]]), 2)
        return tl.sum(x.to(tl.float64), 1)


@triton.jit
def settled(bits, INTERPRETED: tl.constexpr):
    """The same, now: the compiler may not put it off, or it would keep what it is made of in the meantime."""
    if INTERPRETED:
        return bits
    else:
        return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [bits], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def above(v, t, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """How many members of each group exceed t, by how much in all, and t as it was compared."""
    AXIS: tl.constexpr = 0 if STRIDED else 1
    t = rounded_down(t, WIDE)
    d = by_group(t, STRIDED) - v
    if tl.float32 == WIDE:
        k = tl.sum(d.to(tl.int32, bitcast=True) >> 31, R_AXIS)
    else:
        k = -tl.sum((d < 0).to(tl.int32), R_AXIS)
    e = in_thread(tl.minimum(d, 0.0))
    if STRIDED or e.shape[1] > 128:  # a group lies in several warps, which exchange both at once
        k, e = tl.split(tl.sum(tl.join(k.to(tl.float64), e), AXIS))
    else:
        k, e = tl.sum(k, AXIS).to(tl.float64), tl.sum(e, AXIS)
    return -k, -e, t.to(tl.float64)


@triton.jit
def gap_at(v, t, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """The members of each group next to t: the greatest that does not exceed it, and the least that does.

    The bits of positive floats are ordered as integers are. Counted from the first above t, those above come first,
    and those not above last, down to the one below t, which would come before the first.
    """
    AXIS: tl.constexpr = 0 if STRIDED else 1
    UNSIGNED: tl.constexpr = tl.uint64 if tl.float64 == WIDE else tl.uint32
    LAST: tl.constexpr = 2**64 - 1 if tl.float64 == WIDE else 2**32 - 1
    first = rounded_down(t, WIDE).to(UNSIGNED, bitcast=True) + 1
    place = v.to(UNSIGNED, bitcast=True) - by_group(first, STRIDED)
    over = tl.min(place, R_AXIS)
    under = tl.max(place, R_AXIS)
    over, under = tl.split(tl.min(tl.join(over, LAST - under), AXIS))
    under = LAST - under
    over = tl.where(over <= LAST // 2, (over + first).to(WIDE, bitcast=True), float("inf"))
    return tl.where(under <= LAST // 2, 0.0, (under + first).to(WIDE, bitcast=True)), over


@triton.jit
def sums_of(v, STRIDED: tl.constexpr):
    """Sum of each group of magnitudes; not finite if a member is not."""
    return tl.sum(in_thread(v), 0 if STRIDED else 1)


@triton.jit
def peaks_of(v, STRIDED: tl.constexpr):
    """Largest member of each group."""
    return tl.max(tl.max(v, R_AXIS), 0 if STRIDED else 1).to(tl.float64)


@triton.jit
def refined(
    v, t, theta, alive, least, steps, WARY: tl.constexpr, STRIDED: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """Steps towards the caps at theta, from thresholds t: new ones, the slopes of their lines, and above what.

    One step from anywhere leads below the cap. From there thresholds only rise, and never fall below `least` times t,
    which is 1 once t is such a bound, so that rounding cannot make two lines of a group take turns.

    WARY takes a second step only if the first finds all groups about to lose theta: in training the caps of the step
    before are nearer to the new ones than its theta is to the new one. The last result tells whether it was so.
    """
    before = tl.zeros_like(t)  # not t: the compiler would not see that the loop changes it
    slope = tl.zeros_like(t)
    right = steps * 0 + 1
    while steps > 0:
        before = t
        k, e, at = above(v, t, STRIDED, WIDE)
        slope = 1.0 / tl.maximum(k, 1.0)
        line = at + (e - theta) * slope
        holds = alive & (k > 0) & (line > 0)  # else t was far above the cap: back to the start, which has no line yet
        line = tl.where(holds, line, 0.0)
        slope = tl.where(holds, slope, 0.0)
        t = tl.maximum(line, t * least)
        least = least * 0.0 + 1.0
        steps -= 1
        if WARY:  # noqa: SIM102
            if steps > 0:
                off = alive & (tl.abs(e - theta) > theta * CLOSE)
                right = 1 - tl.max(off.to(tl.int32))
                steps = steps * right
    return t, slope, before, right


@triton.jit
def moved_along(t, slope, by):
    """What lines come to when theta rises; 0, a bound for any group, where there is no line."""
    return tl.where(slope > 0, tl.maximum(t - by * slope, 0.0), 0.0)


@triton.jit
def in_gap(t, slope, under, over, alive):
    """Whether a cap is known: of a zero group, or still on the line of its members, none of which changed sides."""
    return ~alive | ((slope > 0) & (t >= under.to(tl.float64)) & (t <= over.to(tl.float64)))


@triton.jit
def risk(t, slope, under, over, alive, total, theta, first):
    """One over how far theta may move, to the fourth power: the sum over all groups is all but that of the first one.

    That is until a cap leaves its gap, or a zero group comes alive. Theta may fall at the first step alone.
    """
    down = t - under.to(tl.float64)
    up = over.to(tl.float64) - t
    room = tl.where((slope > 0) & (up >= 0), tl.maximum(tl.where(first, tl.minimum(up, down), down), 0.0), 0.0)
    room = tl.where(alive, room, tl.where(first, theta - total, 1e300))
    share = tl.where(alive & (slope > 0), slope, 1.0) / room
    square = share * share
    return square * square


@triton.jit
def newton(theta, g, slope, C, low):
    """The next theta: the root of the sum of the lines, never below a bound that is known."""
    return tl.maximum(tl.where(slope > 0, theta + (g - C) / tl.maximum(slope, 1e-300), low), low)


@triton.jit
def clipped(v, cap, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """Members clipped at the caps of their groups, which NaN fills."""
    limit = by_group(cap.to(WIDE), STRIDED)
    x = tl.minimum(v.to(WIDE), limit, propagate_nan=tl.PropagateNan.ALL)
    return tl.maximum(x, -limit, propagate_nan=tl.PropagateNan.ALL).to(v.dtype)
