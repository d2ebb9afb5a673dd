// The only file that thinks in lanes. Lanes<T> is a register of T, Sum<T> one double per lane of Lanes<T>. Operands of
// max_unless are not negative.
//
// Included once by each file of isa/, under that file's compiler flags and inside its own namespace, so that code for
// one instruction set can never be linked in place of another's. For the same reason nothing here, nor in the kernels,
// uses a template of the standard library: the linker keeps one copy of those for the whole program.
#pragma once

#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace normball::NORMBALL_ISA {

template <class T>
struct Lanes;
template <class T>
struct Sum;

#if defined(__AVX512F__)

template <>
struct Lanes<double> {
    static constexpr int width = 8;
    using Reg = __m512d;
    using Mask = __mmask8;
    static Mask first(std::int64_t n) { return static_cast<Mask>((1u << n) - 1u); }
    static Reg load(const double* p) { return _mm512_loadu_pd(p); }
    static Reg load_first(const double* p, std::int64_t n) { return _mm512_maskz_loadu_pd(first(n), p); }
    static void store(double* p, Reg v) { _mm512_storeu_pd(p, v); }
    static void store_first(double* p, std::int64_t n, Reg v) { _mm512_mask_storeu_pd(p, first(n), v); }
    static void stream(double* p, Reg v) { _mm512_stream_pd(p, v); }
    static Reg all(double x) { return _mm512_set1_pd(x); }
    static Reg magnitude(Reg v) { return _mm512_abs_pd(v); }
    static Reg add(Reg a, Reg b) { return _mm512_add_pd(a, b); }
    static Reg add_where(Mask m, Reg a, Reg b) { return _mm512_mask_add_pd(a, m, a, b); }
    static Reg max(Reg a, Reg b) { return _mm512_max_pd(a, b); }
    static Reg min(Reg a, Reg b) { return _mm512_min_pd(a, b); }
    static Reg where(Mask m, Reg a, Reg b) { return _mm512_mask_blend_pd(m, b, a); }
    static Reg min_where(Mask m, Reg a, Reg b) { return _mm512_mask_min_pd(a, m, a, b); }
    static Reg max_unless(Mask m, Reg a, Reg b) { return _mm512_mask_max_pd(a, static_cast<Mask>(~m), a, b); }
    static Reg minus(Reg v) { return _mm512_sub_pd(_mm512_setzero_pd(), v); }
    static Mask above(Reg a, Reg b) { return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ); }
    static Mask and_not(Mask a, Mask b) { return static_cast<Mask>(a & ~b); }
    static unsigned bits(Mask m) { return m; }
    // Numbers of lanes are kept as integers, whose additions do not compete with those of the values.
    using Count = __m512i;
    static Count count(const double* p) { return _mm512_cvtpd_epi64(load(p)); }
    static void store_count(double* p, Count c) { store(p, _mm512_cvtepi64_pd(c)); }
    static Count count_where(Mask m, Count c) { return _mm512_mask_sub_epi64(c, m, c, _mm512_set1_epi64(-1)); }
    // The lanes named by `bits`, side by side, and after them anything. The compressing store is microcoded on some
    // chips; compressing in a register is fast on all of them.
    static void compress(double* p, unsigned bits, Reg v) {
        _mm512_storeu_pd(p, _mm512_maskz_compress_pd(static_cast<Mask>(bits), v));
    }
    // What lies side by side at p, in the lanes named by `bits`, and 0 in the others. Reads a whole register. The order is
    // dear, and serves for many.
    struct Order {
        __m512i from;
        Mask named;
    };
    static Order order(unsigned bits) {
        const auto named = static_cast<Mask>(bits);
        return {_mm512_maskz_expand_epi64(named, _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7)), named};
    }
    static Reg expand(const double* p, const Order& to) { return _mm512_maskz_permutexvar_pd(to.named, to.from, load(p)); }
    // a, with v[from[i]] in each lane i named by `to`. There are 16 bytes at `from`.
    static Reg pick(Reg a, unsigned to, Reg v, const std::uint8_t* from) {
        const __m512i order = _mm512_cvtepu8_epi64(_mm_loadu_si64(from));
        return _mm512_mask_permutexvar_pd(a, static_cast<Mask>(to), order, v);
    }
    static Reg zip_low(Reg a, Reg b) {
        return _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b);
    }
    static Reg zip_high(Reg a, Reg b) {
        return _mm512_permutex2var_pd(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b);
    }
};

