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
    if (n - i > 0) {
        alignas(64) T rest[W];
        for (Index j = 0; j < W; ++j) rest[j] = j < n - i ? y[i + j] : filler;
        term(of(L::load(rest)), 3);
    }
    fold();
}

// ---- sums ---------------------------------------------------------------------------------------------------------

template <class T, bool Square>
double row_total(const T* y, Index n) {
    Exact<T> sum;
    over_all<T, false>(
        y, n, T(0),
        [&](typename Lanes<T>::Reg v, int u) __attribute__((always_inline)) {
            if constexpr (Square)
                sum.add_square(u, v);
            else
                sum.add(u, v);
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
            return x;
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
    const auto threshold = L::all(t), minus = L::all(-t);
    Exact<T> sum;
    Index to = 0;
    over_all<T, Signed>(
        y, n, Signed ? t : T(0),
        [&](typename L::Reg v, int u) __attribute__((always_inline)) {
            const auto m = L::above(v, threshold);
            sum.add_where(u, m, L::add(v, minus));
            const unsigned bits = L::bits(m);
            if (bits != 0) {
                L::compress(found + to, bits, v);
                to += popcount(bits);
            }
        },
        [&]() __attribute__((always_inline)) { sum.fold(); });
    *excess += sum.total();
    return to;
}

template <class T, bool Signed>
Index row_window(const T* y, Index n, T lo, T hi, T* found, double* excess, Index* above, double* total) {
    using L = Lanes<T>;
    const auto low = L::all(lo), high = L::all(hi), minus = L::all(-hi);
    Exact<T> sum;
    Folded<T> all;
    Index to = 0, count = 0;
    over_all<T, Signed>(
        y, n, Signed ? lo : T(0),
        [&](typename L::Reg v, int u) __attribute__((always_inline)) {
            const auto m = L::above(v, high);
            sum.add_where(u, m, L::add(v, minus));
            all.part[u] = L::add(all.part[u], L::magnitude(v));
            count += popcount(L::bits(m));
            const unsigned bits = L::bits(L::and_not(L::above(v, low), m));
            if (bits != 0) {
                L::compress(found + to, bits, v);
                to += popcount(bits);
            }
        },
        [&]() __attribute__((always_inline)) { sum.fold(), all.fold(); });
    *excess += sum.total();
    *above += count;
    *total += all.sum.total();
    return to;
}

// ---- writing ------------------------------------------------------------------------------------------------------

struct Shrink {  // towards zero, by the parameter
    static constexpr bool kills_with_zero = false;
    // Written such that a parameter of 0 leaves the sign of a zero.
    static double one(double y, double p) {
        const double below = y < p ? y : p;
        return y - (below > -p ? below : 0.0 - p);
    }
    static Double all(Double y, Double p) {
        using D = Lanes<double>;
        return less(y, D::max(D::min(y, p), D::minus(p)));
    }
};
struct Shift {  // down by the parameter, to zero at most
    static constexpr bool kills_with_zero = false;
    static double one(double y, double p) { return y - p > 0.0 ? y - p : 0.0; }
    static Double all(Double y, Double p) { return Lanes<double>::max(less(y, p), Lanes<double>::all(0)); }
};
struct Scale {  // by a parameter >= 0; that of 0 leaves no sign either
    static constexpr bool kills_with_zero = true;
    static double one(double y, double p) { return p > 0.0 ? y * p : 0.0; }
    static Double all(Double y, Double p) {
        using D = Lanes<double>;
        return keep_where(D::above(p, D::all(0)), times(y, p));
    }
};

template <class T, class Op, bool Stream>
void row_map_to(const T* y, T* x, Index n, double p) {
    using L = Lanes<T>;
    constexpr Index W = L::width;
    const Double parameter = Lanes<double>::all(p);
    Index i = Stream ? to_alignment(x, n) : 0;
    for (Index h = 0; h < i; ++h) x[h] = static_cast<T>(Op::one(static_cast<double>(y[h]), p));
    for (; i + W <= n; i += W)
        put<T, Stream>(x + i, in_double(L::load(y + i), [&](Double v, int) __attribute__((always_inline)) {
                           return Op::all(v, parameter);
                       }));
    for (; i < n; ++i) x[i] = static_cast<T>(Op::one(static_cast<double>(y[i]), p));
}

template <class T, class Op>
void row_map(const T* y, T* x, Index n, double p, bool stream) {
    stream ? row_map_to<T, Op, true>(y, x, n, p) : row_map_to<T, Op, false>(y, x, n, p);
}

template <class T, class Op, bool Stream>
void strip_map_to(const T* y, T* x, Index width, const double* p) {
    using L = Lanes<T>;
    using D = Lanes<double>;
    constexpr Index W = L::width;
    Index i = Stream ? to_alignment(x, width) : 0;
    for (Index h = 0; h < i; ++h) x[h] = static_cast<T>(Op::one(static_cast<double>(y[h]), p[h]));
    for (; i + W <= width; i += W) {
        if constexpr (Op::kills_with_zero) {  // a whole register of zero groups: y need not be read
            unsigned alive = 0;
            for (int part = 0; part < W / D::width; ++part)
                alive |= D::bits(D::above(D::load(p + i + part * D::width), D::all(0)));
            if (alive == 0) {
                put<T, Stream>(x + i, L::all(0));
                continue;
            }
        }
        put<T, Stream>(x + i, in_double(L::load(y + i), [&](Double v, int part) __attribute__((always_inline)) {
                           return Op::all(v, D::load(p + i + part * D::width));
                       }));
    }
    for (; i < width; ++i) x[i] = static_cast<T>(Op::one(static_cast<double>(y[i]), p[i]));
}

template <class T, class Op>
void strip_map(const T* y, T* x, Index width, const double* p, bool stream) {
    stream ? strip_map_to<T, Op, true>(y, x, width, p) : strip_map_to<T, Op, false>(y, x, width, p);
}

template <class T>
FamilyKernels<T> family_table() {
    return {{row_total<T, false>, row_total<T, true>},
            {strip_total<T, false>, strip_total<T, true>},
            {row_filter<T, false>, row_filter<T, true>},
            {row_window<T, false>, row_window<T, true>},
            {row_map<T, Shrink>, row_map<T, Shift>, row_map<T, Scale>},
            {strip_map<T, Shrink>, strip_map<T, Shift>, strip_map<T, Scale>}};
}

}  // namespace normball::NORMBALL_ISA
