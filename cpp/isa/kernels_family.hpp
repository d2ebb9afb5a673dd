// The passes of FamilyKernels in dispatch.hpp, written once in terms of lanes and compiled for each instruction set.
#pragma once

#include "dispatch.hpp"
#include "isa/kernels.hpp"
#include "isa/simd_wide.hpp"

namespace normball::NORMBALL_ISA {

// Calls term(register, which of 4 accumulators) for all of y, magnitudes unless Signed, and fold() every few terms. The
// last register is filled up with `filler`, which must not count.
template <class T, bool Signed, class Term, class Fold>
[[gnu::always_inline]] inline void over_all(const T* y, Index n, T filler, Term term, Fold fold) {
    using L = Lanes<T>;
    constexpr Index W = L::width, block = 32 * W;
    const auto of = [](typename L::Reg v) __attribute__((always_inline)) { return Signed ? v : L::magnitude(v); };
    Index i = 0;
    while (n - i >= 4 * W) {
        const Index end = n - i < block ? n : i + block;
        for (; i + 4 * W <= end; i += 4 * W)
            for (int u = 0; u < 4; ++u) term(of(L::load(y + i + u * W)), u);
        fold();
    }
    if (n - i >= W) term(of(L::load(y + i)), 0), i += W;
    if (n - i >= W) term(of(L::load(y + i)), 1), i += W;
    if (n - i >= W) term(of(L::load(y + i)), 2), i += W;
    if (n - i > 0) term(of(load_or(y + i, n - i, L::all(filler))), 3);
    fold();
}

// ---- sums ---------------------------------------------------------------------------------------------------------

template <class T>
double row_sum(const T* y, Index n) {
    Exact<T> sum;
    over_all<T, false>(
        y, n, T(0), [&](typename Lanes<T>::Reg v, int u) __attribute__((always_inline)) { sum.add(u, v); },
        [&]() __attribute__((always_inline)) { sum.fold(); });
    return sum.total();
}

// The squares of floats fill a double, so their sum would drift as that of doubles does.
template <class T>
double row_sum_of_squares(const T* y, Index n) {
    Exact<double> sum;
    over_all<T, false>(
        y, n, T(0),
        [&](typename Lanes<T>::Reg v, int u) __attribute__((always_inline)) {
            in_double(v, [&](Double x, int p) __attribute__((always_inline)) { sum.add((u + 2 * p) % 4, times(x, x)); });
        },
        [&]() __attribute__((always_inline)) { sum.fold(); });
    return sum.total();
}

// A few rows of a register of columns; then the partial sums join `sums`, and what rounding took joins `errors`.
template <class T, bool Square, bool Partial>
void strip_total_block(const T* y, Index stride, Index rows, Index last, double* sums, double* errors) {
    using L = Lanes<T>;
    using D = Lanes<double>;
    constexpr int parts = L::width / D::width;
    Double part[2] = {D::all(0), D::all(0)};
    for (Index i = 0; i < rows; ++i, y += stride) {
        const auto v = L::magnitude(Partial ? L::load_first(y, last) : L::load(y));
        in_double(v, [&](Double x, int p) __attribute__((always_inline)) {
            part[p] = D::add(part[p], Square ? times(x, x) : x);
        });
    }
    for (int p = 0; p < parts; ++p) {
        const Double sum = D::load(sums + p * D::width), total = D::add(sum, part[p]), back = less(total, sum);
        const Double error = D::add(less(sum, less(total, back)), less(part[p], back));
        D::store(sums + p * D::width, total);
        D::store(errors + p * D::width, D::add(D::load(errors + p * D::width), error));
    }
}

template <class T, bool Square>
void strip_total(const T* y, Index stride, Index n, Index width, double* sums, double* errors) {
    constexpr Index W = Lanes<T>::width;
    for (Index r = 0; r < n; r += strip_rows) {
        const Index rows = n - r < strip_rows ? n - r : strip_rows;
        const T* block = y + r * stride;
        Index c = 0;
        for (; c + W <= width; c += W)
            strip_total_block<T, Square, false>(block + c, stride, rows, W, sums + c, errors + c);
        if (c < width) strip_total_block<T, Square, true>(block + c, stride, rows, width - c, sums + c, errors + c);
    }
}

// ---- thresholds ---------------------------------------------------------------------------------------------------

template <class T, bool Signed>
Index row_filter(const T* y, Index n, T t, T* found, double* excess) {
    using L = Lanes<T>;
    const auto threshold = L::all(t);
    const Double from = Lanes<double>::all(static_cast<double>(t));
    Exact<T> sum;
    Index to = 0;
    over_all<T, Signed>(
        y, n, Signed ? t : T(0),
        [&](typename L::Reg v, int u) __attribute__((always_inline)) {
            const auto m = L::above(v, threshold);
            sum.add_excess(u, v, from);
            const unsigned bits = L::bits(m);
            L::compress(found + to, bits, v);  // without asking whether there is any: the guess would often fail
            to += popcount(bits);
        },
        [&]() __attribute__((always_inline)) { sum.fold(); });
    *excess += sum.total();
    return to;
}

template <class T, bool Signed>
Index row_keep(const T* y, Index n, T t, T* found) {
    using L = Lanes<T>;
    const auto threshold = L::all(t);
    Index to = 0;
    over_all<T, Signed>(
        y, n, Signed ? t : T(0),
        [&](typename L::Reg v, int) __attribute__((always_inline)) {
            const unsigned bits = L::bits(L::above(v, threshold));
            L::compress(found + to, bits, v);
            to += popcount(bits);
        },
        []() {});
    return to;
}

template <class T, bool Signed>
Index row_window(const T* y, Index n, T lo, T hi, T* found, double* excess, Index* above, double* total) {
    using L = Lanes<T>;
    const auto low = L::all(lo), high = L::all(hi);
    const Double from = Lanes<double>::all(static_cast<double>(hi));
    Exact<T> sum;
    Folded<T> all;
    Index to = 0, count = 0;
    over_all<T, Signed>(
        y, n, Signed ? lo : T(0),
        [&](typename L::Reg v, int u) __attribute__((always_inline)) {
            const auto m = L::above(v, high);
            sum.add_excess(u, v, from);
            all.part[u] = L::add(all.part[u], L::magnitude(v));
            count += popcount(L::bits(m));
            const unsigned bits = L::bits(L::and_not(L::above(v, low), m));
            L::compress(found + to, bits, v);
            to += popcount(bits);
        },
        [&]() __attribute__((always_inline)) { sum.fold(), all.fold(); });
    *excess += sum.total();
    *above += count;
    *total += all.sum.total();
    return to;
}

// ---- writing ------------------------------------------------------------------------------------------------------

// A parameter p is given as the largest T that is not above it, and what is left of it: an entry loses first the one, then
// the other, and is right to a unit in its last place though p is more than T can hold. Where it leaves nothing of a whole
// register of groups, these need not be read.
template <class T>
bool below_top(typename Lanes<T>::Reg p) {
    return Lanes<T>::bits(Lanes<T>::above(Lanes<T>::all(sizeof(T) == 8 ? T(__DBL_MAX__) : T(__FLT_MAX__)), p)) != 0;
}
template <class T>
struct Shrink {  // towards zero, by the parameter
    using L = Lanes<T>;
    using Reg = typename L::Reg;
    // Written such that a parameter of 0 leaves the sign of a zero.
    static T less_one(T y, T p) {
        const T below = y < p ? y : p;
        return y - (below > -p ? below : T(0) - p);
    }
    static Reg less_all(Reg y, Reg p) { return less(y, L::max(L::min(y, p), L::minus(p))); }
    static T one(T y, T high, T low) { return sizeof(T) == 8 ? less_one(y, high) : less_one(less_one(y, high), low); }
    static Reg all(Reg y, Reg high, Reg low) {
        return sizeof(T) == 8 ? less_all(y, high) : less_all(less_all(y, high), low);
    }
    static bool leaves_some(Reg high) { return below_top<T>(high); }
};
template <class T>
struct Shift {  // down by the parameter, to zero at most
    using L = Lanes<T>;
    using Reg = typename L::Reg;
    static T one(T y, T high, T low) { return (y - high) - low > T(0) ? (y - high) - low : T(0); }
    static Reg all(Reg y, Reg high, Reg low) {
        return L::max(less(less(y, high), low), L::all(0));
    }
    static bool leaves_some(Reg high) { return below_top<T>(high); }
};
template <class T>
struct Scale {  // by a parameter >= 0; that of 0 leaves no sign either
    using L = Lanes<T>;
    using Reg = typename L::Reg;
    static T one(T y, T high, T) { return high > T(0) ? y * high : T(0); }
    static Reg all(Reg y, Reg high, Reg) { return keep_where<T>(L::above(high, L::all(0)), times(y, high)); }
    static bool leaves_some(Reg high) { return L::bits(L::above(high, L::all(0))) != 0; }
};
template <class T>
struct Clip {  // to the parameter
    using L = Lanes<T>;
    using Reg = typename L::Reg;
    static Reg all(Reg y, Reg high, Reg) { return L::max(L::min(y, high), L::minus(high)); }
    static bool leaves_some(Reg high) { return L::bits(L::above(high, L::all(0))) != 0; }
};

template <class T, class Op, bool Stream>
void row_map_to(const T* y, T* x, Index n, T high, T low) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto all_high = L::all(high), all_low = L::all(low);
    Index i = Stream ? to_alignment(x, n) : 0;
    for (Index h = 0; h < i; ++h) x[h] = Op::one(y[h], high, low);
    for (; i + W <= n; i += W) put<T, Stream>(x + i, Op::all(L::load(y + i), all_high, all_low));
    for (; i < n; ++i) x[i] = Op::one(y[i], high, low);
}

