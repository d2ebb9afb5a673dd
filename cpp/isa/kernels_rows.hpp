// Passes over groups whose members follow one another. Rows keep several independent accumulators, since an addition waits some
// cycles for the one before.
#pragma once

#include "dispatch.hpp"
#include "isa/kernels_lines.hpp"
#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

inline int popcount(unsigned bits) { return __builtin_popcount(bits); }

// Inlined in any case: a compiler may think that a call of it does nothing.
template <class T>
[[gnu::always_inline]] inline void ask_for(const T* y) {
    __builtin_prefetch(y);
}

// What to ask for while row j is read, element by element: a later part of the row, or a later row of the `coming` ones. The
// hardware does not follow rows that end soon, nor reads between which much is written.
template <class T, class RowOf>
const T* to_ask_for(Index j, Index n, Index coming, RowOf row) {
    constexpr Index far = (Index(1) << 14) / sizeof(T);
    if (n >= far) return row(j) + far;
    const Index later = j + far / n;
    return row(later < coming ? later : coming - 1);
}

// Calls term(magnitudes, which of 4 accumulators) for all of y, and fold() before any accumulator has taken more than a
// few terms. The order depends on n alone: starting at an aligned address would read faster, but give other bits for the
// same numbers elsewhere in memory. Everything is inlined, or the accumulators would live in memory.
template <class T, bool Near, class Term, class Fold>
[[gnu::always_inline]] inline void over_row(const T* y, Index n, const T* ahead, Term term, Fold fold, Index i = 0) {
    using L = Lanes<T>;
    constexpr Index W = L::width, block = 32 * W;
    while (n - i >= 4 * W) {
        const Index end = n - i < block ? n : i + block;
        for (; i + 4 * W <= end; i += 4 * W) {
            if (!Near)
                for (int u = 0; u < 4; ++u) ask_for(ahead + i + u * W);
            for (int u = 0; u < 4; ++u) term(L::magnitude(L::load(y + i + u * W)), u);
        }
        if (i % block == 0) fold();
    }
    // Written out: an accumulator chosen by a variable would live in memory.
    if (n - i >= W) term(L::magnitude(L::load(y + i)), 0), i += W;
    if (!Near && n - i > 0) ask_for(ahead + i), ask_for(ahead + n - 1);
    if (n - i >= W) term(L::magnitude(L::load(y + i)), 1), i += W;
    if (n - i >= W) term(L::magnitude(L::load(y + i)), 2), i += W;
    if (n - i > 0) term(L::magnitude(L::load_first(y + i, n - i)), 3);
    fold();
}

// Four accumulators in T, folded into one in double.
template <class T>
struct Folded {
    using L = Lanes<T>;
    typename L::Reg part[4] = {L::all(0), L::all(0), L::all(0), L::all(0)};
    Sum<T> sum;
    void fold() {
        sum.add(L::add(L::add(part[0], part[1]), L::add(part[2], part[3])));
        for (auto& p : part) p = L::all(0);
    }
};

// One number for each of as many rows as there are lanes: combines the lanes of every register of the square. Halves of
// pairs of registers are laid side by side and combined, until one register is left.
template <class T, class Combine>
typename Lanes<T>::Reg across(typename Lanes<T>::Reg* square, Combine combine) {
    using L = Lanes<T>;
    for (int half = L::width / 2; half >= 1; half /= 2)
        for (int i = 0; i < half; ++i)
            square[i] = combine(L::zip_low(square[i], square[i + half]), L::zip_high(square[i], square[i + half]));
    return square[0];
}

// The totals of a block of rows, and their greatest or least elements.
template <class T>
struct RowBlock {
    using L = Lanes<T>;
    using D = Lanes<double>;
    static constexpr Index rows = L::width;
    typename D::Reg sum[rows];

    void store_sums(double* to, Index count) {
        for (Index i = count; i < rows; ++i) sum[i] = D::all(0);
        for (Index i = 0; i < count; i += D::width) {
            const auto totals = across<double>(sum + i, D::add);
            count - i < D::width ? D::store_first(to + i, count - i, totals) : D::store(to + i, totals);
        }
    }
    template <class Combine>
    static void store(typename L::Reg (&v)[rows], T* to, Index count, Combine combine) {
        for (Index i = count; i < rows; ++i) v[i] = L::all(0);
        const auto found = across<T>(v, combine);
        count < rows ? L::store_first(to, count, found) : L::store(to, found);
    }
};

