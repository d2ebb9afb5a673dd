// The active-set method of B. Bejar, I. Dokmanic and R. Vidal, "The fastest l1,inf prox in the West" (2021), which is
// Algorithm 1 of Perez, Condat and Barlaud once the groups that sums and peaks alone prove to be zero are eliminated.
//
// The method alternates: with theta fixed, the cap mu_j of each group is the threshold of its projection onto the l1
// ball of radius theta; with the supports fixed, k_j members of sum s_j above each cap, theta is the root of
// sum_j (s_j - theta) / k_j = radius. theta only grows, so caps only fall and supports only grow: each projection
// resumes from the last support, and the alternation ends, at the exact theta, when no support changes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rounding.hpp"
#include "l1inf/problem.hpp"
#include "l1inf/theta.hpp"

namespace normball {
namespace textbook {

// Extends the support of a group, its first line.k members, to that of its projection onto the l1 ball of radius theta.
// No cap lies below t, so of the others only those above t can join: take them all in, raise t to the line they give,
// let go of those that are not above it, and so on (Michelot's method on the few members in question).
inline void extend_support(double* y, std::int64_t n, double theta, double t, Line& line) {
    double* const others = y + static_cast<std::int64_t>(line.k);
    double* last = gather_above(others, y + n, std::max(t, 0.0));
    if (last == y) {  // theta is lost in the rounding of the peak
        std::iter_swap(y, std::max_element(y, y + n));
        last = y + 1;
    }
    for (;;) {
        const double s = line.s + careful_sum({others, last});
        const double k = static_cast<double>(last - y);
        double* const kept = gather_above(others, last, (s - theta) / k);
        if (kept == last || kept == y) {  // rounding can put t at the peak; the support never becomes empty
            line = {line.group, k, s};
            return;
        }
        last = kept;
    }
}

}  // namespace textbook

inline Solution active_set(const Groups& groups, double radius) {
    const std::int64_t m = groups.count();
    const std::int64_t n = groups.members();
    const std::int64_t largest = textbook::largest_sum(groups);
    auto [theta, lines] = textbook::start_from_sums_and_peaks(groups, radius, largest);

    // Room for every group; that of the groups eliminated is never touched.
    const auto members = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(m * n));
    const double reads = static_cast<double>(lines.size()) / static_cast<double>(m);
    for (textbook::Line& line : lines) {
        double* const y = members.get() + line.group * n;
        groups.load(line.group, y);
        const double t = (line.s - theta) / line.k;
        line = {line.group, 0.0, 0.0};
        textbook::extend_support(y, n, theta, t, line);
    }
    // Whatever theta rounds to, supports only grow and groups are only dropped, so this ends.
    for (bool changed = true; changed;) {
        theta = textbook::root(lines, radius);
        changed = textbook::drop_zero_groups(groups, theta, largest, lines);
        for (textbook::Line& line : lines) {
            const double k = line.k;
            textbook::extend_support(members.get() + line.group * n, n, theta, (line.s - theta) / k, line);
            changed = changed || line.k != k;
        }
    }

    Solution solution = textbook::solve(groups, radius, theta, lines);
    for (const textbook::Line& line : lines) {
        const double mu = solution.mu[static_cast<std::size_t>(line.group)];
        const double* const y = members.get() + line.group * n;
        if (mu > 0.0) {
            solution.clipped[static_cast<std::size_t>(line.group)] =
                std::count_if(y, y + n, [mu](double member) { return member > mu; });
        }
    }
    solution.reads = reads;
    return solution;
}

}  // namespace normball