template <class T, class Op>
void row_map(const T* y, T* x, Index n, T high, T low, bool stream) {
    stream ? row_map_to<T, Op, true>(y, x, n, high, low) : row_map_to<T, Op, false>(y, x, n, high, low);
}

// R rows at once, whose numbers are then loaded once: each row is a stream of its own to read and one to write. They are
// aligned alike.
template <class T, class Op, bool Stream, int R>
void strip_map_rows(const T* y, Index y_stride, T* x, Index x_stride, Index width, const T* high, const T* low,
                    Index ahead) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const auto some = [&](Index i, Index n) __attribute__((always_inline)) {
        const auto h = L::load_first(high + i, n), l = L::load_first(low + i, n);
        for (Index r = 0; r < R; ++r)
            L::store_first(x + r * x_stride + i, n, Op::all(L::load_first(y + r * y_stride + i, n), h, l));
    };
    Index i = to_alignment(x, width);
    if (i > 0) some(0, i);
    for (; i + W <= width; i += W) {
        const auto h = L::load(high + i), l = L::load(low + i);
        if (Op::leaves_some(h))
            for (Index r = 0; r < R; ++r) {
                if (Stream) ask_for(y + r * y_stride + i + ahead);
                put<T, Stream>(x + r * x_stride + i, Op::all(L::load(y + r * y_stride + i), h, l));
            }
        else
            for (Index r = 0; r < R; ++r) put<T, Stream>(x + r * x_stride + i, L::all(0));
    }
    if (i < width) some(i, width - i);
}

