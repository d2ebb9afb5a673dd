// The passes of dispatch.hpp, written once in terms of Lanes and compiled for each instruction set.
//
// Rows keep several independent accumulators, since an addition waits some cycles for the one before. Strips keep the
// accumulators of a few registers of columns over a block of rows, because a load and a store of each accumulator for
// each element would cost more than the element.
#pragma once

#include "dispatch.hpp"
#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

using Index = std::int64_t;

inline int popcount(unsigned bits) { return __builtin_popcount(bits); }

// ---- rows ---------------------------------------------------------------------------------------------------------

// Calls term(magnitudes, which of 4 accumulators) for all of y, and fold() before any accumulator has taken more than a
// few terms. The order depends on n alone: starting at an aligned address would read faster, but give other bits for the
// same numbers elsewhere in memory. Everything is inlined, or the accumulators would live in memory.
template <class T, class Term, class Fold>
[[gnu::always_inline]] inline void over_row(const T* y, Index n, Term term, Fold fold) {
    using L = Lanes<T>;
    constexpr Index W = L::width, block = 32 * W;
    Index i = 0;
    while (n - i >= 4 * W) {
        const Index end = n - i < block ? n : i + block;
        for (; i + 4 * W <= end; i += 4 * W)
            for (int u = 0; u < 4; ++u) term(L::magnitude(L::load(y + i + u * W)), u);
        fold();
    }
    // Written out: an accumulator chosen by a variable would live in memory.
    if (n - i >= W) term(L::magnitude(L::load(y + i)), 0), i += W;
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

template <class T>
void row_stats(const T* y, Index n, Index stride, Index count, double* sums, double* peaks) {
    using L = Lanes<T>;
    for (Index g = 0; g < count; ++g, y += stride) {
        Folded<T> s;
        typename L::Reg peak[4] = {L::all(0), L::all(0), L::all(0), L::all(0)};
        over_row(
            y, n,
            [&](typename L::Reg v, int u) __attribute__((always_inline)) {
                s.part[u] = L::add(s.part[u], v);
                peak[u] = L::max(v, peak[u]);
            },
            [&]() __attribute__((always_inline)) { s.fold(); });
        sums[g] = s.sum.total();
        peaks[g] = static_cast<double>(L::max_lane(L::max(L::max(peak[0], peak[1]), L::max(peak[2], peak[3]))));
    }
}

template <class T>
void row_above(const T* y, Index n, T t, double* s, Index* k) {
    using L = Lanes<T>;
    const auto threshold = L::all(t), one = L::all(1);
    Folded<T> sum, count;
    over_row(
        y, n,
        [&](typename L::Reg v, int u) __attribute__((always_inline)) {
            const auto m = L::above(v, threshold);
            sum.part[u] = L::add_where(m, sum.part[u], v);
            count.part[u] = L::add_where(m, count.part[u], one);
        },
        [&]() __attribute__((always_inline)) { sum.fold(), count.fold(); });
    *s += sum.sum.total();
    *k += static_cast<Index>(count.sum.total());
}

template <class T>
void row_gap(const T* y, Index n, T t, double* s, Index* k, T* below, T* above) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto threshold = L::all(t);
    auto greatest = L::all(*below), least = L::all(*above);
    Index count = 0;
    Sum<T> sum;
    // Lanes past the end read as 0: never above t, and no rival to *below, which is at least 0.
    for (Index i = 0; i < n; i += W) {
        const auto v = L::magnitude(n - i >= W ? L::load(y + i) : L::load_first(y + i, n - i));
        const auto m = L::above(v, threshold);
        sum.add_where(m, v);
        count += popcount(L::bits(m));
        least = L::min_where(m, least, v);
        greatest = L::max_unless(m, greatest, v);
    }
    *s += sum.total();
    *k += count;
    *below = L::max_lane(greatest);
    *above = L::min_lane(least);
}

template <class T>
Index row_collect(const T* y, Index n, T lo, T hi, T* found, double* s, Index* k) {
    using L = Lanes<T>;
    const auto low = L::all(lo), high = L::all(hi), one = L::all(1);
    Folded<T> sum, count;
    Index to = 0;
    over_row(
        y, n,
        [&](typename L::Reg v, int u) __attribute__((always_inline)) {
            const auto m = L::above(v, high);
            sum.part[u] = L::add_where(m, sum.part[u], v);
            count.part[u] = L::add_where(m, count.part[u], one);
            const unsigned bits = L::bits(L::and_not(L::above(v, low), m));
            if (bits != 0) {
                L::compress(found + to, bits, v);
                to += popcount(bits);
            }
        },
        [&]() __attribute__((always_inline)) { sum.fold(), count.fold(); });
    *s += sum.sum.total();
    *k += static_cast<Index>(count.sum.total());
    return to;
}

// How many elements come before the first address at which a register of x may be streamed.
template <class T>
Index to_alignment(const T* x, Index n) {
    constexpr std::uintptr_t bytes = Lanes<T>::width * sizeof(T);
    const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(x) % bytes;
    const Index head = past == 0 ? 0 : static_cast<Index>((bytes - past) / sizeof(T));
    return head < n ? head : n;
}

