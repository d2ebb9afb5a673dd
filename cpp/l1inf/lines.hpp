// What the Newton method knows of the groups that may be non-zero: a line for each, as arrays.
//
// For k members with sum s the line is (s - theta) / k, kept as mean = s / k and weight = 1 / k. It is the group's cap
// while it lies in [below, above), the gap between two neighbouring members; elsewhere it bounds the cap from below.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "dispatch.hpp"
#include "rounding.hpp"

namespace normball {

// What caps are to be found for.
struct Aim {
    double theta = 0.0;
    double spread = 0.0;           // how far theta may still move
    bool rough = false;            // theta and the caps to start from are mere guesses
    double share = 0.0;            // one over the number of members
    double cap = 0.0;              // a typical cap, to start from; 0 when nobody knows
    const double* caps = nullptr;  // or one for each group, of an earlier call: any numbers at all
};

template <class T>
struct Lines {
    std::vector<std::int64_t> group;
    std::vector<double> sum;  // of all the members: the group is zero where theta reaches it
    std::vector<double> mean, weight, below, above;
    std::vector<T> top;      // just below the peak: some member is above any threshold up to it
    bool gathered = false;  // the reader has these groups alone, in this order

    // A line for each group that is non-zero at theta = from. All are still to be read.
    Lines(const std::vector<double>& sums, const std::vector<double>& peaks, double from) {
        const auto n = static_cast<std::size_t>(
            std::count_if(sums.begin(), sums.end(), [from](double s) { return s > from; }));
        group.resize(n), sum.resize(n), top.resize(n);
        for (std::size_t g = 0, i = 0; i < n; ++g) {
            if (!(sums[g] > from)) continue;
            group[i] = static_cast<std::int64_t>(g), sum[i] = sums[g], top[i] = just_below(static_cast<T>(peaks[g]));
            ++i;
        }
        mean.resize(n), weight.resize(n), below.resize(n), above.assign(n, -1.0);
    }

    std::size_t size() const { return group.size(); }
    // Where the reader has the group.
    std::int64_t place(std::size_t i) const { return gathered ? static_cast<std::int64_t>(i) : group[i]; }

    bool read(std::size_t i) const { return weight[i] > 0.0; }
    double cap(std::size_t i, double theta) const { return std::max(mean[i] - theta * weight[i], 0.0); }
    // Whether the line says more than rounding about the cap that an earlier one gave.
    bool moves(std::size_t i, double cap_before, double theta) const {
        return std::fabs(cap(i, theta) - cap_before) > 8.0 * std::numeric_limits<double>::epsilon() * mean[i];
    }

    // The line of the k members above a threshold, with the members next to it. Above the second largest member there is
    // only the peak, and no line beyond its own.
    void set(std::size_t i, double s, T k, T from, T to) {
        weight[i] = 1.0 / static_cast<double>(k), mean[i] = s * weight[i];
        below[i] = static_cast<double>(from);
        above[i] = to > top[i] ? std::numeric_limits<double>::infinity() : static_cast<double>(to);
    }
    // A line through a cap that is a guess: it holds nowhere.
    void guess(std::size_t i, double at, double theta, double share) {
        weight[i] = share, mean[i] = at + theta * share, above[i] = -1.0;
    }

    // Where to start looking for a cap: where the line has it, or the earlier call; else at a typical cap, or higher where
    // the lines that the sum and the peak give are.
    double start(std::size_t i, const Aim& aim) const {
        if (read(i)) return cap(i, aim.theta);
        const double given = aim.caps != nullptr ? aim.caps[group[i]] : 0.0;
        if (given > 0.0 && std::isfinite(given)) return given;
        return std::max({(sum[i] - aim.theta) * aim.share, static_cast<double>(top[i]) - aim.theta, aim.cap});
    }

    // The lines that must be read: those that do not hold at theta, and those not yet read of the groups that are non-zero
    // at `from`.
    std::vector<std::size_t> stale(double theta, double from) const {
        std::vector<std::size_t> found(size());
        found.resize(static_cast<std::size_t>(kernels<T>().stale_lines(arrays(), std::ssize(group), theta, from, found.data())));
        return found;
    }

    // Sums over the lines of the groups that are non-zero at theta.
    struct Totals {
        double mean = 0.0, weight = 0.0, active = 0.0;
    };
    Totals totals(double theta) const {
        Totals all;
        kernels<T>().line_totals(arrays(), std::ssize(group), theta, &all.mean, &all.weight, &all.active);
        return all;
    }

private:
    LineArrays arrays() const { return {sum.data(), mean.data(), weight.data(), below.data(), above.data()}; }
};

// Root of the lower bound that the lines k = n and k = 1 of every group give: Newton from the left. Any bound will do, if
// it is one: the sums carry the rounding of their additions in T.
template <class T>
double two_line_bound(const std::vector<double>& sums, const std::vector<double>& peaks, double radius, double n) {
    for (double theta = 0.0;;) {
        double value = 0.0, slope = 0.0;
        kernels<T>().two_lines(sums.data(), peaks.data(), std::ssize(sums), theta, 1.0 / n, &value, &slope);
        const double next = slope > 0.0 ? theta + (value - radius) / slope : theta;
        if (!(next > theta * (1.0 + 1e-3))) {
            constexpr double rounding = std::numeric_limits<T>::epsilon();
            return theta * (1.0 - 16.0 * rounding - n * std::numeric_limits<double>::epsilon());
        }
        theta = next;
    }
}

}  // namespace normball