template <>
struct Lanes<float> {
    static constexpr int width = 16;
    using Reg = __m512;
    using Mask = __mmask16;
    static Mask first(std::int64_t n) { return static_cast<Mask>((1u << n) - 1u); }
    static Reg load(const float* p) { return _mm512_loadu_ps(p); }
    static Reg load_first(const float* p, std::int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
    static void store(float* p, Reg v) { _mm512_storeu_ps(p, v); }
    static void store_first(float* p, std::int64_t n, Reg v) { _mm512_mask_storeu_ps(p, first(n), v); }
    static void stream(float* p, Reg v) { _mm512_stream_ps(p, v); }
    static Reg all(float x) { return _mm512_set1_ps(x); }
    static Reg magnitude(Reg v) { return _mm512_abs_ps(v); }
    static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
    static Reg add_where(Mask m, Reg a, Reg b) { return _mm512_mask_add_ps(a, m, a, b); }
    static Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
    static Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
    static Reg where(Mask m, Reg a, Reg b) { return _mm512_mask_blend_ps(m, b, a); }
    static Reg min_where(Mask m, Reg a, Reg b) { return _mm512_mask_min_ps(a, m, a, b); }
    static Reg max_unless(Mask m, Reg a, Reg b) { return _mm512_mask_max_ps(a, static_cast<Mask>(~m), a, b); }
    static Reg minus(Reg v) { return _mm512_sub_ps(_mm512_setzero_ps(), v); }
    static Mask above(Reg a, Reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
    static Mask and_not(Mask a, Mask b) { return static_cast<Mask>(a & ~b); }
    static unsigned bits(Mask m) { return m; }
    using Count = __m512i;
    static Count count(const float* p) { return _mm512_cvtps_epi32(load(p)); }
    static void store_count(float* p, Count c) { store(p, _mm512_cvtepi32_ps(c)); }
    static Count count_where(Mask m, Count c) { return _mm512_mask_sub_epi32(c, m, c, _mm512_set1_epi32(-1)); }
    static void compress(float* p, unsigned bits, Reg v) {
        _mm512_storeu_ps(p, _mm512_maskz_compress_ps(static_cast<Mask>(bits), v));
    }
    struct Order {
        __m512i from;
        Mask named;
    };
    static Order order(unsigned bits) {
        const auto named = static_cast<Mask>(bits);
        const auto all = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        return {_mm512_maskz_expand_epi32(named, all), named};
    }
    static Reg expand(const float* p, const Order& to) { return _mm512_maskz_permutexvar_ps(to.named, to.from, load(p)); }
    static Reg pick(Reg a, unsigned to, Reg v, const std::uint8_t* from) {
        const __m512i order = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
        return _mm512_mask_permutexvar_ps(a, static_cast<Mask>(to), order, v);
    }
    static Reg zip_low(Reg a, Reg b) {
        return _mm512_permutex2var_ps(
            a, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b);
    }
    static Reg zip_high(Reg a, Reg b) {
        return _mm512_permutex2var_ps(
            a, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), b);
    }
};

template <>
struct Sum<double> {
    __m512d a = _mm512_setzero_pd();
    static Sum load(const double* p) { return {_mm512_loadu_pd(p)}; }
    void store(double* p) const { _mm512_storeu_pd(p, a); }
    void add(__m512d v) { a = _mm512_add_pd(a, v); }
    void add_where(__mmask8 m, __m512d v) { a = _mm512_mask_add_pd(a, m, a, v); }
    void add(const Sum& other) { a = _mm512_add_pd(a, other.a); }
    __m512d halves() const { return a; }
    double total() const { return _mm512_reduce_add_pd(halves()); }
};

template <>
struct Sum<float> {
    __m512d a = _mm512_setzero_pd(), b = _mm512_setzero_pd();
    static __m256 upper(__m512 v) { return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)); }
    static Sum load(const double* p) { return {_mm512_loadu_pd(p), _mm512_loadu_pd(p + 8)}; }
    void store(double* p) const { _mm512_storeu_pd(p, a), _mm512_storeu_pd(p + 8, b); }
    void add(__m512 v) {
        a = _mm512_add_pd(a, _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
        b = _mm512_add_pd(b, _mm512_cvtps_pd(upper(v)));
    }
    void add_where(__mmask16 m, __m512 v) { add(_mm512_maskz_mov_ps(m, v)); }
    void add(const Sum& other) { a = _mm512_add_pd(a, other.a), b = _mm512_add_pd(b, other.b); }
    __m512d halves() const { return _mm512_add_pd(a, b); }
    double total() const { return _mm512_reduce_add_pd(halves()); }
};

