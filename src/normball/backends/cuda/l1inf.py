"""The l1,inf projection as one Triton kernel: Newton's method on theta, whole groups in registers.

Every block holds some groups. In each round it finds their caps at the current theta, all blocks meet, and each takes
the same Newton step on ``sum_j mu_j(theta) = radius``. It ends when no group changed the members it clips: the result
is exact, and the host is never asked. A matrix that fits the registers of the device is read once. Of a larger one, a
sample tells where theta may lie; then all of it is read; and from then on only the groups whose cap has left the gap
between two of their members, because in between the line is known.
"""

import triton
import triton.language as tl

from normball.backends.cuda.parts import (
    arrive,
    by_group,
    gap_at,
    in_gap,
    leave,
    meet,
    moved_along,
    newton,
    peaks_of,
    refined,
    rounded_down,
    sums_of,
    tile_at,
)

NEAR: tl.constexpr = tl.constexpr(2.0**-8)


@triton.jit
def _clipped(v, cap, bad, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    limit = by_group(cap.to(WIDE), STRIDED)
    wide = v.to(WIDE)
    x = tl.where(tl.abs(wide) > limit, tl.where(wide < 0, -limit, limit), wide)
    return tl.where(bad, float("nan"), x).to(v.dtype)


@triton.jit
def _signs(v, INTERPRETED: tl.constexpr):
    """The signs of the members of a tile, as bits along its second axis: so each thread keeps magnitudes alone."""
    if v.dtype == tl.float64:
        bits = v.to(tl.int64, bitcast=True)
    elif v.dtype == tl.float32:
        bits = v.to(tl.int32, bitcast=True)
    else:
        bits = v.to(tl.int16, bitcast=True)
    tl.static_assert(v.shape[1] <= 32)
    signs = tl.sum((bits < 0).to(tl.int32) << tl.arange(0, v.shape[1])[None, :, None], 1)
    if INTERPRETED:
        return signs
    else:  # the compiler may not put it off, or it would keep the members for it, where there are no registers left
        return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [signs], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def _signed(size, signs, WIDE: tl.constexpr):
    negative = (tl.expand_dims(signs, 1) >> tl.arange(0, size.shape[1])[None, :, None]) & 1
    wide = size.to(WIDE)
    return tl.where(negative != 0, -wide, wide).to(size.dtype)


@triton.jit
def _caps(t, peak, g, C, interior, bad, DTYPE: tl.constexpr):
    """The caps as they are written: they sum to the radius, and do not exceed it after rounding."""
    scale = tl.where(g > 0, C / tl.maximum(g, 1e-300), 0.0)
    if tl.float64 == DTYPE:
        scale *= 1.0 - 2.0**-51  # sums of doubles err by a unit or two
    cap = tl.where(interior, peak, t * scale)
    return rounded_down(tl.where(bad, float("nan"), cap), DTYPE)


@triton.jit
def _bound(sums, peaks, C, groups, members):
    """A bound on theta from below: all groups on their lines of all members, or of the greatest alone."""
    return tl.maximum(tl.maximum((sums - members * C) / groups, (peaks - C) / groups), 0.0)


@triton.jit
def _on_two_lines(lines, low, C, groups, members, M: tl.constexpr):
    """About the theta that two lines of each group lead to, of all members and of the greatest: every block for itself.

    It is a place to begin, so single precision will do.
    """
    j = tl.arange(0, M)
    total = tl.load(lines + j, mask=j < groups, other=0.0, cache_modifier=".cg")
    peak = tl.load(lines + M + j, mask=j < groups, other=0.0, cache_modifier=".cg")
    radius = C.to(tl.float32)
    share = 1.0 / (radius * 0.0 + members)  # the compiler takes a 1 for a constant, which has no type to convert
    theta = low.to(tl.float32)
    rises = theta * 0.0 + 1.0
    while rises > 0.0:
        on_all = (total - theta) * share
        on_one = peak - theta
        line = tl.maximum(tl.maximum(on_all, on_one), 0.0)
        slope = tl.sum(tl.where(line > 0, tl.where(on_all > on_one, share, 1.0), 0.0))
        ahead = theta + tl.where(slope > 0, (tl.sum(line) - radius) / tl.maximum(slope, 1e-30), 0.0)
        rises = tl.where(ahead > theta * 1.001, 1.0, 0.0)
        theta = tl.maximum(ahead, theta)
    return theta.to(tl.float64)


@triton.jit
def _step(theta, g, slope, moving, C, low, last, searching):
    """One Newton step. Returns theta, whether to go on, and how far theta rose.

    `moving` counts groups that clip other members than a round before, and in its high part those whose lines may be
    below their caps: with none of the latter, a step that does not lead up means the end. The first step, which knows
    nothing of this, may lead down, from a start beyond the root. If no group is left, rounding has led too far, as it
    may if the radius is tiny: the `last` step is taken back, and one more round ends the search.
    """
    first = searching == 0
    ahead = newton(theta, g, slope, C, low)
    rises = ahead > theta * (1.0 + 2.0**-50)
    lost = (slope == 0) & (C > 0) & (last > 0) & (searching == 1)
    more = first | ((searching == 1) & ((moving >= 2.0**26) | ((moving > 0) & rises) | lost))
    ahead = tl.where(lost, theta - last, tl.where(first | rises, ahead, theta))
    ahead = tl.where(more, ahead, theta)
    return ahead, tl.where(lost, 2, more.to(tl.int32)), ahead - theta


@triton.jit
def _anew(v, t, theta, alive, rose, nowhere, STRIDED: tl.constexpr, WIDE: tl.constexpr):
    """Caps at theta from thresholds t, how many members they clip, and the gaps, if these are likely to hold."""
    t, k, least = refined(v, t, theta, alive, (rose >= 0).to(tl.float64), STRIDED, WIDE)
    under, over = nowhere, -nowhere
    if tl.abs(rose) <= theta * NEAR:
        under, over = gap_at(v, least, STRIDED, WIDE)
    return t, k, under, over


@triton.jit
def _solve(
    v, t, theta, total, peak, C, groups, members, lines, g, place, turn, programs,
    M: tl.constexpr, SLOTS: tl.constexpr, ROOM: tl.constexpr, ALONE: tl.constexpr, WARM: tl.constexpr,
    ROUGH: tl.constexpr, SKIP: tl.constexpr, STRIDED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Theta of the problem whose groups lie in the registers of the blocks, with the caps that belong to it.

    Gaps are looked for where they are likely to hold: near the end. With SKIP a block whose caps are all in their gaps
    leaves its members alone. ROUGH is content to be near.
    """
    low = theta * 0.0
    sums, peaks = low, low
    if not WARM:
        if M > 0:
            tl.store(lines + g, total.to(tl.float32), mask=g < groups)
            tl.store(lines + M + g, peak.to(tl.float32), mask=g < groups)
        sums, peaks, _, _ = meet(place, turn, programs, tl.sum(total), tl.sum(peak), low, low, SLOTS, ROOM, ALONE)
        turn += 1
        low = _bound(sums, peaks, C, groups, members)
        theta = low
        if M > 0:
            if ALONE:
                tl.debug_barrier()
            elif tl.atomic_add(place + 12 * ROOM + 1, 0, sem="acquire", scope="gpu") != 0:  # lines of other blocks
                theta = C * 0.0
            if (peaks > C) & (sums < float("inf")):
                theta = _on_two_lines(lines, low, C, groups, members, M)
    t, k, least = refined(v, t, theta, total > theta, 0.0, STRIDED, WIDE)
    nowhere = (tl.zeros_like(t) + float("inf")).to(WIDE)
    under, over = nowhere, -nowhere
    if WARM:
        under, over = gap_at(v, least, STRIDED, WIDE)
    slope = tl.sum(tl.where(k > 0, 1.0 / tl.maximum(k, 1).to(tl.float64), 0.0))
    if WARM:
        sums, peaks, mass, slope = meet(
            place, turn, programs, tl.sum(total), tl.sum(peak), tl.sum(t), slope, SLOTS, ROOM, ALONE
        )
        low = _bound(sums, peaks, C, groups, members)
    else:
        mass, slope, _, _ = meet(place, turn, programs, tl.sum(t), slope, slope, slope, SLOTS, ROOM, ALONE)
    turn += 1
    theta, searching, rose = _step(theta, mass, slope, 0.0, C, low, low, tl.program_id(0) * 0)
    searching = tl.where((peaks > C) & (sums < float("inf")), searching, 0)
    while searching > 0:
        t = moved_along(t, k, rose)
        alive = total > theta
        now = tl.where(alive, k, 0)
        if SKIP:
            if tl.min(in_gap(t, k, under, over, alive).to(tl.int32)) == 0:
                t, now, under, over = _anew(v, t, theta, alive, rose, nowhere, STRIDED, WIDE)
        else:
            t, now, under, over = _anew(v, t, theta, alive, rose, nowhere, STRIDED, WIDE)
        left = (alive & (t > over.to(tl.float64))).to(tl.float64)
        t = tl.where(alive, t, 0.0)
        slope = tl.sum(tl.where(now > 0, 1.0 / tl.maximum(now, 1).to(tl.float64), 0.0))
        moving = tl.sum((now != k).to(tl.float64) + left * 2.0**26)
        k = now
        mass, slope, moving, _ = meet(place, turn, programs, tl.sum(t), slope, moving, moving, SLOTS, ROOM, ALONE)
        turn += 1
        theta, searching, rose = _step(theta, mass, slope, moving, C, low, rose, searching)
        if ROUGH:
            searching = tl.where(rose <= theta * NEAR, 0, searching)
    return theta, t, mass, sums, peaks, turn


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
    y, x, mu, theta_out, radius: tl.float64, radii, old_mu, old_theta, place, work,
    groups, members, y_problem, y_group, y_member, x_problem, x_group, x_member, tiles, programs,
    A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, STRIDED: tl.constexpr, VG: tl.constexpr, VN: tl.constexpr,
    INDEX: tl.constexpr, M: tl.constexpr, SLOTS: tl.constexpr, ROOM: tl.constexpr, ALONE: tl.constexpr,
    BY_POINTER: tl.constexpr, WARM: tl.constexpr, SKIP: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """One tile of groups for each block, read once. The second axis of the grid counts problems."""
    me = tl.program_id(0)
    problem = tl.program_id(1).to(tl.int64)
    DTYPE: tl.constexpr = y.dtype.element_ty
    WIDE: tl.constexpr = tl.float64 if tl.float64 == DTYPE else tl.float32
    C = _radius(radius, radii, problem, BY_POINTER)
    at, there, g = tile_at(
        y + problem * (y_problem * VG * VN), me, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX
    )
    v = tl.load(at, mask=there, other=0.0)
    turn = arrive(place, ROOM, ALONE)
    signs = _signs(v, INTERPRETED)
    v = tl.abs(v.to(WIDE)).to(DTYPE)
    total = sums_of(v, STRIDED, WIDE)
    peak = peaks_of(v, STRIDED, WIDE)
    t = tl.zeros_like(total)
    theta = C * 0.0
    if WARM:
        t = _sane(tl.load(old_mu + problem * groups + g, mask=g < groups, other=0.0).to(tl.float64))
        theta = _sane(tl.load(old_theta + problem))
    lines = work.to(tl.pointer_type(tl.float32))
    theta, t, sum_of_caps, sums, peaks, turn = _solve(
        v, t, theta, total, peak, C, groups, members, lines, g,
        place, turn, programs, M, SLOTS, ROOM, ALONE, WARM, False, SKIP, STRIDED, WIDE,
    )  # fmt: skip
    interior = peaks <= C
    bad = ~((sums < float("inf")) & (C >= 0))
    cap = _caps(t, peak, sum_of_caps, C, interior, bad, DTYPE)
    at, there, g = tile_at(
        x + problem * (x_problem * VG * VN), me, groups, members, x_group, x_member, A, R, B, STRIDED, VG, VN, INDEX
    )
    tl.store(at, _signed(_clipped(v, cap, bad, STRIDED, WIDE), signs, WIDE), mask=there)
    tl.store(mu + problem * groups + g, cap, mask=g < groups)
    if me == 0:
        theta = tl.where(interior, 0.0, theta)
        tl.store(theta_out + problem, tl.where(bad, float("nan"), theta))
    leave(place, turn, ROOM, ALONE)


@triton.jit(do_not_specialize=["radius", "tiles", "programs"])
def streaming(
    y, x, mu, theta_out, radius: tl.float64, radii, old_mu, old_theta, place, work,
    groups, members, y_problem, y_group, y_member, x_problem, x_group, x_member, tiles, programs,
    A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, STRIDED: tl.constexpr, VG: tl.constexpr, VN: tl.constexpr,
    INDEX: tl.constexpr, M: tl.constexpr, SLOTS: tl.constexpr, ROOM: tl.constexpr, ALONE: tl.constexpr,
    BY_POINTER: tl.constexpr, WARM: tl.constexpr, WRITE: tl.constexpr, STAGES: tl.constexpr, J: tl.constexpr,
):  # fmt: skip
    """Many tiles for each block, one after another; of J at once is thought what can be told without reading them.

    The last pass goes the other way than the first: what was read last may still be near. Without WRITE there is none.
    """
    me = tl.program_id(0)
    DTYPE: tl.constexpr = y.dtype.element_ty
    WIDE: tl.constexpr = tl.float64 if tl.float64 == DTYPE else tl.float32
    C = _radius(radius, radii, 0, BY_POINTER)
    G: tl.constexpr = B if STRIDED else A
    lanes = tl.arange(0, G)
    turn = arrive(place, ROOM, ALONE)
    mine = (tiles - me + programs - 1) // programs
    # What is known of each group: the cap at the last theta, and the gap in which it follows the line of k members.
    lines = work.to(tl.pointer_type(tl.float32))
    caps = work + M
    totals = caps + groups
    unders = (totals + groups).to(tl.pointer_type(WIDE))
    overs = (totals + 2 * groups).to(tl.pointer_type(WIDE))
    counts = (totals + 3 * groups).to(tl.pointer_type(tl.int32))
    theta = C * 0.0
    guess = tl.zeros([G], tl.float64)
    if WARM:
        theta = _sane(tl.load(old_theta))
    else:
        # One tile of each block, spread over the matrix, is a smaller problem of the same kind.
        at, there, g = tile_at(
            y, (me * tiles) // programs, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX
        )
        v = tl.abs(tl.load(at, mask=there, other=0.0).to(WIDE))
        sampled = programs * G
        total = sums_of(v, STRIDED, WIDE)
        theta, guess, _, _, _, turn = _solve(
            v, guess, theta, total, peaks_of(v, STRIDED, WIDE), C * sampled / groups, sampled, members, lines,
            me * G + lanes, place, turn, programs, M, SLOTS, ROOM, ALONE, False, True, True, STRIDED, WIDE,
        )  # fmt: skip

    sums = tl.zeros([G], tl.float64)
    peaks = tl.zeros([G], tl.float64)
    mass = tl.zeros([G], tl.float64)
    slope = tl.zeros([G], tl.float64)
    for i in tl.range(0, mine, num_stages=STAGES):
        at, there, g = tile_at(
            y, me + i * programs, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX
        )
        v = tl.abs(tl.load(at, mask=there, other=0.0).to(WIDE))
        total = sums_of(v, STRIDED, WIDE)
        peak = peaks_of(v, STRIDED, WIDE)
        if WARM:
            guess = _sane(tl.load(old_mu + g, mask=g < groups, other=0.0).to(tl.float64))
        alive = total > theta
        t = tl.zeros([G], tl.float64)
        k = tl.zeros([G], tl.int32)
        if tl.max(alive.to(tl.int32)) > 0:
            t, k, least = refined(v, guess, theta, alive, 0.0, STRIDED, WIDE)
            under, over = gap_at(v, least, STRIDED, WIDE)
            guess = tl.where(alive, t, guess)  # a cold start takes the tile before
            tl.store(unders + g, under, mask=g < groups)
            tl.store(overs + g, over, mask=g < groups)
        tl.store(caps + g, t, mask=g < groups)
        tl.store(totals + g, total, mask=g < groups)
        tl.store(counts + g, k, mask=g < groups)
        tl.store(mu + g, rounded_down(peak, DTYPE), mask=g < groups)  # which they are if the matrix is in the ball
        sums += total
        peaks += peak
        mass += t
        slope += tl.where(k > 0, 1.0 / tl.maximum(k, 1).to(tl.float64), 0.0)
    sum_of_totals, sum_of_peaks, sum_of_caps, all_slope = meet(
        place, turn, programs, tl.sum(sums), tl.sum(peaks), tl.sum(mass), tl.sum(slope), SLOTS, ROOM, ALONE
    )
    turn += 1
    low = _bound(sum_of_totals, sum_of_peaks, C, groups, members)
    interior = sum_of_peaks <= C
    bad = ~((sum_of_totals < float("inf")) & (C >= 0))
    theta, searching, rose = _step(theta, sum_of_caps, all_slope, 0.0, C, low, low, me * 0)
    searching = tl.where((sum_of_peaks > C) & (sum_of_totals < float("inf")), searching, 0)
    rows = tl.arange(0, J)
    while searching > 0:
        # First all that can be told without the matrix, many tiles at once; then the tiles that must be read.
        mass_known = tl.zeros([J, G], tl.float64)
        slope_known = tl.zeros([J, G], tl.float64)
        moving_known = tl.zeros([J, G], tl.float64)
        mass = tl.zeros([G], tl.float64)
        slope = tl.zeros([G], tl.float64)
        moving = tl.zeros([G], tl.float64)
        for begin in range(0, mine, J):
            j = begin + rows
            each = (me + programs * j)[:, None] * G + lanes[None, :]
            exists = (j < mine)[:, None] & (each < groups)
            lives = exists & (tl.load(totals + each, mask=exists, other=0.0) > theta)
            ks = tl.load(counts + each, mask=exists, other=0)
            ts = moved_along(tl.load(caps + each, mask=exists, other=0.0), ks, rose)
            lowest = tl.load(unders + each, mask=exists & (ks > 0), other=0.0)
            highest = tl.load(overs + each, mask=exists & (ks > 0), other=0.0)
            is_open = tl.max((~in_gap(ts, ks, lowest, highest, lives)).to(tl.int32), 1)
            known = exists & (is_open == 0)[:, None]
            ts = tl.where(lives, ts, 0.0)
            now = tl.where(lives, ks, 0)
            tl.debug_barrier()
            tl.store(caps + each, ts, mask=exists)
            tl.store(counts + each, now, mask=known)
            mass_known += tl.where(known, ts, 0.0)
            slope_known += tl.where(known & (now > 0), 1.0 / tl.maximum(now, 1).to(tl.float64), 0.0)
            moving_known += (known & (now != ks)).to(tl.float64)
            next_open = tl.max(is_open * (j + 1), 0)
            tl.debug_barrier()
            while next_open > 0:
                at, there, g = tile_at(
                    y, me + programs * (next_open - 1), groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN,
                    INDEX,
                )  # fmt: skip
                alive = tl.load(totals + g, mask=g < groups, other=0.0) > theta
                v = tl.abs(tl.load(at, mask=there & by_group(alive, STRIDED), other=0.0).to(WIDE))
                before = tl.load(counts + g, mask=g < groups, other=0)
                t = tl.load(caps + g, mask=g < groups, other=0.0)
                t, k, least = refined(v, t, theta, alive, (rose >= 0).to(tl.float64), STRIDED, WIDE)
                under, over = gap_at(v, least, STRIDED, WIDE)
                tl.debug_barrier()
                tl.store(caps + g, t, mask=g < groups)
                tl.store(counts + g, k, mask=g < groups)
                tl.store(unders + g, under, mask=g < groups)
                tl.store(overs + g, over, mask=g < groups)
                mass += t
                slope += tl.where(k > 0, 1.0 / tl.maximum(k, 1).to(tl.float64), 0.0)
                unsure = alive & (t > over.to(tl.float64))
                moving += (k != before).to(tl.float64) + unsure.to(tl.float64) * 2.0**26
                next_open = tl.max(tl.where(j + 1 < next_open, is_open * (j + 1), 0), 0)
        all_mass = tl.sum(mass) + tl.sum(tl.sum(mass_known, 1), 0)
        all_slope = tl.sum(slope) + tl.sum(tl.sum(slope_known, 1), 0)
        all_moving = tl.sum(moving) + tl.sum(tl.sum(moving_known, 1), 0)
        sum_of_caps, all_slope, all_moving, _ = meet(
            place, turn, programs, all_mass, all_slope, all_moving, all_moving, SLOTS, ROOM, ALONE
        )
        tl.debug_barrier()
        turn += 1
        theta, searching, rose = _step(theta, sum_of_caps, all_slope, all_moving, C, low, rose, searching)

    for begin in range(0, mine, J):
        j = begin + rows
        each = (me + programs * j)[:, None] * G + lanes[None, :]
        exists = (j < mine)[:, None] & (each < groups)
        ts = tl.load(caps + each, mask=exists, other=0.0)
        tops = tl.load(mu + each, mask=exists, other=0.0).to(tl.float64)
        tl.debug_barrier()
        tl.store(mu + each, _caps(ts, tops, sum_of_caps, C, interior, bad, DTYPE), mask=exists)
    if WRITE:
        tl.debug_barrier()
        for i in tl.range(0, mine, num_stages=STAGES):
            at, there, g = tile_at(
                y, me + programs * (mine - 1 - i), groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX
            )
            cap = tl.load(mu + g, mask=g < groups, other=0.0)
            read = there & by_group(tl.where(interior, 1.0, cap.to(WIDE)) != 0, STRIDED)
            entries = tl.load(at, mask=read, other=0.0)
            at, there, g = tile_at(
                x, me + programs * (mine - 1 - i), groups, members, x_group, x_member, A, R, B, STRIDED, VG, VN, INDEX
            )
            tl.store(at, _clipped(entries, cap, bad, STRIDED, WIDE), mask=there)
    if me == 0:
        theta = tl.where(interior, 0.0, theta)
        tl.store(theta_out, tl.where(bad, float("nan"), theta))
    leave(place, turn, ROOM, ALONE)
