// Reads a matrix many neighbouring groups at a time: the groups lie side by side, their members far apart.
//
// Groups stay in their lanes as they lie. Where few of them may be non-zero, these are copied into panels first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "l1inf/lines.hpp"
#include "l1inf/panels.hpp"
#include "l1inf/settle.hpp"
#include "l1inf/windows.hpp"
#include "parallel.hpp"
#include "scratch.hpp"
#include "view.hpp"

namespace normball {

template <class Element>
class StripReader {
public:
    using T = Element;
    using Gathered = StripReader;
    static constexpr bool gathers = true, writes_from_copy = true;
    static constexpr bool neighbours = true;  // are read together: one costs as much as all
    static constexpr double doubtful_share = 0.1;  // of the guesses: where more are doubtful, another look is worth while
    static constexpr double most_kept = 0.09;  // of the members: windows that hold more are not worth while
    static constexpr std::int64_t cluster = 32 / sizeof(T);  // neighbours worth sampling together: half a cache line

    // Counts are kept in T.
    static bool can_read(const View& view) {
        return view.group.inner().stride.in == 1 && view.group.inner().extent >= 8 &&
               view.members() < std::int64_t(1) << 24;
    }

    // With a strip at least for each thread.
    explicit StripReader(const View& view, int threads = 1) : view_(view), line_(view.group.inner().extent) {
        const auto bytes = static_cast<std::int64_t>(sizeof(T));
        const std::int64_t share = (line_ / threads + lane_limit) / lane_limit * lane_limit;
        wide_ = std::min(stream_bytes / bytes, share);
        near_ = !streams(view);
        const std::int64_t narrow = kept_bytes / (view.members() * bytes) / lane_limit * lane_limit;
        width_ = narrow * bytes >= worth_keeping_bytes ? std::min(narrow, wide_) : wide_;
        if (line_ <= width_) lines_ = std::max<std::int64_t>(kept_bytes / (view.members() * line_ * bytes), 1);
    }

    // So many looks are worth while before exact ones, which cost no more where memory is what takes time.
    int rough_looks() const { return near_ ? 2 : 0; }
    Moments rough_moments() const { return normball::rough_moments(view_); }
    std::int64_t groups() const { return view_.groups(); }
    std::int64_t members() const { return view_.members(); }

    bool can_look() const { return true; }
    // The share of the groups from which on to read all of them costs less than to tell them apart.
    double all_from() const { return 0.75; }

    // Sums and peaks of all the groups, a look, and a copy of those that are `expected` to be non-zero, in rising order, if that can be
    // had from the same read. Tall strips are cut into ranges of rows, so that there is work for more threads than there are
    // strips; for a copy, all the strips of a few rows are read before the next rows.
    std::optional<Picker<T>> stats(Team& team, std::span<const std::int64_t> expected, double* sums, double* peaks,
                                   const StatsLook<T>& look = {}) const {
        const Axis inner = view_.member.inner();
        const std::int64_t strips = groups() / line_ * per_line(wide_);
        std::optional<Picker<T>> picker;
        if (!expected.empty() && can_pick()) picker.emplace(view_, expected, true);
        const std::int64_t fewest_rows = picker ? 250 : 1000;
        const std::int64_t ranges = std::clamp<std::int64_t>(inner.extent / fewest_rows, 1, most_ranges);
        const std::int64_t together = picker ? strips : 1;
        const std::int64_t most_rows = picker ? rows_to_pick() : inner.extent;
        // What each range finds lies behind what the one before has found.
        const auto all = static_cast<std::size_t>(groups());
        std::vector<double> more_sums(ranges > 1 ? all * static_cast<std::size_t>(ranges - 1) : 0), more_peaks(more_sums.size());
        const bool looks = look.s != nullptr;
        std::vector<T> more_above(looks ? more_sums.size() : 0), more_counts(more_above.size());
        team.run(strips / together * ranges, [&](std::int64_t job) {
            const std::int64_t range = job * together / strips, end = (range + 1) * inner.extent / ranges;
            // Every strip has its own place, with room behind it for the lanes of its last register.
            const auto place = static_cast<std::size_t>(std::min(wide_, line_) + lane_limit);
            std::vector<double> s(static_cast<std::size_t>(together) * place);
            std::vector<T> p(s.size()), above(looks ? s.size() : 0), counts(above.size());
            for (std::int64_t first = range * inner.extent / ranges, rows; first < end; first += rows) {
                rows = std::min(most_rows, end - first);
                for (std::int64_t c = 0; c < together; ++c) {
                    const Strip strip = strip_of(job * together % strips + c, wide_);
                    const auto at = static_cast<std::size_t>(c) * place;
                    blocks(strip.base, [&](const T* y, std::int64_t stride, std::int64_t) {
                        const StatsLook<T> found = looks ? StatsLook<T>{look.t, &above[at], &counts[at]} : look;
                        kernels<T>().strip_stats(y + first * stride, stride, rows, strip.width, &s[at], &p[at], found, near_);
                    });
                }
                if (picker) picker->rows(first, rows);
            }
            for (std::int64_t c = 0; c < together; ++c) {
                const Strip strip = strip_of(job * together % strips + c, wide_);
                const auto at = static_cast<std::size_t>(c) * place;
                const std::int64_t to = (range > 0 ? range - 1 : 0) * groups() + strip.group;
                std::copy_n(&s[at], strip.width, (range > 0 ? more_sums.data() : sums) + to);
                std::copy_n(&p[at], strip.width, (range > 0 ? more_peaks.data() : peaks) + to);
                if (!looks) continue;
                std::copy_n(&above[at], strip.width, (range > 0 ? more_above.data() : look.s) + to);
                std::copy_n(&counts[at], strip.width, (range > 0 ? more_counts.data() : look.k) + to);
            }
        });
        for (std::size_t at = 0, g = 0; at < more_sums.size(); ++at, g = g + 1 < all ? g + 1 : 0) {
            sums[g] += more_sums[at], peaks[g] = std::max(peaks[g], more_peaks[at]);
            if (looks) look.s[g] += more_above[at], look.k[g] += more_counts[at];
        }
        return picker;
    }

