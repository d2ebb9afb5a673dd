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

// Sums of T that are folded into double before they have taken many terms.
template <class T>
struct Folded {
    using L = Lanes<T>;
    static constexpr int unroll = 4;
    static constexpr int turns = 8;  // so many terms to each lane of an accumulator
    static constexpr Index block = turns * unroll * L::width;

    Sum<T> total;
    // Calls term(register, accumulator) for all of y, folding after each block.
    template <class Term>
    void over(const T* y, Index n, Term term) {
        constexpr Index W = L::width;
        for (Index begin = 0; begin < n; begin += block) {
            const Index end = n - begin < block ? n : begin + block;
            typename L::Reg acc[unroll] = {L::all(0), L::all(0), L::all(0), L::all(0)};
            Index i = begin;
            for (; i + unroll * W <= end; i += unroll * W)
                for (int u = 0; u < unroll; ++u) term(L::load(y + i + u * W), acc[u], u);
            for (int u = 0; i < end; i += W, ++u)
                term(end - i >= W ? L::load(y + i) : L::load_first(y + i, end - i), acc[u], u);
            total.add(L::add(L::add(acc[0], acc[1]), L::add(acc[2], acc[3])));
        }
    }
};

template <class T>
void row_stats(const T* y, Index n, Index stride, Index count, double* sums, double* peaks) {
    using L = Lanes<T>;
    for (Index g = 0; g < count; ++g, y += stride) {
        typename L::Reg peak[4] = {L::all(0), L::all(0), L::all(0), L::all(0)};
        Folded<T> sum;
        sum.over(y, n, [&](typename L::Reg v, typename L::Reg& acc, int u) {
            v = L::magnitude(v);
            acc = L::add(acc, v);
            peak[u] = L::max(v, peak[u]);
        });
        sums[g] = sum.total.total();
        peaks[g] = static_cast<double>(L::max_lane(L::max(L::max(peak[0], peak[1]), L::max(peak[2], peak[3]))));
    }
}

template <class T>
void row_above(const T* y, Index n, T t, double* s, Index* k) {
    using L = Lanes<T>;
    const auto threshold = L::all(t);
    Index count = 0;
    Folded<T> sum;
    sum.over(y, n, [&](typename L::Reg v, typename L::Reg& acc, int) {
        v = L::magnitude(v);
        const auto m = L::above(v, threshold);
        acc = L::add_where(m, acc, v);
        count += popcount(L::bits(m));
    });
    *s += sum.total.total();
    *k += count;
}

template <class T>
void row_gap(const T* y, Index n, T t, double* s, Index* k, T* below, T* above) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto threshold = L::all(t), none_below = L::all(*below), none_above = L::all(*above);
    auto greatest = none_below, least = none_above;
    Index count = 0;
    Sum<T> sum[2];
    // Lanes past the end read as 0: never above t, and no rival to *below, which is at least 0.
    for (Index i = 0; i < n; i += W) {
        const auto v = L::magnitude(n - i >= W ? L::load(y + i) : L::load_first(y + i, n - i));
        const auto m = L::above(v, threshold);
        sum[i / W % 2].add_where(m, v);
        count += popcount(L::bits(m));
        least = L::min(L::where(m, v, none_above), least);
        greatest = L::max(L::where(m, none_below, v), greatest);
    }
    sum[0].add(sum[1]);
    *s += sum[0].total();
    *k += count;
    *below = L::max_lane(greatest);
    *above = L::min_lane(least);
}

template <class T>
Index row_collect(const T* y, Index n, T lo, T hi, T* found, double* s, Index* k) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto low = L::all(lo), high = L::all(hi);
    Sum<T> sum[2];
    Index count = 0, to = 0, i = 0;
    const auto step = [&](typename L::Reg v, Sum<T>& acc) {
        const auto m = L::above(v, high);
        acc.add_where(m, v);
        count += popcount(L::bits(m));
        const auto between = L::and_not(L::above(v, low), m);
        const unsigned bits = L::bits(between);
        if (bits != 0) {
            L::compress(found + to, between, v);
            to += popcount(bits);
        }
    };
    for (; i + 2 * W <= n; i += 2 * W) {
        step(L::magnitude(L::load(y + i)), sum[0]);
        step(L::magnitude(L::load(y + i + W)), sum[1]);
    }
    for (int u = 0; i < n; i += W, ++u)
        step(L::magnitude(n - i >= W ? L::load(y + i) : L::load_first(y + i, n - i)), sum[u]);
    sum[0].add(sum[1]);
    *s += sum[0].total();
    *k += count;
    return to;
}

// How many elements come before the first address at which a register may be streamed.
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

template <class T>
void strip_gather(const T* y, Index stride, Index n, Index width, const Index* columns, Index count, T* rows,
                  Index row_stride) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    for (Index r = 0; r < n; r += W) {
        const Index height = n - r < W ? n - r : W;
        const T* block = y + r * stride;
        const Index ahead = r + 4 * W <= n ? 3 * W * stride : 0;
        for (Index first = 0, next = 0; first < count; first = next) {
            const Index base = columns[first] / W * W;
            for (next = first; next < count && columns[next] < base + W; ++next) {}
            for (Index i = 0; i < height; ++i) __builtin_prefetch(block + i * stride + base + ahead);
            // A whole register of columns is turned at once where enough of them are wanted.
            if (4 * (next - first) >= W && base + W <= width && height == W) {
                typename L::Reg square[W];
                for (Index i = 0; i < W; ++i) square[i] = L::load(block + i * stride + base);
                transpose<T>(square);
                for (Index j = first; j < next; ++j) L::store(rows + j * row_stride + r, square[columns[j] - base]);
            } else {
                for (Index j = first; j < next; ++j)
                    for (Index i = 0; i < height; ++i) rows[j * row_stride + r + i] = block[i * stride + columns[j]];
            }
        }
    }
}

template <class T, bool Stream>
void strip_clip_to(const T* y, T* x, Index width, const T* caps) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto zero = L::all(T(0));
    const auto clamp = [&](typename L::Reg v, typename L::Reg high) { return L::max(L::min(v, high), L::minus(high)); };
    Index i = Stream ? to_alignment(x, width) : 0;
    if (i > 0) L::store_first(x, i, clamp(L::load_first(y, i), L::load_first(caps, i)));
    for (; i + W <= width; i += W) {
        const auto high = L::load(caps + i);
        // Where a whole register of groups is zero, the read of y is spared.
        if (L::bits(L::above(high, zero)) != 0)
            put<T, Stream>(x + i, clamp(L::load(y + i), high));
        else
            put<T, Stream>(x + i, zero);
    }
    if (i < width) L::store_first(x + i, width - i, clamp(L::load_first(y + i, width - i), L::load_first(caps + i, width - i)));
}

template <class T>
void strip_clip(const T* y, T* x, Index width, const T* caps, bool stream) {
    stream ? strip_clip_to<T, true>(y, x, width, caps) : strip_clip_to<T, false>(y, x, width, caps);
}

template <class T>
Kernels<T> table() {
    return {row_stats<T>, row_above<T>,   row_gap<T>,      row_collect<T>,
            row_clip<T>,  strip_stats<T>, strip_gather<T>, strip_clip<T>};
}

}  // namespace normball::NORMBALL_ISA