#elif defined(__AVX2__)

// Row m of `front` lists the lanes of mask m in order: the permutation that moves them to the front. Row m of `back` moves
// them from there to their lanes, and of `named` has ones in these.
template <int Count, int Words>
struct CompressTable {
    alignas(32) std::int32_t front[1 << Count][8] = {}, back[1 << Count][8] = {}, named[1 << Count][8] = {};
    constexpr CompressTable() {
        for (int m = 0; m < (1 << Count); ++m) {
            int to = 0;
            for (int lane = 0; lane < Count; ++lane)
                if (m >> lane & 1)
                    for (int w = 0; w < Words; ++w, ++to) {
                        front[m][to] = lane * Words + w, back[m][lane * Words + w] = to, named[m][lane * Words + w] = -1;
                    }
        }
    }
    static __m256i load(const std::int32_t (&row)[8]) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(row)); }
    __m256 compress(unsigned bits, __m256 v) const { return _mm256_permutevar8x32_ps(v, load(front[bits])); }
    __m256 expand(unsigned bits, __m256 v) const {
        return _mm256_and_ps(_mm256_permutevar8x32_ps(v, load(back[bits])), _mm256_castsi256_ps(load(named[bits])));
    }
};
inline constexpr CompressTable<4, 2> compress_double;
inline constexpr CompressTable<8, 1> compress_float;

template <>
struct Lanes<double> {
    static constexpr int width = 4;
    using Reg = __m256d;
    using Mask = __m256d;
    static __m256i first(std::int64_t n) {
        return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
    }
    static Reg load(const double* p) { return _mm256_loadu_pd(p); }
    static Reg load_first(const double* p, std::int64_t n) { return _mm256_maskload_pd(p, first(n)); }
    static void store(double* p, Reg v) { _mm256_storeu_pd(p, v); }
    static void store_first(double* p, std::int64_t n, Reg v) { _mm256_maskstore_pd(p, first(n), v); }
    static void stream(double* p, Reg v) { _mm256_stream_pd(p, v); }
    static Reg all(double x) { return _mm256_set1_pd(x); }
    static Reg magnitude(Reg v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }
    static Reg add(Reg a, Reg b) { return _mm256_add_pd(a, b); }
    static Reg add_where(Mask m, Reg a, Reg b) { return _mm256_add_pd(a, _mm256_and_pd(m, b)); }
    static Reg max(Reg a, Reg b) { return _mm256_max_pd(a, b); }
    static Reg min(Reg a, Reg b) { return _mm256_min_pd(a, b); }
    static Reg minus(Reg v) { return _mm256_sub_pd(_mm256_setzero_pd(), v); }
    static Mask above(Reg a, Reg b) { return _mm256_cmp_pd(a, b, _CMP_GT_OQ); }
    static Mask and_not(Mask a, Mask b) { return _mm256_andnot_pd(b, a); }
    static unsigned bits(Mask m) { return static_cast<unsigned>(_mm256_movemask_pd(m)); }
    using Count = Reg;
    static Count count(const double* p) { return load(p); }
    static void store_count(double* p, Count c) { store(p, c); }
    static Count count_where(Mask m, Count c) { return add_where(m, c, all(1)); }
    static Reg where(Mask m, Reg a, Reg b) { return _mm256_blendv_pd(b, a, m); }
    static Reg min_where(Mask m, Reg a, Reg b) { return where(m, min(a, b), a); }
    static Reg max_unless(Mask m, Reg a, Reg b) { return max(a, _mm256_andnot_pd(m, b)); }
    static void compress(double* p, unsigned bits, Reg v) {
        _mm256_storeu_pd(p, _mm256_castps_pd(compress_double.compress(bits, _mm256_castpd_ps(v))));
    }
    using Order = unsigned;
    static Order order(unsigned bits) { return bits; }
    static Reg expand(const double* p, Order bits) {
        return _mm256_castps_pd(compress_double.expand(bits, _mm256_castpd_ps(load(p))));
    }
    static Reg pick(Reg a, unsigned to, Reg v, const std::uint8_t* from) {
        for (int i = 0; i < width; ++i) a[i] = to >> i & 1u ? v[from[i]] : a[i];
        return a;
    }
    static Reg zip_low(Reg a, Reg b) {
        return _mm256_permute2f128_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), 0x20);
    }
    static Reg zip_high(Reg a, Reg b) {
        return _mm256_permute2f128_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), 0x31);
    }
};

