// Groups that lie side by side in a matrix, copied into panels, and written from there.
//
// A panel has as many groups as a register has lanes, and its rows follow one another: to look at it again and again is to
// read one short stream. Written back, the panels spare the last read of the matrix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dispatch.hpp"
#include "parallel.hpp"
#include "view.hpp"
#include "write.hpp"
#include "l1inf/problem.hpp"

namespace normball {

// The registers in which the groups of a view lie, whose groups have neighbours, for one group after another in rising
// order. The last one of a line begins early, so as not to read past its end.
class Registers {
public:
    Registers(const View& view, std::int64_t lanes) : view_(view), extent_(view.group.inner().extent), lanes_(lanes) {}

    // Goes on to a group, and says whether that is in a new register.
    bool go_to(std::int64_t group) {
        if (group < end_) return lane = group - begin_, false;
        const std::int64_t line = group / extent_, column = group % extent_;
        const std::int64_t first = std::min(column / lanes_ * lanes_, std::max<std::int64_t>(extent_ - lanes_, 0));
        begin_ = group - column + first, end_ = group - column + std::min(first + lanes_, extent_);
        at = view_.group.outer_at(line).in + first, lane = group - begin_;
        return true;
    }

    std::int64_t at = 0, lane = 0;  // the element where the register begins, and the group's lane there

private:
    const View& view_;
    std::int64_t extent_, lanes_, begin_ = 0, end_ = 0;
};

// Calls f(where, how many rows after the first, how many rows) for runs of equally spaced members [first, first + count), as
// far as there are so many.
template <class F>
void over_rows(const View& view, std::int64_t first, std::int64_t count, F f) {
    const Axis inner = view.member.inner();
    const std::int64_t end = std::min(first + count, view.members());
    for (std::int64_t r = first, n; r < end; r += n) {
        const std::int64_t row = r % inner.extent;
        n = std::min(end - r, inner.extent - row);
        f(view.member.outer_at(r / inner.extent) + row * inner.stride, r - first, n);
    }
}

// Copies groups into panels, some rows at a time.
template <class T>
class Picker {
public:
    // Of groups in rising order. There may be room for one panel more.
    Picker(const View& view, std::span<const std::int64_t> groups, bool with_room)
        : view_(view), lanes_(kernels<T>().lanes), panels_((std::ssize(groups) + lanes_ - 1) / lanes_),
          // An odd number of rows: a power of two would have the panels compete for the same few places in the cache.
          apart_((view.members() | 1) * lanes_) {
        const std::int64_t all = panels_ + (with_room ? 1 : 0);
        copy_ = std::make_unique<GroupCopy>(std::vector(groups.begin(), groups.end()),
                                            all * apart_ * static_cast<std::int64_t>(sizeof(T)));
        to_ = static_cast<T*>(copy_->memory.get());  // which another thread would not be told
        copy_->view.dtype = view.dtype, copy_->view.in = to_;
        copy_->view.group.push({all, {apart_, 0, 0}});
        copy_->view.group.push({lanes_, {1, 0, 0}});
        copy_->view.member.push({view.members(), {lanes_, 0, 0}});
        plan(groups);
    }

    // Copies members [first, first + count), as far as there are so many.
    void rows(std::int64_t first, std::int64_t count) const { rows_to(0, first, count); }

    // Puts so few groups more where there is room, in rising order. Returns the place of the first in the copy.
    std::int64_t add(std::span<const std::int64_t> groups) {
        copy_->more.assign(groups.begin(), groups.end());
        picks_.clear(), ends_.clear();
        plan(groups);
        rows_to(panels_, 0, view_.members());
        return panels_ * lanes_;
    }

    std::int64_t room() const { return lanes_; }
    const GroupCopy& copy() const { return *copy_; }
    std::unique_ptr<GroupCopy> take() { return std::move(copy_); }

private:
    void plan(std::span<const std::int64_t> groups) {
        Registers place(view_, lanes_);
        std::int64_t lane = 0;
        for (const std::int64_t group : groups) {
            if (lane == lanes_) ends_.push_back(std::ssize(picks_)), lane = 0;
            if (place.go_to(group) || lane == 0) picks_.push_back({place.at});
            picks_.back().to |= static_cast<std::uint16_t>(1u << lane);
            picks_.back().from[lane++] = static_cast<std::uint8_t>(place.lane);
        }
        if (lane > 0) ends_.push_back(std::ssize(picks_));
    }

    void rows_to(std::int64_t panel, std::int64_t first, std::int64_t count) const {
        T* const to = to_ + panel * apart_;
        over_rows(view_, first, count, [&](Offset from, std::int64_t r, std::int64_t n) {
            panel_kernels<T>().pick(static_cast<const T*>(view_.in) + from.in, view_.member.inner().stride.in, n,
                                    view_.group.inner().extent, picks_.data(), ends_.data(), std::ssize(ends_),
                                    to + (first + r) * lanes_, apart_, !streams(view_));
        });
    }

