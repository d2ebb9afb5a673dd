// How caps go with sums and peaks, learnt from a sample: log cap = constant + a log(sum - theta) + b log sum + c log peak,
// by least squares.
//
// What a cap leaves of a group has the sum sum - theta. Where groups are draws of one distribution, that decides the cap,
// whatever the tails are; where they differ by a factor, all three logarithms move alike; and far out in the tails the peak
// tells more.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "dispatch.hpp"

namespace normball {

// Sums, peaks and caps at theta, one each for every group of the sample; groups without a cap do not count. False where there
// are too few.
inline bool fit_caps(std::span<const double> sums, std::span<const double> peaks, std::span<const double> caps,
                     double theta, CapFit& fit) {
    constexpr std::size_t unknowns = 3;
    std::vector<std::array<double, unknowns + 1>> rows;  // the three logarithms, and that of the cap
    std::array<double, unknowns + 1> mean{};
    for (std::size_t g = 0; g < caps.size(); ++g) {
        if (!(caps[g] > 0.0 && sums[g] > theta)) continue;
        rows.push_back({std::log(sums[g] - theta), std::log(sums[g]), std::log(peaks[g]), std::log(caps[g])});
        for (std::size_t i = 0; i <= unknowns; ++i) mean[i] += rows.back()[i];
    }
    if (rows.size() < 2 * unknowns) return false;
    for (double& x : mean) x /= static_cast<double>(rows.size());

    std::array<std::array<double, unknowns + 1>, unknowns> equation{};
    for (const auto& row : rows)
        for (std::size_t i = 0; i < unknowns; ++i)
            for (std::size_t j = 0; j <= unknowns; ++j) equation[i][j] += (row[i] - mean[i]) * (row[j] - mean[j]);
    // The logarithms may be all but the same, or constant: a little on the diagonal keeps the answer small.
    for (std::size_t i = 0; i < unknowns; ++i) equation[i][i] += 1e-4 * equation[i][i] + 1e-12;
    for (std::size_t i = 0; i < unknowns; ++i)
        for (std::size_t k = i + 1; k < unknowns; ++k) {
            const double factor = equation[k][i] / equation[i][i];
            for (std::size_t j = i; j <= unknowns; ++j) equation[k][j] -= factor * equation[i][j];
        }
    std::array<double, unknowns> slope{};
    fit.constant = mean[unknowns];
    for (std::size_t i = unknowns; i-- > 0;) {
        slope[i] = equation[i][unknowns];
        for (std::size_t j = i + 1; j < unknowns; ++j) slope[i] -= equation[i][j] * slope[j];
        slope[i] /= equation[i][i];
        fit.constant -= slope[i] * mean[i];
    }
    fit.left = slope[0], fit.sum = slope[1], fit.peak = slope[2];
    return std::isfinite(fit.constant);
}

}  // namespace normball
