// Finds theta by Newton's method, reading again only the groups whose lines do not hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "parallel.hpp"
#include "l1inf/lines.hpp"
#include "l1inf/problem.hpp"
#include "l1inf/visit.hpp"
#include "l1inf/windows.hpp"

namespace normball {

// Finds theta for the lines of a reader's groups, which lie at the places given.
template <class Reader>
class Search {
public:
    using T = typename Reader::T;

    // Of groups whose caps stay in their windows, if there are any, nothing is read.
    Search(const Reader& reader, Lines<T>& lines, std::span<const std::int64_t> place, bool may_copy, double radius, Team& team,
           const Windows<T>* windows = nullptr)
        : reader_(reader), lines_(lines), place_(place), may_copy_(may_copy), radius_(radius), team_(team), windows_(windows) {}

    // From a theta, a mere guess unless it is `floor`, a lower bound of theta*, which lies below the largest sum, however
    // rounding has it: some group is never dropped.
    double run(double theta, double floor) {
        const double ceiling = std::nextafter(largest_of(lines_.sum), 0.0);
        theta = std::min(theta, ceiling);
        double active = -1.0;  // the lines that theta is the root of
        // In exact arithmetic the lines only rise while theta stays. Rounding lets two lines of a group take turns.
        double highest = -infinity;
        int idle = 0;
        // A Newton step on exact lines lands left of theta* from anywhere; an estimate may not.
        for (bool bound = theta <= floor, first = true;; bound = true, first = false) {
            const bool news = refresh(theta);
            const auto totals = lines_.totals(theta);
            if (!news && !first && totals.active == active) return theta;  // the root of these very lines
            active = totals.active;
            const double height = totals.mean - theta * totals.weight;
            const double root = totals.active > 0.0 ? (totals.mean - radius_) / totals.weight : 0.0;
            // A bound only rises, though the root of lines that are not yet those of their caps may lie below.
            const double next = std::min(std::max(root, bound ? theta : floor), ceiling);
            if (next != theta) {
                highest = -infinity, idle = 0;
            } else if (height > highest) {
                highest = height;
            } else if (++idle > 8) {
                return theta;
            }
            theta = next;
        }
    }

    double reads() const { return reads_; }  // elements fetched from memory

private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    // Reads the lines that do not hold at theta. Returns whether any is news.
    bool refresh(double theta) {
        Array<std::size_t> stale = lines_.stale(theta);
        bool news = false;
        if (windows_ != nullptr) {
            const auto known = std::stable_partition(stale.begin(), stale.end(), [&](std::size_t i) {
                return !windows_->has(i, lines_.cap(i, theta));
            });
            news = visit(*windows_, lines_, windows_->places(), {known, stale.end()}, {theta}, team_);
            stale.erase(known, stale.end());
        }
        return read_matrix(stale, theta) || news;
    }

    bool read_matrix(Array<std::size_t>& stale, double theta) {
        if (may_copy_ && copy_ == nullptr) copy_if_worth(stale);
        if (copy_ == nullptr) return read(reader_, place_, stale, theta);
        const auto others = std::stable_partition(stale.begin(), stale.end(), [&](std::size_t i) { return copied_[i] >= 0; });
        const bool news = read(typename Reader::Gathered(copy_->view), copied_, {stale.begin(), others}, theta);
        return read(reader_, place_, {others, stale.end()}, theta) || news;
    }

    // Lines that have failed soon fail again. Where groups are read with their neighbours, or dearly, and some but not many
    // have failed, a copy of these spares reads of nearly all of the matrix.
    void copy_if_worth(std::span<const std::size_t> stale) {
        if (!worth_copy(reader_, std::ssize(stale))) return;
        std::vector<std::int64_t> groups;
        copied_.assign(lines_.size(), -1);
        for (const std::size_t i : stale) copied_[i] = std::ssize(groups), groups.push_back(lines_.group[i]);
        copy_ = reader_.copy(groups, team_);
    }

    template <class From>
    bool read(const From& from, std::span<const std::int64_t> place, std::span<const std::size_t> stale, double theta) {
        reads_ += static_cast<double>(stale.size()) * static_cast<double>(reader_.members());
        return visit(from, lines_, place, stale, {theta}, team_);
    }

    const Reader& reader_;
    Lines<T>& lines_;
    std::span<const std::int64_t> place_;  // of each line in the reader
    bool may_copy_;
    double radius_;
    Team& team_;
    const Windows<T>* windows_;
    double reads_ = 0.0;
    std::vector<std::int64_t> copied_;  // the place of each line in the copy; -1: not there
    std::unique_ptr<GroupCopy> copy_;
};

}  // namespace normball