    const View& view_;
    std::int64_t lanes_, panels_, apart_;
    std::vector<Pick> picks_;
    std::vector<std::int64_t> ends_;  // of the picks of each panel
    std::unique_ptr<GroupCopy> copy_;
    T* to_;
};

template <class T>
class Panels {
public:
    // Copies groups, given in rising order. Backwards, for the end of the matrix is what the last read left in the cache.
    static std::unique_ptr<GroupCopy> pick(const View& view, std::span<const std::int64_t> groups, Team& team) {
        Picker<T> picker(view, groups, false);
        const std::int64_t tasks = (view.members() + rows_at_once - 1) / rows_at_once;
        team.run(tasks, [&](std::int64_t task) { picker.rows((tasks - 1 - task) * rows_at_once, rows_at_once); });
        return picker.take();
    }

    // Writes the whole matrix: the groups of the copy clipped to their caps, and zeros.
    static void lay(const View& view, const GroupCopy& copy, const double* caps, Team& team) {
        const std::int64_t extent = view.group.inner().extent, lines = view.group.outer_count();
        const std::int64_t lanes = copy.view.group.inner().extent, apart = copy.view.group.outer_at(1).in;
        std::vector<T> cap(static_cast<std::size_t>(copy.view.groups()));
        const auto bytes = static_cast<std::size_t>(extent / 8 + 8), width = static_cast<std::size_t>(extent);
        std::vector<std::uint8_t> picked(bytes * static_cast<std::size_t>(lines));
        std::vector<std::int64_t> begin(static_cast<std::size_t>(lines + 1));  // of each line, among the copies
        for (std::size_t i = 0; i < copy.groups.size(); ++i) {
            const auto group = static_cast<std::size_t>(copy.groups[i]);
            cap[i] = round_down<T>(caps[group]);
            picked[group / width * bytes + group % width / 8] |= static_cast<std::uint8_t>(1u << group % width % 8);
            ++begin[group / width + 1];
        }
        for (std::size_t l = 1; l < begin.size(); ++l) begin[l] += begin[l - 1];
        std::vector<T> more(copy.more.size());
        std::vector<std::int64_t> columns;
        for (std::size_t i = 0; i < more.size(); ++i)
            more[i] = round_down<T>(caps[copy.more[i]]), columns.push_back(view.group.at(copy.more[i]).out);
        const bool stream = streams(view);
        team.run((view.members() + rows_at_once - 1) / rows_at_once, [&](std::int64_t task) {
            std::vector<T> row(static_cast<std::size_t>(rows_laid * (copy.view.groups() + 2 * lanes)));
            const T* const from = static_cast<const T*>(copy.view.in) + task * rows_at_once * lanes;
            over_rows(view, task * rows_at_once, rows_at_once, [&](Offset at, std::int64_t r, std::int64_t n) {
                for (std::size_t l = 0; l + 1 < begin.size(); ++l) {
                    const std::int64_t panel = begin[l] / lanes, end = (begin[l + 1] + lanes - 1) / lanes;
                    const Offset to = at + view.group.outer_at(static_cast<std::int64_t>(l));
                    panel_kernels<T>().lay(from + panel * apart + r * lanes, apart, end - panel, begin[l] % lanes,
                                           cap.data() + panel * lanes, row.data(), static_cast<T*>(view.out) + to.out,
                                           view.member.inner().stride.out, n, extent, picked.data() + l * bytes, stream,
                                           view.blank);
                }
                const T* const last = from + (copy.view.group.outer_count() - 1) * apart + r * lanes;
                for (std::size_t i = 0; i < more.size(); ++i)
                    for (std::int64_t k = 0; k < n; ++k)
                        static_cast<T*>(view.out)[at.out + k * view.member.inner().stride.out + columns[i]] =
                            clip(last[k * lanes + static_cast<std::int64_t>(i)], more[i]);
            });
        });
    }

private:
    static constexpr std::int64_t rows_at_once = 64;
};

// The groups that become zero and were not, but for those of the copy; none at all where they are many, or it is not known.
inline std::optional<std::vector<std::int64_t>> emptied_groups(const Solution& solution) {
    const std::vector<std::int64_t> none, &copied = solution.copy ? solution.copy->groups : none;
    const std::size_t most = solution.sums.size() / 64;
    std::vector<std::int64_t> found;
    auto known = copied.begin();
    for (std::size_t g = 0; g < solution.sums.size(); ++g) {
        if (known != copied.end() && static_cast<std::size_t>(*known) == g) {
            ++known;
        } else if (solution.sums[g] > 0.0 && solution.mu[g] == 0.0) {
            if (found.size() == most) return {};
            found.push_back(static_cast<std::int64_t>(g));
        }
    }
    if (solution.sums.empty()) return {};
    return found;
}

// Every entry clipped to its group's cap.
inline void apply(const View& whole, const Solution& solution, Team& team) {
    View view = whole;
    // In training most of the zero groups were zero before: they are left alone.
    if (view.in_place())
        if (const auto emptied = emptied_groups(solution)) view.blank = true, write_zeros(view, *emptied);
    if (solution.copy == nullptr || view.group.inner().stride.out != 1) return apply(view, solution.mu.data(), team);
    touch_pages(view, team);
    if (view.dtype == Dtype::f32)
        Panels<float>::lay(view, *solution.copy, solution.mu.data(), team);
    else
        Panels<double>::lay(view, *solution.copy, solution.mu.data(), team);
}

}  // namespace normball
