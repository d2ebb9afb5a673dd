// Windows about the caps, for l1inf/windows.hpp: how wide they must be, and the passes that keep what lies in them.
//
// Nothing here depends on what is found: the members in the window are moved to the front of a register and stored, and the next
// register overwrites the rest.
#pragma once

#include "dispatch.hpp"
#include "isa/kernels_strips.hpp"
#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

// By what theta is off if all these models err alike.
inline double shift_of(const LineArrays& lines, const GuessArrays& guesses, double theta) {
    using D = Lanes<double>;
    const auto count = static_cast<Index>(lines.count);
    auto errors = D::all(0.0), weights = errors;
    for (Index i = 0; i < count; i += D::width) {
        const auto load = [&](const double* p) { return load_some(p + i, count - i); };
        const auto bent = D::max(D::all(1.0) + load(guesses.bend), D::all(0.25)), weight = load(lines.weight);
        const auto step = D::max(load(lines.mean) - D::all(theta) * weight, D::all(0.0)) - load(guesses.t);
        const auto active = D::above(load(lines.sum), D::all(theta));
        const auto e = D::max(load(guesses.e), D::all(1e-300));
        errors = D::add_where(active, errors, step * step * bent * D::all(1.0 / 3.0) / e);
        weights = D::add_where(active, weights, weight);
    }
    const double all = total(weights);
    return all > 0.0 ? total(errors) / all : 0.0;
}

// The cap that a model gives is off by about the square of what changes on the way to it, and by the chance that so many members
// lie there. Where few members are above the window, it takes all of these. Below a cap members come as a power at least.
template <class T, bool ByModel>
void window_lines_of(const LineArrays& lines, const GuessArrays& guesses, double theta, double members, double low, double high,
                     T* lo, T* hi, double* expected, double* doubtful) {
    const double *sum = lines.sum, *top = lines.top, *mean = lines.mean, *weight = lines.weight;
    const double *below = lines.below, *next = lines.above;
    const double *last_t = guesses.t, *last_f = guesses.f, *last_e = guesses.e, *bends = guesses.bend;
    const auto count = static_cast<Index>(lines.count);
    constexpr double some = 2.5, few = 32.0, infinite = __builtin_inf();
    const double shift = ByModel ? shift_of(lines, guesses, theta) : 0.0;
    double all_found = 0.0, all_doubts = 0.0;
    constexpr Index block = 64;
    for (Index begin = 0; begin < count; begin += block) {
        double found[block], doubts[block];
        const Index end = count - begin < block ? count - begin : block;
        NORMBALL_LANES
        for (Index j = 0; j < end; ++j) {
            const Index i = begin + j;
            const double line = mean[i] - theta * weight[i], cap = line > 0.0 ? line : 0.0, t = last_t[i], e = last_e[i];
            const double k = last_f[i] / e, bent = 1.0 + bends[i], thinner = (bent > 0.25 ? bent : 0.25) / e;
            const double change = thinner * (cap - t), size = change > 0.0 ? change : -change, off = k * change * change;
            const double chance = size * __builtin_sqrt(k * size), doubt = off * (1.0 / 3.0) + chance * 0.5;
            const double half = (off + some * chance + some) / (k * thinner) + shift * weight[i];
            const double least = 0.5 * cap, down = cap - (half < e ? half : e), nearer = down > least ? down : least;
            const bool bottom = (half > cap) & (members - k < few);
            const double under = ByModel ? (bottom ? 0.0 : nearer) : low * cap, from = under < top[i] ? under : top[i];
            const double to = ByModel ? cap + half : high < infinite ? high * cap : infinite;
            const double fall = t * thinner * rough_log(t / (from > 0.0 ? from : 1e-300 * t));
            const double guess = k * rough_exp(fall), above = guess < members ? guess : members;
            const bool all = ByModel ? above < few : !(high < infinite);
            const double beyond = all ? 0.0 : k * rough_exp((t - to) * thinner), inside = above > beyond ? above - beyond : 0.0;
            const bool active = sum[i] > theta, known = (e > 0.0) & (k > 0.0) & (t > 0.0), wanted = active & (known | !ByModel);
            const bool holds = (below[i] >= 0.0) & (cap >= below[i]) & (cap < next[i]);
            lo[i] = static_cast<T>(wanted ? from : infinite);
            hi[i] = static_cast<T>(wanted & !all ? to : infinite);
            const double certain = doubt < 1.0 ? doubt : 1.0;
            found[j] = active ? (known ? inside : members) : 0.0;
            doubts[j] = active & !holds ? (known ? certain : 1.0) : 0.0;
        }
        for (Index j = 0; j < end; ++j) all_found += found[j], all_doubts += doubts[j];
    }
    *expected = all_found, *doubtful = all_doubts;
}

