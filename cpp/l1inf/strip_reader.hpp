// Reads a matrix many neighbouring groups at a time: the groups lie side by side, their members far apart.
//
// Groups stay in their lanes as they lie. Where few of them may be non-zero, these are copied side by side first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "l1inf/lines.hpp"
#include "l1inf/settle.hpp"
#include "parallel.hpp"
#include "view.hpp"

namespace normball {

template <class Element>
class StripReader {
public:
    using T = Element;
    using Gathered = StripReader;
    static constexpr bool gathers = true;
    static constexpr std::int64_t cluster = 32 / sizeof(T);  // neighbours worth sampling together: half a cache line

    // Counts are kept in T.
    static bool can_read(const View& view) {
        return view.group.inner().stride.in == 1 && view.group.inner().extent >= 8 &&
               view.members() < std::int64_t(1) << 24;
    }

    explicit StripReader(const View& view) : view_(view), line_(view.group.inner().extent) {
        const auto bytes = static_cast<std::int64_t>(sizeof(T));
        wide_ = stream_bytes / bytes;
        const std::int64_t narrow = kept_bytes / (view.members() * bytes) / lane_limit * lane_limit;
        width_ = narrow * bytes >= worth_keeping_bytes ? std::min(narrow, wide_) : wide_;
    }

    std::int64_t groups() const { return view_.groups(); }
    std::int64_t members() const { return view_.members(); }

    // Sums and peaks of all the groups. Tall strips are cut into ranges of rows, so that there is work for more threads
    // than there are strips.
    void stats(Team& team, double* sums, double* peaks) const {
        const Axis inner = view_.member.inner();
        const std::int64_t strips = groups() / line_ * per_line(wide_);
        const std::int64_t ranges = std::clamp<std::int64_t>(inner.extent / fewest_rows, 1, most_ranges);
        const auto all = static_cast<std::size_t>(groups());
        std::vector<double> sum(all * static_cast<std::size_t>(ranges));
        std::vector<T> peak(all * static_cast<std::size_t>(ranges));
        team.run(strips * ranges, [&](std::int64_t job) {
            const Strip strip = strip_of(job % strips, wide_);
            const std::int64_t range = job / strips, first = range * inner.extent / ranges;
            const std::int64_t rows = (range + 1) * inner.extent / ranges - first;
            // A strip's own place, with room behind it for the lanes of its last register.
            std::vector<double> s(static_cast<std::size_t>(strip.width + lane_limit));
            std::vector<T> p(static_cast<std::size_t>(strip.width + lane_limit));
            blocks(strip, [&](const T* y, std::int64_t stride, std::int64_t) {
                kernels<T>().strip_stats(y + first * stride, stride, rows, strip.width, s.data(), p.data());
            });
            const std::size_t to = all * static_cast<std::size_t>(range) + static_cast<std::size_t>(strip.group);
            std::copy_n(s.data(), strip.width, &sum[to]);
            std::copy_n(p.data(), strip.width, &peak[to]);
        });
        for (std::size_t g = 0; g < all; ++g) {
            sums[g] = sum[g], peaks[g] = static_cast<double>(peak[g]);
            for (std::size_t at = g + all; at < sum.size(); at += all)
                sums[g] += sum[at], peaks[g] = std::max(peaks[g], static_cast<double>(peak[at]));
        }
    }

    // Lines that are refreshed together lie in one chunk: where that of a group ends.
    std::int64_t chunk_end(std::int64_t place) const {
        const Strip strip = strip_of(chunk_of(place), width_);
        return strip.group + strip.width;
    }

