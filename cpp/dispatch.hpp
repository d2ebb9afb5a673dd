// The passes over the matrix, as a table of functions: one table for each instruction set, one choice at load time.
#pragma once

#include <cstdint>

namespace normball {

// A row is n contiguous members of one group. A strip is `width` neighbouring groups, contiguous in memory, whose
// members lie `stride` apart; its arrays (sums, counts, peaks, caps) are padded to a multiple of strip_padding.
//
// All magnitudes |y| are those of the members; thresholds are >= 0, so the zeros that pad a register never count.
template <class T>
struct Kernels {
    // For each of `count` rows, `stride` apart: sum and largest of the magnitudes. A NaN or Inf shows in the sum.
    void (*row_stats)(const T* y, std::int64_t n, std::int64_t stride, std::int64_t count, double* sums,
                      double* peaks);
    // Adds the sum and the number of the magnitudes above t.
    void (*row_above)(const T* y, std::int64_t n, T t, double* s, std::int64_t* k);
    // The same for the magnitudes above hi, and lists those in (lo, hi]; returns how many. `found` takes n + 16.
    std::int64_t (*row_collect)(const T* y, std::int64_t n, T lo, T hi, T* found, double* s, std::int64_t* k);
    // Sum and number of the candidates above t, the least of them and the greatest of the others; `above` and `below`
    // come in as what to say when there is none.
    void (*window)(const T* candidates, std::int64_t n, T t, double* s, std::int64_t* k, T* below, T* above);
    // x = clamp(y, -cap, cap); a cap of 0 fills with zeros and does not read y.
    void (*row_clip)(const T* y, T* x, std::int64_t n, T cap, bool stream);

    void (*strip_stats)(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, double* sums, T* peaks);
    void (*strip_above)(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, const T* t, double* s,
                        T* k);
    // Lists the magnitudes in (lo, hi] with their column; returns how many, or -1 when there are more than `room`.
    std::int64_t (*strip_collect)(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, const T* lo,
                                  const T* hi, double* s, T* k, T* found, std::int32_t* column, std::int64_t room);
    void (*strip_clip)(const T* y, T* x, std::int64_t width, const T* caps, bool stream);
};

inline constexpr std::int64_t strip_padding = 16;
// Counts of a strip are kept in T: a float counts exactly to 2^24, so strips are cut into fewer rows than that.
inline constexpr std::int64_t strip_max_rows = std::int64_t(1) << 23;

struct InstructionSet {
    const char* name;
    Kernels<float> f32;
    Kernels<double> f64;
};

// The best set that this machine has, or the one that the environment variable NORMBALL_ISA names; throws
// std::runtime_error where that name is unknown or the machine does not have it.
const InstructionSet& instruction_set();

// Names of all the sets that this machine has, best last, then nullptr.
const char* const* instruction_sets();

template <class T>
const Kernels<T>& kernels() {
    if constexpr (sizeof(T) == sizeof(float))
        return instruction_set().f32;
    else
        return instruction_set().f64;
}

}  // namespace normball
