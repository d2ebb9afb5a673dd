// Reads many groups at once, for what they were visited.
//
// Any threshold gives a valid line; it is exact when its own cap lies in its gap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "dispatch.hpp"
#include "l1inf/lines.hpp"
#include "l1inf/visit.hpp"

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
        doubles_ = std::make_unique_for_overwrite<double[]>(3 * most);
        elements_ = std::make_unique_for_overwrite<T[]>(5 * most);
        this->line = lines_.get();
        std::size_t i = 0, j = 0;
        for (double** array : {&this->cap, &this->s, &this->error}) *array = &doubles_[most * i++];
        for (T** array : {&this->t, &this->k, &this->below, &this->above, &this->top}) *array = &elements_[most * j++];
    }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    std::int64_t lanes() const { return unit * units; }
    void add_errors() {
        for (std::int64_t j = 0; j < lanes(); ++j) this->s[j] += this->error[j];
    }
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

// Leaves what is found of the groups of the batch, and says whether any line is news. `above` and `gap` have the kernels of
// these names evaluate the batch.
template <class T, class Above, class Gap>
bool settle(Lines<T>& lines, Batch<T>& batch, const Visit& purpose, Above above, Gap gap) {
    const Kernels<T>& kernel = kernels<T>();
    kernel.load_lanes(lines.arrays(), purpose.theta, batch, batch.lanes());
    kernel.set_thresholds(batch, batch.lanes(), purpose.exact);
    purpose.exact ? gap(batch) : above(batch);
    if (purpose.guesses != nullptr)
        kernel.keep_looks(lines.arrays(), *purpose.guesses, purpose.theta, batch, batch.lanes());
    return !purpose.exact || kernel.keep_lines(lines.arrays(), purpose.theta, batch, batch.lanes());
}

}  // namespace normball
