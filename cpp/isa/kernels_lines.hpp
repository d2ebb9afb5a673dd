// The steps over arrays with one entry for each group: what dispatch.hpp calls LineKernels.
//
// Sums run in several lanes, in an order that depends on the number of entries and on the instruction set alone. Loops
// without a sum are left to the compiler, which turns them into lanes under this file's flags.
#pragma once

#include "dispatch.hpp"
#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

using Index = std::int64_t;

// Tells the compiler that no entry that a loop writes is read for another: it may take many at once.
#define NORMBALL_LANES _Pragma("GCC ivdep")

// Entries past the end read as 0.
inline Lanes<double>::Reg load_some(const double* p, Index left) {
    return left >= Lanes<double>::width ? Lanes<double>::load(p) : Lanes<double>::load_first(p, left);
}

inline double total(Lanes<double>::Reg v) {
    double lane[Lanes<double>::width], sum = 0.0;
    Lanes<double>::store(lane, v);
    for (const double x : lane) sum += x;
    return sum;
}

inline void two_lines(const double* sums, const double* peaks, Index count, double theta, double share, double* value,
                      double* slope) {
    using D = Lanes<double>;
    const auto at = D::all(theta), part = D::all(share), rest = D::all(1.0 - share), zero = D::all(0.0);
    auto values = zero, slopes = zero;
    for (Index g = 0; g < count; g += D::width) {
        const auto whole = D::max((load_some(sums + g, count - g) - at) * part, zero);
        const auto top = load_some(peaks + g, count - g) - at;
        values = D::add(values, D::max(top, whole));
        slopes = D::add_where(D::above(whole, zero), slopes, part);
        slopes = D::add_where(D::above(top, whole), slopes, rest);
    }
    *value = total(values), *slope = total(slopes);
}

// S / P members of size P, and no others, have the highest cap of all groups with sum S and peak P.
inline void highest_caps(const double* sums, const double* peaks, Index count, double theta, double* value, double* slope) {
    using D = Lanes<double>;
    const auto at = D::all(theta);
    auto values = D::all(0.0), slopes = values;
    for (Index g = 0; g < count; g += D::width) {
        const auto sum = load_some(sums + g, count - g), peak = load_some(peaks + g, count - g);
        const auto m = D::above(sum, at);
        const auto share = peak / sum;
        values = D::add_where(m, values, peak - at * share);
        slopes = D::add_where(m, slopes, share);
    }
    *value = total(values), *slope = total(slopes);
}

// Lists the lanes of a register that are named, which are mostly all of them or none.
template <class Number>
Index list_bits(unsigned bits, Index from, Number* found) {
    constexpr Index width = Lanes<double>::width;
    if (bits == (1u << width) - 1u) {
        for (Index j = 0; j < width; ++j) found[j] = static_cast<Number>(from + j);
        return width;
    }
    Index number = 0;
    for (; bits != 0; bits &= bits - 1) found[number++] = static_cast<Number>(from + __builtin_ctz(bits));
    return number;
}

inline Index list_above(const double* x, Index count, double level, Index* found) {
    using D = Lanes<double>;
    const auto least = D::all(level);
    Index number = 0, i = 0;
    for (; i + D::width <= count; i += D::width)
        number += list_bits(D::bits(D::above(D::load(x + i), least)), i, found + number);
    for (; i < count; ++i)
        if (x[i] > level) found[number++] = i;
    return number;
}

// Knuth's two-sum: adds a term, and to `error` what rounding takes of the sum.
[[gnu::always_inline]] inline void add_carrying(Lanes<double>::Reg& sum, Lanes<double>::Reg& error, Lanes<double>::Reg term) {
    const auto all = sum + term, back = all - sum;
    error = error + ((sum - (all - back)) + (term - back));
    sum = all;
}

