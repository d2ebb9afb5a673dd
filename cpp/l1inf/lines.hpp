// What the Newton method knows of the groups that may be non-zero: a line for each, as arrays.
//
// For k members with sum s the line is (s - theta) / k, kept as mean = s / k and weight = 1 / k. It is the group's cap
// while it lies in [below, above), the gap between two neighbouring members; elsewhere it bounds the cap from below.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "array.hpp"
#include "dispatch.hpp"
#include "rounding.hpp"

namespace normball {

// The largest of numbers >= 0. Several at once, because each comparison waits for the one before.
inline double largest_of(std::span<const double> x) {
    constexpr std::size_t width = 8;
    double top[width] = {};
    std::size_t i = 0;
    for (; i + width <= x.size(); i += width)
        for (std::size_t j = 0; j < width; ++j) top[j] = std::max(top[j], x[i + j]);
    for (; i < x.size(); ++i) top[0] = std::max(top[0], x[i]);
    return *std::max_element(top, top + width);
}

template <class T>
struct Lines {
    Array<std::int64_t> group;
    Array<double> sum;  // of all the members: the group is zero where theta reaches it
    Array<double> top;  // just below the peak: some member is above any threshold up to it
    Array<double> mean, weight;
    Array<double> below, above;  // -1: not yet read

    // A line for each of the groups. All are still to be read.
    Lines(std::span<const double> sums, std::span<const double> peaks, std::span<const std::int64_t> groups) {
        add(sums, peaks, groups, 0);
    }

    // Others, from a place on to which idle lines lead.
    void add(std::span<const double> sums, std::span<const double> peaks, std::span<const std::int64_t> groups,
             std::int64_t place) {
        const std::size_t begin = size(), first = static_cast<std::size_t>(place), n = first + groups.size();
        group.resize(n), sum.resize(n), top.resize(n), mean.resize(n), weight.resize(n);
        below.resize(n, -1.0), above.resize(n, -1.0);
        for (std::size_t i = begin; i < first; ++i) group[i] = 0, sum[i] = mean[i] = weight[i] = top[i] = 0.0;
        for (std::size_t i = first; i < n; ++i) {
            const auto g = static_cast<std::size_t>(group[i] = groups[i - first]);
            sum[i] = sums[g];
            top[i] = static_cast<double>(just_below(static_cast<T>(peaks[g])));
        }
    }

    std::size_t size() const { return group.size(); }
    double cap(std::size_t i, double theta) const { return std::max(mean[i] - theta * weight[i], 0.0); }

    // Where to start looking for the caps, from one line on, as lines that are right at a theta: see Kernels::first_guesses.
    void guess(double theta, double expected, double share, double lean, const double* caps, std::size_t first = 0) {
        kernels<T>().first_guesses(arrays(first), group.data() + first, theta, expected, share, lean, caps);
    }

    // The lines that must be read: those that do not hold at theta, of groups that are non-zero there.
    Array<std::size_t> stale(double theta) {
        Array<std::size_t> found(size());
        found.resize(static_cast<std::size_t>(kernels<T>().stale_lines(arrays(), theta, found.data())));
        return found;
    }

    // Sums over the lines of the groups that are non-zero at theta.
    struct Totals {
        double mean = 0.0, weight = 0.0, active = 0.0;
    };
    Totals totals(double theta) {
        Totals all;
        kernels<T>().line_totals(arrays(), theta, &all.mean, &all.weight, &all.active);
        return all;
    }

    LineArrays arrays(std::size_t first = 0) {
        return {sum.data() + first,    top.data() + first,   mean.data() + first, weight.data() + first,
                below.data() + first, above.data() + first, size() - first};
    }
};

inline Array<std::int64_t> in_order(std::size_t count) {
    Array<std::int64_t> place(count);
    std::iota(place.begin(), place.end(), 0);
    return place;
}

// The groups that are non-zero at theta, in rising order.
template <class T>
Array<std::int64_t> groups_above(std::span<const double> sums, double theta) {
    Array<std::int64_t> found(sums.size());
    found.resize(static_cast<std::size_t>(kernels<T>().list_above(sums.data(), std::ssize(sums), theta, found.data())));
    return found;
}

// Root of the lower bound that the lines k = n and k = 1 of every group give, which is convex: a step of Newton's method
// lands left of the root from anywhere, so some of the groups may tell where to begin. Any bound will do, if it is one: the
// sums carry the rounding of their additions in T.
template <class T>
double two_line_bound(std::span<const double> sums, std::span<const double> peaks, double radius, double n) {
    constexpr std::size_t share = 16, fewest = 64 * share;
    double theta = 0.0;
    if (sums.size() >= fewest) {
        std::vector<double> some_sums, some_peaks;
        for (std::size_t g = share / 2; g < sums.size(); g += share)
            some_sums.push_back(sums[g]), some_peaks.push_back(peaks[g]);
        theta = two_line_bound<T>(some_sums, some_peaks, radius / share, n);
    }
    for (bool left = theta == 0.0;; left = true) {
        double value = 0.0, slope = 0.0;
        kernels<T>().two_lines(sums.data(), peaks.data(), std::ssize(sums), theta, 1.0 / n, &value, &slope);
        const double next = slope > 0.0 ? std::max(theta + (value - radius) / slope, 0.0) : left ? theta : 0.0;
        if (left && !(next > theta * (1.0 + 1e-3))) {
            constexpr double rounding = std::numeric_limits<T>::epsilon();
            return theta * (1.0 - 16.0 * rounding - n * std::numeric_limits<double>::epsilon());
        }
        theta = next;
    }
}

// Root of the highest caps that sums and peaks allow: theta is not above it, but for a hundredth. Newton's method from the
// left, a few steps.
template <class T>
double theta_ceiling(std::span<const double> sums, std::span<const double> peaks, double radius, double floor) {
    double theta = floor;
    for (int steps = 0; steps < 6; ++steps) {
        double value = 0.0, slope = 0.0;
        kernels<T>().highest_caps(sums.data(), peaks.data(), std::ssize(sums), theta, &value, &slope);
        const double next = slope > 0.0 ? theta + (value - radius) / slope : theta;
        if (!(next > theta * 1.01)) break;
        theta = next;
    }
    return theta;
}

}  // namespace normball