template <class T>
void window_lines(const LineArrays& lines, const GuessArrays& guesses, double theta, double members, double low, double high,
                  T* lo, T* hi, double* expected, double* doubtful) {
    (low > 0.0 ? window_lines_of<T, false> : window_lines_of<T, true>)(lines, guesses, theta, members, low, high, lo, hi, expected,
                                                                      doubtful);
}

// Of a matrix that does not lie in a cache.
template <class T>
void rows_window(const T* const* y, Index n, Index count, Index coming, const T* lo, const T* hi, double* s, T* k,
                    Found<T>* found, Index most, Index* sizes) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    T* const members = found->members;
    Index begin = found->size;
    for (Index j = 0; j < count; ++j) {
        const auto low = L::all(lo[j]), high = L::all(hi[j]);
        const T* const row = y[j];
        const T* const ahead = to_ask_for<T>(j, n, coming, [=](Index i) { return y[i]; });
        LineSum<T> sum;
        Index number = 0, to = begin;
        const auto term = [&](typename L::Reg v, int u) __attribute__((always_inline)) {
            const auto m = L::above(v, high);
            number += popcount(L::bits(m));
            sum.add_where(m, v, u);
            const unsigned bits = L::bits(L::and_not(L::above(v, low), m));
            L::compress(members + to, bits, v);
            to += popcount(bits);
        };
        Index i = 0;
        for (; i + 4 * W <= n; i += 4 * W) {
            for (int u = 0; u < 4; ++u) ask_for(ahead + i + u * W);
            for (int u = 0; u < 4; ++u) term(L::magnitude(L::load(row + i + u * W)), u);
            sum.fold();
        }
        if (i < n) ask_for(ahead + i), ask_for(ahead + n - 1);
        for (; i + W <= n; i += W) term(L::magnitude(L::load(row + i)), 0);
        if (i < n) term(L::magnitude(L::load_first(row + i, n - i)), 1);  // lanes past the end are 0, and never above
        sum.fold();
        s[j] += Sum<double>{sum.halves()}.total();
        k[j] += static_cast<T>(number);
        sizes[j] = to - begin <= most ? to - begin : -1;
        if (sizes[j] > 0) begin = to;
    }
    found->size = begin;
}

template <class T, bool Partial>
void strip_window_of(const T* y, Index stride, Index n, Index width, const Index* at, Index count, const T* lo, const T* hi,
                     double* s, double* error, T* k, Found<T>& found, Index most, Index* sizes) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    T first_lanes[W];
    for (Index i = 0; i < W; ++i) first_lanes[i] = static_cast<T>(i);
    const auto first = L::load(first_lanes);
    T *const members = found.members, *const lanes = found.lanes;
    Index to = found.size;
    over_blocks<T, false>(
        y, stride, n, at, count, [&]<Index R>(const T* row, Index p, Ahead<T>& ahead) __attribute__((always_inline)) {
            const Index lane = p * W, begin = to;
            const bool keeps = sizes[p] <= most;
            const auto low = L::load(lo + lane), these = L::add(first, L::all(static_cast<T>(lane)));
            strip_block<T, Partial, false, R, exact_terms<T>, 1>(
                row, stride, width, ahead, hi + lane, s + lane, error + lane, k + lane,
                [&](typename L::Mask m, typename L::Reg x) __attribute__((always_inline)) {
                    const unsigned bits = L::bits(L::and_not(L::above(x, low), m));
                    L::compress(members + to, bits, x);
                    L::compress(lanes + to, bits, these);
                    to += popcount(bits);
                });
            sizes[p] += to - begin;
            if (!keeps) to = begin;
        });
    found.size = to;
}

// Of a matrix that does not lie in a cache.
template <class T>
void strip_window(const T* y, Index stride, Index n, Index width, const Index* at, Index count, const T* lo, const T* hi, double* s,
                  double* error, T* k, Found<T>* found, Index most, Index* sizes) {
    (width < Lanes<T>::width ? strip_window_of<T, true> : strip_window_of<T, false>)(y, stride, n, width, at, count, lo, hi, s, error,
                                                                                    k, *found, most, sizes);
}

}  // namespace normball::NORMBALL_ISA
