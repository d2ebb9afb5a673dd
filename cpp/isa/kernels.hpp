// The passes of dispatch.hpp, written once in terms of Lanes and compiled for each instruction set.
//
// Rows keep several independent accumulators, since one addition waits four cycles for the one before. Strips keep the
// accumulators of a few registers of columns over a block of rows, because a load and a store of each accumulator for
// each element would cost more than the element.
#pragma once

#include "dispatch.hpp"
#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

using Index = std::int64_t;

inline int popcount(unsigned bits) { return __builtin_popcount(bits); }

// ---- rows ---------------------------------------------------------------------------------------------------------

template <class T>
void row_stats(const T* y, Index n, Index stride, Index count, double* sums, double* peaks) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    for (Index g = 0; g < count; ++g, y += stride) {
        Sum<T> sum[4];
        typename L::Reg peak[4] = {L::all(0), L::all(0), L::all(0), L::all(0)};
        Index i = 0;
        for (; i + 4 * W <= n; i += 4 * W)
            for (int u = 0; u < 4; ++u) {
                const auto v = L::magnitude(L::load(y + i + u * W));
                sum[u].add(v);
                peak[u] = L::max(v, peak[u]);
            }
        for (int u = 0; i < n; i += W, ++u) {
            const auto v = L::magnitude(n - i >= W ? L::load(y + i) : L::load_first(y + i, n - i));
            sum[u].add(v);
            peak[u] = L::max(v, peak[u]);
        }
        sum[0].add(sum[1]), sum[2].add(sum[3]), sum[0].add(sum[2]);
        sums[g] = sum[0].total();
        peaks[g] = static_cast<double>(L::max_lane(L::max(L::max(peak[0], peak[1]), L::max(peak[2], peak[3]))));
    }
}

template <class T>
void row_above(const T* y, Index n, T t, double* s, Index* k) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto threshold = L::all(t);
    Sum<T> sum[4];
    Index count = 0, i = 0;
    for (; i + 4 * W <= n; i += 4 * W)
        for (int u = 0; u < 4; ++u) {
            const auto v = L::magnitude(L::load(y + i + u * W));
            const auto m = L::above(v, threshold);
            sum[u].add_where(m, v);
            count += popcount(L::bits(m));
        }
    for (int u = 0; i < n; i += W, ++u) {
        const auto v = L::magnitude(n - i >= W ? L::load(y + i) : L::load_first(y + i, n - i));
        const auto m = L::above(v, threshold);
        sum[u].add_where(m, v);
        count += popcount(L::bits(m));
    }
    sum[0].add(sum[1]), sum[2].add(sum[3]), sum[0].add(sum[2]);
    *s += sum[0].total();
    *k += count;
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

template <class T>
void window(const T* candidates, Index n, T t, double* s, Index* k, T* below, T* above) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto threshold = L::all(t), none_below = L::all(*below), none_above = L::all(*above);
    auto greatest = none_below, least = none_above;
    Sum<T> sum;
    Index count = 0;
    for (Index i = 0; i < n; i += W) {
        // Lanes past the end read as 0: never above t, and no rival to *below, which is at least 0.
        const auto v = n - i >= W ? L::load(candidates + i) : L::load_first(candidates + i, n - i);
        const auto m = L::above(v, threshold);
        sum.add_where(m, v);
        count += popcount(L::bits(m));
        least = L::min(L::where(m, v, none_above), least);
        greatest = L::max(L::where(m, none_below, v), greatest);
    }
    *s += sum.total();
    *k += count;
    *below = L::max_lane(greatest);
    *above = L::min_lane(least);
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

// Registers of columns whose accumulators are held together, and rows for which they are held. Sixteen architectural
// registers (AVX2, SSE2) hold half of what thirty-two do.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int strip_registers = 4;
#else
inline constexpr int strip_registers = 2;
#endif
inline constexpr Index strip_rows = 16;

// Calls body<registers>(first row, rows, first column, columns in the last register) over the strip.
template <class T, class Body>
void over_strip(Index n, Index width, Body body) {
    constexpr Index W = Lanes<T>::width, V = strip_registers;
    for (Index r = 0; r < n; r += strip_rows) {
        const Index rows = n - r < strip_rows ? n - r : strip_rows;
        Index c = 0;
        for (; c + V * W <= width; c += V * W) body.template operator()<strip_registers, false>(r, rows, c, W);
        for (; c + W <= width; c += W) body.template operator()<1, false>(r, rows, c, W);
        if (c < width) body.template operator()<1, true>(r, rows, c, width - c);
    }
}

