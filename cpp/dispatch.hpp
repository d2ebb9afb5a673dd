// The passes over the matrix, as a table of functions: one table for each instruction set, one choice at load time.
#pragma once

#include <cstdint>

namespace normball {

// A row is n contiguous members of one group. A strip is `width` neighbouring groups, contiguous in memory, whose
// members lie `stride` apart; its arrays of sums and peaks are padded to a multiple of lane_limit.
//
// Magnitudes |y| are compared with thresholds >= 0, so the zeros that pad a register never count. Sums are in double;
// except in row_gap, floats are added in float over a few terms first, with an error below that of one rounding to float.
template <class T>
struct Kernels {
    std::int64_t lanes;  // elements to a register

    // For each of `count` rows, `stride` apart: sum and largest of the magnitudes. A NaN or Inf shows in the sum.
    void (*row_stats)(const T* y, std::int64_t n, std::int64_t stride, std::int64_t count, double* sums,
                      double* peaks);
    // Adds the sum and the number of the magnitudes above t.
    void (*row_above)(const T* y, std::int64_t n, T t, double* s, std::int64_t* k);
    // The same, and moves `below` up to the greatest magnitude that is not above t, `above` down to the least that is.
    void (*row_gap)(const T* y, std::int64_t n, T t, double* s, std::int64_t* k, T* below, T* above);
    // Adds the sum and the number of the magnitudes above hi, and lists those in (lo, hi]; returns how many. `found` takes n + lane_limit.
    std::int64_t (*row_collect)(const T* y, std::int64_t n, T lo, T hi, T* found, double* s, std::int64_t* k);
    // x = clamp(y, -cap, cap); a cap of 0 fills with zeros and does not read y.
    void (*row_clip)(const T* y, T* x, std::int64_t n, T cap, bool stream);

    // Adds to the sums, and raises the peaks, of every group of the strip.
    void (*strip_stats)(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, double* sums, T* peaks);
    // What row_gap does, for as many neighbouring groups as there are lanes, or fewer: arrays of lane_limit, one entry
    // for each group, hold the thresholds and receive the rest. Counts are in T: exact for fewer than 2^24 members.
    void (*lane_gap)(const T* y, std::int64_t stride, std::int64_t n, std::int64_t lanes, const T* t, double* s, T* k,
                     T* below, T* above);
    // Copies at most gather_limit columns of the strip, in rising order, to contiguous rows that lie `row_stride` apart.
    void (*strip_gather)(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width,
                         const std::int64_t* columns, std::int64_t count, T* rows, std::int64_t row_stride);
    // One row of members: x = clamp(y, -caps, caps). `sparse` looks for runs of zero caps, to spare reads of y.
    void (*strip_clip)(const T* y, T* x, std::int64_t width, const T* caps, bool stream, bool sparse);
};

inline constexpr std::int64_t lane_limit = 16;  // no register holds more elements
inline constexpr std::int64_t gather_limit = 256;

// What the rest of the family of operators needs. Sums are in double; those of doubles are right to a unit or two in the
// last place. Where there is a choice of two, the second is for squares, or for values with their signs in place of magnitudes.
template <class T>
struct FamilyKernels {
    // Sum of the magnitudes, or of the squares.
    double (*row_total[2])(const T* y, std::int64_t n);
    // The same for each group of a strip, added to `sums`, and to `errors` what rounding takes; both padded.
    void (*strip_total[2])(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, double* sums,
                           double* errors);
    // Lists the values above t, returns how many, and adds by how much they exceed it. `found` takes n + lane_limit, and
    // may be y.
    std::int64_t (*row_filter[2])(const T* y, std::int64_t n, T t, T* found, double* excess);
    // Lists the values in (lo, hi] and returns how many; adds the number of those above hi and by how much they exceed
    // it, and a rough sum of all the magnitudes, in which NaN and Inf show.
    std::int64_t (*row_window[2])(const T* y, std::int64_t n, T lo, T hi, T* found, double* excess, std::int64_t* above,
                                  double* total);
    // x = y shrunk towards zero by p, shifted down by p but not below zero, scaled by p or clipped to p: where
    // p = high + low, of which low is what T cannot hold.
    void (*row_map[4])(const T* y, T* x, std::int64_t n, T high, T low, bool stream);
    // The same for one row of members, with a parameter for each group.
    void (*strip_map[4])(const T* y, T* x, std::int64_t width, const T* high, const T* low, bool stream);
};

struct InstructionSet {
    const char* name;
    Kernels<float> f32;
    Kernels<double> f64;
    FamilyKernels<float> family_f32;
    FamilyKernels<double> family_f64;
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

template <class T>
const FamilyKernels<T>& family_kernels() {
    if constexpr (sizeof(T) == sizeof(float))
        return instruction_set().family_f32;
    else
        return instruction_set().family_f64;
}

}  // namespace normball
