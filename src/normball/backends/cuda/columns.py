"""Warm starts of the l1,inf projection where groups lie side by side and do not fit the registers of the device.

Each block has some neighbouring groups, as many as make whole runs of memory, and reads them from top to bottom in
tiles, as they lie. A look at the caps of the start is a read of all of them; from then on a block reads again if a cap
has left the gap between two members of its group, because in between the line is known.
"""

import triton
import triton.language as tl

from normball.backends.cuda.meeting import arrive, leave, meet, sums_in_block
from normball.backends.cuda.parts import (
    R_AXIS,
    clipped,
    in_gap,
    in_thread,
    moved_along,
    risk,
    rounded_down,
    tile_at,
)
from normball.backends.cuda.solve import final_caps, radius_of, sane, sound, step


@triton.jit
def _rows(
    pointer, start, me, groups, members, group_stride, member_stride,
    A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, VG: tl.constexpr, INDEX: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Pointers to some members of a block's groups, and which of them exist."""
    start += me * 0  # a tensor, in the interpreter too
    at, there, _g = tile_at(
        pointer + start.to(tl.int64) * (member_stride * VG), me, groups, members - start, group_stride, member_stride,
        A, R, B, True, VG, 1, INDEX, EVEN, VG,
    )  # fmt: skip
    return at, there


@triton.jit
def _begun(A: tl.constexpr, B: tl.constexpr):
    """Nothing seen as yet: how many members are above, by how much in all, the least place above and the last below."""
    none = tl.zeros([A, B], tl.int32)
    return none, tl.zeros([A, B], tl.float64), none.to(tl.uint32) + 0xFFFFFFFF, none.to(tl.uint32)


@triton.jit
def _seen(v, t, first, k, e, over, under):
    """What more members make of it; places count from the first above t, and then round to those that are not above."""
    d = t[None, None, :] - v
    k += tl.sum(d.to(tl.int32, bitcast=True) >> 31, R_AXIS)
    e += in_thread(tl.minimum(d, 0.0))
    place = v.to(tl.uint32, bitcast=True) - first[None, None, :]
    return k, e, tl.minimum(over, tl.min(place, R_AXIS)), tl.maximum(under, tl.max(place, R_AXIS))


@triton.jit
def _line(k, e, over, under, at, first, t, theta, alive, least):
    """The lines of the groups, at theta: their values and slopes, and the gaps in which they hold."""
    number, excess = tl.split(tl.sum(tl.join(k.to(tl.float64), e), 0))
    over, under = tl.split(tl.min(tl.join(over, 0xFFFFFFFF - under), 0))
    under = 0xFFFFFFFF - under
    over = tl.where(over < 2**31, (over + first).to(tl.float32, bitcast=True), float("inf"))
    under = tl.where(under < 2**31, 0.0, (under + first).to(tl.float32, bitcast=True))
    slope = 1.0 / tl.maximum(-number, 1.0)
    line = at.to(tl.float64) - (excess + theta) * slope
    holds = alive & (number < 0) & (line > 0)
    line = tl.where(holds, line, 0.0)
    return tl.maximum(line, t * least), tl.where(holds, slope, 0.0), under, over


@triton.jit(do_not_specialize=["radius", "programs"])
def columns(
    y, x, mu, theta_out, radius: tl.float64, radii, old_mu, old_theta, place, groups, members, y_group, y_member,
    x_group, x_member, programs,
    A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, VG: tl.constexpr, INDEX: tl.constexpr,
    EVEN: tl.constexpr, STAGES: tl.constexpr, SLOTS: tl.constexpr, WORDS: tl.constexpr, ALONE: tl.constexpr,
    BY_POINTER: tl.constexpr,
):  # fmt: skip
    """One block for each B groups."""
    me = tl.program_id(0)
    DTYPE: tl.constexpr = y.dtype.element_ty
    N: tl.constexpr = A * R
    C = radius_of(radius, radii, 0, BY_POINTER)
    turn = arrive(place, SLOTS, ALONE)
    tiles = (members + N - 1) // N
    g = me * B + tl.arange(0, B)
    theta = sane(tl.load(old_theta))
    t = sane(tl.load(old_mu + g, mask=g < groups, other=0.0).to(tl.float64))

    low = rounded_down(t, tl.float32)
    first = low.to(tl.uint32, bitcast=True) + 1
    k, e, over, under = _begun(A, B)
    totals = tl.zeros([A, B], tl.float64)
    peaks = tl.zeros([A, B], tl.float32)
    for i in tl.range(0, tiles, num_stages=STAGES):
        at, there = _rows(y, i * N, me, groups, members, y_group, y_member, A, R, B, VG, INDEX, EVEN)
        v = tl.abs(tl.load(at, mask=there, other=0.0).to(tl.float32))
        k, e, over, under = _seen(v, low, first, k, e, over, under)
        totals += in_thread(v)
        peaks = tl.maximum(peaks, tl.max(v, R_AXIS))
    total = tl.sum(totals, 0)
    peak = tl.max(peaks, 0).to(tl.float64)
    alive = total > theta
    t, slope, below, above = _line(k, e, over, under, low, first, t, theta, alive, 0.0)
    risks = tl.where(g < groups, risk(t, slope, below, above, alive, total, theta, me >= 0), 0.0)
    mine = sums_in_block(t, slope, sound(total, peak, groups), risks)
    mass, all_slope, sum_of_peaks, all_risks = meet(place, turn, programs, mine, SLOTS, WORDS, ALONE)
    turn += 1
    interior = sum_of_peaks <= C
    bad = ~((sum_of_peaks < float("inf")) & (C >= 0))
    least = tl.maximum((sum_of_peaks - C) / groups, 0.0)
    theta, searching, rose = step(theta, mass, all_slope, 0.0, all_risks, C, least, least * 0.0, me * 0)
    searching = tl.where(interior | bad, 0, searching)
    while searching > 0:
        alive = total > theta
        t = moved_along(t, slope, rose)
        now = tl.where(alive, slope, 0.0)
        if tl.min(in_gap(t, slope, below, above, alive).to(tl.int32)) == 0:
            low = rounded_down(t, tl.float32)
            first = low.to(tl.uint32, bitcast=True) + 1
            k, e, over, under = _begun(A, B)
            for i in tl.range(0, tiles, num_stages=STAGES):
                at, there = _rows(y, i * N, me, groups, members, y_group, y_member, A, R, B, VG, INDEX, EVEN)
                v = tl.abs(tl.load(at, mask=there, other=0.0).to(tl.float32))
                k, e, over, under = _seen(v, low, first, k, e, over, under)
            t, now, below, above = _line(k, e, over, under, low, first, t, theta, alive, (rose >= 0).to(tl.float64))
        unsure = alive & (t > above.to(tl.float64))
        t = tl.where(alive, t, 0.0)
        moving = (now != slope).to(tl.float64) + unsure.to(tl.float64) * 2.0**26
        slope = now
        mine = sums_in_block(t, slope, moving, risk(t, slope, below, above, alive, total, theta, me < 0))
        mass, all_slope, all_moving, all_risks = meet(place, turn, programs, mine, SLOTS, WORDS, ALONE)
        turn += 1
        theta, searching, rose = step(theta, mass, all_slope, all_moving, all_risks, C, least, rose, searching)

    t = moved_along(t, slope, rose)
    cap = final_caps(t, peak, mass - rose * all_slope, C, interior, bad, DTYPE)
    tl.store(mu + g, cap, mask=g < groups)
    remains = tl.where(interior, 1.0, cap.to(tl.float32)) != 0
    reads = tl.max(remains.to(tl.int32)) > 0  # all of them or none, so that runs are read at once
    for back in tl.range(0, tiles, num_stages=STAGES):  # what was read last may still be near
        start = (tiles - 1 - back) * N
        where, exist = _rows(y, start, me, groups, members, y_group, y_member, A, R, B, VG, INDEX, EVEN)
        entries = tl.load(where, mask=exist & reads, other=0.0)
        where, exist = _rows(x, start, me, groups, members, x_group, x_member, A, R, B, VG, INDEX, EVEN)
        tl.store(where, clipped(entries, cap, True, tl.float32), mask=exist)
    if me == 0:
        theta = tl.where(interior, 0.0, theta)
        tl.store(theta_out, tl.where(bad, float("nan"), theta))
    leave(place, turn, SLOTS, ALONE)
