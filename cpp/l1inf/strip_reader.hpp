// Reads a matrix many neighbouring groups at a time: the groups lie side by side, their members far apart.
//
// A chunk is a strip of groups. Its sums come from one pass along the rows; the groups that may be non-zero are later
// turned into contiguous rows, as many at a time as a cache holds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "l1inf/records.hpp"
#include "l1inf/settle.hpp"
#include "view.hpp"

namespace normball {

template <class Element>
class StripReader {
public:
    using T = Element;

    // Few and very long groups would not leave room to turn some of them.
    static bool can_read(const View& view) {
        return view.group.inner().stride.in == 1 && view.group.inner().extent >= 8 &&
               (view.groups() >= 4 * turned_at_once || view.size() <= std::int64_t(1) << 20);
    }

    explicit StripReader(const View& view) : view_(view), line_(view.group.inner().extent) {
        width_ = strip_row_bytes / static_cast<std::int64_t>(sizeof(T));
        per_line_ = (line_ + width_ - 1) / width_;
        const std::int64_t turned = scratch_bytes / (view.members() * static_cast<std::int64_t>(sizeof(T)));
        batch_ = std::clamp(turned / turned_at_once * turned_at_once, turned_at_once, gather_limit);
    }

    std::int64_t groups() const { return view_.groups(); }
    std::int64_t members() const { return view_.members(); }
    std::int64_t chunks() const { return groups() / line_ * per_line_; }
    std::int64_t chunk_of(std::int64_t group) const { return group / line_ * per_line_ + group % line_ / width_; }

    // Sums and peaks of the chunk's groups.
    void stats(std::int64_t c, double* sums, double* peaks) const {
        const Strip strip = strip_of(c);
        std::vector<double> sum(static_cast<std::size_t>(strip.width + lane_limit));
        std::vector<T> peak(static_cast<std::size_t>(strip.width + lane_limit));
        blocks(strip, [&](const T* y, std::int64_t stride, std::int64_t n, std::int64_t) {
            kernels<T>().strip_stats(y, stride, n, strip.width, sum.data(), peak.data());
        });
        std::copy_n(sum.data(), strip.width, sums + strip.group);
        std::copy_n(peak.data(), strip.width, peaks + strip.group);
    }

    // Reads the stale lines.
    void refresh(std::int64_t c, const Aim& aim, Chunk<T>& chunk) const {
        chunk.reads += static_cast<double>(std::ssize(chunk.stale) * members());
        // Lines that were added late stand behind the others.
        std::sort(chunk.stale.begin(), chunk.stale.end(),
                  [&](std::size_t a, std::size_t b) { return chunk.windows[a].group < chunk.windows[b].group; });
        find_caps(strip_of(c), aim, chunk);
    }

    // The members of the given groups, in rising order, `stride` apart.
    void copy(const std::vector<std::int64_t>& which, T* to, std::int64_t stride) const {
        std::vector<std::int64_t> columns;
        for (std::size_t from = 0; from < which.size(); from += columns.size(), to += stride * std::ssize(columns)) {
            const std::int64_t begin = which[from] / line_ * line_;  // the groups of one line are gathered together
            columns.clear();
            for (std::size_t j = from; j < which.size() && which[j] < begin + line_ && columns.size() < gather_limit; ++j)
                columns.push_back(which[j] - begin);
            gather({static_cast<const T*>(view_.in) + view_.group.at(begin).in, begin, line_}, columns, to, stride);
        }
    }
    static constexpr std::int64_t cluster = 32 / sizeof(T);  // neighbours worth sampling together: half a cache line

private:
    static constexpr std::int64_t strip_row_bytes = std::int64_t(1) << 13;  // two pages: long enough to stream
    static constexpr std::int64_t scratch_bytes = std::int64_t(1) << 21;  // for the groups that are turned together
    static constexpr std::int64_t turned_at_once = lane_limit;

    struct Strip {
        const T* base;
        std::int64_t group, width;
    };

    Strip strip_of(std::int64_t c) const {
        const std::int64_t column = c % per_line_ * width_, group = c / per_line_ * line_ + column;
        return {static_cast<const T*>(view_.in) + view_.group.at(group).in, group, std::min(width_, line_ - column)};
    }

    // Calls f(first member, stride, members, number of the first member) for every run of equally spaced members.
    template <class F>
    void blocks(const Strip& strip, F f) const {
        const Axis inner = view_.member.inner();
        for (std::int64_t i = 0; i < view_.member.outer_count(); ++i)
            f(strip.base + view_.member.outer_at(i).in, inner.stride.in, inner.extent, i * inner.extent);
    }

    void gather(const Strip& strip, const std::vector<std::int64_t>& columns, T* rows, std::int64_t row_stride) const {
        blocks(strip, [&](const T* y, std::int64_t stride, std::int64_t n, std::int64_t first) {
            kernels<T>().strip_gather(y, stride, n, strip.width, columns.data(), std::ssize(columns), rows + first, row_stride);
        });
    }

    // Settles the caps of the stale lines, which are in the order of their groups.
    void find_caps(const Strip& strip, const Aim& aim, Chunk<T>& chunk) const {
        if (members() <= short_group) return find_short_caps(strip, aim, chunk);
        const std::int64_t total = std::ssize(chunk.stale), row_stride = apart(members());
        const std::int64_t limit = candidate_limit(strip.width * members());
        const Scratch<T> rows(std::min(batch_, total) * row_stride);
        std::vector<std::int64_t> columns;
        double start = aim.cap;
        for (std::int64_t from = 0; from < total; from += batch_) {
            const auto begin = chunk.stale.begin() + from, end = begin + std::min(batch_, total - from);
            columns.clear();
            for (auto i = begin; i < end; ++i) columns.push_back(chunk.windows[*i].group - strip.group);
            gather(strip, columns, rows.get(), row_stride);
            const T* row = rows.get();
            for (auto i = begin; i < end; ++i, row += row_stride)
                start = settle(chunk, *i, aim, chunk.start(*i, aim, start), limit, [&](auto f) { f(row, members()); });
        }
    }

    // The same for short groups, which are in their lanes as they lie.
    void find_short_caps(const Strip& strip, const Aim& aim, Chunk<T>& chunk) const {
        const Kernels<T>& kernel = kernels<T>();
        double start = aim.cap;
        for (auto i = chunk.stale.begin(); i < chunk.stale.end();) {
            const std::int64_t first = (chunk.windows[*i].group - strip.group) / kernel.lanes * kernel.lanes;
            const std::int64_t lanes = std::min(kernel.lanes, strip.width - first);
            LaneBatch batch;
            for (; i < chunk.stale.end() && chunk.windows[*i].group - strip.group < first + lanes; ++i)
                batch.add(*i, chunk.windows[*i].group - strip.group - first, chunk.start(*i, aim, start));
            settle_lanes(chunk, aim, batch, [&](const T* t, double* s, T* k, T* below, T* above) {
                blocks(strip, [&](const T* y, std::int64_t stride, std::int64_t n, std::int64_t) {
                    kernel.lane_gap(y + first, stride, n, lanes, t, s, k, below, above);
                });
            });
            start = batch.cap[batch.size - 1];
        }
    }

    const View& view_;
    std::int64_t line_, width_, per_line_, batch_;
};

}  // namespace normball
