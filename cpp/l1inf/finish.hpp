// The last bits: caps that sum to the radius and do not exceed it once they are rounded to the array's own dtype.
#pragma once

#include <algorithm>
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
    double slope = 0.0;
    for (std::size_t g = 0; g < mu.size(); ++g)
        if (k[g] > 0) slope += 1.0 / static_cast<double>(k[g]);
    for (int pass = 0; pass < 2; ++pass) {
        CarefulSum total;
        for (const double cap : mu) total.add(cap);
        const double excess = (total.value() - radius * scale) / slope;
        solution.theta += excess;
        for (std::size_t g = 0; g < mu.size(); ++g)
            if (k[g] > 0) mu[g] = std::max(mu[g] - excess / static_cast<double>(k[g]), 0.0);
    }
    solution.theta /= scale;
    for (double shrink = 0x1p-53;; shrink *= 2.0) {
        CarefulSum total;
        for (const double cap : mu) total.add(round_down(cap / scale, dtype));
        if (total.value() <= radius) break;
        for (double& cap : mu) cap *= 1.0 - shrink;
    }
    for (std::size_t g = 0; g < mu.size(); ++g) {
        mu[g] = round_down(mu[g] / scale, dtype);
        if (mu[g] == 0.0) solution.clipped[g] = 0;
    }
}

}  // namespace normball