// In several lanes, because each addition waits for the one before.
inline double careful_sum(const double* x, Index count) {
    using D = Lanes<double>;
    D::Reg sum[2] = {D::all(0.0), D::all(0.0)}, error[2] = {D::all(0.0), D::all(0.0)};
    const auto add = [&](int u, D::Reg term) __attribute__((always_inline)) { add_carrying(sum[u], error[u], term); };
    Index i = 0;
    for (; i + 2 * D::width <= count; i += 2 * D::width) add(0, D::load(x + i)), add(1, D::load(x + i + D::width));
    if (i + D::width <= count) add(0, D::load(x + i)), i += D::width;
    if (i < count) add(1, D::load_first(x + i, count - i));
    double terms[2 * D::width], all = 0.0, rest = total(error[0] + error[1]);
    D::store(terms, sum[0]), D::store(terms + D::width, sum[1]);
    for (const double term : terms) {
        const double next = all + term, back = next - all;
        rest += (all - (next - back)) + (term - back);
        all = next;
    }
    return all + rest;
}

inline void first_guesses(const LineArrays& lines, const Index* group, double theta, double expected, double share,
                          double lean, const double* given) {
    const double *sum = lines.sum, *top = lines.top;
    double *mean = lines.mean, *weight = lines.weight;
    const auto count = static_cast<Index>(lines.count);
    NORMBALL_LANES
    for (Index i = 0; i < count; ++i) {
        const double whole = (sum[i] - expected) * share, peak = top[i] - expected, least = whole > peak ? whole : peak;
        const double highest = top[i] * (1.0 - expected / sum[i]);
        weight[i] = share, mean[i] = least + (highest > least ? lean * (highest - least) : 0.0) + theta * share;
    }
    NORMBALL_LANES
    for (Index i = 0; given != nullptr && i < count; ++i) {
        const double cap = given[group[i]];
        mean[i] = cap > 0.0 && cap <= __DBL_MAX__ ? cap + theta * share : mean[i];
    }
}

inline double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// Natural logarithm and exponential function to some five digits, of positive normal numbers and of results that are such: from
// the bits of the exponent, and short series.
inline double rough_log(double x) {
    constexpr double magic = 0x1p52, ln2 = 0.6931471805599453, root = 1.4142135623730951;
    const auto bits = __builtin_bit_cast(std::uint64_t, x), one = std::uint64_t(1023) << 52;
    const double exponent = __builtin_bit_cast(double, bits >> 52 | __builtin_bit_cast(std::uint64_t, magic)) - (magic + 1023.0);
    const double part = __builtin_bit_cast(double, (bits & ((std::uint64_t(1) << 52) - 1)) | one);
    const double r = (part - root) / (part + root), r2 = r * r;
    return (exponent + 0.5) * ln2 + 2.0 * r * (1.0 + r2 * (1.0 / 3.0 + r2 * (1.0 / 5.0)));
}
inline double rough_exp(double x) {
    constexpr double magic = 0x1.8p52, ln2 = 0.6931471805599453;
    const double shifted = clamped(x, -700.0, 700.0) * (1.0 / ln2) + magic, exponent = shifted - magic;
    const double r = clamped(x, -700.0, 700.0) - exponent * ln2;
    const double power = __builtin_bit_cast(double, (__builtin_bit_cast(std::uint64_t, shifted) + 1023) << 52);
    return power * (1.0 + r * (1.0 + r * (1.0 / 2.0 + r * (1.0 / 6.0 + r * (1.0 / 24.0)))));
}

inline void fitted_lines(const LineArrays& lines, const CapFit& fit, double theta, double share) {
    const double *sum = lines.sum, *top = lines.top;
    double *mean = lines.mean, *weight = lines.weight;
    const auto count = static_cast<Index>(lines.count);
    NORMBALL_LANES
    for (Index i = 0; i < count; ++i) {
        const double left = sum[i] - theta, whole = left * share, peak = top[i] - theta;
        const double least = whole > peak ? whole : peak, most = top[i] * left / sum[i];
        const double power = fit.constant + fit.left * rough_log(left > 0.0 ? left : sum[i]) + fit.sum * rough_log(sum[i]) +
                             fit.peak * rough_log(top[i] > 0.0 ? top[i] : sum[i]);
        const double guess = rough_exp(power), upper = guess < most ? guess : most, cap = upper > least ? upper : least;
        const double slope = clamped(fit.left * cap / left, share, 1.0);
        weight[i] = left > 0.0 ? slope : 0.0, mean[i] = left > 0.0 ? cap + theta * slope : 0.0;
    }
}