template <class T, bool Near, bool Looks>
void row_stats_of(const T* y, Index n, Index stride, Index count, Index coming, double* sums, double* peaks,
                  const StatsLook<T>& look) {
    using L = Lanes<T>;
    using Block = RowBlock<T>;
    const auto threshold = L::all(look.t), one = L::all(1);
    for (Index g = 0; g < count; g += Block::rows) {
        const Index rows = count - g < Block::rows ? count - g : Block::rows;
        Block block;
        typename L::Reg peak[Block::rows], above[Block::rows], number[Block::rows];
        for (Index j = 0; j < rows; ++j, y += stride) {
            const T* const ahead = Near ? nullptr : to_ask_for<T>(0, n, coming - g - j, [=](Index i) { return y + i * stride; });
            Folded<T> s;
            typename L::Reg top[4] = {L::all(0), L::all(0), L::all(0), L::all(0)};
            typename L::Reg some[2] = {L::all(0), L::all(0)}, k[2] = {L::all(0), L::all(0)};
            const auto seen = [&](typename L::Reg v, int u) __attribute__((always_inline)) {
                const auto m = L::above(v, threshold);
                some[u & 1] = L::add_where(m, some[u & 1], v);
                k[u & 1] = L::add_where(m, k[u & 1], one);
            };
            const Index begun = n >= 4 * L::width ? 4 * L::width : 0;  // which spares short rows a third of the work
            if (begun > 0)
                for (int u = 0; u < 4; ++u) {
                    if (!Near) ask_for(ahead + u * L::width);
                    s.part[u] = top[u] = L::magnitude(L::load(y + u * L::width));
                    if (Looks) seen(top[u], u);
                }
            over_row<T, Near>(
                y, n, ahead,
                [&](typename L::Reg v, int u) __attribute__((always_inline)) {
                    s.part[u] = L::add(s.part[u], v);
                    top[u] = L::max(v, top[u]);
                    if (Looks) seen(v, u);
                },
                [&]() __attribute__((always_inline)) { s.fold(); }, begun);
            block.sum[j] = s.sum.halves();
            peak[j] = L::max(L::max(top[0], top[1]), L::max(top[2], top[3]));
            if (Looks) above[j] = L::add(some[0], some[1]), number[j] = L::add(k[0], k[1]);
        }
        block.store_sums(sums + g, rows);
        T found[Block::rows];
        Block::store(peak, found, rows, L::max);
        for (Index j = 0; j < rows; ++j) peaks[g + j] = static_cast<double>(found[j]);
        if (Looks) Block::store(above, look.s + g, rows, L::add), Block::store(number, look.k + g, rows, L::add);
    }
}

template <class T>
void row_stats(const T* y, Index n, Index stride, Index count, Index coming, double* sums, double* peaks,
               const StatsLook<T>& look) {
    const auto by = look.s == nullptr ? (coming == 0 ? row_stats_of<T, true, false> : row_stats_of<T, false, false>)
                                      : (coming == 0 ? row_stats_of<T, true, true> : row_stats_of<T, false, true>);
    by(y, n, stride, count, coming, sums, peaks, look);
}

template <class T, bool Near>
void rows_above_of(const T* const* y, Index n, Index count, Index coming, const T* t, double* s, T* k) {
    using L = Lanes<T>;
    using Block = RowBlock<T>;
    for (Index g = 0; g < count; g += Block::rows) {
        const Index rows = count - g < Block::rows ? count - g : Block::rows;
        Block block;
        for (Index j = 0; j < rows; ++j) {
            const auto threshold = L::all(t[g + j]);
            Folded<T> sum;
            Index number = 0;
            over_row<T, Near>(
                y[g + j], n, Near ? nullptr : to_ask_for<T>(g + j, n, coming, [=](Index i) { return y[i]; }),
                [&](typename L::Reg v, int u) __attribute__((always_inline)) {
                    const auto m = L::above(v, threshold);
                    sum.part[u] = L::add_where(m, sum.part[u], v);
                    number += popcount(L::bits(m));
                },
                [&]() __attribute__((always_inline)) { sum.fold(); });
            block.sum[j] = sum.sum.halves();
            k[g + j] += static_cast<T>(number);
        }
        double found[Block::rows];
        block.store_sums(found, rows);
        for (Index j = 0; j < rows; ++j) s[g + j] += found[j];
    }
}

