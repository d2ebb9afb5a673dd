// Finds caps at a given theta while their groups are in a cache, by Newton steps on many groups at once.
//
// Any threshold gives a valid line, so steps may be guesses; a line is exact when its own cap lies in its gap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "dispatch.hpp"
#include "l1inf/lines.hpp"

namespace normball {

// Groups that are read together. The reader reads whole units, a row or a register of neighbours: `at` tells it which,
// and each has so many lanes.
template <class T>
struct Batch : LaneArrays<T> {
    std::int64_t unit, units = 0;
    std::size_t idle;  // the line of a lane that is read with its neighbours and not wanted
    std::vector<std::int64_t> at;

    Batch(const Lines<T>& lines, std::int64_t lanes_of_unit, std::int64_t most_units)
        : unit(lanes_of_unit), idle(lines.size()), at(static_cast<std::size_t>(most_units)) {
        // Nothing is read before it is written, but for what does not count.
        const auto most = static_cast<std::size_t>(unit * most_units);
        lines_ = std::make_unique_for_overwrite<std::size_t[]>(most);
        doubles_ = std::make_unique_for_overwrite<double[]>(6 * most);
        elements_ = std::make_unique_for_overwrite<T[]>(5 * most);
        this->line = lines_.get();
        std::size_t i = 0, j = 0;
        for (double** array : {&this->cap, &this->s, &this->last_t, &this->last_e, &this->weight, &this->open})
            *array = &doubles_[most * i++];
        for (T** array : {&this->t, &this->k, &this->below, &this->above, &this->top}) *array = &elements_[most * j++];
    }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    std::int64_t lanes() const { return unit * units; }
    // Adds a unit of idle lanes and returns the number of its first.
    std::int64_t add_unit(std::int64_t place) {
        const std::int64_t first = lanes();
        std::fill_n(this->line + first, unit, idle);
        at[static_cast<std::size_t>(units++)] = place;
        return first;
    }

private:
    std::unique_ptr<std::size_t[]> lines_;
    std::unique_ptr<double[]> doubles_;
    std::unique_ptr<T[]> elements_;
};

// Where caps are a mere guess, a few steps make better ones, and lines that hold nowhere: as long as theta is no more
// than an estimate, exact ones would not hold either.
template <class T, class Above>
void settle_roughly(Lines<T>& lines, Batch<T>& batch, double theta, Above above) {
    constexpr int turns = 3;       // before theta is looked at again
    constexpr double close = 0.2;  // a step, as a part of the cap, after which the next lands well within a hundredth
    const Kernels<T>& kernel = kernels<T>();
    for (int turn = 0; turn < turns && batch.units > 0; ++turn) {
        kernel.set_thresholds(batch, batch.lanes(), false);
        above(batch);
        kernel.rough_step(batch, batch.lanes(), theta, turn == 0, close);
        batch.units = kernel.keep_guesses(lines.arrays(), theta, batch, batch.at.data(), batch.unit, batch.units,
                                          turn == turns - 1);
    }
}

// Leaves new lines for the groups of the batch, and says whether any is news. `above` and `gap` have the kernels of
// these names evaluate the batch.
template <class T, class Above, class Gap>
bool settle(Lines<T>& lines, Batch<T>& batch, const Aim& aim, Above above, Gap gap) {
    const Kernels<T>& kernel = kernels<T>();
    kernel.load_lanes(lines.arrays(), aim.theta, batch, batch.lanes());
    if (aim.rough) return settle_roughly(lines, batch, aim.theta, above), true;
    kernel.set_thresholds(batch, batch.lanes(), true);
    gap(batch);
    return kernel.keep_lines(lines.arrays(), aim.theta, batch, batch.lanes());
}

}  // namespace normball