// For one group, f(t), the sum of what exceeds t, is convex, and the cap is where it has fallen to theta. With e = f / k the mean
// excess, (ln f)' = -1 / e; if e goes on as a line of slope `bend`, that integrates to t + e * ((f / theta)^bend - 1) / bend,
// taken here with short series for the power. It lies above the tangent; the chord to the sum at 0, or to the peak, is above it.
inline void guess_lines(const LineArrays& lines, const GuessArrays& guesses, double theta, double share, double lean,
                        double* total_cap, double* total_slope) {
    using D = Lanes<double>;
    const double *sum = lines.sum, *top = lines.top;
    const double *last_t = guesses.t, *last_f = guesses.f, *last_e = guesses.e, *bends = guesses.bend;
    double *mean = lines.mean, *weight = lines.weight, *below = lines.below, *above = lines.above;
    const auto count = static_cast<Index>(lines.count);
    const double one_over_theta = 1.0 / theta;
    NORMBALL_LANES
    for (Index i = 0; i < count; ++i) {
        const double all = sum[i], t = last_t[i], f = last_f[i], e = last_e[i];
        const double whole = (all - theta) * share, peak = top[i] - theta;
        const double least = whole > peak ? whole : peak, least_slope = whole > peak ? share : 1.0;
        const bool rises = f > theta;
        const double over = 1.0 / (rises ? f : all - f);
        const double most = rises ? t + (top[i] - t) * (f - theta) * over : t * (all - theta) * over;
        const double most_slope = (rises ? top[i] - t : t) * over;
        const double r = (f - theta) / (f + theta), r2 = r * r;
        const double log_ratio = 2.0 * r * (1.0 + r2 * (1.0 / 3.0 + r2 * (1.0 / 5.0 + r2 * (1.0 / 4.0))));
        const double x = clamped(bends[i] * log_ratio, -1.5, 1.5);
        // From far right, among the last few members, the tangent is the best that there is; but it knows nothing of those below.
        const bool apt = f > 0.125 * theta;
        const double share_of_one = e / f, straight = t + (f - theta) * share_of_one, tangent = straight > 0.5 * t ? straight : 0.5 * t;
        const double seen = apt ? t + e * log_ratio * (1.0 + x * (1.0 / 2.0 + x * (1.0 / 6.0))) : tangent;
        const double seen_slope = apt ? e * one_over_theta * (1.0 + x * (1.0 + x * (1.0 / 2.0 + x * (1.0 / 6.0)))) : share_of_one;
        const bool looked = e >= 0.0;
        const double guess = looked ? seen : least + lean * (most - least);
        const double guess_slope = looked ? seen_slope : least_slope + lean * (most_slope - least_slope);
        // The chord may be nothing but rounding.
        const double upper = guess < most ? guess : most, upper_slope = guess < most ? guess_slope : most_slope;
        const bool low = !(upper > least);
        const double cap = low ? least : upper, slope = low ? least_slope : upper_slope;
        const double line = mean[i] - theta * weight[i], held = line > 0.0 ? line : 0.0;
        const bool holds = (below[i] >= 0.0) & (held >= below[i]) & (held < above[i]);
        weight[i] = holds ? weight[i] : slope, mean[i] = holds ? mean[i] : cap + theta * slope;
        below[i] = holds ? below[i] : -1.0, above[i] = holds ? above[i] : -1.0;
    }
    const auto at = D::all(theta);
    auto means = D::all(0.0), weights = D::all(0.0);
    for (Index i = 0; i < count; i += D::width) {
        const auto active = D::above(load_some(sum + i, count - i), at);
        means = D::add_where(active, means, load_some(mean + i, count - i));
        weights = D::add_where(active, weights, load_some(weight + i, count - i));
    }
    *total_slope = total(weights), *total_cap = total(means) - theta * *total_slope;
}

// Between t and a cap a step away the number k = f / e of members above changes by the part c * step, where c = (1 + bend) / e;
// the step is off by about the square of that.
inline Index doubtful_lines(const LineArrays& lines, const GuessArrays& guesses, double theta, std::size_t* found) {
    using D = Lanes<double>;
    const auto at = D::all(theta), zero = D::all(0.0), one = D::all(1.0), least = D::all(0.5), members = D::all(3.0);
    const auto count = static_cast<Index>(lines.count);
    Index number = 0;
    for (Index i = 0; i < count; i += D::width) {
        const auto load = [&](const double* p) { return load_some(p + i, count - i); };
        const auto e = load(guesses.e), step = load(lines.mean) - at * load(lines.weight) - load(guesses.t);
        const auto change = step * D::max(one + load(guesses.bend), least);
        const unsigned wanted = D::bits(D::above(load(lines.sum), at)) & D::bits(D::above(zero, load(lines.below)));
        const unsigned off = D::bits(D::above(load(guesses.f) * change * change, members * e * e * e));
        const unsigned unseen = D::bits(D::above(zero, e));
        number += list_bits(wanted & (off | unseen), i, found + number);
    }
    return number;
}

