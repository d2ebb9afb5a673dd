// The semismooth Newton method of D. Chu, C. Zhang, S. Sun and Q. Tao, "Semismooth Newton algorithm for efficient
// projections onto l1,inf-norm ball" (ICML 2020).
//
// g(theta) = sum_j mu_j(theta) is convex, decreasing and piecewise linear, of slope -sum_j 1 / k_j, so Newton's method
// for g(theta) = radius started left of the root moves right only, and is at the root when its piece no longer changes.
// With the members of a group sorted and summed up, z_1 >= z_2 >= ... and s_k = z_1 + ... + z_k, one evaluation is a
// binary search: k_j is the least k with s_k - k z_{k+1} >= theta.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "l1inf/problem.hpp"
#include "l1inf/theta.hpp"

namespace normball {

inline Solution semismooth_newton(const Groups& groups, double radius) {
    const std::int64_t m = groups.count();
    const std::int64_t n = groups.members();
    const std::int64_t largest = textbook::largest_sum(groups);
    auto [theta, lines] = textbook::start_from_sums_and_peaks(groups, radius, largest);

    // Room for every group; that of the groups which are zero from the start is never touched.
    const auto size = static_cast<std::size_t>(m * n);
    const auto sorted = std::make_unique_for_overwrite<double[]>(size);
    const auto sums = std::make_unique_for_overwrite<double[]>(size);
    const double reads = static_cast<double>(lines.size()) / static_cast<double>(m);
    for (textbook::Line& line : lines) {
        double* const z = sorted.get() + line.group * n;
        groups.load(line.group, z);
        textbook::sort_descending(z, n);
        textbook::CompensatedSum sum;
        for (std::int64_t i = 0; i < n; ++i) sum.add(z[i]), sums[static_cast<std::size_t>(line.group * n + i)] = sum.value();
        line.k = 0.0;
    }
    // Whatever theta rounds to, k_j only grows and groups are only dropped, so this ends.
    for (bool changed = true; changed;) {
        changed = textbook::drop_zero_groups(groups, theta, largest, lines);
        for (textbook::Line& line : lines) {
            const double* const z = sorted.get() + line.group * n;
            const double* const s = sums.get() + line.group * n;
            std::int64_t k = std::max<std::int64_t>(static_cast<std::int64_t>(line.k), 1);
            for (std::int64_t high = n; k < high;) {
                const std::int64_t middle = k + (high - k) / 2;
                const bool enough = s[middle - 1] - static_cast<double>(middle) * z[middle] >= theta;
                (enough ? high : k) = enough ? middle : middle + 1;
            }
            changed = changed || static_cast<double>(k) != line.k;
            line = {line.group, static_cast<double>(k), s[k - 1]};
        }
        if (changed) theta = textbook::root(lines, radius);
    }

    Solution solution = textbook::solve(groups, radius, theta, lines);
    textbook::count_clipped(sorted.get(), n, lines, solution);
    solution.reads = reads;
    return solution;
}

}  // namespace normball