template <class T>
void rows_above(const T* const* y, Index n, Index count, Index coming, const T* t, double* s, T* k) {
    (coming == 0 ? rows_above_of<T, true> : rows_above_of<T, false>)(y, n, count, coming, t, s, k);
}

// So many terms of an exact line are added in T before they go to its sum in double. None of floats: the mean of what is above a
// cap may be thousands of times the cap. A few of doubles, whose sum is carried with its rounding errors: those of equal terms
// are all alike.
template <class T>
inline constexpr Index exact_terms = sizeof(T) == sizeof(double) ? 4 : 1;

// The sum of an exact line. `fold` is called before more than a few terms have been added.
template <class T>
struct LineSum {
    Sum<T> part[2];
    [[gnu::always_inline]] void add_where(typename Lanes<T>::Mask m, typename Lanes<T>::Reg v, int u) { part[u & 1].add_where(m, v); }
    void fold() {}
    Lanes<double>::Reg halves() {
        part[0].add(part[1]);
        return part[0].halves();
    }
};
template <>
struct LineSum<double> {
    using L = Lanes<double>;
    L::Reg part = L::all(0), sum = L::all(0), error = L::all(0);
    [[gnu::always_inline]] void add_where(L::Mask m, L::Reg v, int) { part = L::add_where(m, part, v); }
    [[gnu::always_inline]] void fold() { add_carrying(sum, error, part), part = L::all(0); }
    L::Reg halves() { return L::add(sum, error); }
};

template <class T, bool Near, class SizeOf>
void rows_gap_of(const T* const* y, SizeOf size_of, Index count, Index coming, const T* t, double* s, T* k, T* below, T* above) {
    using L = Lanes<T>;
    using Block = RowBlock<T>;
    constexpr Index W = L::width;
    for (Index g = 0; g < count; g += Block::rows) {
        const Index rows = count - g < Block::rows ? count - g : Block::rows;
        Block block;
        typename L::Reg greatest[Block::rows], least[Block::rows];
        for (Index j = 0; j < rows; ++j) {
            const auto threshold = L::all(t[g + j]);
            const T* const row = y[g + j];
            const Index n = size_of(g + j);
            const T* const ahead = Near ? nullptr : to_ask_for<T>(g + j, n, coming, [=](Index i) { return y[i]; });
            auto down = L::all(below[g + j]), up = L::all(above[g + j]);
            LineSum<T> sum;
            Index number = 0;
            const auto term = [&](typename L::Reg v, int u) __attribute__((always_inline)) {
                const auto m = L::above(v, threshold);
                number += popcount(L::bits(m));
                up = L::min_where(m, up, v);
                down = L::max_unless(m, down, v);
                sum.add_where(m, v, u);
            };
            Index i = 0;
            for (; i + 4 * W <= n; i += 4 * W) {
                if (!Near)
                    for (int u = 0; u < 4; ++u) ask_for(ahead + i + u * W);
                for (int u = 0; u < 4; ++u) term(L::magnitude(L::load(row + i + u * W)), u);
                sum.fold();
            }
            if (!Near && i < n) ask_for(ahead + i), ask_for(ahead + n - 1);
            for (; i + W <= n; i += W) term(L::magnitude(L::load(row + i)), 0);
            // Lanes past the end read as 0: never above t, and no rival to `below`, which is at least 0.
            if (i < n) term(L::magnitude(L::load_first(row + i, n - i)), 1);
            sum.fold();
            block.sum[j] = sum.halves();
            greatest[j] = down, least[j] = up;
            k[g + j] += static_cast<T>(number);
        }
        double found[Block::rows];
        block.store_sums(found, rows);
        for (Index j = 0; j < rows; ++j) s[g + j] += found[j];
        Block::store(greatest, below + g, rows, L::max);
        Block::store(least, above + g, rows, L::min);
    }
}

template <class T>
void rows_gap(const T* const* y, Index n, Index count, Index coming, const T* t, double* s, T* k, T* below, T* above) {
    const auto size = [=](Index) { return n; };
    (coming == 0 ? rows_gap_of<T, true, decltype(size)> : rows_gap_of<T, false, decltype(size)>)(y, size, count, coming, t, s, k,
                                                                                                below, above);
}

