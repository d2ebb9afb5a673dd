// The total order of A. Quattoni, X. Carreras, M. Collins and T. Darrell, "An efficient projection for l1,inf
// regularization" (ICML 2009).
//
// Let theta grow from zero. Group j starts with k_j = 1 member above its cap, its peak; member z, the largest of the
// others, joins them when theta passes s_j - k_j z, and when all n have joined, the group becomes zero as theta passes
// its sum. All these events of all groups are sorted and applied in turn, while they lie below the root theta of
// sum_j (s_j - theta) / k_j = radius. O(nm log(nm)), most of it for the sorts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rounding.hpp"
#include "l1inf/problem.hpp"
#include "l1inf/theta.hpp"

namespace normball {

inline Solution total_order(const Groups& groups, double radius) {
    struct Event {
        double theta;
        std::int64_t group;
    };
    struct Column {
        double s;
        std::int64_t k;  // 0 for a zero group
    };
    const std::int64_t m = groups.count();
    const std::int64_t n = groups.members();
    const auto size = static_cast<std::size_t>(m * n);
    const auto sorted = std::make_unique_for_overwrite<double[]>(size);
    const auto events = std::make_unique_for_overwrite<Event[]>(size);
    std::vector<Column> columns;
    columns.reserve(static_cast<std::size_t>(m));
    textbook::CompensatedSum heights;  // sum_j s_j / k_j
    textbook::CompensatedSum slopes;   // sum_j 1 / k_j
    for (std::int64_t j = 0; j < m; ++j) {
        double* const z = sorted.get() + j * n;
        groups.load(j, z);
        textbook::sort_descending(z, n);
        textbook::CompensatedSum sum;
        for (std::int64_t k = 1; k <= n; ++k) {
            sum.add(z[k - 1]);
            const double s = sum.value();
            events[static_cast<std::size_t>(j * n + k - 1)] = {k < n ? s - static_cast<double>(k) * z[k] : s, j};
        }
        columns.push_back({z[0], 1});
        heights.add(z[0]);
        slopes.add(1.0);
    }
    std::sort(events.get(), events.get() + size, [](const Event& a, const Event& b) { return a.theta < b.theta; });

    double theta = (heights.value() - radius) / slopes.value();
    std::int64_t active = m;
    // What an event does follows from the state of its group: rounding cannot put the events of a group out of order.
    for (const Event* event = events.get(); event != events.get() + size && event->theta < theta; ++event) {
        Column& column = columns[static_cast<std::size_t>(event->group)];
        double height = -column.s / static_cast<double>(column.k);
        double slope = -1.0 / static_cast<double>(column.k);
        if (column.k < n) {
            column.s += sorted[static_cast<std::size_t>(event->group * n + column.k)];
            ++column.k;
            height += column.s / static_cast<double>(column.k);
            slope += 1.0 / static_cast<double>(column.k);
        } else {
            if (active == 1) break;  // theta has rounded to the largest sum, but not all groups are zero
            --active;
            column.k = 0;
        }
        heights.add(height);
        slopes.add(slope);
        theta = (heights.value() - radius) / slopes.value();
    }

    std::vector<textbook::Line> lines;
    for (std::int64_t j = 0; j < m; ++j) {
        const Column& column = columns[static_cast<std::size_t>(j)];
        const double s = careful_sum({sorted.get() + j * n, static_cast<std::size_t>(column.k)});
        if (column.k > 0) lines.push_back({j, static_cast<double>(column.k), s});
    }
    Solution solution = textbook::solve(groups, radius, theta, lines);
    textbook::count_clipped(sorted.get(), n, lines, solution);
    solution.reads = 1.0;
    return solution;
}

}  // namespace normball
