// The passes of dispatch.hpp, written once in terms of Lanes and compiled for each instruction set, as a table.
#pragma once

#include "dispatch.hpp"
#include "isa/kernels_lines.hpp"
#include "isa/kernels_rows.hpp"
#include "isa/kernels_strips.hpp"
#include "isa/kernels_windows.hpp"

namespace normball::NORMBALL_ISA {

template <class T>
Kernels<T> table() {
    return {.lanes = Lanes<T>::width,
            .row_stats = row_stats<T>,
            .rows_above = rows_above<T>,
            .rows_gap = rows_gap<T>,
            .lists_gap = lists_gap<T>,
            .rows_window = rows_window<T>,
            .rows_clip = rows_clip<T>,
            .strip_stats = strip_stats<T>,
            .strip_above = strip_above<T>,
            .strip_gap = strip_gap<T>,
            .strip_window = strip_window<T>,
            .two_lines = two_lines,
            .highest_caps = highest_caps,
            .list_above = list_above,
            .careful_sum = careful_sum,
            .round_down = round_down<T>,
            .first_guesses = first_guesses,
            .fitted_lines = fitted_lines,
            .guess_lines = guess_lines,
            .doubtful_lines = doubtful_lines,
            .window_lines = window_lines<T>,
            .stale_lines = stale_lines,
            .line_totals = line_totals,
            .load_lanes = load_lanes<T>,
            .set_thresholds = set_thresholds<T>,
            .keep_looks = keep_looks<T>,
            .keep_lines = keep_lines<T>};
}

}  // namespace normball::NORMBALL_ISA