    // Lines that are refreshed together lie in one chunk: where that of a group ends.
    std::int64_t chunk_end(std::int64_t place) const {
        if (line_ <= width_) return (place / (line_ * lines_) + 1) * line_ * lines_;
        return place / line_ * line_ + std::min((place % line_ / width_ + 1) * width_, line_);
    }

    // Reads the given lines, whose groups are of one chunk and in rising order. Returns whether any is news.
    bool refresh(Lines<T>& lines, const std::int64_t* places, std::span<const std::size_t> stale,
                 const Visit& purpose) const {
        const Kernels<T>& kernel = kernels<T>();
        Batch<T> batch(lines, kernel.lanes, most_units(stale));
        gather(batch, places, stale);
        return settle(
            lines, batch, purpose,
            [&](Batch<T>& b) {
                blocks(static_cast<const T*>(view_.in), [&](const T* y, std::int64_t stride, std::int64_t n) {
                    kernel.strip_above(y, stride, n, line_, b.at.data(), b.units, b.t, b.s, b.k, near_);
                });
            },
            [&](Batch<T>& b) {
                blocks(static_cast<const T*>(view_.in), [&](const T* y, std::int64_t stride, std::int64_t n) {
                    kernel.strip_gap(y, stride, n, line_, b.at.data(), b.units, b.t, b.s, b.error, b.k, b.below, b.above, near_);
                });
                b.add_errors();
            });
    }

    // Windows of the given lines, whose groups are of one chunk and in rising order.
    void collect(Windows<T>& windows, const Lines<T>& lines, const std::int64_t* places, std::span<const std::size_t> which,
                 std::size_t job) const {
        const Kernels<T>& kernel = kernels<T>();
        Batch<T> batch(lines, kernel.lanes, most_units(which));
        gather(batch, places, which);
        const std::size_t lanes = static_cast<std::size_t>(batch.lanes());
        for (std::size_t j = 0; j < lanes; ++j) {
            const bool idle = batch.line[j] == batch.idle;
            batch.below[j] = idle ? std::numeric_limits<T>::infinity() : windows.lo[batch.line[j]];
            batch.above[j] = idle ? std::numeric_limits<T>::infinity() : windows.hi[batch.line[j]];
            batch.s[j] = batch.error[j] = 0.0, batch.k[j] = T(0);
        }
        // The same for any number of threads, and so of chunks: no more than lies in memory that is kept, or is little anyway.
        const std::int64_t block = rows_together * kernel.lanes;
        const std::int64_t all_units = groups() / line_ * ((line_ + kernel.lanes - 1) / kernel.lanes);
        const std::int64_t ready = ScratchBytes::most_kept / static_cast<std::int64_t>(2 * sizeof(T));
        const std::int64_t all = std::max(ready, groups() * members() / 16);
        const std::int64_t most = std::min(kernel.lanes * Windows<T>::most(members()), all / all_units - block);
        const std::int64_t room = batch.units * (most + block) + block + kernel.lanes;  // what is left out is written too
        const Scratch<T> log(2 * room);
        Found<T> found{log.get(), log.get() + room, 0};
        std::vector<std::int64_t> sizes(static_cast<std::size_t>(batch.units));
        blocks(static_cast<const T*>(view_.in), [&](const T* y, std::int64_t stride, std::int64_t n) {
            kernel.strip_window(y, stride, n, line_, batch.at.data(), batch.units, batch.below, batch.above, batch.s, batch.error,
                                batch.k, &found, most, sizes.data());
        });
        batch.add_errors();
        // What was found, lane by lane: a sort by counting.
        std::vector<std::int64_t> end(lanes + 1);
        for (std::int64_t i = 0; i < found.size; ++i) ++end[static_cast<std::size_t>(found.lanes[i]) + 1];
        for (std::size_t j = 0; j < lanes; ++j) {
            const std::int64_t size = end[j + 1];
            end[j + 1] += end[j];
            if (batch.line[j] == batch.idle || sizes[j / static_cast<std::size_t>(kernel.lanes)] > most) continue;
            windows.keep(batch.line[j], batch.s[j], batch.k[j], size);
        }
        Array<T> lists(static_cast<std::size_t>(found.size));
        for (std::size_t j = 0; j < lanes; ++j)
            if (batch.line[j] != batch.idle) windows.point(batch.line[j], lists.data() + end[j]);
        for (std::int64_t i = 0; i < found.size; ++i)
            lists[static_cast<std::size_t>(end[static_cast<std::size_t>(found.lanes[i])]++)] = found.members[i];
        windows.hold(job, std::move(lists));
    }