    // Reads the given lines, which are of one chunk and in rising order. Returns whether any is news.
    bool refresh(Lines<T>& lines, std::span<const std::size_t> stale, const Aim& aim) const {
        const Kernels<T>& kernel = kernels<T>();
        const Strip strip = strip_of(chunk_of(lines.place(stale.front())), width_);
        const std::int64_t lanes = kernel.lanes;
        // The last register begins early, so as not to read past the end of the strip.
        const std::int64_t last = std::max<std::int64_t>(strip.width - lanes, 0);
        Batch<T> batch(lines, lanes, std::min((strip.width + lanes - 1) / lanes, std::ssize(stale)));
        std::int64_t begin = -1;
        std::int64_t first = 0;
        for (const std::size_t i : stale) {
            const std::int64_t column = lines.place(i) - strip.group;
            if (begin < 0 || column >= begin + lanes) {
                begin = std::min(column / lanes * lanes, last);
                first = batch.add_unit(begin);
            }
            batch.line[first + column - begin] = i;
        }
        return settle(
            lines, batch, aim,
            [&](Batch<T>& b) {
                blocks(strip, [&](const T* y, std::int64_t stride, std::int64_t n) {
                    kernel.strip_above(y, stride, n, strip.width, b.at.data(), b.units, b.t, b.s,
                                       b.k);
                });
            },
            [&](Batch<T>& b) {
                blocks(strip, [&](const T* y, std::int64_t stride, std::int64_t n) {
                    kernel.strip_gap(y, stride, n, strip.width, b.at.data(), b.units, b.t, b.s,
                                     b.k, b.below, b.above);
                });
            });
    }

    // Where a cluster at about g begins, so that all of it lies side by side.
    std::int64_t cluster_at(std::int64_t g) const {
        return g / line_ * line_ + std::min(g % line_ / cluster * cluster, line_ - cluster);
    }

    // Elements that a copy of so many groups takes, and the copy, as a view. The groups come in blocks of neighbours.
    std::int64_t room_for(std::int64_t count) const { return members() * padded(count); }
    template <std::int64_t Block>
    View gather(std::span<const std::int64_t> places, T* to) const {
        const std::int64_t count = std::ssize(places), width = padded(count);
        View view;
        view.in = to;
        view.group.push({width, {1, 0, 0}});
        view.member.push({members(), {width, 0, 0}});
        std::vector<std::int64_t> from;
        for (std::int64_t j = 0; j < count; j += Block)
            from.push_back(view_.group.at(places[static_cast<std::size_t>(j)]).in);
        const Axis inner = view_.member.inner();
        for (std::int64_t i = 0; i < view_.member.outer_count(); ++i) {
            const T* row = static_cast<const T*>(view_.in) + view_.member.outer_at(i).in;
            for (std::int64_t r = 0; r < inner.extent; ++r, row += inner.stride.in, to += width) {
                T* next = to;
                for (const std::int64_t column : from) next = std::copy_n(row + column, Block, next);
                std::fill(to + count, to + width, T(0));
            }
        }
        return view;
    }

private:
    static constexpr std::int64_t stream_bytes = std::int64_t(1) << 13;  // of a row: two pages, long enough to stream
    static constexpr std::int64_t kept_bytes = std::int64_t(1) << 19;  // of a strip: half a usual second cache
    static constexpr std::int64_t worth_keeping_bytes = std::int64_t(1) << 12;  // of a row: shorter ones come slowly
    static constexpr std::int64_t fewest_rows = 1024, most_ranges = 8;

    struct Strip {
        const T* base;
        std::int64_t group, width;
    };

    std::int64_t chunk_of(std::int64_t place) const {
        return place / line_ * per_line(width_) + place % line_ / width_;
    }

    std::int64_t per_line(std::int64_t width) const { return (line_ + width - 1) / width; }

    Strip strip_of(std::int64_t c, std::int64_t width) const {
        const std::int64_t column = c % per_line(width) * width, group = c / per_line(width) * line_ + column;
        return {static_cast<const T*>(view_.in) + view_.group.at(group).in, group, std::min(width, line_ - column)};
    }

    // Whole registers, and an odd number of them: a power of two would have the rows compete for the same few places in
    // the cache.
    static std::int64_t padded(std::int64_t count) { return ((count + lane_limit - 1) / lane_limit | 1) * lane_limit; }

    // Calls f(first member, stride, members) for every run of equally spaced members.
    template <class F>
    void blocks(const Strip& strip, F f) const {
        const Axis inner = view_.member.inner();
        for (std::int64_t i = 0; i < view_.member.outer_count(); ++i)
            f(strip.base + view_.member.outer_at(i).in, inner.stride.in, inner.extent);
    }

    const View& view_;
    std::int64_t line_;
    std::int64_t wide_, width_;  // of a strip: to stream, and to stay in a cache while its caps are found, if it can
};

}  // namespace normball