template <>
struct Lanes<float> {
    static constexpr int width = 8;
    using Reg = __m256;
    using Mask = __m256;
    static __m256i first(std::int64_t n) {
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    }
    static Reg load(const float* p) { return _mm256_loadu_ps(p); }
    static Reg load_first(const float* p, std::int64_t n) { return _mm256_maskload_ps(p, first(n)); }
    static void store(float* p, Reg v) { _mm256_storeu_ps(p, v); }
    static void store_first(float* p, std::int64_t n, Reg v) { _mm256_maskstore_ps(p, first(n), v); }
    static void stream(float* p, Reg v) { _mm256_stream_ps(p, v); }
    static Reg all(float x) { return _mm256_set1_ps(x); }
    static Reg magnitude(Reg v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }
    static Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
    static Reg add_where(Mask m, Reg a, Reg b) { return _mm256_add_ps(a, _mm256_and_ps(m, b)); }
    static Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
    static Reg min(Reg a, Reg b) { return _mm256_min_ps(a, b); }
    static Reg minus(Reg v) { return _mm256_sub_ps(_mm256_setzero_ps(), v); }
    static Mask above(Reg a, Reg b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
    static Mask and_not(Mask a, Mask b) { return _mm256_andnot_ps(b, a); }
    static unsigned bits(Mask m) { return static_cast<unsigned>(_mm256_movemask_ps(m)); }
    using Count = __m256i;
    static Count count(const float* p) { return _mm256_cvtps_epi32(load(p)); }
    static void store_count(float* p, Count c) { store(p, _mm256_cvtepi32_ps(c)); }
    static Count count_where(Mask m, Count c) { return _mm256_sub_epi32(c, _mm256_castps_si256(m)); }
    static Reg where(Mask m, Reg a, Reg b) { return _mm256_blendv_ps(b, a, m); }
    static Reg min_where(Mask m, Reg a, Reg b) { return where(m, min(a, b), a); }
    static Reg max_unless(Mask m, Reg a, Reg b) { return max(a, _mm256_andnot_ps(m, b)); }
    static void compress(float* p, unsigned bits, Reg v) {
        _mm256_storeu_ps(p, compress_float.compress(bits, v));
    }
    using Order = unsigned;
    static Order order(unsigned bits) { return bits; }
    static Reg expand(const float* p, Order bits) { return compress_float.expand(bits, load(p)); }
    static Reg pick(Reg a, unsigned to, Reg v, const std::uint8_t* from) {
        const __m256i order = _mm256_cvtepu8_epi32(_mm_loadu_si64(from));
        const __m256 named = _mm256_castsi256_ps(compress_float.load(compress_float.named[to]));
        return _mm256_blendv_ps(a, _mm256_permutevar8x32_ps(v, order), named);
    }
    static Reg zip_low(Reg a, Reg b) {
        return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20);
    }
    static Reg zip_high(Reg a, Reg b) {
        return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31);
    }
};

