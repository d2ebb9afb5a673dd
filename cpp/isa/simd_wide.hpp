// What the family of operators needs besides simd.hpp, under the same rules: products, differences, and sums in double
// that do not drift.
#pragma once

#include "isa/simd.hpp"

namespace normball::NORMBALL_ISA {

using Double = Lanes<double>::Reg;

#if defined(__AVX512F__)
inline Double times(Double a, Double b) { return _mm512_mul_pd(a, b); }
inline __m512 times(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }
template <class T>  // v where the mask has it, else 0
typename Lanes<T>::Reg keep_where(typename Lanes<T>::Mask m, typename Lanes<T>::Reg v) {
    if constexpr (sizeof(T) == sizeof(double))
        return _mm512_maskz_mov_pd(m, v);
    else
        return _mm512_maskz_mov_ps(m, v);
}
// The first n at p, and `rest` in the other lanes.
inline Double load_or(const double* p, std::int64_t n, Double rest) {
    return _mm512_mask_loadu_pd(rest, Lanes<double>::first(n), p);
}
inline __m512 load_or(const float* p, std::int64_t n, __m512 rest) {
    return _mm512_mask_loadu_ps(rest, Lanes<float>::first(n), p);
}
inline Double less(Double a, Double b) { return _mm512_sub_pd(a, b); }
inline __m512 less(__m512 a, __m512 b) { return _mm512_sub_ps(a, b); }
inline Double low_half(__m512 v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
inline Double high_half(__m512 v) { return _mm512_cvtps_pd(Sum<float>::upper(v)); }
#elif defined(__AVX2__)
inline Double times(Double a, Double b) { return _mm256_mul_pd(a, b); }
inline __m256 times(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
template <class T>  // v where the mask has it, else 0
typename Lanes<T>::Reg keep_where(typename Lanes<T>::Mask m, typename Lanes<T>::Reg v) {
    if constexpr (sizeof(T) == sizeof(double))
        return _mm256_and_pd(m, v);
    else
        return _mm256_and_ps(m, v);
}
inline Double load_or(const double* p, std::int64_t n, Double rest) {
    const auto some = Lanes<double>::first(n);
    return _mm256_blendv_pd(rest, _mm256_maskload_pd(p, some), _mm256_castsi256_pd(some));
}
inline __m256 load_or(const float* p, std::int64_t n, __m256 rest) {
    const auto some = Lanes<float>::first(n);
    return _mm256_blendv_ps(rest, _mm256_maskload_ps(p, some), _mm256_castsi256_ps(some));
}
inline Double less(Double a, Double b) { return _mm256_sub_pd(a, b); }
inline __m256 less(__m256 a, __m256 b) { return _mm256_sub_ps(a, b); }
inline Double low_half(__m256 v) { return _mm256_cvtps_pd(_mm256_castps256_ps128(v)); }
inline Double high_half(__m256 v) { return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)); }
#else
template <class Reg>
Reg times(Reg a, Reg b) {
    return a * b;
}
template <class T>  // v where the mask has it, else 0
typename Lanes<T>::Reg keep_where(typename Lanes<T>::Mask m, typename Lanes<T>::Reg v) {
    return Lanes<T>::where(m, v, typename Lanes<T>::Reg{});
}
template <class T, class Reg>
Reg load_or(const T* p, std::int64_t n, Reg rest) {
    for (std::int64_t i = 0; i < n; ++i) rest[i] = p[i];
    return rest;
}
template <class Reg>
Reg less(Reg a, Reg b) {
    return a - b;
}
inline Double low_half(Lanes<float>::Reg v) { return Double{v[0], v[1]}; }
inline Double high_half(Lanes<float>::Reg v) { return Double{v[2], v[3]}; }
#endif

// f(part of v in double, number of the part) for each part.
template <class F>
[[gnu::always_inline]] inline void in_double(Double v, F f) {
    f(v, 0);
}
template <class F>
[[gnu::always_inline]] inline void in_double(Lanes<float>::Reg v, F f) {
    f(low_half(v), 0), f(high_half(v), 1);
}

// A sum in double of many registers of T, or of how much they exceed t, in four accumulators: to a unit or two in the last place of a double, for
// terms of one sign. Floats are added as doubles; doubles a few at a time, and those sums with their rounding errors
// carried along.
template <class T>
struct Exact;

template <>
struct Exact<double> {
    using L = Lanes<double>;
    Double part[4] = {L::all(0), L::all(0), L::all(0), L::all(0)}, sum = L::all(0), error = L::all(0);

    [[gnu::always_inline]] void add(int u, Double v) { part[u] = L::add(part[u], v); }
    [[gnu::always_inline]] void add_excess(int u, Double v, Double t) {
        part[u] = L::add(part[u], L::max(less(v, t), L::all(0)));
    }
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
    [[gnu::always_inline]] void add_excess(int u, L::Reg v, Double t) {
        using D = Lanes<double>;
        part[u & 1].a = D::add(part[u & 1].a, D::max(less(low_half(v), t), D::all(0)));
        part[u & 1].b = D::add(part[u & 1].b, D::max(less(high_half(v), t), D::all(0)));
    }
    void fold() {}
    double total() const {
        Sum<float> all = part[0];
        all.add(part[1]);
        return all.total();
    }
};

}  // namespace normball::NORMBALL_ISA
