// The passes over the matrix, as a table of functions: one table for each instruction set, one choice at load time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace normball {

// A row is n contiguous members of one group. A strip is `width` neighbouring groups, contiguous in memory, whose
// members lie `stride` apart; its arrays of sums and peaks are padded to a multiple of lane_limit.
//
// Magnitudes |y| are compared with thresholds >= 0, so the zeros that pad a register never count. Sums are in double;
// except for exact lines, floats are added in float over a few terms first, with an error below that of one rounding to float.

// The arrays of lines.hpp, one entry for each line.
struct LineArrays {
    const double *sum, *top;
    double *mean, *weight, *below, *above;
    std::size_t count;  // which is also what lanes without a line have for its number
};

// What is known of the groups that are read together, one entry for each lane: the number of its line, its cap, and what a
// read has found at the threshold t.
template <class T>
struct LaneArrays {
    std::size_t* line;
    double *cap, *s, *error;
    T *t, *k, *below, *above, *top;
};

// What guesses.hpp knows of the lines: where a group was last looked at, by how much its members exceed that, in all and in the
// mean, and how this mean changes. A negative mean: not looked at yet; t is the peak then, and f is 0.
struct GuessArrays {
    double *t, *f, *e, *bend;
};

// What the read for sums and peaks may find besides: of each group the sum and the number of the magnitudes above t, roughly.
// Nothing is looked at where there is no place for it.
template <class T>
struct StatsLook {
    T t = 0;
    T *s = nullptr, *k = nullptr;
};

// log cap = constant + left * log(sum - theta) + sum * log(sum) + peak * log(peak).
struct CapFit {
    double constant = 0.0, left = 0.0, sum = 0.0, peak = 0.0;
};

// Members that lie in the windows (lo, hi] of groups, one after another as they are read, and for strips the lanes whose they are.
template <class T>
struct Found {
    T *members, *lanes;
    std::int64_t size;
};

template <class T>
struct Kernels {
    std::int64_t lanes;  // elements to a register

    // Of rows that lie beyond the caches, `coming` are known to be read, these and later ones, and are asked for ahead; 0 where
    // they lie in a cache.
    //
    // For each of `count` rows, `stride` apart: sum and largest of the magnitudes. A NaN or Inf shows in the sum.
    void (*row_stats)(const T* y, std::int64_t n, std::int64_t stride, std::int64_t count, std::int64_t coming, double* sums,
                      double* peaks, const StatsLook<T>& look);
    // For each of `count` rows: adds the sum and the number of the magnitudes above t. Good to find a cap by: sums of
    // float are not exact.
    void (*rows_above)(const T* const* y, std::int64_t n, std::int64_t count, std::int64_t coming, const T* t, double* s, T* k);
    // The same, with exact sums, and moves `below` up to the greatest magnitude that is not above t, `above` down to the
    // least that is. Counts are in T, here and for strips: exact for fewer than 2^24 members.
    void (*rows_gap)(const T* const* y, std::int64_t n, std::int64_t count, std::int64_t coming, const T* t, double* s, T* k,
                     T* below, T* above);
    // The same for lists of magnitudes, with so many each, in a cache.
    void (*lists_gap)(const T* const* y, const std::int64_t* sizes, std::int64_t count, const T* t, double* s, T* k, T* below,
                      T* above);
    // For each of `count` rows: adds the exact sum and the number of the magnitudes above hi, and finds those in (lo, hi]; `sizes`
    // are their numbers. Of a row with more than `most` none is left, and its size is -1. There is room for as many of all rows,
    // and for a row more.
    void (*rows_window)(const T* const* y, std::int64_t n, std::int64_t count, std::int64_t coming, const T* lo, const T* hi,
                        double* s, T* k, Found<T>* found, std::int64_t most, std::int64_t* sizes);
    // x = clamp(y, -cap, cap) for each of `count` rows, with its cap rounded down to T; a cap of 0 fills with zeros, which are
    // there already where it is blank, and does not read y.
    void (*rows_clip)(const T* y, std::int64_t y_stride, T* x, std::int64_t x_stride, std::int64_t n, std::int64_t count,
                      const double* caps, bool stream, bool blank);

    // Adds to the sums, and raises the peaks, of every group of the strip, and adds to the look. `near`: it lies in a cache.
    void (*strip_stats)(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, double* sums, T* peaks,
                        const StatsLook<T>& look, bool near);
    // What rows_above and rows_gap do, for `count` registers of neighbouring groups that begin at the columns `at`: lane
    // i of register p has the entries p * lanes + i of the arrays. A strip narrower than a register has just one.
    void (*strip_above)(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, const std::int64_t* at,
                        std::int64_t count, const T* t, double* s, T* k, bool near);
    // The rounding errors of exact sums are added to `error`.
    void (*strip_gap)(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, const std::int64_t* at,
                      std::int64_t count, const T* t, double* s, double* error, T* k, T* below, T* above, bool near);
    // What rows_window does, but for the sizes, which are of whole registers, and grow: members of a register whose size is more
    // than `most` are left out from there on. There is room for `most` members and eight registers of each register, and for
    // nine registers more.
    void (*strip_window)(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, const std::int64_t* at,
                         std::int64_t count, const T* lo, const T* hi, double* s, double* error, T* k, Found<T>* found,
                         std::int64_t most, std::int64_t* sizes);