template <>
struct Sum<double> {
    __m256d a = _mm256_setzero_pd();
    static Sum load(const double* p) { return {_mm256_loadu_pd(p)}; }
    void store(double* p) const { _mm256_storeu_pd(p, a); }
    void add(__m256d v) { a = _mm256_add_pd(a, v); }
    void add_where(__m256d m, __m256d v) { a = _mm256_add_pd(a, _mm256_and_pd(m, v)); }
    void add(const Sum& other) { a = _mm256_add_pd(a, other.a); }
    __m256d halves() const { return a; }
    double total() const {
        const __m128d h = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
        return _mm_cvtsd_f64(_mm_add_sd(h, _mm_unpackhi_pd(h, h)));
    }
};

template <>
struct Sum<float> {
    __m256d a = _mm256_setzero_pd(), b = _mm256_setzero_pd();
    static Sum load(const double* p) { return {_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)}; }
    void store(double* p) const { _mm256_storeu_pd(p, a), _mm256_storeu_pd(p + 4, b); }
    void add(__m256 v) {
        a = _mm256_add_pd(a, _mm256_cvtps_pd(_mm256_castps256_ps128(v)));
        b = _mm256_add_pd(b, _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
    }
    void add_where(__m256 m, __m256 v) { add(_mm256_and_ps(m, v)); }
    void add(const Sum& other) { a = _mm256_add_pd(a, other.a), b = _mm256_add_pd(b, other.b); }
    __m256d halves() const { return _mm256_add_pd(a, b); }
    double total() const { return Sum<double>{halves()}.total(); }
};

#else  // 128-bit vectors of GCC and Clang: SSE2 on x86-64, NEON on AArch64

template <class T>
struct Lanes128;
template <>
struct Lanes128<double> {
    typedef double Reg __attribute__((vector_size(16)));
    typedef std::int64_t Mask __attribute__((vector_size(16)));
    using Bits = std::int64_t;
};
template <>
struct Lanes128<float> {
    typedef float Reg __attribute__((vector_size(16)));
    typedef std::int32_t Mask __attribute__((vector_size(16)));
    using Bits = std::int32_t;
};