    // In a cache, and of short groups, windows cost more than another look.
    bool can_collect() const { return !near_ && members() >= Windows<T>::fewest_members; }

    // Nor are any where caps of fewer groups are doubtful: the rest is copied, or read with all of its neighbours.
    double fewest_doubtful() const { return 0.045; }

    // Where a cluster at about g begins, so that all of it lies side by side.
    std::int64_t cluster_at(std::int64_t g) const {
        return g / line_ * line_ + std::min(g % line_ / cluster * cluster, line_ - cluster);
    }

    // The given groups, in rising order, as panels.
    std::unique_ptr<GroupCopy> copy(std::span<const std::int64_t> places, Team& team) const {
        return Panels<T>::pick(view_, places, team);
    }

private:
    static constexpr std::int64_t stream_bytes = std::int64_t(1) << 16;  // of a row: eight of these stay in a cache
    static constexpr std::int64_t kept_bytes = std::int64_t(1) << 19;  // of a strip: half a usual second cache
    static constexpr std::int64_t worth_keeping_bytes = std::int64_t(1) << 12;  // of a row: shorter ones come slowly
    static constexpr std::int64_t most_ranges = 8;

    // Rows that stay in a cache between the sums and the copy; a multiple of those that are added up together.
    std::int64_t rows_to_pick() const { return std::clamp<std::int64_t>(kept_bytes / (16 * row_bytes()), 1, 4) * 16; }
    // Rows that are too long for that are worth it only where the matrix comes from beyond the caches.
    bool can_pick() const { return view_.member.outer_count() == 1 && (!near_ || 16 * row_bytes() <= kept_bytes); }
    std::int64_t row_bytes() const { return groups() * static_cast<std::int64_t>(sizeof(T)); }

    static constexpr std::int64_t rows_together = 8;  // that strip_window reads at once

    std::int64_t most_units(std::span<const std::size_t> which) const {
        const std::int64_t lanes = kernels<T>().lanes;
        return std::min(lines_ * ((std::min(line_, width_) + lanes - 1) / lanes), std::ssize(which));
    }

    // Fills a batch with the registers of these lines.
    void gather(Batch<T>& batch, const std::int64_t* places, std::span<const std::size_t> which) const {
        const std::int64_t lanes = batch.unit;
        Registers place(view_, lanes);
        std::int64_t first = 0;
        for (std::size_t s = 0; s < which.size(); ++s) {
            const std::size_t i = which[s], rest = static_cast<std::size_t>(lanes - 1), last = s + rest;
            if (place.go_to(places[i])) first = batch.add_unit(place.at);
            // Mostly all the groups of a register are wanted.
            if (place.lane == 0 && lanes <= line_ && last < which.size() && which[last] == i + rest &&
                places[i + rest] == places[i] + lanes - 1) {
                std::iota(batch.line + first, batch.line + first + lanes, i);
                s = last;
            } else {
                batch.line[first + place.lane] = i;
            }
        }
    }

    struct Strip {
        const T* base;
        std::int64_t group, width;
    };

    std::int64_t per_line(std::int64_t width) const { return (line_ + width - 1) / width; }

    Strip strip_of(std::int64_t c, std::int64_t width) const {
        const std::int64_t column = c % per_line(width) * width, group = c / per_line(width) * line_ + column;
        return {static_cast<const T*>(view_.in) + view_.group.at(group).in, group, std::min(width, line_ - column)};
    }

    // Calls f(first member, stride, members) for every run of equally spaced members.
    template <class F>
    void blocks(const T* base, F f) const {
        const Axis inner = view_.member.inner();
        for (std::int64_t i = 0; i < view_.member.outer_count(); ++i)
            f(base + view_.member.outer_at(i).in, inner.stride.in, inner.extent);
    }

    const View& view_;
    std::int64_t line_;
    std::int64_t wide_, width_;  // of a strip: to stream, and to stay in a cache while its caps are found, if it can
    std::int64_t lines_ = 1;     // where lines are short: so many are looked at together
    bool near_;                  // all of it lies in a cache
};

}  // namespace normball
