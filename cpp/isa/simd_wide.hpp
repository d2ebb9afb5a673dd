// Registers of T seen as registers of double: what the family of operators computes in. Beside simd.hpp, the only other
// place that thinks in lanes, and under the same rules.
#pragma once

#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

using Double = Lanes<double>::Reg;

#if defined(__AVX512F__)
inline Double times(Double a, Double b) { return _mm512_mul_pd(a, b); }
inline Double less(Double a, Double b) { return _mm512_sub_pd(a, b); }
inline Double keep_where(Lanes<double>::Mask m, Double v) { return _mm512_maskz_mov_pd(m, v); }
inline Double low_half(__m512 v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
inline Double high_half(__m512 v) { return _mm512_cvtps_pd(Sum<float>::upper(v)); }
inline __m512 joined(Double low, Double high) {
    const __m512d whole = _mm512_castps_pd(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)));
    return _mm512_castpd_ps(_mm512_insertf64x4(whole, _mm256_castps_pd(_mm512_cvtpd_ps(high)), 1));
}
#elif defined(__AVX2__)
inline Double times(Double a, Double b) { return _mm256_mul_pd(a, b); }
inline Double less(Double a, Double b) { return _mm256_sub_pd(a, b); }
inline Double keep_where(Lanes<double>::Mask m, Double v) { return _mm256_and_pd(m, v); }
inline Double low_half(__m256 v) { return _mm256_cvtps_pd(_mm256_castps256_ps128(v)); }
inline Double high_half(__m256 v) { return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)); }
inline __m256 joined(Double low, Double high) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high), 1);
}
#else
inline Double times(Double a, Double b) { return a * b; }
inline Double less(Double a, Double b) { return a - b; }
inline Double keep_where(Lanes<double>::Mask m, Double v) { return Lanes<double>::where(m, v, Double{}); }
inline Double low_half(Lanes<float>::Reg v) { return Double{v[0], v[1]}; }
inline Double high_half(Lanes<float>::Reg v) { return Double{v[2], v[3]}; }
inline Lanes<float>::Reg joined(Double low, Double high) {
    return Lanes<float>::Reg{static_cast<float>(low[0]), static_cast<float>(low[1]), static_cast<float>(high[0]),
                             static_cast<float>(high[1])};
}
#endif

// f(part of v in double, number of the part) for each part, and the results as a register of T again.
template <class F>
[[gnu::always_inline]] inline Double in_double(Double v, F f) {
    return f(v, 0);
}
template <class F>
[[gnu::always_inline]] inline Lanes<float>::Reg in_double(Lanes<float>::Reg v, F f) {
    return joined(f(low_half(v), 0), f(high_half(v), 1));
}

// A sum in double of many registers of T, in four accumulators: to a unit or two in the last place of a double, for
// terms of one sign. Floats are added as doubles; doubles a few at a time, and those sums with their rounding errors
// carried along.
template <class T>
struct Exact;

template <>
struct Exact<double> {
    using L = Lanes<double>;
    Double part[4] = {L::all(0), L::all(0), L::all(0), L::all(0)}, sum = L::all(0), error = L::all(0);

    [[gnu::always_inline]] void add(int u, Double v) { part[u] = L::add(part[u], v); }
    [[gnu::always_inline]] void add_where(int u, L::Mask m, Double v) { part[u] = L::add_where(m, part[u], v); }
    [[gnu::always_inline]] void add_square(int u, Double v) { add(u, times(v, v)); }
    void fold() {
        const Double term = L::add(L::add(part[0], part[1]), L::add(part[2], part[3]));
        const Double total = L::add(sum, term), back = less(total, sum);
        error = L::add(error, L::add(less(sum, less(total, back)), less(term, back)));
        sum = total;
        for (Double& p : part) p = L::all(0);
    }
    double total() const { return Sum<double>{sum}.total() + Sum<double>{error}.total(); }
};

template <>
struct Exact<float> {
    using L = Lanes<float>;
    Sum<float> part[2];

    [[gnu::always_inline]] void add(int u, L::Reg v) { part[u & 1].add(v); }
    [[gnu::always_inline]] void add_where(int u, L::Mask m, L::Reg v) { part[u & 1].add_where(m, v); }
    [[gnu::always_inline]] void add_square(int u, L::Reg v) {
        using D = Lanes<double>;
        const Double low = low_half(v), high = high_half(v);
        part[u & 1].a = D::add(part[u & 1].a, times(low, low));
        part[u & 1].b = D::add(part[u & 1].b, times(high, high));
    }
    void fold() {}
    double total() const {
        Sum<float> all = part[0];
        all.add(part[1]);
        return all.total();
    }
};

}  // namespace normball::NORMBALL_ISA
