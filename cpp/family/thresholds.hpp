// The thresholds of all the groups of a view, each with a radius of its own, and the write that follows.
//
// Groups that fit a cache are read twice, once for their sums, which tell whether all is finite, and once to be solved
// and written while they are there. Long groups are solved one after another, each by the whole team, and then written.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "family/aggregate.hpp"
#include "family/runs.hpp"
#include "family/threshold.hpp"
#include "parallel.hpp"
#include "scratch.hpp"
#include "view.hpp"
#include "write.hpp"

namespace normball {

struct ThresholdResult {
    bool finite = true;
    double reads = 0.0;  // of the array, the one made while writing not included
};

// What to write, if anything: view.out is null where only the thresholds are wanted.
struct WriteOrder {
    Write kind = Write::shrink;
    bool tiny = false;
    bool even_if_not_finite = false;
};

template <bool Signed>
class Thresholds {
public:
    // radii and taus: one for each group, in the view's own order. With a radius of 0 nothing is left, and tau is
    // infinite.
    Thresholds(const View& view, const double* radii, WriteOrder order, Team& team, double* taus)
        : view_(view), radii_(radii), order_(order), team_(team), taus_(taus) {}

    ThresholdResult solve() {
        const bool side_by_side = lies_in_strips(view_) && !lies_in_runs(view_);
        bool written = false;
        if (view_.members() <= (side_by_side ? longest_turned : piece_elements))
            written = solve_short(side_by_side);
        else
            with_runs<Signed>(view_, [&](const auto& runs) { solve_long(runs); });
        if (view_.out != nullptr && !written && (result_.finite || order_.even_if_not_finite))
            write(view_, order_.kind, taus_, order_.tiny, team_);
        return result_;
    }

private:
    static constexpr std::int64_t longest_turned = std::int64_t(1) << 18, turned_bytes = std::int64_t(1) << 21;

    // A sum within rounding of the radius: the group is in its simplex and stays as it is.
    double snapped(double tau, double radius) const {
        const double most = 2.0 * epsilon() * radius / static_cast<double>(view_.members());
        return Signed && std::fabs(tau) <= most ? 0.0 : tau;
    }
    double epsilon() const {
        return view_.dtype == Dtype::f16 ? 0x1p-10 : view_.dtype == Dtype::f32 ? 0x1p-23 : 0x1p-52;
    }

    template <class R>
    void solve_long(const R& runs) {
        double reads = 0.0;
        for (std::int64_t g = 0; g < view_.groups(); ++g) {
            if (!LongGroup<R>(runs, g, radii_[g], team_).solve(taus_[g], reads))
                taus_[g] = scaled_threshold<Signed>(view_, g, radii_[g]), reads += 2.0;
            if (std::isnan(taus_[g])) result_.finite = false;
            taus_[g] = snapped(taus_[g], radii_[g]);
        }
        result_.reads = reads / static_cast<double>(view_.groups());
    }

    // Returns whether everything has been written, too.
    bool solve_short(bool side_by_side) {
        const std::int64_t m = view_.groups();
        std::vector<double> sums(static_cast<std::size_t>(m));
        aggregate(view_, Aggregate::sum, team_, sums.data());
        std::vector<char> todo(sums.size(), 0);
        std::int64_t count = 0;
        for (std::int64_t g = 0; g < m; ++g) {
            const double sum = sums[static_cast<std::size_t>(g)];
            taus_[g] = 0.0;
            if (!in_range(sum, view_.dtype == Dtype::f32) && (Signed || !(sum <= radii_[g])))
                taus_[g] = scaled_threshold<Signed>(view_, g, radii_[g]);
            else if (radii_[g] == 0.0)
                taus_[g] = HUGE_VAL;
            else if (Signed || sum > radii_[g] * inside)
                todo[static_cast<std::size_t>(g)] = 1, ++count;
            if (std::isnan(taus_[g])) result_.finite = false;
        }
        result_.reads = 1.0;
        if (!result_.finite && !order_.even_if_not_finite) return false;
        if (side_by_side)
            view_.dtype == Dtype::f32 ? solve_strips<float>(sums, todo) : solve_strips<double>(sums, todo);
        else
            return with_runs<Signed>(view_, [&](const auto& runs) { return solve_rows(runs, sums, todo); });
        result_.reads += static_cast<double>(count) / static_cast<double>(m);
        return false;
    }

