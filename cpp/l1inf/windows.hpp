// Windows about the caps: what one read must leave of the groups, so that none is read again.
//
// Where caps are known but for little, a read keeps the few members of each group that are in doubt: those in a window (lo, hi],
// and the sum and the number of those above it. For any cap in the window the group's exact line follows from these alone. So all
// further steps of Newton's method run on short lists; a cap that leaves its window makes its group be read again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "array.hpp"
#include "dispatch.hpp"
#include "l1inf/lines.hpp"
#include "l1inf/settle.hpp"
#include "l1inf/visit.hpp"

namespace normball {

// One entry for each line.
template <class Element>
class Windows {
public:
    using T = Element;

    static constexpr std::int64_t fewest_members = 500;

    // No more than one member in so many may lie in windows. Of strips it is kept three times for a while, with the number of its
    // lane and in its list; so that all this takes a quarter of the matrix at most.
    static constexpr std::int64_t share = 14;
    static std::int64_t most(std::int64_t members) { return members / share; }

    bool has(std::size_t i, double cap) const {
        return i < size_.size() && size_[i] != none && cap >= static_cast<double>(lo[i]) && cap < static_cast<double>(hi[i]);
    }

    // Where so many lines are to be read, in so many jobs: what was found of a line, and where its list lies, in memory that is
    // handed over.
    void expect(std::size_t lines, std::size_t jobs) {
        s_.resize(lines), k_.resize(lines), list_.resize(lines);
        size_.assign(lines, none), places_ = in_order(lines), lists_.resize(jobs);
    }
    void keep(std::size_t i, double s, T k, std::int64_t size) { s_[i] = s, k_[i] = k, size_[i] = size; }
    void point(std::size_t i, const T* list) { list_[i] = list; }
    void hold(std::size_t job, Array<T> lists) { lists_[job] = std::move(lists); }

    Array<T> lo, hi;  // the windows

    // What `visit` asks of a reader: places are the numbers of the lines.
    std::span<const std::int64_t> places() const { return places_; }
    std::int64_t chunk_end(std::int64_t place) const { return (place / at_once + 1) * at_once; }
    bool refresh(Lines<T>& lines, const std::int64_t*, std::span<const std::size_t> stale, const Visit& purpose) const {
        Batch<T> batch(lines, 1, std::ssize(stale));
        std::vector<const T*> list(stale.size());
        batch.units = std::ssize(stale);
        std::copy(stale.begin(), stale.end(), batch.line);
        const auto gap = [&](Batch<T>& b) {
            for (std::size_t j = 0; j < stale.size(); ++j) {
                const std::size_t i = stale[j];
                list[j] = list_[i], b.at[j] = size_[i];
                b.s[j] = s_[i], b.k[j] = k_[i], b.below[j] = lo[i], b.above[j] = hi[i];
            }
            kernels<T>().lists_gap(list.data(), b.at.data(), b.units, b.t, b.s, b.k, b.below, b.above);
        };
        return settle(lines, batch, purpose, gap, gap);
    }

private:
    static constexpr std::int64_t none = -1, at_once = 512;

    Array<double> s_;  // of the members above a window, and their number
    Array<T> k_;
    Array<const T*> list_;
    Array<std::int64_t> size_, places_;
    std::vector<Array<T>> lists_;
};

}  // namespace normball
