// The l1,inf projection of one matrix: easy cases, choice of the reader, choice of the method, caps.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "view.hpp"
#include "l1inf/active_set.hpp"
#include "l1inf/finish.hpp"
#include "l1inf/inverse_total_order.hpp"
#include "l1inf/newton.hpp"
#include "l1inf/problem.hpp"
#include "l1inf/run_reader.hpp"
#include "l1inf/semismooth_newton.hpp"
#include "l1inf/strip_reader.hpp"
#include "l1inf/total_order.hpp"

namespace normball {

enum class Method { newton, inverse_total_order, total_order, active_set, semismooth_newton };

// Calls f with the reader that suits the view and the team. Magnitudes are multiplied by `scale`, a power of two, when read.
template <class F>
decltype(auto) with_reader(const View& view, double scale, const Team& team, F&& f) {
    if (scale == 1.0 && view.dtype == Dtype::f32) {
        if (RunReader<float, false>::can_read(view)) return f(RunReader<float, false>(view));
        if (StripReader<float>::can_read(view)) return f(StripReader<float>(view, team.threads()));
    }
    if (scale == 1.0 && view.dtype == Dtype::f64) {
        if (RunReader<double, false>::can_read(view)) return f(RunReader<double, false>(view));
        if (StripReader<double>::can_read(view)) return f(StripReader<double>(view, team.threads()));
    }
    return f(RunReader<double, true>(view, scale));
}

// Sums and peaks of all the groups.
inline void read_stats(const View& view, double scale, Team& team, Array<double>& sums, Array<double>& peaks) {
    sums.resize(static_cast<std::size_t>(view.groups()));
    peaks.resize(static_cast<std::size_t>(view.groups()));
    with_reader(view, scale, team, [&](const auto& reader) { reader.stats(team, {}, sums.data(), peaks.data()); });
}

class ViewGroups : public Groups {
public:
    ViewGroups(const View& view, double scale, std::span<const double> sums, std::span<const double> peaks)
        : Groups(view.groups(), view.members(), sums.data(), peaks.data()), view_(view), scale_(scale) {}
    void load(std::int64_t group, double* to) const override {
        load_magnitudes(view_, group, 0, members(), scale_, to);
    }

private:
    const View& view_;
    double scale_;
};

// The first read adds a few floats as floats, so that equal members may seem to sum to less than they do, and all of their
// groups to zero. Those that may be left are summed again.
inline void sum_in_double(const Groups& groups, double radius, std::span<double> sums, std::span<const double> peaks) {
    const double floor = two_line_bound<float>(sums, peaks, radius, static_cast<double>(groups.members()));
    std::vector<double> members(static_cast<std::size_t>(groups.members()));
    for (const std::int64_t g : groups_above<float>(sums, floor)) {
        groups.load(g, members.data());
        sums[static_cast<std::size_t>(g)] = careful_sum(members);
    }
}

inline Outcome solve_textbook(const View& view, double radius, double scale, Method method, Team& team,
                              Solution& solution) {
    Array<double> sums, peaks;
    read_stats(view, scale, team, sums, peaks);
    const Outcome outcome = classify(sums, peaks, radius);
    if (outcome == Outcome::interior) solution = interior_solution(std::move(peaks));
    if (outcome != Outcome::projected) return outcome;
    const ViewGroups groups(view, scale, sums, peaks);
    if (view.dtype == Dtype::f32) sum_in_double(groups, radius, sums, peaks);
    switch (method) {
        case Method::inverse_total_order: solution = inverse_total_order(groups, radius); break;
        case Method::total_order: solution = total_order(groups, radius); break;
        case Method::active_set: solution = active_set(groups, radius); break;
        default: solution = semismooth_newton(groups, radius); break;
    }
    solution.reads += 1.0;
    return outcome;
}

inline Outcome solve_at_scale(const View& view, double radius, double scale, Method method, const Solution* warm_start,
                              Team& team, Solution& solution) {
    if (method != Method::newton) return solve_textbook(view, radius, scale, method, team, solution);
    return with_reader(view, scale, team, [&]<class Reader>(const Reader& reader) {
        return Newton<Reader>(reader, radius, team).solve(warm_start, solution);
    });
}

// A power of two that brings the largest magnitude near 1, or 0 where some entry is NaN or infinite.
inline double scale_of(const View& view) {
    constexpr double quarter = 0.25;
    double top = 0.0;
    std::vector<double> group(static_cast<std::size_t>(view.members()));
    for (std::int64_t g = 0; g < view.groups(); ++g) {
        load_magnitudes(view, g, 0, view.members(), quarter, group.data());
        for (const double y : group) {
            if (!std::isfinite(y)) return 0.0;
            top = std::max(top, y);
        }
    }
    return std::ldexp(1.0, -std::clamp(std::ilogb(top), -1000, 1000));
}

// Radius 0: every cap is 0, and theta is the largest sum.
inline Outcome solve_zero_radius(const View& view, double scale, Team& team, Solution& solution) {
    Array<double> sums, peaks;
    read_stats(view, scale, team, sums, peaks);
    solution = {};
    solution.theta = *std::max_element(sums.begin(), sums.end()) / scale;
    solution.mu.assign(sums.size(), 0.0);
    solution.clipped.assign(sums.size(), 0);
    solution.reads = 1.0;
    return classify(sums, peaks, std::numeric_limits<double>::infinity());
}

// Caps and theta of one matrix, ready to be applied: caps are exact in the array's dtype. False where some entry is NaN
// or infinite; theta and the caps are NaN then.
inline bool project(const View& view, double radius, Method method, const Solution* warm_start, Team& team,
                    Solution& solution) {
    double scale = 1.0;
    const auto solve = [&] {
        if (radius == 0.0) return solve_zero_radius(view, scale, team, solution);
        return solve_at_scale(view, radius * scale, scale, method, warm_start, team, solution);
    };
    Outcome outcome = solve();
    if (outcome == Outcome::out_of_range) {
        scale = scale_of(view);
        if (scale == 0.0) {
            const auto groups = static_cast<std::size_t>(view.groups());
            solution = {};
            solution.theta = NAN, solution.reads = 1.0;
            solution.mu.assign(groups, NAN), solution.clipped.assign(groups, 0);
            return false;
        }
        outcome = solve();
    }
    if (scale != 1.0) solution.sums.clear();  // a tiny member may have vanished from them
    if (outcome == Outcome::projected && radius > 0.0) finish(radius, scale, view.dtype, solution);
    if (outcome == Outcome::interior)
        for (double& cap : solution.mu) cap /= scale;
    return true;
}

}  // namespace normball
