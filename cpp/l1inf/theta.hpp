// What the textbook methods share: the lines below the caps, the theta they give, and the last step of every method.
//
// As in Perez, Condat and Barlaud, mu_j is the cap of group j, k_j the number of its members above the cap and s_j
// their sum, so mu_j = (s_j - theta) / k_j. Any other k members of the group with sum s give a line (s - theta) / k
// that stays below mu_j(theta). Hence the root theta of sum_j (s_j - theta) / k_j = radius, taken over any lines of the
// groups that are not zero, is a lower bound of the theta sought, and the bound is exact when every line is that of its
// k_j members.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "l1inf/problem.hpp"

namespace normball::textbook {

struct Line {
    std::int64_t group;
    double k;
    double s;
};

// A running sum with the rounding error of every addition kept beside it (Knuth's two-sum): a walk that updates its
// sums once per element would drift otherwise.
class CompensatedSum {
public:
    void add(double term) {
        const double next = sum_ + term;
        const double added = next - sum_;
        error_ += (sum_ - (next - added)) + (term - added);
        sum_ = next;
    }
    double value() const { return sum_ + error_; }

private:
    double sum_ = 0.0;
    double error_ = 0.0;
};

// Moves the members above t to the front and returns their end. No branch depends on the members.
inline double* gather_above(double* first, double* last, double t) {
    for (double* y = first; y != last; ++y) {
        const double member = *y;
        *y = *first;
        *first = member;
        first += member > t;
    }
    return first;
}

// A quicksort free of unpredictable branches, some three times as fast as std::sort on random members, to which it
// resorts should its pivots be bad. A few members are put in place by their ranks.
inline void sort_descending(double* first, double* last, int depth) {
    constexpr std::int64_t few = 16;
    while (last - first > few) {
        if (depth-- == 0) {
            std::sort(first, last, std::greater<>());
            return;
        }
        const double a = *first;
        const double b = first[(last - first) / 2];
        const double c = last[-1];
        const double pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
        double* const split = gather_above(first, last, pivot);
        if (split == first) {  // none above the pivot: those equal to it come first, and are done with
            first = gather_above(first, last, std::nextafter(pivot, -1.0));
        } else {
            sort_descending(first, split, depth);
            first = split;
        }
    }
    double copy[few];
    const std::int64_t size = std::copy(first, last, copy) - copy;
    for (std::int64_t i = 0; i < size; ++i) {
        std::int64_t rank = 0;
        for (std::int64_t l = 0; l < i; ++l) rank += copy[l] >= copy[i];
        for (std::int64_t l = i + 1; l < size; ++l) rank += copy[l] > copy[i];
        first[rank] = copy[i];
    }
}

inline void sort_descending(double* members, std::int64_t n) {
    sort_descending(members, members + n, 2 * static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n))));
}

// theta - base for the root theta of sum_j (s_j - theta) / k_j = radius.
inline double root(const std::vector<Line>& lines, double radius, double base = 0.0) {
    CompensatedSum heights;
    CompensatedSum slopes;
    heights.add(-radius);
    for (const Line& line : lines) {
        heights.add((line.s - base) / line.k);
        slopes.add(1.0 / line.k);
    }
    return heights.value() / slopes.value();
}

// Removes the groups that theta makes zero. That of the largest sum is never one of them, whatever theta rounds to.
inline bool drop_zero_groups(const Groups& groups, double theta, std::int64_t largest, std::vector<Line>& lines) {
    return std::erase_if(lines, [&](const Line& line) {
               return groups.sum(line.group) <= theta && line.group != largest;
           }) > 0;
}

inline std::int64_t largest_sum(const Groups& groups) {
    std::int64_t largest = 0;
    for (std::int64_t j = 1; j < groups.count(); ++j) {
        if (groups.sum(j) > groups.sum(largest)) largest = j;
    }
    return largest;
}

// A lower bound of theta, and the groups that it does not make zero, from the sums and the peaks alone: each group is
// bounded by its lines k = 1 and k = n, of which the first is the higher one until theta passes their crossing.
// Newton's method from the left only ever moves a group from the first line to the second and on to zero, so it ends.
struct Start {
    double theta;
    std::vector<Line> lines;
};

inline Start start_from_sums_and_peaks(const Groups& groups, double radius, std::int64_t largest) {
    const double n = static_cast<double>(groups.members());
    Start start;
    start.lines.reserve(static_cast<std::size_t>(groups.count()));
    for (std::int64_t j = 0; j < groups.count(); ++j) start.lines.push_back({j, 1.0, groups.peak(j)});
    for (bool changed = true; changed;) {
        start.theta = root(start.lines, radius);
        changed = drop_zero_groups(groups, start.theta, largest, start.lines);
        for (Line& line : start.lines) {
            const double sum = groups.sum(line.group);
            if (line.k < n && (sum - start.theta) / n > line.s - start.theta) {
                line = {line.group, n, sum};
                changed = true;
            }
        }
    }
    return start;
}

// theta and the caps from the final lines, whose root the method has found to be about `theta`. Counting is left to it.
//
// When the radius is small next to the sums, (s_j - theta) / k_j is all cancellation. So the root is taken once more,
// relative to a base beside which little is lost: the largest s_j, if theta is more than half of it (all differences
// s_j - base are then exact, and all terms of the root are of one sign), else theta itself. Either way the caps sum to
// the radius within rounding, however small it is, and the group of the largest s_j keeps its cap.
inline Solution solve(const Groups& groups, double radius, double theta, std::vector<Line> lines) {
    double highest = 0.0;
    for (const Line& line : lines) highest = std::max(highest, line.s);
    const double base = theta > 0.5 * highest ? highest : theta;
    double shift = root(lines, radius, base);
    while (std::erase_if(lines, [&](const Line& line) { return line.s - base < shift; }) > 0) {
        shift = root(lines, radius, base);
    }

    Solution solution;
    solution.theta = std::max(base + shift, 0.0);
    solution.mu.assign(static_cast<std::size_t>(groups.count()), 0.0);
    solution.clipped.assign(static_cast<std::size_t>(groups.count()), 0);
    for (const Line& line : lines) {
        const auto group = static_cast<std::size_t>(line.group);
        solution.active.push_back(group);
        solution.mu[group] = std::min((line.s - base - shift) / line.k, groups.peak(line.group));
    }
    return solution;
}

// Members above the caps, of groups whose magnitudes stand sorted from the largest down, n apart.
inline void count_clipped(const double* sorted, std::int64_t n, const std::vector<Line>& lines, Solution& solution) {
    for (const Line& line : lines) {
        const double mu = solution.mu[static_cast<std::size_t>(line.group)];
        if (mu <= 0.0) continue;
        const double* const z = sorted + line.group * n;
        solution.clipped[static_cast<std::size_t>(line.group)] =
            std::partition_point(z, z + n, [mu](double y) { return y > mu; }) - z;
    }
}

}  // namespace normball::textbook