template <class T, bool Partial>
typename Lanes<T>::Reg load_magnitude(const T* p, Index n) {
    using L = Lanes<T>;
    if constexpr (Partial)
        return L::magnitude(L::load_first(p, n));
    else
        return L::magnitude(L::load(p));
}

template <class T>
void strip_stats(const T* y, Index stride, Index n, Index width, double* sums, T* peaks) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    over_strip<T>(n, width, [=]<int V, bool Partial>(Index r, Index rows, Index c, Index last) {
        Sum<T> sum[V];
        typename L::Reg peak[V];
        for (int v = 0; v < V; ++v) sum[v] = Sum<T>::load(sums + c + v * W), peak[v] = L::load(peaks + c + v * W);
        const T* row = y + r * stride + c;
        for (Index i = 0; i < rows; ++i, row += stride)
            for (int v = 0; v < V; ++v) {
                const auto x = load_magnitude<T, Partial>(row + v * W, last);
                sum[v].add(x);
                peak[v] = L::max(x, peak[v]);
            }
        for (int v = 0; v < V; ++v) sum[v].store(sums + c + v * W), L::store(peaks + c + v * W, peak[v]);
    });
}

template <class T>
void strip_above(const T* y, Index stride, Index n, Index width, const T* t, double* s, T* k) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    over_strip<T>(n, width, [=]<int V, bool Partial>(Index r, Index rows, Index c, Index last) {
        Sum<T> sum[V];
        typename L::Reg count[V], threshold[V];
        for (int v = 0; v < V; ++v) {
            sum[v] = Sum<T>::load(s + c + v * W);
            count[v] = L::load(k + c + v * W);
            threshold[v] = L::load(t + c + v * W);
        }
        const T* row = y + r * stride + c;
        for (Index i = 0; i < rows; ++i, row += stride)
            for (int v = 0; v < V; ++v) {
                const auto x = load_magnitude<T, Partial>(row + v * W, last);
                const auto m = L::above(x, threshold[v]);
                sum[v].add_where(m, x);
                count[v] = L::add_one_where(m, count[v]);
            }
        for (int v = 0; v < V; ++v) sum[v].store(s + c + v * W), L::store(k + c + v * W, count[v]);
    });
}

template <class T>
Index strip_collect(const T* y, Index stride, Index n, Index width, const T* lo, const T* hi, double* s, T* k,
                    T* found, std::int32_t* column, Index room) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    Index to = 0;
    bool full = false;
    over_strip<T>(n, width, [&]<int V, bool Partial>(Index r, Index rows, Index c, Index last) {
        if (full || (full = to + V * W * rows > room)) return;
        Sum<T> sum[V];
        typename L::Reg count[V], low[V], high[V];
        for (int v = 0; v < V; ++v) {
            sum[v] = Sum<T>::load(s + c + v * W);
            count[v] = L::load(k + c + v * W);
            low[v] = L::load(lo + c + v * W), high[v] = L::load(hi + c + v * W);
        }
        const T* row = y + r * stride + c;
        for (Index i = 0; i < rows; ++i, row += stride)
            for (int v = 0; v < V; ++v) {
                const auto x = load_magnitude<T, Partial>(row + v * W, last);
                const auto m = L::above(x, high[v]);
                sum[v].add_where(m, x);
                count[v] = L::add_one_where(m, count[v]);
                for (unsigned b = L::bits(L::and_not(L::above(x, low[v]), m)); b != 0; b &= b - 1, ++to) {
                    const int lane = __builtin_ctz(b);
                    const T value = row[v * W + lane];
                    found[to] = value < T(0) ? -value : value;
                    column[to] = static_cast<std::int32_t>(c + v * W + lane);
                }
            }
        for (int v = 0; v < V; ++v) sum[v].store(s + c + v * W), L::store(k + c + v * W, count[v]);
    });
    return full ? -1 : to;
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
    return {row_stats<T>,   row_above<T>,   row_collect<T>,   window<T>,    row_clip<T>,
            strip_stats<T>, strip_above<T>, strip_collect<T>, strip_clip<T>};
}

}  // namespace normball::NORMBALL_ISA