inline Index stale_lines(const LineArrays& lines, double theta, std::size_t* found) {
    using D = Lanes<double>;
    const auto at = D::all(theta), zero = D::all(0.0);
    const auto count = static_cast<Index>(lines.count);
    Index number = 0;
    for (Index i = 0; i < count; i += D::width) {
        const auto load = [&](const double* p) { return load_some(p + i, count - i); };
        const auto cap = D::max(load(lines.mean) - at * load(lines.weight), zero);
        const unsigned active = D::bits(D::above(load(lines.sum), at));
        const unsigned left = D::bits(D::above(load(lines.below), cap)), inside = D::bits(D::above(load(lines.above), cap));
        number += list_bits(active & (left | ~inside), i, found + number);
    }
    return number;
}

inline void line_totals(const LineArrays& lines, double theta, double* mean, double* weight, double* active) {
    using D = Lanes<double>;
    const auto at = D::all(theta), one = D::all(1.0);
    const auto count = static_cast<Index>(lines.count);
    auto means = D::all(0.0), weights = D::all(0.0), number = D::all(0.0);
    for (Index i = 0; i < count; i += D::width) {
        const auto m = D::above(load_some(lines.sum + i, count - i), at);
        means = D::add_where(m, means, load_some(lines.mean + i, count - i));
        weights = D::add_where(m, weights, load_some(lines.weight + i, count - i));
        number = D::add_where(m, number, one);
    }
    *mean = total(means), *weight = total(weights), *active = total(number);
}

// The largest T that is not above x >= 0: round_down of rounding.hpp, whose copy the linker might take from elsewhere.
template <class T>
T floor_of(double x) {
    if constexpr (sizeof(T) == sizeof(double)) {
        return x;
    } else {
        const double most = static_cast<double>(__FLT_MAX__), y = x < most ? x : most;
        const float near = static_cast<float>(y);
        return __builtin_bit_cast(float, __builtin_bit_cast(std::int32_t, near) - (static_cast<double>(near) > y ? 1 : 0));
    }
}

template <class T>
void round_down(const double* x, Index count, double* rounded) {
    NORMBALL_LANES
    for (Index i = 0; i < count; ++i) rounded[i] = static_cast<double>(floor_of<T>(x[i]));
}

// Calls f(line of lane j, j) for all lanes that have a line. Mostly these follow one another, and then f runs in lanes itself: a
// gather costs more than what is done with it.
template <class F>
[[gnu::always_inline]] inline void over_lines(const std::size_t* line, Index count, std::size_t idle, F f) {
    constexpr Index some = 64;
    for (Index from = 0; from < count; from += some) {
        const Index end = count - from < some ? count : from + some;
        const std::size_t before = line[from] - static_cast<std::size_t>(from);
        Index others = line[end - 1] >= idle ? 1 : 0;
        for (Index j = from; j < end; ++j) others += line[j] != before + static_cast<std::size_t>(j) ? 1 : 0;
        if (others == 0) {
            NORMBALL_LANES
            for (Index j = from; j < end; ++j) f(before + static_cast<std::size_t>(j), j);
            continue;
        }
        // Which lanes are idle nobody foresees: they are left out without a branch.
        Index lane[some], found = 0;
        for (Index j = from; j < end; ++j) lane[found] = j, found += line[j] != idle ? 1 : 0;
        for (Index q = 0; q < found; ++q) f(line[lane[q]], lane[q]);
    }
}

