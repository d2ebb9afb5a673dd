// The steps over arrays with one entry for each group: what dispatch.hpp calls LineKernels.
//
// Sums run in several lanes, in an order that depends on the number of entries and on the instruction set alone. Loops
// without a sum are left to the compiler, which turns them into lanes under this file's flags.
#pragma once

#include "dispatch.hpp"
#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

using Index = std::int64_t;

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

inline Index stale_lines(const LineArrays& lines, Index count, double theta, double from, std::size_t* found) {
    using D = Lanes<double>;
    const auto at = D::all(theta), reach = D::all(from), zero = D::all(0.0);
    Index number = 0;
    for (Index i = 0; i < count; i += D::width) {
        const auto load = [&](const double* p) { return load_some(p + i, count - i); };
        const auto sum = load(lines.sum), weight = load(lines.weight);
        const auto cap = D::max(load(lines.mean) - at * weight, zero);
        const unsigned active = D::bits(D::above(sum, at)), wanted = D::bits(D::above(sum, reach));
        const unsigned left = D::bits(D::above(load(lines.below), cap)), inside = D::bits(D::above(load(lines.above), cap));
        unsigned bits = (active & (left | ~inside)) | (wanted & ~D::bits(D::above(weight, zero)));
        for (; bits != 0; bits &= bits - 1) found[number++] = static_cast<std::size_t>(i + __builtin_ctz(bits));
    }
    return number;
}

inline void line_totals(const LineArrays& lines, Index count, double theta, double* mean, double* weight, double* active) {
    using D = Lanes<double>;
    const auto at = D::all(theta), one = D::all(1.0);
    auto means = D::all(0.0), weights = D::all(0.0), number = D::all(0.0);
    for (Index i = 0; i < count; i += D::width) {
        const auto m = D::above(load_some(lines.sum + i, count - i), at);
        means = D::add_where(m, means, load_some(lines.mean + i, count - i));
        weights = D::add_where(m, weights, load_some(lines.weight + i, count - i));
        number = D::add_where(m, number, one);
    }
    *mean = total(means), *weight = total(weights), *active = total(number);
}

inline double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// The step of Extrapolation in settle.hpp, with short series for the power: a guess will do, and these run in lanes.
inline double extrapolated(double t, double f, double e, double goal, double bend) {
    const double r = (f - goal) / (f + goal), r2 = r * r;
    const double log_ratio = 2.0 * r * (15.0 - 4.0 * r2) / (15.0 - 9.0 * r2);
    const double x = clamped(bend * log_ratio, -1.5, 1.5);
    const double next = t + e * log_ratio * (1.0 + x * (1.0 / 2.0 + x / 6.0));
    return next > 0.0 ? next : 0.0;
}

template <class T>
void rough_step(Index count, const T* __restrict t, const double* __restrict s, const T* __restrict k, double theta,
                bool first, double close, double* __restrict cap, double* __restrict last_t, double* __restrict last_e,
                double* __restrict weight, double* __restrict open) {
    for (Index j = 0; j < count; ++j) {
        const double number = static_cast<double>(k[j]), at = static_cast<double>(t[j]);
        const double share = 1.0 / number, e = s[j] * share - at, f = e * number;
        const double run = at - last_t[j], bent = clamped((e - last_e[j]) / (run == 0.0 ? 1.0 : run), -1.0, 1.0);
        const double bend = first | (run == 0.0) ? (f > theta ? -0.5 : 0.0) : bent;
        const bool apt = f > 0.125 * theta;  // from far right, only Newton's step is sure to land left
        const double guess = extrapolated(at, f, e, theta, bend), newton = (s[j] - theta) * share;
        const double next = apt ? guess : newton > 0.0 ? newton : 0.0;
        const double step = next > at ? next - at : at - next;
        last_t[j] = at, last_e[j] = e, cap[j] = next, weight[j] = share;
        open[j] = apt & (step <= close * next) ? 0.0 : 1.0;
    }
}

}  // namespace normball::NORMBALL_ISA
