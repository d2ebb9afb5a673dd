// The passes of TangentKernels in dispatch.hpp, written once in terms of lanes and compiled for each instruction set.
#pragma once

#include "dispatch.hpp"
#include "isa/kernels.hpp"

namespace normball::NORMBALL_ISA {

// v with the sign of y where y is clipped, else 0. A register padded with zeros adds none.
template <class T>
[[gnu::always_inline]] inline typename Lanes<T>::Reg signed_where_clipped(typename Lanes<T>::Reg y,
                                                                          typename Lanes<T>::Reg v,
                                                                          typename Lanes<T>::Reg cap) {
    using L = Lanes<T>;
    return L::where(L::above(y, cap), v, L::where(L::above(L::minus(cap), y), L::minus(v), L::all(0)));
}

template <class T>
double row_tangent_sums(const T* y, const T* v, Index n, T cap, Index* count) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto high = L::all(cap);
    Sum<T> sum[2];
    Index clipped = 0;
    const auto add = [&](typename L::Reg a, typename L::Reg b, int u) __attribute__((always_inline)) {
        sum[u].add(signed_where_clipped<T>(a, b, high));
        clipped += popcount(L::bits(L::above(L::magnitude(a), high)));
    };
    Index i = 0;
    for (; i + 2 * W <= n; i += 2 * W) {
        add(L::load(y + i), L::load(v + i), 0);
        add(L::load(y + i + W), L::load(v + i + W), 1);
    }
    for (; i < n; i += W) {
        const Index rest = n - i < W ? n - i : W;
        add(L::load_first(y + i, rest), L::load_first(v + i, rest), 0);
    }
    sum[0].add(sum[1]);
    *count += clipped;
    return sum[0].total();
}

template <class T, bool Partial>
void strip_tangent_column(const T* y, Index y_stride, const T* v, Index v_stride, Index n, Index last, const T* caps,
                          double* sums, T* counts) {
    using L = Lanes<T>;
    const auto of = [&](const T* p) __attribute__((always_inline)) { return Partial ? L::load_first(p, last) : L::load(p); };
    const auto high = of(caps), one = L::all(1);
    Sum<T> sum;
    auto count = L::all(0);
    for (Index i = 0; i < n; ++i, y += y_stride, v += v_stride) {
        const auto a = of(y);
        sum.add(signed_where_clipped<T>(a, of(v), high));
        count = L::add_where(L::above(L::magnitude(a), high), count, one);
    }
    auto total = Sum<T>::load(sums);
    total.add(sum);
    total.store(sums);
    L::store(counts, L::add(L::load(counts), count));
}

template <class T>
void strip_tangent_sums(const T* y, Index y_stride, const T* v, Index v_stride, Index n, Index width, const T* caps,
                        double* sums, T* counts) {
    using L = Lanes<T>;
    constexpr Index W = L::width, rows = 64;  // of so many rows, the lines of memory are still in the first cache
    const auto none = L::all(0);
    for (Index r = 0; r < n; r += rows, y += rows * y_stride, v += rows * v_stride) {
        const Index height = n - r < rows ? n - r : rows;
        Index c = 0;
        for (; c + W <= width; c += W)
            if (L::bits(L::above(L::load(caps + c), none)) != 0)
                strip_tangent_column<T, false>(y + c, y_stride, v + c, v_stride, height, W, caps + c, sums + c, counts + c);
        if (c < width)
            strip_tangent_column<T, true>(y + c, y_stride, v + c, v_stride, height, width - c, caps + c, sums + c,
                                          counts + c);
    }
}

// As it is written: the move, with the sign of y, where y is clipped; nothing in a zero group; else v.
template <class T>
[[gnu::always_inline]] inline typename Lanes<T>::Reg moved(typename Lanes<T>::Reg y, typename Lanes<T>::Reg v,
                                                           typename Lanes<T>::Reg cap, typename Lanes<T>::Reg move) {
    using L = Lanes<T>;
    const auto kept = L::where(L::above(cap, L::all(0)), v, L::all(0));
    return L::where(L::above(y, cap), move, L::where(L::above(L::minus(cap), y), L::minus(move), kept));
}

// `at` tells caps and moves from some entry on; `nothing_at` where a register holds zero groups only, which spares reads.
template <class T, bool Stream, class At, class Nothing>
[[gnu::always_inline]] inline void write_moved(const T* y, const T* v, T* x, Index n, At at, Nothing nothing_at) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto part = [&](Index i, Index count) __attribute__((always_inline)) {
        const auto [cap, move] = at(i, count);
        L::store_first(x + i, count, moved<T>(L::load_first(y + i, count), L::load_first(v + i, count), cap, move));
    };
    Index i = Stream ? to_alignment(x, n) : 0;
    if (i > 0) part(0, i);
    for (; i + W <= n; i += W) {
        if (nothing_at(i)) {
            put<T, Stream>(x + i, L::all(0));
            continue;
        }
        const auto [cap, move] = at(i, W);
        put<T, Stream>(x + i, moved<T>(L::load(y + i), L::load(v + i), cap, move));
    }
    if (i < n) part(i, n - i);
}

template <class T>
struct CapAndMove {
    typename Lanes<T>::Reg cap, move;
};

template <class T>
void row_tangent(const T* y, const T* v, T* x, Index n, T cap, T move, bool stream) {
    if (cap == T(0)) return (stream ? fill_zeros<T, true> : fill_zeros<T, false>)(x, n);
    const CapAndMove<T> all{Lanes<T>::all(cap), Lanes<T>::all(move)};
    const auto at = [&](Index, Index) __attribute__((always_inline)) { return all; };
    const auto never = [](Index) __attribute__((always_inline)) { return false; };
    stream ? write_moved<T, true>(y, v, x, n, at, never) : write_moved<T, false>(y, v, x, n, at, never);
}

template <class T>
void strip_tangent(const T* y, const T* v, T* x, Index width, const T* caps, const T* moves, bool stream,
                   bool sparse) {
    using L = Lanes<T>;
    const auto at = [&](Index i, Index n) __attribute__((always_inline)) {
        return n == L::width ? CapAndMove<T>{L::load(caps + i), L::load(moves + i)}
                             : CapAndMove<T>{L::load_first(caps + i, n), L::load_first(moves + i, n)};
    };
    const auto nothing = [&](Index i) __attribute__((always_inline)) {
        return sparse && L::bits(L::above(L::load(caps + i), L::all(0))) == 0;
    };
    stream ? write_moved<T, true>(y, v, x, width, at, nothing) : write_moved<T, false>(y, v, x, width, at, nothing);
}

template <class T>
TangentKernels<T> tangent_table() {
    return {row_tangent_sums<T>, strip_tangent_sums<T>, row_tangent<T>, strip_tangent<T>};
}

}  // namespace normball::NORMBALL_ISA