    // Sum over the groups of the better of the lines k = n and k = 1 at theta, where it is positive, and its slope with the
    // sign turned; `share` is 1 / n.
    void (*two_lines)(const double* sums, const double* peaks, std::int64_t count, double theta, double share,
                      double* value, double* slope);
    // The same for the highest caps that groups with these sums and peaks may have at theta.
    void (*highest_caps)(const double* sums, const double* peaks, std::int64_t count, double theta, double* value,
                         double* slope);
    // Lists the entries above a level, and returns how many.
    std::int64_t (*list_above)(const double* x, std::int64_t count, double level, std::int64_t* found);
    // Sum with the rounding errors carried along: exact to the last bit or two for terms of one sign.
    double (*careful_sum)(const double* x, std::int64_t count);
    // x as T holds it, rounded down, for x >= 0.
    void (*round_down)(const double* x, std::int64_t count, double* rounded);

    // A guess for every line, to hold at theta: the cap given for its group, if that is a number above 0; else so far from the
    // better of its lines k = n and k = 1, at the theta that is expected, towards the highest cap that it may have.
    void (*first_guesses)(const LineArrays& lines, const std::int64_t* group, double theta, double expected, double share,
                          double lean, const double* given);
    // Lines through the caps of a fit at theta, as far as sums and peaks allow them.
    void (*fitted_lines)(const LineArrays& lines, const CapFit& fit, double theta, double share);
    // The sum of the caps at theta and of the slopes that go with them, with the sign turned. Lines that hold there are kept; the
    // others are replaced by guesses, and count as not read. `lean` is for groups that nobody has looked at, as above.
    void (*guess_lines)(const LineArrays& lines, const GuessArrays& guesses, double theta, double share, double lean,
                        double* total, double* slope);
    // Lists the guesses for groups that are non-zero at theta which may be off by a member there. Returns how many.
    std::int64_t (*doubtful_lines)(const LineArrays& lines, const GuessArrays& guesses, double theta, std::size_t* found);
    // Windows about the caps at theta, in which these lie very likely: by what the models of groups with so many members leave
    // open; or from `low` times the cap to `high` times it, if low is not 0. Groups that are zero get none: lo is infinite.
    // Tells how many members the models expect there, and about how many caps may be off by a member.
    void (*window_lines)(const LineArrays& lines, const GuessArrays& guesses, double theta, double members, double low,
                         double high, T* lo, T* hi, double* expected, double* doubtful);
    // Lists the lines of groups that are non-zero at theta which do not hold there. Returns how many.
    std::int64_t (*stale_lines)(const LineArrays& lines, double theta, std::size_t* found);
    // Sums of the means and the weights of the lines of groups that are non-zero at theta, and the number of these.
    void (*line_totals)(const LineArrays& lines, double theta, double* mean, double* weight, double* active);

    // Caps and tops of the lines of the lanes.
    void (*load_lanes)(const LineArrays& lines, double theta, const LaneArrays<T>& lanes, std::int64_t count);
    // Thresholds at the caps, rounded down where `exact`, but below the peaks; and nothing found yet.
    void (*set_thresholds)(const LaneArrays<T>& lanes, std::int64_t count, bool exact);
    // Leaves what was found, sums s and numbers k of the members above t, with the guesses.
    void (*keep_looks)(const LineArrays& lines, const GuessArrays& guesses, double theta, const LaneArrays<T>& lanes,
                       std::int64_t count);
    // Leaves the lines of the members above t. Returns whether any says more than rounding about the cap at theta.
    bool (*keep_lines)(const LineArrays& lines, double theta, const LaneArrays<T>& lanes, std::int64_t count);
};

inline constexpr std::int64_t lane_limit = 16;  // no register holds more elements