    // Neighbours are often alike: the last threshold, and a bit less, is where the next one is looked for.
    static constexpr double of_the_last = 0.9;

    // One group; `last` is the threshold of its neighbour, and becomes its own.
    template <class T, class Each>
    void settle(std::int64_t g, Each each, T* scratch, const std::vector<double>& sums, double& last) {
        const double guess = last > 0.0 ? of_the_last * last : -HUGE_VAL;
        last = threshold_of<T, Signed>(each, scratch, view_.members(), radii_[g], sums[static_cast<std::size_t>(g)], guess);
        taus_[g] = snapped(last, radii_[g]);
    }

    template <class R>
    bool solve_rows(const R& runs, const std::vector<double>& sums, const std::vector<char>& todo) {
        using T = typename R::T;
        const std::int64_t m = view_.groups(), n = view_.members();
        const std::int64_t per_task = std::max<std::int64_t>(1, piece_elements / n), tasks = (m + per_task - 1) / per_task;
        const Offset step = view_.member.inner().stride;
        const bool writes = R::lie_in_memory && view_.out != nullptr && step.out == 1 && result_.finite && !order_.tiny;
        const bool stream = view_.size() * static_cast<std::int64_t>(sizeof(T)) >= streamed_bytes;
        team_.run(tasks, [&](std::int64_t t) {
            const std::int64_t begin = (tasks - 1 - t) * per_task, end = std::min(begin + per_task, m);
            const Scratch<T> scratch(n + lane_limit);
            double last = 0.0;
            for (std::int64_t g = begin; g < end; ++g)
                if (todo[static_cast<std::size_t>(g)])
                    settle(g, [&](auto f) { runs.each(g, 0, n, f); }, scratch.get(), sums, last);
            if constexpr (R::lie_in_memory)
                if (writes) write_rows<T>(view_, order_.kind, taus_, begin, end, stream);
        });
        return writes;
    }

    // How far apart to keep rows of n: a power of two would have them compete for the same few places in the cache.
    static std::int64_t apart(std::int64_t n) { return (n + lane_limit - 1) / lane_limit * lane_limit + lane_limit; }

    // As many columns as a cache holds are turned into rows at a time.
    template <class T>
    void solve_strips(const std::vector<double>& sums, const std::vector<char>& todo) {
        const std::int64_t n = view_.members(), row_stride = apart(n), line = view_.group.inner().extent;
        const std::int64_t fit = turned_bytes / (row_stride * static_cast<std::int64_t>(sizeof(T)));
        const std::int64_t batch = std::clamp(fit, lane_limit, gather_limit), per_line = (line + batch - 1) / batch;
        const Axis inner = view_.member.inner();
        team_.run(view_.groups() / line * per_line, [&](std::int64_t t) {
            const std::int64_t begin = t / per_line * line + t % per_line * batch;
            const std::int64_t end = std::min(begin + batch, (t / per_line + 1) * line);
            std::vector<std::int64_t> columns;
            for (std::int64_t g = begin; g < end; ++g)
                if (todo[static_cast<std::size_t>(g)]) columns.push_back(g - begin);
            // Behind the rows, room for what is kept of one of them.
            const Scratch<T> rows((std::ssize(columns) + 1) * row_stride + lane_limit);
            T* const kept = rows.get() + std::ssize(columns) * row_stride;
            const T* base = static_cast<const T*>(view_.in) + view_.group.at(begin).in;
            for (std::int64_t i = 0; i < view_.member.outer_count(); ++i)
                family_kernels<T>().strip_gather(base + view_.member.outer_at(i).in, inner.stride.in, inner.extent,
                                                 end - begin, columns.data(), std::ssize(columns),
                                                 rows.get() + i * inner.extent, row_stride);
            const T* row = rows.get();
            double last = 0.0;
            for (const std::int64_t column : columns) {
                settle(begin + column, [&](auto f) { f(row, n); }, kept, sums, last);
                row += row_stride;
            }
        });
    }

    const View& view_;
    const double* radii_;
    WriteOrder order_;
    Team& team_;
    double* taus_;
    ThresholdResult result_;
};

}  // namespace normball