template <class T>
struct Lanes {
    static constexpr int width = 16 / sizeof(T);
    using Reg = typename Lanes128<T>::Reg;
    using Mask = typename Lanes128<T>::Mask;
    using Bits = typename Lanes128<T>::Bits;
    static Reg load(const T* p) {
        Reg v;
        __builtin_memcpy(&v, p, sizeof v);
        return v;
    }
    static Reg load_first(const T* p, std::int64_t n) {
        Reg v = {};
        for (std::int64_t i = 0; i < n; ++i) v[i] = p[i];
        return v;
    }
    static void store(T* p, Reg v) { __builtin_memcpy(p, &v, sizeof v); }
    static void store_first(T* p, std::int64_t n, Reg v) {
        for (std::int64_t i = 0; i < n; ++i) p[i] = v[i];
    }
    static void stream(T* p, Reg v) {
#if defined(__clang__)
        __builtin_nontemporal_store(v, reinterpret_cast<Reg*>(p));
#elif defined(__SSE2__)
        __builtin_ia32_movntps(reinterpret_cast<float*>(p), reinterpret_cast<typename Lanes128<float>::Reg>(v));
#else
        store(p, v);
#endif
    }
    static Reg all(T x) { return x - Reg{}; }
    static Reg magnitude(Reg v) {
        constexpr Bits sign = Bits(1) << (8 * sizeof(Bits) - 2) << 1;
        return reinterpret_cast<Reg>(reinterpret_cast<Mask>(v) & ~(sign - Mask{}));
    }
    static Reg where(Mask m, Reg a, Reg b) {
        return reinterpret_cast<Reg>((m & reinterpret_cast<Mask>(a)) | (~m & reinterpret_cast<Mask>(b)));
    }
    static Reg add(Reg a, Reg b) { return a + b; }
    static Reg add_where(Mask m, Reg a, Reg b) { return a + where(m, b, Reg{}); }
    static Reg max(Reg a, Reg b) { return where(a > b, a, b); }
    static Reg min(Reg a, Reg b) { return where(a < b, a, b); }
    static Reg min_where(Mask m, Reg a, Reg b) { return where(m, min(a, b), a); }
    static Reg max_unless(Mask m, Reg a, Reg b) { return where(m, a, max(a, b)); }
    static Reg minus(Reg v) { return Reg{} - v; }  // of 0: +0
    static Mask above(Reg a, Reg b) { return a > b; }
    static Mask and_not(Mask a, Mask b) { return a & ~b; }
    static unsigned bits(Mask m) {
        unsigned out = 0;
        for (int i = 0; i < width; ++i) out |= static_cast<unsigned>(m[i] & 1) << i;
        return out;
    }
    using Count = Mask;
    static Count count(const T* p) { return __builtin_convertvector(load(p), Count); }
    static void store_count(T* p, Count c) { store(p, __builtin_convertvector(c, Reg)); }
    static Count count_where(Mask m, Count c) { return c - m; }
    static void compress(T* p, unsigned bits, Reg v) {
        for (unsigned i = 0, to = 0; i < width; to += bits >> i & 1u, ++i) p[to] = v[i];
    }
    using Order = unsigned;
    static Order order(unsigned bits) { return bits; }
    static Reg expand(const T* p, Order bits) {
        Reg v;
        for (unsigned i = 0, from = 0; i < width; from += bits >> i & 1u, ++i) v[i] = bits >> i & 1u ? p[from] : T(0);
        return v;
    }
    static Reg pick(Reg a, unsigned to, Reg v, const std::uint8_t* from) {
        for (int i = 0; i < width; ++i) a[i] = to >> i & 1u ? v[from[i]] : a[i];
        return a;
    }
    // The even lanes come from the first half of a and b, side by side, and so on.
    static Reg zip_low(Reg a, Reg b) {
        Reg v;
        for (int i = 0; i < width; ++i) v[i] = i % 2 == 0 ? a[i / 2] : b[i / 2];
        return v;
    }
    static Reg zip_high(Reg a, Reg b) {
        Reg v;
        for (int i = 0; i < width; ++i) v[i] = i % 2 == 0 ? a[width / 2 + i / 2] : b[width / 2 + i / 2];
        return v;
    }
};

template <>
struct Sum<double> {
    using Reg = Lanes<double>::Reg;
    Reg a = {};
    static Sum load(const double* p) { return {Lanes<double>::load(p)}; }
    void store(double* p) const { Lanes<double>::store(p, a); }
    void add(Reg v) { a += v; }
    void add_where(Lanes<double>::Mask m, Reg v) { a += Lanes<double>::where(m, v, Reg{}); }
    void add(const Sum& other) { a += other.a; }
    Reg halves() const { return a; }
    double total() const { return a[0] + a[1]; }
};

template <>
struct Sum<float> {
    using Reg = Lanes<float>::Reg;
    Lanes<double>::Reg a = {}, b = {};
    static Sum load(const double* p) { return {Lanes<double>::load(p), Lanes<double>::load(p + 2)}; }
    void store(double* p) const { Lanes<double>::store(p, a), Lanes<double>::store(p + 2, b); }
    void add(Reg v) {
        a += Lanes<double>::Reg{v[0], v[1]};
        b += Lanes<double>::Reg{v[2], v[3]};
    }
    void add_where(Lanes<float>::Mask m, Reg v) { add(Lanes<float>::where(m, v, Reg{})); }
    void add(const Sum& other) { a += other.a, b += other.b; }
    Lanes<double>::Reg halves() const { return a + b; }
    double total() const { return Sum<double>{halves()}.total(); }
};

#endif

}  // namespace normball::NORMBALL_ISA
