// One number for each group: the sum, the largest or the 2-norm of its magnitudes.
//
// Sums are right to a unit or two in the last place of a double, for float16 and float32 too, so that what is inside a
// ball is known to be inside. A 2-norm whose squares leave the range of double is taken again from scaled magnitudes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "dispatch.hpp"
#include "family/runs.hpp"
#include "l1inf/project.hpp"
#include "parallel.hpp"
#include "rounding.hpp"
#include "view.hpp"

namespace normball {

enum class Aggregate { sum, peak, norm2 };

// Groups whose members lie in runs, or are made to.
template <class R>
void total_by_runs(const R& runs, bool square, Team& team, double* totals) {
    using T = typename R::T;
    const std::int64_t m = runs.groups(), n = runs.members();
    const auto total = [&](std::int64_t g, std::int64_t first, std::int64_t count) {
        double sum = 0.0;
        runs.each(g, first, count,
                  [&](const T* y, std::int64_t k) { sum += family_kernels<T>().row_total[square](y, k); });
        return sum;
    };
    if (n <= piece_elements) {
        const std::int64_t per_task = std::max<std::int64_t>(1, piece_elements / n);
        team.run((m + per_task - 1) / per_task, [&](std::int64_t t) {
            for (std::int64_t g = t * per_task; g < std::min(m, (t + 1) * per_task); ++g) totals[g] = total(g, 0, n);
        });
        return;
    }
    const std::int64_t pieces = (n + piece_elements - 1) / piece_elements;
    std::vector<double> parts(static_cast<std::size_t>(m * pieces));
    team.run(m * pieces, [&](std::int64_t t) {
        const std::int64_t first = t % pieces * piece_elements;
        parts[static_cast<std::size_t>(t)] = total(t / pieces, first, std::min(piece_elements, n - first));
    });
    for (std::int64_t g = 0; g < m; ++g)
        totals[g] = careful_sum({parts.data() + g * pieces, static_cast<std::size_t>(pieces)});
}

// Groups side by side, their members far apart.
template <class T>
void total_by_strips(const View& view, bool square, Team& team, double* totals) {
    constexpr std::int64_t strip = (std::int64_t(1) << 16) / sizeof(T);  // long enough to stream, and the sums fit a cache
    const std::int64_t line = view.group.inner().extent, per_line = (line + strip - 1) / strip;
    const Axis inner = view.member.inner();
    team.run(view.groups() / line * per_line, [&](std::int64_t t) {
        const std::int64_t column = t % per_line * strip, first = t / per_line * line + column;
        const std::int64_t width = std::min(strip, line - column);
        std::vector<double> sums(static_cast<std::size_t>(width + lane_limit)), errors(sums.size());
        const T* base = static_cast<const T*>(view.in) + view.group.at(first).in;
        for (std::int64_t i = 0; i < view.member.outer_count(); ++i)
            family_kernels<T>().strip_total[square](base + view.member.outer_at(i).in, inner.stride.in, inner.extent,
                                                    width, sums.data(), errors.data());
        for (std::int64_t j = 0; j < width; ++j)
            totals[first + j] = sums[static_cast<std::size_t>(j)] + errors[static_cast<std::size_t>(j)];
    });
}

inline bool lies_in_strips(const View& view) {
    return (view.dtype == Dtype::f32 || view.dtype == Dtype::f64) && view.group.inner().stride.in == 1 &&
           view.group.inner().extent >= 8;
}

// The 2-norm of one group from magnitudes scaled to near 1: infinite only if it is, NaN where there is one.
inline double scaled_norm(const View& view, std::int64_t group) {
    const Runs<double, true, false> quarters(view, 0.25);
    double top = 0.0;
    quarters.each(group, 0, view.members(), [&](const double* y, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) top = y[i] <= top ? top : y[i];
    });
    if (top == 0.0 || !std::isfinite(top)) return top;
    const double scale = std::ldexp(1.0, -std::clamp(std::ilogb(top), -1000, 1000));
    double sum = 0.0;
    Runs<double, true, false>(view, scale).each(group, 0, view.members(), [&](const double* y, std::int64_t n) {
        sum += family_kernels<double>().row_total[1](y, n);
    });
    return std::sqrt(sum) / scale;
}

// values: one for each group, in the view's own order; NaN or infinite where a group holds such an entry.
inline void aggregate(const View& view, Aggregate kind, Team& team, double* values) {
    const std::int64_t m = view.groups();
    if (kind == Aggregate::peak) {
        Array<double> sums, peaks;
        read_stats(view, 1.0, team, sums, peaks);
        for (std::int64_t g = 0; g < m; ++g) {
            const auto u = static_cast<std::size_t>(g);
            values[g] = std::isnan(sums[u]) ? sums[u] : peaks[u];  // a maximum may pass over NaN, a sum does not
        }
        return;
    }
    const bool square = kind == Aggregate::norm2;
    if (lies_in_runs(view) || !lies_in_strips(view))
        with_runs<false>(view, [&](const auto& runs) { total_by_runs(runs, square, team, values); });
    else if (view.dtype == Dtype::f32)
        total_by_strips<float>(view, square, team, values);
    else
        total_by_strips<double>(view, square, team, values);
    if (!square) {
        // The carried error of an infinite sum is NaN.
        for (std::int64_t g = 0; g < m; ++g)
            if (std::isnan(values[g])) {
                values[g] = 0.0;
                Runs<double, true, false>(view).each(g, 0, view.members(), [&](const double* y, std::int64_t n) {
                    for (std::int64_t i = 0; i < n; ++i) values[g] += y[i];
                });
            }
        return;
    }
    constexpr double least = 0x1p-900, most = 0x1p+900;
    for (std::int64_t g = 0; g < m; ++g)
        values[g] = values[g] >= least && values[g] <= most ? std::sqrt(values[g]) : scaled_norm(view, g);
}

}  // namespace normball
