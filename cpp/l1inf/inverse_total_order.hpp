// The inverse total order, Algorithm 2 of G. Perez, L. Condat and M. Barlaud, "Near-linear time projection onto the
// l1,inf ball; application to sparse neural networks" (2023).
//
// Let theta fall from infinity. Group j leaves zero when theta passes its sum, with all k_j = n members above its cap;
// its cap then rises, and the smallest of the k_j members, z, falls below it when theta passes s_j - k_j z. These
// events, largest first, are the total order walked back from its end. Each changes one term of
//     theta = (sum_j s_j / k_j - radius) / (sum_j 1 / k_j),
// and the walk ends at the first event that lies below the theta of the events so far. One heap holds the next event of
// every group, one heap per group its members; the latter is built when the walk first reaches the group. The cost is
// O(nm + J log(nm)) for J events, and J is small if most groups are zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "rounding.hpp"
#include "l1inf/problem.hpp"
#include "l1inf/theta.hpp"

namespace normball {
namespace textbook {

// Heaps with four children to a node: half the depth of a binary heap, and no branch on which of the four comes first.
// `before(a, b)` says that a belongs nearer the top than b.
template <class T, class Before>
void sift_down(T* heap, std::int64_t size, std::int64_t hole, T value, Before before) {
    for (;;) {
        const std::int64_t first = 4 * hole + 1;
        if (first >= size) break;
        std::int64_t child = first;
        if (first + 4 <= size) {
            const std::int64_t left = first + before(heap[first + 1], heap[first]);
            const std::int64_t right = first + 2 + before(heap[first + 3], heap[first + 2]);
            child = left + (right - left) * before(heap[right], heap[left]);
        } else {
            for (std::int64_t i = first + 1; i < size; ++i) child += (i - child) * before(heap[i], heap[child]);
        }
        if (!before(heap[child], value)) break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = value;
}

template <class T, class Before>
void make_heap(T* heap, std::int64_t size, Before before) {
    for (std::int64_t i = (size - 2) / 4; i >= 0; --i) sift_down(heap, size, i, heap[i], before);
}

// A group as the walk knows it. Of its members y, the first `heaped` are a heap with the smallest on top; the others
// have been taken from it and lie behind it in decreasing order. The walk has not passed the first k, whose sum is s.
struct Column {
    double* y = nullptr;  // null until the walk reaches the group
    double s = 0.0;
    std::int64_t k = 0;
    std::int64_t heaped = 0;

    void enter(double* members, double sum, std::int64_t n) {
        *this = {members, sum, n, n};
        make_heap(y, n, std::less<>());
    }

    // The smallest of the first k. The walk goes from group to group, so the heap is cold in cache whenever it comes
    // back: take a few members at a time.
    double smallest() {
        constexpr std::int64_t few = 16;
        if (heaped == k) {
            for (const std::int64_t end = std::max<std::int64_t>(k - few, 0); heaped > end;) {
                const double top = y[0];
                --heaped;
                sift_down(y, heaped, 0, y[heaped], std::less<>());
                y[heaped] = top;
            }
        }
        return y[k - 1];
    }

    // Summed afresh whenever k has halved, s keeps its error small next to itself and not next to the sum of the group.
    void remove_smallest() {
        s -= smallest();
        --k;
        if ((k & (k - 1)) == 0) s = careful_sum({y, static_cast<std::size_t>(k)});
    }
};

}  // namespace textbook

inline Solution inverse_total_order(const Groups& groups, double radius) {
    struct Event {
        double theta;
        std::int64_t group;
    };
    const std::int64_t m = groups.count();
    const std::int64_t n = groups.members();
    const auto later = [](const Event& a, const Event& b) { return a.theta > b.theta; };

    // Room for every group; that of the groups never reached is never touched.
    const auto members = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(m * n));
    std::vector<textbook::Column> columns(static_cast<std::size_t>(m));
    std::vector<Event> events;
    events.reserve(columns.size());
    for (std::int64_t j = 0; j < m; ++j) events.push_back({groups.sum(j), j});
    textbook::make_heap(events.data(), m, later);

    double theta = -std::numeric_limits<double>::infinity();
    textbook::CompensatedSum heights;  // sum_j s_j / k_j
    textbook::CompensatedSum slopes;   // sum_j 1 / k_j
    std::int64_t steps = 0;
    std::int64_t entered = 0;
    // An event at theta itself changes nothing but the supports: a member equal to its cap does not count as clipped.
    while (!events.empty() && events.front().theta >= theta) {
        const std::int64_t j = events.front().group;
        textbook::Column& column = columns[static_cast<std::size_t>(j)];
        double height = 0.0;
        double slope = 0.0;
        if (column.y == nullptr) {
            double* const y = members.get() + j * n;
            groups.load(j, y);
            column.enter(y, groups.sum(j), n);
            ++entered;
        } else {
            height = column.s / static_cast<double>(column.k);
            slope = 1.0 / static_cast<double>(column.k);
            column.remove_smallest();
        }
        ++steps;
        const double k = static_cast<double>(column.k);
        heights.add(column.s / k - height);
        slopes.add(1.0 / k - slope);
        theta = (heights.value() - radius) / slopes.value();

        Event next{};
        if (column.k > 1) {
            next = {column.s - k * column.smallest(), j};
        } else {  // the peak of a group is never below its cap: no event is left
            next = events.back();
            events.pop_back();
        }
        if (!events.empty()) textbook::sift_down(events.data(), std::ssize(events), 0, next, later);
    }

    std::vector<textbook::Line> lines;
    for (std::int64_t j = 0; j < m; ++j) {
        const textbook::Column& column = columns[static_cast<std::size_t>(j)];
        if (column.y == nullptr) continue;
        lines.push_back({j, static_cast<double>(column.k), careful_sum({column.y, static_cast<std::size_t>(column.k)})});
    }
    Solution solution = textbook::solve(groups, radius, theta, lines);
    for (const textbook::Line& line : lines) {
        const double mu = solution.mu[static_cast<std::size_t>(line.group)];
        if (mu <= 0.0) continue;
        // Against the cap as it was rounded in the end, the walk may have gone a member too far or not far enough.
        textbook::Column& column = columns[static_cast<std::size_t>(line.group)];
        while (column.k < n && column.y[column.k] > mu) ++column.k;
        while (column.k > 0 && column.smallest() <= mu) --column.k;
        solution.clipped[static_cast<std::size_t>(line.group)] = column.k;
    }
    solution.reads = static_cast<double>(entered) / static_cast<double>(m);
    solution.order_steps = steps;
    return solution;
}

}  // namespace normball
