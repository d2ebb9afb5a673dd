"""The l1,inf projection as one Triton kernel: Newton's method on theta, whole groups in registers.

Every block holds some groups. In each round it finds their caps at the current theta, all blocks meet, and each takes
the same Newton step on ``sum_j mu_j(theta) = radius``. It ends when no group changed the members it clips: the result
is exact, and the host is never asked. A matrix that fits the registers of the device is read once; of a larger one, the
groups that may be non-zero are read again in each round, and a sample of them tells where theta may lie.
"""

import triton
import triton.language as tl

from normball.backends.cuda.parts import (
    by_group,
    leave,
    meet,
    newton,
    peaks_of,
    rounded_down,
    settled,
    sums_of,
    tile_at,
)


@triton.jit
def _clipped(v, cap, bad, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    limit = by_group(cap.to(WIDE), STRIDED)
    wide = v.to(WIDE)
    x = tl.where(tl.abs(wide) > limit, tl.where(wide < 0, -limit, limit), wide)
    return tl.where(bad, float("nan"), x).to(v.dtype)


@triton.jit
def _caps(t, peak, g, C, interior, bad, DTYPE: tl.constexpr):
    """The caps as they are written: they sum to the radius, and do not exceed it after rounding."""
    scale = tl.where(g > 0, C / tl.maximum(g, 1e-300), 0.0)
    if DTYPE == tl.float64:
        scale *= 1.0 - 2.0**-51  # sums of doubles err by a unit or two
    cap = tl.where(interior, peak, t * scale)
    return rounded_down(tl.where(bad, float("nan"), cap), DTYPE)


@triton.jit
def _start(sums, peaks, C, groups, members):
    """A bound on theta from below: all groups on their lines of all members, or of the greatest alone."""
    return tl.maximum(tl.maximum((sums - members * C) / groups, (peaks - C) / groups), 0.0)


@triton.jit
def _solve(
    v, t, theta, total, C, groups, members, slots, counter, meeting, programs,
    SLOTS: tl.constexpr, WARM: tl.constexpr, STRIDED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Theta of the problem whose groups lie in the registers of the blocks, with the caps that belong to it."""
    k = tl.zeros_like(total).to(tl.int32) - 1
    g = theta * 0.0
    peak = tl.sum(peaks_of(v, STRIDED, WIDE))
    if WARM:
        t, k = settled(v, t, theta, total, STRIDED, WIDE)
        slope = tl.sum(tl.where(k > 0, 1.0 / tl.maximum(k, 1).to(tl.float64), 0.0))
        sums, peaks, g, slope = meet(
            slots, counter, meeting, programs, tl.sum(total), peak, tl.sum(t), slope, SLOTS
        )
        low = _start(sums, peaks, C, groups, members)
        theta = newton(theta, g, slope, C, low)  # which may lead down, from a start beyond the root
    else:
        sums, peaks, _, _ = meet(slots, counter, meeting, programs, tl.sum(total), peak, 0.0, 0.0, SLOTS)
        low = _start(sums, peaks, C, groups, members)
        theta = low
    meeting += 1
    searching = ((peaks > C) & (sums < float("inf"))).to(tl.int32)
    while searching > 0:
        t, now = settled(v, t, theta, total, STRIDED, WIDE)
        slope = tl.sum(tl.where(now > 0, 1.0 / tl.maximum(now, 1).to(tl.float64), 0.0))
        changed = tl.sum((now != k).to(tl.float64))
        k = now
        g, slope, changed, _ = meet(slots, counter, meeting, programs, tl.sum(t), slope, changed, 0.0, SLOTS)
        meeting += 1
        ahead = newton(theta, g, slope, C, low)
        searching = ((changed > 0) & (ahead > theta * (1.0 + 2.0**-50))).to(tl.int32)
        theta = tl.where(searching > 0, ahead, theta)
    return theta, t, g, sums, peaks, meeting


@triton.jit
def _sane(x):
    """Caps and thetas of an earlier call are taken as they are; what cannot be one becomes 0."""
    return tl.where((x >= 0) & (x < 1e300), x, 0.0)


@triton.jit
def _radius(radius, radii, problem, BY_POINTER: tl.constexpr):
    if BY_POINTER:
        return tl.load(radii + problem)
    else:
        return radius


@triton.jit(do_not_specialize=["radius", "tiles", "programs"])
def resident(
    y, x, mu, theta_out, radius: tl.float64, radii, old_mu, old_theta, slots, counter,
    groups, members, y_problem, y_group, y_member, x_problem, x_group, x_member, tiles, programs,
    A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, STRIDED: tl.constexpr, VG: tl.constexpr, VN: tl.constexpr,
    INDEX: tl.constexpr, SLOTS: tl.constexpr, BY_POINTER: tl.constexpr, WARM: tl.constexpr,
):  # fmt: skip
    """One tile of groups for each block, read once. The second axis of the grid counts problems."""
    me = tl.program_id(0)
    problem = tl.program_id(1).to(tl.int64)
    DTYPE: tl.constexpr = y.dtype.element_ty
    WIDE: tl.constexpr = tl.float64 if DTYPE == tl.float64 else tl.float32
    C = _radius(radius, radii, problem, BY_POINTER)
    at, there, g = tile_at(y + problem * (y_problem * VG * VN), me, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX)
    v = tl.load(at, mask=there, other=0.0)
    total = sums_of(v, STRIDED, WIDE)
    t = tl.zeros_like(total)
    theta = C * 0.0
    if WARM:
        t = _sane(tl.load(old_mu + problem * groups + g, mask=g < groups, other=0.0).to(tl.float64))
        theta = _sane(tl.load(old_theta + problem))
    theta, t, sum_of_caps, sums, peaks, _ = _solve(
        v, t, theta, total, C, groups, members, slots + problem * 8 * SLOTS, counter + problem * 2, 0, programs,
        SLOTS, WARM, STRIDED, WIDE,
    )  # fmt: skip
    interior = peaks <= C
    bad = ~((sums < float("inf")) & (C >= 0))
    peak = peaks_of(v, STRIDED, WIDE)
    cap = _caps(t, peak, sum_of_caps, C, interior, bad, DTYPE)
    at, there, g = tile_at(x + problem * (x_problem * VG * VN), me, groups, members, x_group, x_member, A, R, B, STRIDED, VG, VN, INDEX)
    tl.store(at, _clipped(v, cap, bad, STRIDED, WIDE), mask=there)
    tl.store(mu + problem * groups + g, cap, mask=g < groups)
    if me == 0:
        theta = tl.where(interior, 0.0, theta)
        tl.store(theta_out + problem, tl.where(bad, float("nan"), theta))
    leave(counter + problem * 2, programs)


@triton.jit(do_not_specialize=["radius", "tiles", "programs"])
def streaming(
    y, x, mu, theta_out, radius: tl.float64, radii, old_mu, old_theta, slots, counter, caps, totals, counts,
    groups, members, y_problem, y_group, y_member, x_problem, x_group, x_member, tiles, programs,
    A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, STRIDED: tl.constexpr, VG: tl.constexpr, VN: tl.constexpr,
    INDEX: tl.constexpr, SLOTS: tl.constexpr, BY_POINTER: tl.constexpr, WARM: tl.constexpr,
):  # fmt: skip
    """Many tiles for each block, one after another; the groups that may be non-zero are read again in each round."""
    me = tl.program_id(0)
    DTYPE: tl.constexpr = y.dtype.element_ty
    WIDE: tl.constexpr = tl.float64 if DTYPE == tl.float64 else tl.float32
    C = _radius(radius, radii, 0, BY_POINTER)
    G: tl.constexpr = B if STRIDED else A
    lanes = tl.arange(0, G)
    meeting = 0
    theta = C * 0.0
    t = tl.zeros([G], tl.float64)
    if WARM:
        theta = _sane(tl.load(old_theta))
    else:
        # One tile of each block, spread over the matrix, is a smaller problem of the same kind.
        at, there, g = tile_at(y, (me * tiles) // programs, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX)
        v = tl.load(at, mask=there, other=0.0)
        total = sums_of(v, STRIDED, WIDE)
        sampled = programs * G + 0.0
        theta, t, _, _, _, meeting = _solve(
            v, t, theta, total, C * sampled / groups, sampled, members, slots, counter, meeting, programs,
            SLOTS, False, STRIDED, WIDE,
        )  # fmt: skip

    sums = tl.zeros([G], tl.float64)
    peaks = tl.zeros([G], tl.float64)
    mass = tl.zeros([G], tl.float64)
    slope = tl.zeros([G], tl.float64)
    for tile in range(me, tiles, programs):
        at, there, g = tile_at(y, tile, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX)
        v = tl.load(at, mask=there, other=0.0)
        total = sums_of(v, STRIDED, WIDE)
        peak = peaks_of(v, STRIDED, WIDE)
        if WARM:
            t = _sane(tl.load(old_mu + g, mask=g < groups, other=0.0).to(tl.float64))
        t, k = settled(v, t, theta, total, STRIDED, WIDE)  # a cold start takes the caps of the tile before
        tl.store(caps + g, t, mask=g < groups)
        tl.store(totals + g, total, mask=g < groups)
        tl.store(counts + g, k, mask=g < groups)
        tl.store(mu + g, rounded_down(peak, DTYPE), mask=g < groups)  # which they are if the matrix is in the ball
        sums += total
        peaks += peak
        mass += t
        slope += tl.where(k > 0, 1.0 / tl.maximum(k, 1).to(tl.float64), 0.0)
    sum_of_totals, sum_of_peaks, sum_of_caps, all_slope = meet(
        slots, counter, meeting, programs, tl.sum(sums), tl.sum(peaks), tl.sum(mass), tl.sum(slope), SLOTS
    )
    meeting += 1
    low = _start(sum_of_totals, sum_of_peaks, C, groups, members)
    interior = sum_of_peaks <= C
    bad = ~((sum_of_totals < float("inf")) & (C >= 0))
    theta = newton(theta, sum_of_caps, all_slope, C, low)
    searching = ((sum_of_peaks > C) & (sum_of_totals < float("inf"))).to(tl.int32)
    while searching > 0:
        mass = tl.zeros([G], tl.float64)
        slope = tl.zeros([G], tl.float64)
        moved = tl.zeros([G], tl.float64)
        for tile in range(me, tiles, programs):
            g = tile * G + lanes
            total = tl.load(totals + g, mask=g < groups, other=0.0)
            alive = total > theta
            before = tl.load(counts + g, mask=g < groups, other=0)
            if tl.max((alive | (before > 0)).to(tl.int32)) > 0:
                t = tl.load(caps + g, mask=g < groups, other=0.0)
                at, there, g = tile_at(y, tile, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX)
                v = tl.load(at, mask=there & by_group(alive, STRIDED), other=0.0)
                t, k = settled(v, t, theta, total, STRIDED, WIDE)
                tl.debug_barrier()
                tl.store(caps + g, t, mask=g < groups)
                tl.store(counts + g, k, mask=g < groups)
                mass += t
                slope += tl.where(k > 0, 1.0 / tl.maximum(k, 1).to(tl.float64), 0.0)
                moved += (k != before).to(tl.float64)
        sum_of_caps, all_slope, changed, _ = meet(
            slots, counter, meeting, programs, tl.sum(mass), tl.sum(slope), tl.sum(moved), 0.0, SLOTS
        )
        meeting += 1
        ahead = newton(theta, sum_of_caps, all_slope, C, low)
        searching = ((changed > 0) & (ahead > theta * (1.0 + 2.0**-50))).to(tl.int32)
        theta = tl.where(searching > 0, ahead, theta)

    for tile in range(me, tiles, programs):
        g = tile * G + lanes
        t = tl.load(caps + g, mask=g < groups, other=0.0)
        peak = tl.load(mu + g, mask=g < groups, other=0.0).to(tl.float64)
        cap = _caps(t, peak, sum_of_caps, C, interior, bad, DTYPE)
        at, there, g = tile_at(y, tile, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX)
        v = tl.load(at, mask=there & by_group(interior | (cap > 0), STRIDED), other=0.0)
        at, there, g = tile_at(x, tile, groups, members, x_group, x_member, A, R, B, STRIDED, VG, VN, INDEX)
        tl.store(at, _clipped(v, cap, bad, STRIDED, WIDE), mask=there)
        tl.debug_barrier()
        tl.store(mu + g, cap, mask=g < groups)
    if me == 0:
        theta = tl.where(interior, 0.0, theta)
        tl.store(theta_out, tl.where(bad, float("nan"), theta))
    leave(counter, programs)