template <class T, class Op, bool Stream>
void strip_map_to(const T* y, Index y_stride, T* x, Index x_stride, Index rows, Index before, Index width, const T* high,
                  const T* low) {
    constexpr Index R = 4, far = 2 * R;
    const Index step = rows_to_alignment<T>(x_stride);
    while (rows > 0) {
        const bool several = rows >= R * step;
        rows -= several ? R * step : 1;
        for (Index k = rows; k < rows + (several ? step : 1); ++k) {
            const Index ahead = rows + before >= far * step ? -far * step * y_stride : 0;
            (several ? strip_map_rows<T, Op, Stream, R> : strip_map_rows<T, Op, Stream, 1>)(
                y + k * y_stride, step * y_stride, x + k * x_stride, step * x_stride, width, high, low, ahead);
        }
    }
}

template <class T, class Op>
void strip_map(const T* y, Index y_stride, T* x, Index x_stride, Index rows, Index before, Index width, const T* high,
               const T* low, bool stream) {
    (stream ? strip_map_to<T, Op, true> : strip_map_to<T, Op, false>)(y, y_stride, x, x_stride, rows, before, width, high,
                                                                    low);
}

// ---- turning -------------------------------------------------------------------------------------------------------

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

// A square of rows and columns is turned in registers, so that each column can be squeezed into its list. All of it is
// written without asking what there is: the guess would often fail.
template <class T, bool Signed, bool Partial>
void strip_keep_of(const T* y, Index stride, Index n, Index width, const Index* at, Index count, const T* t, T* lists,
                   Index room, const Index* which, Index* sizes) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    for (Index r = 0; r < n; r += W) {
        const Index height = n - r < W ? n - r : W, ahead = n - r >= 2 * W ? W * stride : 0;
        const unsigned rows = (1u << height) - 1u;
        for (Index p = 0; p < count; ++p) {
            const T* block = y + r * stride + at[p];
            typename L::Reg square[W];
            for (Index i = 0; i < W; ++i) {
                const T* row = block + (i < height ? i : height - 1) * stride;
                ask_for(row + ahead);
                square[i] = Partial ? L::load_first(row, width) : L::load(row);
            }
            transpose<T>(square);
            for (Index i = 0; i < W; ++i) {
                const auto v = Signed ? square[i] : L::magnitude(square[i]);
                const unsigned bits = L::bits(L::above(v, L::all(t[p * W + i]))) & rows;
                Index& size = sizes[p * W + i];
                L::compress(lists + which[p * W + i] * room + (size < room - W ? size : room - W), bits, v);
                size += popcount(bits);
            }
        }
    }
}

template <class T, bool Signed>
void strip_keep(const T* y, Index stride, Index n, Index width, const Index* at, Index count, const T* t, T* lists,
                Index room, const Index* which, Index* sizes) {
    (width < Lanes<T>::width ? strip_keep_of<T, Signed, true> : strip_keep_of<T, Signed, false>)(
        y, stride, n, width, at, count, t, lists, room, which, sizes);
}

template <class T>
FamilyKernels<T> family_table() {
    return {{row_sum<T>, row_sum_of_squares<T>},
            {strip_total<T, false>, strip_total<T, true>},
            {row_keep<T, false>, row_keep<T, true>},
            {row_filter<T, false>, row_filter<T, true>},
            {row_window<T, false>, row_window<T, true>},
            {row_map<T, Shrink<T>>, row_map<T, Shift<T>>, row_map<T, Scale<T>>},
            {strip_map<T, Shrink<T>>, strip_map<T, Shift<T>>, strip_map<T, Scale<T>>, strip_map<T, Clip<T>>},
            {strip_keep<T, false>, strip_keep<T, true>}};
}

}  // namespace normball::NORMBALL_ISA
