// The last bits: caps that sum to the radius and do not exceed it once they are rounded to the array's own dtype.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "rounding.hpp"
#include "l1inf/problem.hpp"

namespace normball {

// (s - theta) / k cancels when the radius is small next to the sums, so the caps may miss the radius by more than their
// own rounding. The excess is shared out as a change of theta would share it; what rounding leaves of it is scaled away.
inline void finish(double radius, double scale, Dtype dtype, Solution& solution) {
    auto& mu = solution.mu;
    const auto& k = solution.clipped;
    const double target = radius * scale;
    for (int pass = 0; pass < 2; ++pass) {
        const double excess = careful_sum(mu) - target;
        if (std::fabs(excess) <= 0x1p-51 * target) break;
        double slope = 0.0;
        for (const std::int64_t count : k) slope += count > 0 ? 1.0 / static_cast<double>(count) : 0.0;
        const double step = excess / slope;
        solution.theta += step;
        for (std::size_t g = 0; g < mu.size(); ++g)
            if (k[g] > 0) mu[g] = std::max(mu[g] - step / static_cast<double>(k[g]), 0.0);
    }
    if (const double sum = careful_sum(mu); sum > target)
        for (double& cap : mu) cap *= target / sum;
    solution.theta = std::max(solution.theta, 0.0) / scale;
    // Dividing by a power of two is exact unless the result is subnormal; then it must not round up.
    const auto unscaled = [scale](double cap) {
        const double x = cap / scale;
        return x * scale > cap ? just_below(x) : x;
    };
    std::vector<double> rounded(mu.size());
    for (double shrink = 0x1p-53;; shrink *= 2.0) {
        for (std::size_t g = 0; g < mu.size(); ++g)
            rounded[g] = round_down(scale == 1.0 ? mu[g] : unscaled(mu[g]), dtype);
        if (!(careful_sum(rounded) > radius)) break;
        for (double& cap : mu) cap *= 1.0 - shrink;
    }
    mu = std::move(rounded);
    for (std::size_t g = 0; g < mu.size(); ++g)
        if (mu[g] == 0.0) solution.clipped[g] = 0;
}

}  // namespace normball
