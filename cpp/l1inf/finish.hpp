// The last bits: caps that sum to the radius and do not exceed it once they are rounded to the array's own dtype.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "array.hpp"
#include "rounding.hpp"
#include "l1inf/problem.hpp"

namespace normball {

// Caps, not scaled any more, as the array's dtype holds them, and never rounded up.
inline void round_caps(const Array<double>& caps, double scale, Dtype dtype, Array<double>& rounded) {
    for (std::size_t i = 0; scale != 1.0 && i < caps.size(); ++i) {
        // Dividing by a power of two is exact unless the result is subnormal.
        const double x = caps[i] / scale;
        rounded[i] = x * scale > caps[i] ? just_below(x) : x;
    }
    if (scale == 1.0) rounded = caps;
    if (dtype == Dtype::f32 || dtype == Dtype::c64)
        kernels<float>().round_down(rounded.data(), std::ssize(rounded), rounded.data());
    else if (dtype == Dtype::f16)
        for (double& cap : rounded) cap = round_down(cap, dtype);
}

// (s - theta) / k cancels when the radius is small next to the sums, so the caps may miss the radius by more than their
// own rounding. The excess is shared out as a change of theta would share it; what rounding leaves of it is scaled away.
inline void finish(double radius, double scale, Dtype dtype, Solution& solution) {
    // A cap may have cancelled to nothing and still have its share of the excess.
    const Array<std::size_t>& active = solution.active;
    Array<double> caps(active.size()), weights(active.size()), rounded(active.size());
    for (std::size_t i = 0; i < active.size(); ++i) {
        const std::int64_t k = solution.clipped[active[i]];
        caps[i] = solution.mu[active[i]], weights[i] = k > 0 ? 1.0 / static_cast<double>(k) : 0.0;
    }
    const double target = radius * scale, weight = careful_sum(weights);
    for (int pass = 0; pass < 2 && weight > 0.0; ++pass) {  // caps too small for any number weigh nothing
        const double excess = careful_sum(caps) - target;
        if (std::fabs(excess) <= 0x1p-51 * target) break;
        const double step = excess / weight;
        solution.theta += step;
        for (std::size_t i = 0; i < caps.size(); ++i) caps[i] = std::max(caps[i] - step * weights[i], 0.0);
    }
    if (const double sum = careful_sum(caps); sum > target)
        for (double& cap : caps) cap *= target / sum;
    if (caps.size() == 1) caps[0] = target;  // nobody to share with
    solution.theta = std::max(solution.theta, 0.0) / scale;
    for (double shrink = 0x1p-53;; shrink *= 2.0) {
        round_caps(caps, scale, dtype, rounded);
        if (!(careful_sum(rounded) > radius)) break;
        for (double& cap : caps) cap *= 1.0 - shrink;
    }
    for (std::size_t i = 0; i < active.size(); ++i) {
        solution.mu[active[i]] = rounded[i];
        if (rounded[i] == 0.0) solution.clipped[active[i]] = 0;
    }
}

}  // namespace normball
