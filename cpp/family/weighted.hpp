// The weighted threshold of a group: tau with sum_i w_i max(|y_i| - tau w_i, 0) = radius, and the write that follows.
//
// The same Newton steps as in threshold.hpp, on copies in double: a member counts while |y_i| > tau w_i, and joins the
// slope with w_i squared. Members of weight 0 are free.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "family/threshold.hpp"
#include "view.hpp"
#include "write.hpp"

namespace normball {

struct Weighted {
    double size, weight;
};

inline double weighted_root(std::vector<Weighted>& members, double radius) {
    const auto line = [&](double tau, double& slope) {
        std::vector<double> terms;
        slope = 0.0;
        std::size_t kept = 0;
        for (const Weighted& y : members) {
            const double left = y.size - tau * y.weight;
            if (!(left > 0.0 && y.weight > 0.0)) continue;
            terms.push_back(y.weight * left), slope += y.weight * y.weight;
            members[kept++] = y;
        }
        members.resize(kept);
        return careful_sum(terms);
    };
    double tau = 0.0, slope = 0.0;
    double excess = line(tau, slope);
    if (excess <= radius * inside) return 0.0;
    for (std::size_t before = members.size() + 1; !members.empty();) {
        const double next = tau + (excess - radius) / slope;
        const bool last = members.size() == before || !(next > tau);
        before = members.size();
        tau = std::max(next, tau);
        excess = line(tau, slope);
        if (last) break;
    }
    while (!members.empty() && excess > radius) {
        tau = std::max(tau + (excess - radius) / slope, std::nextafter(tau, HUGE_VAL));
        excess = line(tau, slope);
    }
    return tau;
}

// `view` and `weights` are contiguous, a group to a row. Entries near the ends of the range are scaled, weights are not.
inline double weighted_threshold(const View& view, const View& weights, std::int64_t group, double radius) {
    const std::int64_t n = view.members();
    std::vector<double> sizes(static_cast<std::size_t>(n)), w(sizes.size());
    std::vector<Weighted> members(sizes.size());
    load_magnitudes(view, group, 0, n, 0.25, sizes.data());
    load_magnitudes(weights, group, 0, n, 1.0, w.data());
    double top = 0.0;
    for (const double y : sizes) {
        if (!std::isfinite(y)) return NAN;
        top = std::max(top, y);
    }
    if (top == 0.0) return 0.0;
    const double scale = std::ldexp(1.0, -std::clamp(std::ilogb(top), -1000, 1000));
    load_magnitudes(view, group, 0, n, scale, sizes.data());
    for (std::size_t i = 0; i < sizes.size(); ++i) members[i] = {sizes[i], w[i]};
    const double tau = weighted_root(members, radius * scale), back = tau / scale;
    return back * scale < tau ? std::nextafter(back, HUGE_VAL) : back;
}

// Every member shrunk by tau times its weight.
inline void write_weighted(const View& view, const View& weights, const double* taus) {
    with_type(view.dtype, [&]<class T>(T*) {
        for (std::int64_t g = 0; g < view.groups(); ++g) {
            const std::int64_t first = g * view.members();
            const T* y = static_cast<const T*>(view.in) + first;
            const double* w = static_cast<const double*>(weights.in) + first;
            T* x = static_cast<T*>(view.out) + first;
            for (std::int64_t i = 0; i < view.members(); ++i)
                x[i] = written(Write::shrink, y[i], w[i] == 0.0 && !std::isnan(taus[g]) ? 0.0 : taus[g] * w[i]);
        }
    });
}

}  // namespace normball
