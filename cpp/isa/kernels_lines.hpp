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

template <class Number>
Index list_bits(unsigned bits, Index from, Number* found) {
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

// Knuth's two-sum, in several lanes, because each addition waits for the one before.
inline double careful_sum(const double* x, Index count) {
    using D = Lanes<double>;
    D::Reg sum[2] = {D::all(0.0), D::all(0.0)}, error[2] = {D::all(0.0), D::all(0.0)};
    const auto add = [&](int u, D::Reg term) __attribute__((always_inline)) {
        const auto all = sum[u] + term, back = all - sum[u];
        error[u] = error[u] + ((sum[u] - (all - back)) + (term - back));
        sum[u] = all;
    };
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
                          double typical, double slope, double lean, const double* given) {
    const double *sum = lines.sum, *top = lines.top;
    double *mean = lines.mean, *weight = lines.weight;
    const auto count = static_cast<Index>(lines.count);
    NORMBALL_LANES
    for (Index i = 0; i < count; ++i) {
        const double whole = (sum[i] - expected) * share, peak = top[i] - expected, most = whole > peak ? whole : peak;
        const double guess = typical + slope * most, highest = top[i] * (1.0 - expected / sum[i]);
        const double least = most + (highest > most ? lean * (highest - most) : 0.0);
        weight[i] = share, mean[i] = (least > guess ? least : guess) + theta * share;
    }
    NORMBALL_LANES
    for (Index i = 0; given != nullptr && i < count; ++i) {
        const double cap = given[group[i]];
        mean[i] = cap > 0.0 && cap <= __DBL_MAX__ ? cap + theta * share : mean[i];
    }
}

inline Index stale_lines(const LineArrays& lines, double theta, double from, std::size_t* found) {
    using D = Lanes<double>;
    const auto at = D::all(theta), reach = D::all(from), zero = D::all(0.0);
    const auto count = static_cast<Index>(lines.count);
    Index number = 0;
    for (Index i = 0; i < count; i += D::width) {
        const auto load = [&](const double* p) { return load_some(p + i, count - i); };
        const auto sum = load(lines.sum), below = load(lines.below);
        const auto cap = D::max(load(lines.mean) - at * load(lines.weight), zero);
        const unsigned active = D::bits(D::above(sum, at)), wanted = D::bits(D::above(sum, reach));
        const unsigned left = D::bits(D::above(below, cap)), inside = D::bits(D::above(load(lines.above), cap));
        const unsigned unread = D::bits(D::above(zero, below));
        number += list_bits((active & (left | ~inside)) | (wanted & unread), i, found + number);
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

template <class T>
void load_lanes(const LineArrays& lines, double theta, const LaneArrays<T>& lanes, Index count) {
    const double *mean = lines.mean, *weight = lines.weight, *tops = lines.top;
    const std::size_t* line = lanes.line;
    double* cap = lanes.cap;
    T* top = lanes.top;
    NORMBALL_LANES
    for (Index j = 0; j < count; ++j) {
        const double at = mean[line[j]] - theta * weight[line[j]];
        cap[j] = at > 0.0 ? at : 0.0, top[j] = static_cast<T>(tops[line[j]]);
    }
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
        lanes.s[j] = 0.0, lanes.k[j] = T(0);
    }
    if (!exact) return;
    NORMBALL_LANES
    for (Index j = 0; j < count; ++j) lanes.below[j] = T(0), lanes.above[j] = static_cast<T>(__builtin_inf());
}

inline double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// The step of Extrapolation in search.hpp, with short series for the power: a guess will do, and these run in lanes.
inline double extrapolated(double t, double f, double e, double goal, double bend) {
    const double r = (f - goal) / (f + goal), r2 = r * r;
    const double log_ratio = 2.0 * r * (15.0 - 4.0 * r2) / (15.0 - 9.0 * r2);
    const double x = clamped(bend * log_ratio, -1.5, 1.5);
    const double next = t + e * log_ratio * (1.0 + x * (1.0 / 2.0 + x / 6.0));
    return next > 0.0 ? next : 0.0;
}

template <class T>
void rough_step(const LaneArrays<T>& lanes, Index count, double theta, bool first, double close) {
    const T *t = lanes.t, *k = lanes.k;
    const double* s = lanes.s;
    double *cap = lanes.cap, *last_t = lanes.last_t, *last_e = lanes.last_e;
    double *weight = lanes.weight, *open = lanes.open;
    NORMBALL_LANES
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
        // Nothing is above in lanes without a line alone.
        open[j] = (apt & (step <= close * next)) | (number == 0.0) ? 0.0 : 1.0;
    }
}

// A line through a cap that is a guess holds nowhere.
template <class T>
Index keep_guesses(const LineArrays& lines, double theta, const LaneArrays<T>& lanes, Index* at, Index unit, Index units,
                   bool all) {
    Index kept = 0;
    for (Index p = 0; p < units; ++p) {
        const Index from = p * unit, to = kept * unit;
        double open = 0.0;
        for (Index j = 0; j < unit; ++j) open += lanes.open[from + j];
        if (open > 0.0 && !all) {
            at[kept++] = at[p];
            if (from == to) continue;
            for (Index j = 0; j < unit; ++j) lanes.line[to + j] = lanes.line[from + j], lanes.top[to + j] = lanes.top[from + j];
            double* const arrays[] = {lanes.cap, lanes.last_t, lanes.last_e};
            for (double* array : arrays)
                for (Index j = 0; j < unit; ++j) array[to + j] = array[from + j];
            continue;
        }
        for (Index j = from; j < from + unit; ++j) {
            const std::size_t i = lanes.line[j];
            if (i == lines.count) continue;
            lines.weight[i] = lanes.weight[j], lines.mean[i] = lanes.cap[j] + theta * lanes.weight[j];
            lines.below[i] = 0.0, lines.above[i] = -1.0;
        }
    }
    return kept;
}

// Above the second largest member there is only the peak, and no line beyond its own.
template <class T>
bool keep_lines(const LineArrays& lines, double theta, const LaneArrays<T>& lanes, Index count) {
    double *mean = lanes.last_t, *weight = lanes.weight, *next = lanes.last_e;
    const double* s = lanes.s;
    const T* k = lanes.k;
    NORMBALL_LANES
    for (Index j = 0; j < count; ++j) {
        weight[j] = 1.0 / static_cast<double>(k[j]), mean[j] = s[j] * weight[j];
        const double cap = mean[j] - theta * weight[j];
        next[j] = cap > 0.0 ? cap : 0.0;
    }
    bool news = false;
    for (Index j = 0; j < count; ++j) {
        const std::size_t i = lanes.line[j];
        if (i == lines.count) continue;
        const double before = lines.mean[i] - theta * lines.weight[i], moved = next[j] - (before > 0.0 ? before : 0.0);
        news |= lines.below[i] < 0.0 || __builtin_fabs(moved) > 8.0 * __DBL_EPSILON__ * mean[j];
        lines.weight[i] = weight[j], lines.mean[i] = mean[j];
        lines.below[i] = static_cast<double>(lanes.below[j]);
        lines.above[i] = lanes.above[j] > lanes.top[j] ? __builtin_inf() : static_cast<double>(lanes.above[j]);
    }
    return news;
}

}  // namespace normball::NORMBALL_ISA