template <class T>
void load_lanes(const LineArrays& lines, double theta, const LaneArrays<T>& lanes, Index count) {
    const double *mean = lines.mean, *weight = lines.weight, *tops = lines.top;
    double* cap = lanes.cap;
    T* top = lanes.top;
    const auto load = [=](std::size_t i, Index j) __attribute__((always_inline)) {
        const double at = mean[i] - theta * weight[i];
        cap[j] = at > 0.0 ? at : 0.0, top[j] = static_cast<T>(tops[i]);
    };
    // Nothing is above the threshold of an idle lane.
    for (Index j = 0; j < count; ++j) cap[j] = __builtin_inf(), top[j] = static_cast<T>(__builtin_inf());
    over_lines(lanes.line, count, lines.count, load);
}

template <class T>
void set_thresholds(const LaneArrays<T>& lanes, Index count, bool exact) {
    const double* cap = lanes.cap;
    const T* top = lanes.top;
    T* t = lanes.t;
    NORMBALL_LANES
    for (Index j = 0; j < count; ++j) t[j] = exact ? floor_of<T>(cap[j]) : static_cast<T>(cap[j]);
    NORMBALL_LANES
    for (Index j = 0; j < count; ++j) {
        t[j] = t[j] < top[j] ? t[j] : top[j];
        lanes.s[j] = lanes.error[j] = 0.0, lanes.k[j] = T(0);
    }
    if (!exact) return;
    NORMBALL_LANES
    for (Index j = 0; j < count; ++j) lanes.below[j] = T(0), lanes.above[j] = static_cast<T>(__builtin_inf());
}

// Where members are many about the cap, that is in the bulk of their distribution, their sum up to t is about a power of t, which
// tells how the mean excess bends; in the tails, uniform or exponential ones are supposed before a second look tells better.
template <class T>
void keep_looks(const LineArrays& lines, const GuessArrays& guesses, double theta, const LaneArrays<T>& lanes, Index count) {
    const double *sum = lines.sum, *s = lanes.s;
    double *last_t = guesses.t, *last_f = guesses.f, *last_e = guesses.e, *bends = guesses.bend;
    const T *t = lanes.t, *k = lanes.k;
    over_lines(lanes.line, count, lines.count, [=](std::size_t i, Index j) __attribute__((always_inline)) {
        const double number = static_cast<double>(k[j]), at = static_cast<double>(t[j]);
        const double mean = s[j] / number - at, e = mean > 0.0 ? mean : 0.0, f = e * number, run = at - last_t[i];
        const bool before = last_e[i] >= 0.0;
        // So many members lie between the two looks, by what was thought: a few say nothing of a slope.
        const double crossed = run * last_f[i] * (1.0 + bends[i]), enough = 4.0 * last_e[i] * last_e[i];
        const bool again = before & ((crossed > enough) | (-crossed > enough));
        const double rest = sum[i] - f, tail = f > theta ? -0.5 : 0.0;
        const double rise = again ? e - last_e[i] : e * (rest - at * number), over = again ? run : at * rest;
        const double slope = rise / over, bulk = slope - 1.0;
        last_t[i] = at, last_f[i] = f, last_e[i] = e;
        bends[i] = clamped(again ? slope : before ? bends[i] : bulk > tail ? bulk : tail, -1.0, 1e3);
    });
}

// Above the second largest member there is only the peak, and no line beyond its own.
template <class T>
bool keep_lines(const LineArrays& lines, double theta, const LaneArrays<T>& lanes, Index count) {
    double *means = lines.mean, *weights = lines.weight, *below = lines.below, *above = lines.above;
    const double* s = lanes.s;
    const T *k = lanes.k, *low = lanes.below, *high = lanes.above, *top = lanes.top;
    Index news = 0;
    over_lines(lanes.line, count, lines.count, [=, &news](std::size_t i, Index j) __attribute__((always_inline)) {
        const double weight = 1.0 / static_cast<double>(k[j]), mean = s[j] * weight, next = mean - theta * weight;
        const double before = means[i] - theta * weights[i];
        const double moved = (next > 0.0 ? next : 0.0) - (before > 0.0 ? before : 0.0), size = moved > 0.0 ? moved : -moved;
        news += (below[i] < 0.0) | (size > 8.0 * __DBL_EPSILON__ * mean) ? 1 : 0;
        weights[i] = weight, means[i] = mean, below[i] = static_cast<double>(low[j]);
        above[i] = high[j] > top[j] ? __builtin_inf() : static_cast<double>(high[j]);
    });
    return news > 0;
}

}  // namespace normball::NORMBALL_ISA
