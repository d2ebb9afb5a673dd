// The thresholds of all the groups of a view, each with a radius of its own, and the write that follows.
//
// Groups that fit a cache are read twice, once for their sums, which tell whether all is finite, and once to be solved
// and written while they are there. A few of them are solved first, and tell where to look for the others: then the second
// read keeps only those members that may be above the threshold. Groups that lie side by side are read in strips, turned
// in registers, and written afterwards. Long groups are solved one after another, each by the whole team, and then written.
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
#include "family/trend.hpp"
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
    // infinite. `sums` are those of aggregate.hpp, where they are known.
    Thresholds(const View& view, const double* radii, WriteOrder order, Team& team, double* taus,
               const double* sums = nullptr)
        : view_(view), radii_(radii), order_(order), team_(team), taus_(taus), sums_(sums) {}

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
        std::vector<double> read;
        if (sums_ == nullptr) {
            read.resize(static_cast<std::size_t>(m));
            aggregate(view_, Aggregate::sum, team_, read.data());
            sums_ = read.data();
            result_.reads = 1.0;
        }
        std::vector<char> todo(static_cast<std::size_t>(m), 0);
        std::int64_t count = 0;
        for (std::int64_t g = 0; g < m; ++g) {
            taus_[g] = 0.0;
            if (!in_range(sums_[g], view_.dtype == Dtype::f32) && (Signed || !(sums_[g] <= radii_[g])))
                taus_[g] = scaled_threshold<Signed>(view_, g, radii_[g]);
            else if (radii_[g] == 0.0)
                taus_[g] = HUGE_VAL;
            else if (Signed || sums_[g] > radii_[g] * inside)
                todo[static_cast<std::size_t>(g)] = 1, ++count;
            if (std::isnan(taus_[g])) result_.finite = false;
        }
        if (!result_.finite && !order_.even_if_not_finite) return false;
        // Single columns are slow to read, and must pay.
        if (count >= (side_by_side ? 16 : 2) * sampled)
            with_runs<Signed>(view_, [&](const auto& runs) { learn(runs, count, todo); });
        if (!side_by_side)
            return with_runs<Signed>(view_, [&](const auto& runs) { return solve_rows(runs, todo); });
        view_.dtype == Dtype::f32 ? solve_strips<float>(todo) : solve_strips<double>(todo);
        result_.reads += static_cast<double>(count) / static_cast<double>(m);
        return false;
    }

    // Solves a few groups, spread over all that are to be solved.
    static constexpr std::int64_t sampled = 8;
    template <class R>
    void learn(const R& runs, std::int64_t count, std::vector<char>& todo) {
        using T = typename R::T;
        const std::int64_t n = view_.members(), every = count / sampled;
        const Scratch<T> scratch(n + lane_limit);
        for (std::int64_t g = 0, seen = 0; g < view_.groups(); ++g) {
            if (!todo[static_cast<std::size_t>(g)] || seen++ % every != every / 2) continue;
            std::int64_t above = 0;
            const auto list = lister<T, Signed>([&](auto f) { runs.each(g, 0, n, f); }, scratch.get());
            const double tau = threshold_from<T, Signed>({radii_[g], sums_[g], n}, n, radii_[g], list, &above);
            trend_.learn(radii_[g], sums_[g], n, tau, above);
            taus_[g] = snapped(tau, radii_[g]);
            todo[static_cast<std::size_t>(g)] = 0;
        }
    }

    Start<Signed> start(std::int64_t g) const {
        const std::int64_t n = view_.members();
        return {radii_[g], sums_[g], n, trend_.below(radii_[g], sums_[g], n)};
    }

    template <class R>
    bool solve_rows(const R& runs, const std::vector<char>& todo) {
        using T = typename R::T;
        const std::int64_t m = view_.groups(), n = view_.members();
        const std::int64_t per_task = std::max<std::int64_t>(1, piece_elements / n), tasks = (m + per_task - 1) / per_task;
        const Offset step = view_.member.inner().stride;
        const bool writes = R::lie_in_memory && view_.out != nullptr && step.out == 1 && result_.finite && !order_.tiny;
        const bool stream = streams(view_);
        if (writes) touch_pages(view_, team_);
        team_.run(tasks, [&](std::int64_t t) {
            const std::int64_t begin = (tasks - 1 - t) * per_task, end = std::min(begin + per_task, m);
            const Scratch<T> scratch(n + lane_limit);
            for (std::int64_t g = begin; g < end; ++g) {
                if (!todo[static_cast<std::size_t>(g)]) continue;
                const auto list = lister<T, Signed>([&](auto f) { runs.each(g, 0, n, f); }, scratch.get());
                taus_[g] = snapped(threshold_from<T, Signed>(start(g), n, radii_[g], list), radii_[g]);
            }
            if constexpr (R::lie_in_memory)
                if (writes) write_rows<T>(view_, order_.kind, taus_, begin, end, stream);
        });
        return writes;
    }

    // Registers of neighbouring groups that hold some to be solved. They begin where a line of the cache does, if all rows
    // lie alike; the first and the last are shifted to stay within the strip, and overlap their neighbours.
    template <class T>
    struct Registers {
        std::vector<std::int64_t> at;             // where each begins
        std::vector<std::int64_t> groups, lanes;  // of each group to be solved: its number and its lane
        std::vector<std::int64_t> lists, sizes;   // of each lane; the first list is for those with no group
        std::vector<T> above;

        Registers(const T* base, std::int64_t stride, std::int64_t width, const char* todo) {
            constexpr T none = std::numeric_limits<T>::max();
            const std::int64_t each = kernels<T>().lanes, bytes = each * static_cast<std::int64_t>(sizeof(T));
            const std::int64_t past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(base)) % bytes;
            const std::int64_t lead = stride % each == 0 ? (bytes - past) % bytes / static_cast<std::int64_t>(sizeof(T)) : 0;
            for (std::int64_t g = 0; g < width; ++g) {
                if (!todo[g]) continue;
                const std::int64_t aligned = g < lead ? 0 : lead + (g - lead) / each * each;
                const std::int64_t first = std::max<std::int64_t>(0, std::min(aligned, width - each));
                if (at.empty() || at.back() != first) {
                    at.push_back(first);
                    lists.resize(at.size() * static_cast<std::size_t>(each), 0);
                }
                groups.push_back(g), lanes.push_back((std::ssize(at) - 1) * each + g - first);
                lists[static_cast<std::size_t>(lanes.back())] = std::ssize(groups);
            }
            sizes.resize(lists.size()), above.resize(lists.size(), none);
        }
    };

    // How far apart to keep lists of up to n: an odd number of lines, or they would compete for the same few places in the
    // cache.
    static std::int64_t apart(std::int64_t n) { return ((n + 2 * lane_limit - 1) / lane_limit | 1) * lane_limit; }

    // As many columns at a time as a cache has room for their lists; the wider, the better they are read.
    template <class T>
    void solve_strips(const std::vector<char>& todo) {
        constexpr std::int64_t widest = 2048;
        const std::int64_t n = view_.members(), room = apart(trend_.most_above(n)), line = view_.group.inner().extent;
        const std::int64_t fit = turned_bytes / (room * static_cast<std::int64_t>(sizeof(T))) / lane_limit * lane_limit;
        const std::int64_t batch = std::clamp(fit, lane_limit, widest), per_line = (line + batch - 1) / batch;
        const Axis inner = view_.member.inner();
        team_.run(view_.groups() / line * per_line, [&](std::int64_t task) {
            const std::int64_t begin = task / per_line * line + task % per_line * batch;
            const std::int64_t width = std::min(batch, (task / per_line + 1) * line - begin);
            const T* base = static_cast<const T*>(view_.in) + view_.group.at(begin).in;
            Registers<T> registers(base, inner.stride.in, width, todo.data() + begin);
            const std::int64_t number = std::ssize(registers.groups);
            std::vector<Start<Signed>> starts;
            for (std::size_t j = 0; j < registers.groups.size(); ++j) {
                starts.push_back(start(begin + registers.groups[j]));
                registers.above[static_cast<std::size_t>(registers.lanes[j])] = floor_to<T>(starts.back().first);
            }
            const Scratch<T> lists((number + 1) * room + n + lane_limit);
            T* const whole = lists.get() + (number + 1) * room;  // for one that did not fit, or was not enough
            for (std::int64_t i = 0; i < view_.member.outer_count(); ++i)
                family_kernels<T>().strip_keep[Signed](base + view_.member.outer_at(i).in, inner.stride.in, inner.extent,
                                                       width, registers.at.data(), std::ssize(registers.at),
                                                       registers.above.data(), lists.get(), room, registers.lists.data(),
                                                       registers.sizes.data());
            for (std::int64_t j = 0; j < number; ++j) {
                const auto u = static_cast<std::size_t>(j);
                const std::int64_t g = begin + registers.groups[u];
                const std::int64_t size = registers.sizes[static_cast<std::size_t>(registers.lanes[u])];
                const auto list = [&](double t) -> Survivors<T, Signed> {
                    if (t == starts[u].first && size <= room - lane_limit) return {lists.get() + (j + 1) * room, size};
                    return above_in_column(base + registers.groups[u], t, whole);
                };
                taus_[g] = snapped(threshold_from<T, Signed>(starts[u], n, radii_[g], list), radii_[g]);
            }
        });
    }

    template <class T>
    Survivors<T, Signed> above_in_column(const T* column, double t, T* found) const {
        const T low = floor_to<T>(t);
        std::int64_t size = 0;
        for (std::int64_t i = 0; i < view_.member.outer_count(); ++i) {
            const T* y = column + view_.member.outer_at(i).in;
            const Axis inner = view_.member.inner();
            for (std::int64_t k = 0; k < inner.extent; ++k, y += inner.stride.in) {
                found[size] = Signed ? *y : std::fabs(*y);
                size += found[size] > low;
            }
        }
        return {found, size};
    }

    const View& view_;
    const double* radii_;
    WriteOrder order_;
    Team& team_;
    double* taus_;
    const double* sums_;
    Trend trend_;
    ThresholdResult result_;
};

}  // namespace normball