template <class T>
void lists_gap(const T* const* y, const Index* sizes, Index count, const T* t, double* s, T* k, T* below, T* above) {
    rows_gap_of<T, true>(y, [=](Index j) { return sizes[j]; }, count, 0, t, s, k, below, above);
}

// How many elements come before the first address at which a register of x may be streamed.
template <class T>
Index to_alignment(const T* x, Index n) {
    constexpr std::uintptr_t bytes = Lanes<T>::width * sizeof(T);
    const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(x) % bytes;
    const Index head = past == 0 ? 0 : static_cast<Index>((bytes - past) / sizeof(T));
    return head < n ? head : n;
}

// From one row to the next that is aligned alike.
template <class T>
Index rows_to_alignment(Index stride) {
    Index step = 1;
    while (step * stride % Lanes<T>::width != 0) step *= 2;
    return step;
}

template <class T, bool Stream>
void put(T* p, typename Lanes<T>::Reg v) {
    if constexpr (Stream)
        Lanes<T>::stream(p, v);
    else
        Lanes<T>::store(p, v);
}

// Calls some(i, n) for the elements [i, i + n) of a row before the first address at which a register of x may be streamed and
// after the last, and whole(i) for the registers between. Where nothing is streamed, whole registers lie over those between
// instead: to write what has been written does no harm, even where it is read from there.
template <class T, bool Stream, class Whole, class Some>
[[gnu::always_inline]] inline void write_row(const T* x, Index n, Whole whole, Some some) {
    constexpr Index W = Lanes<T>::width;
    if (n < W) return some(0, n);
    Index i = to_alignment(x, n);
    if (i > 0) Stream ? some(0, i) : whole(0);
    for (; i + W <= n; i += W) whole(i);
    if (i < n) Stream ? some(i, n - i) : whole(n - W);
}

template <class T, bool Stream>
void fill_zeros(T* x, Index n) {
    using L = Lanes<T>;
    write_row<T, Stream>(
        x, n, [=](Index i) __attribute__((always_inline)) { put<T, Stream>(x + i, L::all(0)); },
        [=](Index i, Index count) __attribute__((always_inline)) { L::store_first(x + i, count, L::all(0)); });
}

template <class T, bool Stream>
void row_clip_to(const T* y, T* x, Index n, T cap, const T* ahead) {
    using L = Lanes<T>;
    const auto high = L::all(cap), low = L::all(-cap);
    const auto clamp = [&](typename L::Reg v) __attribute__((always_inline)) { return L::max(L::min(v, high), low); };
    write_row<T, Stream>(
        x, n,
        [&](Index i) __attribute__((always_inline)) {
            if (Stream && ahead != nullptr) ask_for(ahead + i);
            put<T, Stream>(x + i, clamp(L::load(y + i)));
        },
        [&](Index i, Index count) __attribute__((always_inline)) {
            L::store_first(x + i, count, clamp(L::load_first(y + i, count)));
        });
}

template <class T, bool Stream>
void rows_clip_to(const T* y, Index y_stride, T* x, Index x_stride, Index n, Index count, const double* caps, bool blank) {
    const auto is_left = [&](Index j) { return floor_of<T>(caps[j]) > T(0); };
    // The hardware does not follow reads that leave rows out: some way ahead of j, the row to ask for, and how many of those from
    // j on to that are left.
    constexpr Index far = (Index(1) << 14) / sizeof(T);
    Index ahead = 0, left = is_left(0) ? 1 : 0;
    for (Index j = 0, next; j < count; j = next) {
        next = j + 1;
        if (is_left(j)) {
            while (Stream && left <= far / n && ahead < count - 1) left += is_left(++ahead) ? 1 : 0;
            row_clip_to<T, Stream>(y + j * y_stride, x + j * x_stride, n, floor_of<T>(caps[j]),
                                   left <= ahead - j ? y + ahead * y_stride : nullptr);
            --left;
            continue;
        }
        // Neighbours of which nothing is left are one run.
        if (x_stride == n)
            while (next < count && !is_left(next)) ++next;
        if (!blank) fill_zeros<T, Stream>(x + j * x_stride, n * (next - j));
    }
}

template <class T>
void rows_clip(const T* y, Index y_stride, T* x, Index x_stride, Index n, Index count, const double* caps, bool stream,
               bool blank) {
    (stream ? rows_clip_to<T, true> : rows_clip_to<T, false>)(y, y_stride, x, x_stride, n, count, caps, blank);
}

}  // namespace normball::NORMBALL_ISA