// What the rest of the family of operators needs. Sums are in double; those of doubles are right to a unit or two in the
// last place. Where there is a choice of two, the second is for squares, or for values with their signs in place of magnitudes.
template <class T>
struct FamilyKernels {
    // Sum of the magnitudes, or of the squares.
    double (*row_total[2])(const T* y, std::int64_t n);
    // The same for each group of a strip, added to `sums`, and to `errors` what rounding takes; both padded.
    void (*strip_total[2])(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, double* sums,
                           double* errors);
    // Lists the values above t and returns how many. `found` takes n + lane_limit, and may be y.
    std::int64_t (*row_keep[2])(const T* y, std::int64_t n, T t, T* found);
    // The same, and adds by how much they exceed it.
    std::int64_t (*row_filter[2])(const T* y, std::int64_t n, T t, T* found, double* excess);
    // Lists the values in (lo, hi] and returns how many; adds the number of those above hi and by how much they exceed
    // it, and a rough sum of all the magnitudes, in which NaN and Inf show.
    std::int64_t (*row_window[2])(const T* y, std::int64_t n, T lo, T hi, T* found, double* excess, std::int64_t* above,
                                  double* total);
    // x = y shrunk towards zero by p, shifted down by p but not below zero, or scaled by p: where p = high + low, of
    // which low is what T cannot hold.
    void (*row_map[3])(const T* y, T* x, std::int64_t n, T high, T low, bool stream);
    // The same, or clipped to high, for a strip with a parameter for each group, from its last row to its first; `before` it
    // are so many rows more, that will be asked for next.
    void (*strip_map[4])(const T* y, std::int64_t y_stride, T* x, std::int64_t x_stride, std::int64_t rows,
                         std::int64_t before, std::int64_t width, const T* high, const T* low, bool stream);
    // For `count` registers of neighbouring groups, as in strip_above: adds the values above t to the list `which` of each
    // lane, and their numbers to `sizes`. Lists lie `room` apart; what is in one longer than room - lane_limit is not to be
    // used. Lanes of which nothing is above may share a list.
    void (*strip_keep[2])(const T* y, std::int64_t stride, std::int64_t n, std::int64_t width, const std::int64_t* at,
                          std::int64_t count, const T* t, T* lists, std::int64_t room, const std::int64_t* which,
                          std::int64_t* sizes);
};

// What the derivative of the projection needs. Caps of 0 are those of zero groups. v lies as the output does.
template <class T>
struct TangentKernels {
    // Sum of v, with the signs of y, over the members that are clipped; adds their number to `count`.
    double (*row_sums)(const T* y, const T* v, std::int64_t n, T cap, std::int64_t* count);
    // The same for every group of a strip, added to sums and counts, which are padded.
    void (*strip_sums)(const T* y, std::int64_t y_stride, const T* v, std::int64_t v_stride, std::int64_t n,
                       std::int64_t width, const T* caps, double* sums, T* counts);
    // x = move with the sign of y where y is clipped, 0 where the cap is 0, else v; also for one row of a strip, where `sparse`
    // looks for runs of zero groups.
    void (*row)(const T* y, const T* v, T* x, std::int64_t n, T cap, T move, bool stream);
    void (*strip)(const T* y, const T* v, T* x, std::int64_t width, const T* caps, const T* moves, bool stream,
                  bool sparse);
};

// What the lanes `to` of a register of a panel take from the register at the element `at` of a row: lane i its lane from[i].
struct Pick {
    std::int64_t at;
    std::uint16_t to = 0;
    std::uint8_t from[lane_limit] = {};
};

inline constexpr std::int64_t rows_laid = 4;  // rows that are laid together, at most

// Groups picked out of a strip: panels of as many groups as a register has lanes, `apart` elements from one to the next, in
// each of which row follows row.
template <class T>
struct PanelKernels {
    // Fills the panels at `to`: panel q takes the picks up to ends[q]. Lanes that no pick names become 0.
    void (*pick)(const T* y, std::int64_t stride, std::int64_t rows, std::int64_t width, const Pick* picks,
                 const std::int64_t* ends, std::int64_t panels, T* to, std::int64_t apart, bool near);
    // Lays them back, clipped to their caps, where the bits of `picked` are, one for each column of the strip, and zeros
    // elsewhere, unless it is blank. The first `skip` lanes are left out. Four bytes beyond the bits are read. `row` is room
    // for rows_laid rows of all the panels, each with two registers more.
    void (*lay)(const T* from, std::int64_t apart, std::int64_t panels, std::int64_t skip, const T* caps, T* row, T* x,
                std::int64_t stride, std::int64_t rows, std::int64_t width, const std::uint8_t* picked, bool stream,
                bool blank);
};

struct InstructionSet {
    const char* name;
    Kernels<float> f32;
    Kernels<double> f64;
    FamilyKernels<float> family_f32;
    FamilyKernels<double> family_f64;
    PanelKernels<float> panel_f32;
    PanelKernels<double> panel_f64;
    TangentKernels<float> tangent_f32;
    TangentKernels<double> tangent_f64;
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

template <class T>
const PanelKernels<T>& panel_kernels() {
    if constexpr (sizeof(T) == sizeof(float))
        return instruction_set().panel_f32;
    else
        return instruction_set().panel_f64;
}

template <class T>
const TangentKernels<T>& tangent_kernels() {
    if constexpr (sizeof(T) == sizeof(float))
        return instruction_set().tangent_f32;
    else
        return instruction_set().tangent_f64;
}

}  // namespace normball
