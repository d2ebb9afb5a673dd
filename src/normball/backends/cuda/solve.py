"""The search for theta: Newton's method on ``sum_j mu_j(theta) = radius``, by blocks that hold the groups in registers.

In each round every block finds the caps of its groups at the current theta, all blocks meet, and each takes the same
Newton step. It ends when no group changed the members it clips: the result is exact, and the host is never asked.
"""

import triton
import triton.language as tl

from normball.backends.cuda.meeting import ask, meet, sums_in_block
from normball.backends.cuda.parts import CLOSE, gap_at, in_gap, moved_along, newton, refined, risk, rounded_down

NEAR: tl.constexpr = tl.constexpr(2.0**-8)  # a step of theta after which gaps are likely to hold


@triton.jit
def final_caps(t, peak, g, C, interior, bad, DTYPE: tl.constexpr):
    """The caps as they are written: they sum to the radius, and do not exceed it after rounding."""
    scale = tl.where(g > 0, C / tl.maximum(g, 1e-300), 0.0)
    if tl.float64 == DTYPE:
        scale *= 1.0 - 2.0**-51  # sums of doubles err by a unit or two
    cap = tl.where(interior, peak, t * scale)
    return rounded_down(tl.where(bad, float("nan"), cap), DTYPE)


@triton.jit
def sound(total, peak, groups):
    """The greatest members, infinite where a group is not finite, or so large that the sum of all might not be."""
    return tl.where(total * groups < float("inf"), peak, float("inf"))


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
def step(theta, g, slope, moving, risks, C, low, last, searching):
    """One Newton step. Returns theta, whether to go on, and how far theta rose.

    It is the last where all lines are known to hold up to the root. `moving` counts groups that clip other members than
    a round before, and in its high part those whose lines may be below their caps: with none of the latter, a step that
    does not lead up means the end. The first step, which knows nothing of this, may lead down, from a start beyond the
    root. If no group is left, rounding has led too far, as it may if the radius is tiny: the `last` step is taken back,
    and one more round ends the search.
    """
    first = searching == 0
    ahead = newton(theta, g, slope, C, low)
    rises = ahead > theta * (1.0 + 2.0**-50)
    lost = (slope == 0) & (C > 0) & (last > 0) & (searching == 1)
    ahead = tl.where(lost, theta - last, tl.where(first | rises, ahead, theta))
    square = (ahead - theta) * (ahead - theta)
    sure = (square * square * risks <= 1.0) & (tl.abs(g - C) <= C * CLOSE)
    more = first | ((searching == 1) & ((moving >= 2.0**26) | ((moving > 0) & rises) | lost))
    ahead = tl.where(more, ahead, theta)
    return ahead, tl.where(sure, 0, tl.where(lost, 2, more.to(tl.int32))), ahead - theta


@triton.jit
def solve(
    v, t, theta, total, peak, C, groups, members, lines, g, place, turn, programs,
    M: tl.constexpr, SLOTS: tl.constexpr, WORDS: tl.constexpr, ALONE: tl.constexpr, WARM: tl.constexpr,
    ROUGH: tl.constexpr, STRIDED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Theta of the problem whose groups lie in the registers of the blocks, with the caps that belong to it.

    Gaps are looked for where they are likely to hold: near the end. A block whose caps are all in their gaps leaves
    its members alone. ROUGH is content to be near. All rounds are one loop, and the first is no other than the
    rest: the code is longer than the caches of instructions are, and each line of it has a price.
    """
    low = theta * 0.0
    peak = sound(total, peak, groups)
    if not WARM:
        if M > 0:
            tl.store(lines + g, total.to(tl.float32), mask=g < groups)
            tl.store(lines + M + g, peak.to(tl.float32), mask=g < groups)
        mine = sums_in_block(total, peak, peak, peak)
        sums, peaks, _, _ = meet(place, turn, programs, mine, SLOTS, WORDS, ALONE, M > 0)
        turn += 1
        # All groups on their lines of all members, or of the greatest alone.
        theta = tl.maximum(tl.maximum((sums - members * C) / groups, (peaks - C) / groups), 0.0)
        low = theta
        if M > 0:
            first_theta = theta
            if ALONE:
                tl.debug_barrier()
            elif ask(place, SLOTS) != 0:  # for the lines of other blocks
                theta = C * 0.0
            if (peaks > C) & (peaks < float("inf")):
                theta = _on_two_lines(lines, first_theta, C, groups, members, M)
    slope = tl.zeros_like(t)
    under = (tl.zeros_like(t) + float("inf")).to(WIDE)
    over = -under
    peaks, mass, rose, least = low, low, low * 0.0, low * 0.0
    near = tl.program_id(0) * 0 + WARM
    steps = tl.program_id(0) * 0 + 2
    known = tl.program_id(0) * 0  # whether there are gaps
    searching = tl.program_id(0) * 0
    going = searching + 1
    while going > 0:
        first = searching == 0
        alive = total > theta
        now = tl.where(alive, slope, 0.0)
        is_open = known == 0
        if known > 0:
            is_open = tl.min(in_gap(t, slope, under, over, alive).to(tl.int32)) == 0
        if is_open:
            t, now, before, right = refined(v, t, theta, alive, least, steps, WARM, STRIDED, WIDE)
            under = (tl.zeros_like(t) + float("inf")).to(WIDE)
            over = -under
            known = near * right
            if known > 0:
                under, over = gap_at(v, before, STRIDED, WIDE)
        left = (alive & (t > over.to(tl.float64))).to(tl.float64)
        t = tl.where(alive, t, 0.0)
        moving = (now != slope).to(tl.float64) + left * 2.0**26
        slope = now
        mine = sums_in_block(
            t, slope, tl.where(first, peak, moving), risk(t, slope, under, over, alive, total, theta, first)
        )
        mass, all_slope, third, risks = meet(place, turn, programs, mine, SLOTS, WORDS, ALONE)
        turn += 1
        if first:
            peaks = third
            low = tl.maximum(low, (peaks - C) / groups)
        theta, searching, rose = step(theta, mass, all_slope, third, risks, C, low, rose, searching)
        mass -= rose * all_slope
        t = moved_along(t, slope, rose)
        near = (tl.abs(rose) <= theta * NEAR).to(tl.int32)
        steps = 2 - (tl.abs(rose) <= theta * CLOSE).to(tl.int32)
        if WARM:  # where caps were near, and now theta is too
            steps = near * 0 + 1
        least = (rose >= 0).to(tl.float64)
        going = tl.where((peaks > C) & (peaks < float("inf")), searching, 0)
        if ROUGH:
            going = tl.where((rose <= theta * NEAR) & ~first, 0, going)
    return theta, t, mass, peaks, turn


@triton.jit
def sane(x):
    """Caps and thetas of an earlier call are taken as they are; what cannot be one becomes 0."""
    return tl.where((x >= 0) & (x < 1e300), x, 0.0)


@triton.jit
def radius_of(radius, radii, problem, BY_POINTER: tl.constexpr):
    """The radius of a problem, a number or one in memory."""
    if BY_POINTER:
        return tl.load(radii + problem)
    else:
        return radius
