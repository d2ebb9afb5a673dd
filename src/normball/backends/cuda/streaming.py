"""The l1,inf projection of a matrix that does not fit the registers of the device: one kernel that reads it in tiles.

A sample tells where theta may lie; then all of the matrix is read; and from then on only the groups whose cap has left
the gap between two of their members, because in between the line is known.
"""

import triton
import triton.language as tl

from normball.backends.cuda.meeting import arrive, leave, meet, sums_in_block
from normball.backends.cuda.parts import (
    by_group,
    clipped,
    gap_at,
    in_gap,
    moved_along,
    peaks_of,
    refined,
    risk,
    sums_of,
    tile_at,
)
from normball.backends.cuda.solve import final_caps, radius_of, sane, solve, sound, step


@triton.jit(do_not_specialize=["radius", "tiles", "programs"])
def streaming(
    y, x, mu, theta_out, radius: tl.float64, radii, old_mu, old_theta, place, work,
    groups, members, y_problem, y_group, y_member, x_problem, x_group, x_member, tiles, programs,
    A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, STRIDED: tl.constexpr, VG: tl.constexpr, VN: tl.constexpr,
    INDEX: tl.constexpr, EVEN: tl.constexpr, M: tl.constexpr, SLOTS: tl.constexpr, WORDS: tl.constexpr,
    ALONE: tl.constexpr, BY_POINTER: tl.constexpr, WARM: tl.constexpr, WRITE: tl.constexpr, STAGES: tl.constexpr,
    J: tl.constexpr,
):  # fmt: skip
    """Many tiles for each block, one after another; of J at once is thought what can be told without reading them.

    The last pass goes the other way than the first: what was read last may still be near. Without WRITE there is none.
    """
    me = tl.program_id(0)
    DTYPE: tl.constexpr = y.dtype.element_ty
    WIDE: tl.constexpr = tl.float64 if tl.float64 == DTYPE else tl.float32
    C = radius_of(radius, radii, 0, BY_POINTER)
    G: tl.constexpr = B if STRIDED else A
    lanes = tl.arange(0, G)
    turn = arrive(place, SLOTS, ALONE)
    mine = (tiles - me + programs - 1) // programs
    # What is known of each group: the cap at the last theta, the slope of the line it is on, the sum, the greatest
    # member; and the gap, as long as the cap is in which it stays on that line.
    lines = work.to(tl.pointer_type(tl.float32))
    records = work + M
    gaps = (records + 4 * groups).to(tl.pointer_type(WIDE))
    two = tl.arange(0, 2)
    theta = C * 0.0
    guess = tl.zeros([G], tl.float64)
    if WARM:
        theta = sane(tl.load(old_theta))
    else:
        # One tile of each block, spread over the matrix, is a smaller problem of the same kind.
        at, there, g = tile_at(
            y, (me * tiles) // programs, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX, EVEN
        )
        v = tl.abs(tl.load(at, mask=there, other=0.0).to(WIDE))
        sampled = programs * G
        total = sums_of(v, STRIDED)
        theta, guess, _, _, turn = solve(
            v, guess, theta, total, peaks_of(v, STRIDED), C * sampled / groups, sampled, members, lines,
            me * G + lanes, place, turn, programs, M, SLOTS, WORDS, ALONE, False, True, STRIDED, WIDE,
        )  # fmt: skip

    sums = tl.zeros([G], tl.float64)
    peaks = tl.zeros([G], tl.float64)
    mass = tl.zeros([G], tl.float64)
    slope = tl.zeros([G], tl.float64)
    for i in tl.range(0, mine, num_stages=STAGES):
        at, there, g = tile_at(
            y, me + i * programs, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX, EVEN
        )
        v = tl.abs(tl.load(at, mask=there, other=0.0).to(WIDE))
        total = sums_of(v, STRIDED)
        peak = peaks_of(v, STRIDED)
        if WARM:
            guess = sane(tl.load(old_mu + g, mask=g < groups, other=0.0).to(tl.float64))
        alive = total > theta
        t = tl.zeros([G], tl.float64)
        line = tl.zeros([G], tl.float64)
        under = tl.zeros([G], WIDE)
        over = tl.zeros([G], WIDE)
        if tl.max(alive.to(tl.int32)) > 0:
            t, line, before, _right = refined(
                v, guess, theta, alive, (me * 0).to(tl.float64), me * 0 + 2, WARM, STRIDED, WIDE
            )
            under, over = gap_at(v, before, STRIDED, WIDE)
            guess = tl.where(alive, t, guess)  # a cold start takes the tile before
            tl.store(gaps + g[:, None] * 2 + two, tl.join(under, over), mask=(g < groups)[:, None])
        four = g[:, None, None] * 4 + two[:, None] * 2 + two
        tl.store(records + four, tl.join(tl.join(t, total), tl.join(line, peak)), mask=(g < groups)[:, None, None])
        if WARM:  # the start may be all that it takes
            sums += tl.where(g < groups, risk(t, line, under, over, alive, total, theta, theta >= 0), 0.0)
        else:
            sums += total
        peaks += sound(total, peak, groups)
        mass += t
        slope += line
    all_sums, sum_of_peaks, sum_of_caps, all_slope = meet(
        place, turn, programs, sums_in_block(sums, peaks, mass, slope), SLOTS, WORDS, ALONE
    )
    turn += 1
    low = tl.maximum((sum_of_peaks - C) / groups, 0.0)
    risks = all_sums
    if not WARM:
        low = tl.maximum((all_sums - members * C) / groups, low)
        risks = low + float("inf")
    interior = sum_of_peaks <= C
    bad = ~((sum_of_peaks < float("inf")) & (C >= 0))
    theta, searching, rose = step(theta, sum_of_caps, all_slope, 0.0, risks, C, low, low, me * 0)
    searching = tl.where((sum_of_peaks > C) & (sum_of_peaks < float("inf")), searching, 0)
    rows = tl.arange(0, J)
    while searching > 0:
        # First all that can be told without the matrix, many tiles at once; then the tiles that must be read.
        mass_known = tl.zeros([J, G], tl.float64)
        slope_known = tl.zeros([J, G], tl.float64)
        moving_known = tl.zeros([J, G], tl.float64)
        risk_known = tl.zeros([J, G], tl.float64)
        mass = tl.zeros([G], tl.float64)
        slope = tl.zeros([G], tl.float64)
        moving = tl.zeros([G], tl.float64)
        unsafe = tl.zeros([G], tl.float64)
        for begin in range(0, mine, J):
            j = begin + rows
            each = (me + programs * j)[:, None] * G + lanes[None, :]
            exists = (j < mine)[:, None] & (each < groups)
            record = records + each * 4
            totals = tl.load(record + 2, mask=exists, other=0.0)
            lives = exists & (totals > theta)
            line = tl.load(record + 1, mask=exists, other=0.0)
            ts = moved_along(tl.load(record, mask=exists, other=0.0), line, rose)
            lowest = tl.load(gaps + each * 2, mask=exists & (line > 0), other=0.0)
            highest = tl.load(gaps + each * 2 + 1, mask=exists & (line > 0), other=0.0)
            is_open = tl.max((~in_gap(ts, line, lowest, highest, lives)).to(tl.int32), 1)
            known = exists & (is_open == 0)[:, None]
            ts = tl.where(lives, ts, 0.0)
            now = tl.where(lives, line, 0.0)
            tl.debug_barrier()
            tl.store(record, ts, mask=exists)
            tl.store(record + 1, now, mask=known)
            mass_known += tl.where(known, ts, 0.0)
            slope_known += tl.where(known, now, 0.0)
            moving_known += (known & (now != line)).to(tl.float64)
            risk_known += tl.where(known, risk(ts, now, lowest, highest, lives, totals, theta, theta < 0), 0.0)
            next_open = tl.max(is_open * (j + 1), 0)
            tl.debug_barrier()
            while next_open > 0:
                at, there, g = tile_at(
                    y, me + programs * (next_open - 1), groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN,
                    INDEX, EVEN,
                )  # fmt: skip
                own = records + g * 4
                total = tl.load(own + 2, mask=g < groups, other=0.0)
                alive = total > theta
                v = tl.abs(tl.load(at, mask=there & by_group(alive, STRIDED), other=0.0).to(WIDE))
                t = tl.load(own, mask=g < groups, other=0.0)
                old = tl.load(own + 1, mask=g < groups, other=0.0)
                t, new, before, _right = refined(
                    v, t, theta, alive, (rose >= 0).to(tl.float64), me * 0 + 2, False, STRIDED, WIDE
                )
                under, over = gap_at(v, before, STRIDED, WIDE)
                tl.debug_barrier()
                tl.store(own[:, None] + two, tl.join(t, new), mask=(g < groups)[:, None])
                tl.store(gaps + g[:, None] * 2 + two, tl.join(under, over), mask=(g < groups)[:, None])
                mass += t
                slope += new
                unsure = alive & (t > over.to(tl.float64))
                moving += (new != old).to(tl.float64) + unsure.to(tl.float64) * 2.0**26
                unsafe += risk(t, new, under, over, alive, total, theta, theta < 0)
                next_open = tl.max(tl.where(j + 1 < next_open, is_open * (j + 1), 0), 0)
        mass += tl.sum(mass_known, 0)
        slope += tl.sum(slope_known, 0)
        moving += tl.sum(moving_known, 0)
        unsafe += tl.sum(risk_known, 0)
        sum_of_caps, all_slope, all_moving, all_risks = meet(
            place, turn, programs, sums_in_block(mass, slope, moving, unsafe), SLOTS, WORDS, ALONE
        )
        tl.debug_barrier()
        turn += 1
        theta, searching, rose = step(theta, sum_of_caps, all_slope, all_moving, all_risks, C, low, rose, searching)

    sum_of_caps -= rose * all_slope
    for begin in range(0, mine, J):
        j = begin + rows
        each = (me + programs * j)[:, None] * G + lanes[None, :]
        exists = (j < mine)[:, None] & (each < groups)
        ts = tl.load(records + each * 4, mask=exists, other=0.0)
        ts = moved_along(ts, tl.load(records + each * 4 + 1, mask=exists, other=0.0), rose)
        tops = tl.load(records + each * 4 + 3, mask=exists, other=0.0)
        tl.store(mu + each, final_caps(ts, tops, sum_of_caps, C, interior, bad, DTYPE), mask=exists)
    if WRITE:
        tl.debug_barrier()
        for i in tl.range(0, mine, num_stages=STAGES):
            tile = me + programs * (mine - 1 - i)
            at, there, g = tile_at(
                y, tile, groups, members, y_group, y_member, A, R, B, STRIDED, VG, VN, INDEX, EVEN
            )
            cap = tl.load(mu + g, mask=g < groups, other=0.0)
            read = there & by_group(tl.where(interior, 1.0, cap.to(WIDE)) != 0, STRIDED)
            entries = tl.load(at, mask=read, other=0.0)
            at, there, g = tile_at(
                x, tile, groups, members, x_group, x_member, A, R, B, STRIDED, VG, VN, INDEX, EVEN
            )
            tl.store(at, clipped(entries, cap, STRIDED, WIDE), mask=there)
    if me == 0:
        theta = tl.where(interior, 0.0, theta)
        tl.store(theta_out, tl.where(bad, float("nan"), theta))
    leave(place, turn, SLOTS, ALONE)