template <class T, bool Stream>
void put(T* p, typename Lanes<T>::Reg v) {
    if constexpr (Stream)
        Lanes<T>::stream(p, v);
    else
        Lanes<T>::store(p, v);
}

template <class T, bool Stream>
void row_clip_to(const T* y, T* x, Index n, T cap) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto high = L::all(cap), low = L::all(-cap);
    const auto clamp = [&](typename L::Reg v) { return L::max(L::min(v, high), low); };
    Index i = Stream ? to_alignment(x, n) : 0;
    if (cap == T(0)) {
        const auto zero = L::all(T(0));
        for (Index h = 0; h < i; ++h) x[h] = T(0);
        for (; i + W <= n; i += W) put<T, Stream>(x + i, zero);
        for (; i < n; ++i) x[i] = T(0);
        return;
    }
    if (i > 0) L::store_first(x, i, clamp(L::load_first(y, i)));
    for (; i + W <= n; i += W) put<T, Stream>(x + i, clamp(L::load(y + i)));
    if (i < n) L::store_first(x + i, n - i, clamp(L::load_first(y + i, n - i)));
}

template <class T>
void row_clip(const T* y, T* x, Index n, T cap, bool stream) {
    stream ? row_clip_to<T, true>(y, x, n, cap) : row_clip_to<T, false>(y, x, n, cap);
}

// ---- strips -------------------------------------------------------------------------------------------------------

// Registers of columns whose accumulators are held together, and the rows for which they are held: sums of T take so
// many terms before they are folded into double. More rows at once would be more streams than the hardware prefetches.
inline constexpr int strip_registers = 4;
inline constexpr Index strip_rows = 8;

template <class T, int V, bool Partial>
void strip_stats_block(const T* y, Index stride, Index rows, Index last, double* sums, T* peaks) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    typename L::Reg sum[V], peak[V];
    for (int v = 0; v < V; ++v) sum[v] = L::all(0), peak[v] = L::load(peaks + v * W);
    for (Index i = 0; i < rows; ++i, y += stride)
        for (int v = 0; v < V; ++v) {
            const auto x = L::magnitude(Partial ? L::load_first(y + v * W, last) : L::load(y + v * W));
            sum[v] = L::add(sum[v], x);
            peak[v] = L::max(x, peak[v]);
        }
    for (int v = 0; v < V; ++v) {
        auto total = Sum<T>::load(sums + v * W);
        total.add(sum[v]);
        total.store(sums + v * W);
        L::store(peaks + v * W, peak[v]);
    }
}

template <class T>
void strip_stats(const T* y, Index stride, Index n, Index width, double* sums, T* peaks) {
    constexpr Index W = Lanes<T>::width, V = strip_registers;
    for (Index r = 0; r < n; r += strip_rows) {
        const Index rows = n - r < strip_rows ? n - r : strip_rows;
        const T* block = y + r * stride;
        Index c = 0;
        for (; c + V * W <= width; c += V * W)
            strip_stats_block<T, V, false>(block + c, stride, rows, W, sums + c, peaks + c);
        for (; c + W <= width; c += W)
            strip_stats_block<T, 1, false>(block + c, stride, rows, W, sums + c, peaks + c);
        if (c < width) strip_stats_block<T, 1, true>(block + c, stride, rows, width - c, sums + c, peaks + c);
    }
}

// Two rows at a time, so that an addition need not wait for the one before.
template <class T, bool Partial>
void lane_gap_of(const T* y, Index stride, Index n, Index lanes, const T* t, double* s, T* k, T* below, T* above) {
    using L = Lanes<T>;
    const auto one = L::all(1), threshold = L::load(t);
    auto greatest = L::load(below), least = L::load(above);
    typename L::Reg count[2] = {L::load(k), L::all(0)};
    Sum<T> sum[2] = {Sum<T>::load(s), {}};
    const auto step = [&](const T* row, Sum<T>& total, typename L::Reg& number) __attribute__((always_inline)) {
        const auto v = L::magnitude(Partial ? L::load_first(row, lanes) : L::load(row));
        const auto m = L::above(v, threshold);
        total.add_where(m, v);
        number = L::add_where(m, number, one);
        least = L::min_where(m, least, v);
        greatest = L::max_unless(m, greatest, v);
    };
    Index i = 0;
    for (; i + 2 <= n; i += 2, y += 2 * stride) step(y, sum[0], count[0]), step(y + stride, sum[1], count[1]);
    if (i < n) step(y, sum[0], count[0]);
    sum[0].add(sum[1]);
    sum[0].store(s);
    L::store(k, L::add(count[0], count[1]));
    L::store(below, greatest), L::store(above, least);
}

template <class T>
void lane_gap(const T* y, Index stride, Index n, Index lanes, const T* t, double* s, T* k, T* below, T* above) {
    if (lanes < Lanes<T>::width)
        lane_gap_of<T, true>(y, stride, n, lanes, t, s, k, below, above);
    else
        lane_gap_of<T, false>(y, stride, n, lanes, t, s, k, below, above);
}

