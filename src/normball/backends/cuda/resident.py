"""The l1,inf projection of a matrix that fits the registers of the device: one kernel, which reads it once."""

import triton
import triton.language as tl

from normball.backends.cuda.meeting import arrive, leave
from normball.backends.cuda.parts import R_AXIS, along_r, by_group, peaks_of, settled, sums_of, tile_at
from normball.backends.cuda.solve import final_caps, radius_of, sane, solve


@triton.jit
def _signs(v, WIDE: tl.constexpr, INTERPRETED: tl.constexpr):
    """The signs of the members of a tile, as bits along R: so each thread keeps magnitudes alone."""
    tl.static_assert(v.shape[R_AXIS] <= 32)
    r = along_r(tl.arange(0, v.shape[R_AXIS]))
    if tl.float64 == WIDE:
        bits = ((v.to(tl.uint64, bitcast=True) >> 63).to(tl.uint32) << r).to(tl.int32)
    else:
        bits = ((v.to(tl.uint32, bitcast=True) >> 31) << r).to(tl.int32)
    return settled(tl.sum(bits, R_AXIS), INTERPRETED)  # or there are no registers left


@triton.jit
def _signed(size, signs, WIDE: tl.constexpr):
    """Magnitudes with the signs that they had."""
    bits = (tl.expand_dims(signs, R_AXIS) >> along_r(tl.arange(0, size.shape[R_AXIS]))) & 1
    if tl.float64 == WIDE:
        return (size.to(tl.int64, bitcast=True) | (bits.to(tl.int64) << 63)).to(tl.float64, bitcast=True)
    else:
        return (size.to(tl.int32, bitcast=True) | (bits << 31)).to(tl.float32, bitcast=True)


@triton.jit(do_not_specialize=["radius", "tiles", "programs"])
def resident(
    y, x, mu, theta_out, radius: tl.float64, radii, old_mu, old_theta, place, work,
    groups, members, y_problem, y_group, y_member, x_problem, x_group, x_member, tiles, programs,
    A: tl.constexpr, R: tl.constexpr, B: tl.constexpr, STRIDED: tl.constexpr, VG: tl.constexpr, VN: tl.constexpr,
    INDEX: tl.constexpr, EVEN: tl.constexpr, M: tl.constexpr, SLOTS: tl.constexpr, WORDS: tl.constexpr,
    ALONE: tl.constexpr, BY_POINTER: tl.constexpr, WARM: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """One tile of groups for each block, read once. The second axis of the grid counts problems."""
    me = tl.program_id(0)
    problem = tl.program_id(1).to(tl.int64)
    DTYPE: tl.constexpr = y.dtype.element_ty
    WIDE: tl.constexpr = tl.float64 if tl.float64 == DTYPE else tl.float32
    C = radius_of(radius, radii, problem, BY_POINTER)
    at, there, g = tile_at(
        y + problem * (y_problem * VG * VN), me, groups, members, y_group, y_member,
        A, R, B, STRIDED, VG, VN, INDEX, EVEN,
    )  # fmt: skip
    v = tl.load(at, mask=there, other=0.0).to(WIDE)
    turn = arrive(place, SLOTS, ALONE)
    t = tl.zeros([B if STRIDED else A], tl.float64)
    theta = C * 0.0
    if WARM:
        t = sane(tl.load(old_mu + problem * groups + g, mask=g < groups, other=0.0).to(tl.float64))
        theta = sane(tl.load(old_theta + problem))
    signs = _signs(v, WIDE, INTERPRETED)
    v = tl.abs(v)
    total = sums_of(v, STRIDED)
    peak = peaks_of(v, STRIDED)
    lines = work.to(tl.pointer_type(tl.float32))
    theta, t, sum_of_caps, peaks, turn = solve(
        v, t, theta, total, peak, C, groups, members, lines, g,
        place, turn, programs, M, SLOTS, WORDS, ALONE, WARM, False, STRIDED, WIDE,
    )  # fmt: skip
    interior = peaks <= C
    bad = ~((peaks < float("inf")) & (C >= 0))
    cap = final_caps(t, peak, sum_of_caps, C, interior, bad, DTYPE)
    at, there, g = tile_at(
        x + problem * (x_problem * VG * VN), me, groups, members, x_group, x_member,
        A, R, B, STRIDED, VG, VN, INDEX, EVEN,
    )  # fmt: skip
    size = tl.minimum(v, by_group(cap.to(WIDE), STRIDED), propagate_nan=tl.PropagateNan.ALL)
    tl.store(at, _signed(size, signs, WIDE).to(DTYPE), mask=there)
    tl.store(mu + problem * groups + g, cap, mask=g < groups)
    if me == 0:
        theta = tl.where(interior, 0.0, theta)
        tl.store(theta_out + problem, tl.where(bad, float("nan"), theta))
    leave(place, turn, SLOTS, ALONE)