// Rounds of perfect shuffles turn the rows of a square of registers into its columns.
template <class T>
void transpose(typename Lanes<T>::Reg (&square)[Lanes<T>::width]) {
    using L = Lanes<T>;
    constexpr int W = L::width;
    for (int round = 1; round < W; round *= 2) {
        typename L::Reg next[W];
        for (int i = 0; i < W / 2; ++i) {
            next[2 * i] = L::zip_low(square[i], square[i + W / 2]);
            next[2 * i + 1] = L::zip_high(square[i], square[i + W / 2]);
        }
        for (int i = 0; i < W; ++i) square[i] = next[i];
    }
}

// Some columns of one register: which, and where they go.
struct Piece {
    Index base, to;
    unsigned bits;
};
inline constexpr Index tile_stride = gather_limit + lane_limit;

// Side by side into the tile, row by row.
template <class T>
void squeeze_rows(const T* y, Index stride, Index height, Index left, Index width, const Piece* pieces, Index number,
                  T* tile) {
    using L = Lanes<T>;
    for (Index i = 0; i < height; ++i, y += stride, tile += tile_stride) {
        const Index ahead = i + 8 < left ? 8 * stride : 0;  // the hardware does not foresee a step to another row
        for (Index p = 0; p < number; ++p) {
            __builtin_prefetch(y + ahead + pieces[p].base, 0, 2);
            const auto v = width < L::width ? L::load_first(y, width) : L::load(y + pieces[p].base);
            L::compress(tile + pieces[p].to, pieces[p].bits, v);
        }
    }
}

// The wanted columns are squeezed into a tile, which lies in the first cache, and turned from there.
template <class T>
void strip_gather(const T* y, Index stride, Index n, Index width, const Index* columns, Index count, T* rows,
                  Index row_stride) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    Piece pieces[gather_limit];
    Index number = 0;
    for (Index j = 0; j < count; ++j) {
        // The last register of the strip may begin early, so as not to read past its end.
        const Index base = columns[j] / W * W + W <= width || width < W ? columns[j] / W * W : width - W;
        if (number == 0 || pieces[number - 1].base != base) pieces[number++] = {base, j, 0};
        pieces[number - 1].bits |= 1u << (columns[j] - base);
    }
    alignas(64) T tile[W * tile_stride];
    const bool whole = number * W == count;  // nothing to squeeze: every column of every register is wanted
    for (Index r = 0; r < n; r += W) {
        const Index height = n - r < W ? n - r : W;
        const T* block = y + r * stride;
        if (!whole || height < W) squeeze_rows(block, stride, height, n - r, width, pieces, number, tile);
        for (Index j = 0; j < count; j += W) {
            typename L::Reg square[W];
            if (whole && height == W)
                for (Index i = 0; i < W; ++i) square[i] = L::load(block + i * stride + pieces[j / W].base);
            else
                for (Index i = 0; i < W; ++i) square[i] = L::load(tile + i * tile_stride + j);
            transpose<T>(square);
            const Index wanted = count - j < W ? count - j : W;
            T* to = rows + j * row_stride + r;
            if (height == W)  // a masked store is slow even when it masks nothing
                for (Index i = 0; i < wanted; ++i) L::store(to + i * row_stride, square[i]);
            else
                for (Index i = 0; i < wanted; ++i) L::store_first(to + i * row_stride, height, square[i]);
        }
    }
}

template <class T, bool Stream, bool Sparse>
void strip_clip_to(const T* y, T* x, Index width, const T* caps) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto zero = L::all(T(0));
    const auto clamp = [&](typename L::Reg v, typename L::Reg high) { return L::max(L::min(v, high), L::minus(high)); };
    Index i = Stream ? to_alignment(x, width) : 0;
    if (i > 0) L::store_first(x, i, clamp(L::load_first(y, i), L::load_first(caps, i)));
    for (; i + W <= width; i += W) {
        const auto high = L::load(caps + i);
        if (Sparse && L::bits(L::above(high, zero)) == 0)  // a whole register of zero groups: y need not be read
            put<T, Stream>(x + i, zero);
        else
            put<T, Stream>(x + i, clamp(L::load(y + i), high));
    }
    const Index rest = width - i;
    if (rest > 0) L::store_first(x + i, rest, clamp(L::load_first(y + i, rest), L::load_first(caps + i, rest)));
}

template <class T>
void strip_clip(const T* y, T* x, Index width, const T* caps, bool stream, bool sparse) {
    if (stream)
        sparse ? strip_clip_to<T, true, true>(y, x, width, caps) : strip_clip_to<T, true, false>(y, x, width, caps);
    else
        sparse ? strip_clip_to<T, false, true>(y, x, width, caps) : strip_clip_to<T, false, false>(y, x, width, caps);
}

template <class T>
Kernels<T> table() {
    return {Lanes<T>::width, row_stats<T>,   row_above<T>, row_gap<T>,      row_collect<T>,
            row_clip<T>,     strip_stats<T>, lane_gap<T>,  strip_gather<T>, strip_clip<T>};
}

}  // namespace normball::NORMBALL_ISA
