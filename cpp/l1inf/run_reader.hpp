// Reads a matrix group by group: the members of a group lie in runs, or are made to, in a small buffer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "l1inf/lines.hpp"
#include "l1inf/settle.hpp"
#include "l1inf/windows.hpp"
#include "parallel.hpp"
#include "scratch.hpp"
#include "view.hpp"
#include "write.hpp"

namespace normball {

// Packed reads through a buffer of scaled magnitudes, which serves every dtype and every stride.
template <class Element, bool Packed>
class RunReader {
public:
    using T = Element;
    using Gathered = RunReader<T, false>;
    static constexpr bool gathers = Packed;  // whether groups are worth a copy when they will be read again
    static constexpr bool writes_from_copy = false;
    static constexpr bool neighbours = false;  // are read together
    static constexpr double doubtful_share = 0.3;  // of the guesses: where more are doubtful, another look is worth while
    static constexpr double most_kept = 0.05;  // of the members: windows that hold more are not worth while
    static constexpr std::int64_t cluster = 1;  // neighbours worth sampling together

    // Short runs cost more in calls than packing does.
    static bool can_read(const View& view) {
        const Axis inner = view.member.inner();
        return inner.stride.in == 1 && (inner.extent >= 32 || view.member.outer_count() == 1);
    }

    explicit RunReader(const View& view, double scale = 1.0)
        : view_(view), scale_(scale), per_chunk_(std::max<std::int64_t>(1, chunk_elements / view.members())),
          near_(!streams(view)) {
        const std::int64_t bytes = view.members() * static_cast<std::int64_t>(sizeof(T));
        at_once_ = Packed ? 1 : std::clamp<std::int64_t>(batch_bytes / bytes, 1, batch_limit);
    }

    int rough_looks() const { return near_ ? 2 : 0; }  // that are worth while before exact ones
    Moments rough_moments() const { return normball::rough_moments(view_); }
    std::int64_t groups() const { return view_.groups(); }
    std::int64_t members() const { return view_.members(); }

    // The share of the groups from which on to read all of them costs less than to tell them apart.
    double all_from() const { return !Packed && members() <= 256 ? 0.6 : 2.0; }
    // Whether the read for sums and peaks may look at the groups as well.
    bool can_look() const { return !Packed && view_.member.outer_count() == 1 && view_.group.outer_count() == 1; }

    // Sums and peaks of all the groups, and a look. Nothing is copied: groups are evaluated where they lie.
    bool stats(Team& team, std::span<const std::int64_t>, double* sums, double* peaks, const StatsLook<T>& look = {}) const {
        team.run((groups() + per_chunk_ - 1) / per_chunk_, [&](std::int64_t c) {
            stats_of(c * per_chunk_, std::min((c + 1) * per_chunk_, groups()), sums, peaks, look);
        });
        return false;
    }

    // Lines that are refreshed together lie in one chunk: where that of a group ends.
    std::int64_t chunk_end(std::int64_t place) const { return (place / per_chunk_ + 1) * per_chunk_; }

    // Reads the given lines, whose groups are of one chunk and in rising order. Returns whether any is news.
    bool refresh(Lines<T>& lines, const std::int64_t* places, std::span<const std::size_t> stale,
                 const Visit& purpose) const {
        const Kernels<T>& kernel = kernels<T>();
        Batch<T> batch(lines, 1, std::ssize(stale));
        std::transform(stale.begin(), stale.end(), batch.at.begin(), [=](std::size_t i) { return places[i]; });
        const std::span<const std::int64_t> at = batch.at;
        bool news = false;
        for (std::size_t first = 0; first < stale.size(); first += static_cast<std::size_t>(at_once_)) {
            batch.units = std::min(std::ssize(stale) - static_cast<std::int64_t>(first), at_once_);
            std::copy_n(stale.begin() + static_cast<std::ptrdiff_t>(first), batch.units, batch.line);
            const auto coming = at.subspan(first);
            news |= settle(
                lines, batch, purpose,
                [&](Batch<T>& b) {
                    runs(coming, b.units, [&](const T* const* y, std::int64_t n, std::int64_t known) {
                        kernel.rows_above(y, n, b.units, known, b.t, b.s, b.k);
                    });
                },
                [&](Batch<T>& b) {
                    runs(coming, b.units, [&](const T* const* y, std::int64_t n, std::int64_t known) {
                        kernel.rows_gap(y, n, b.units, known, b.t, b.s, b.k, b.below, b.above);
                    });
                });
        }
        return news;
    }

    // Windows of the given lines, whose groups are of one chunk and in rising order.
    void collect(Windows<T>& windows, const Lines<T>& lines, const std::int64_t* places, std::span<const std::size_t> which,
                 std::size_t job) const {
        const Kernels<T>& kernel = kernels<T>();
        Batch<T> batch(lines, 1, std::ssize(which));
        std::transform(which.begin(), which.end(), batch.at.begin(), [=](std::size_t i) { return places[i]; });
        const std::span<const std::int64_t> at = batch.at;
        const std::int64_t most = Windows<T>::most(members());
        const Scratch<T> log(std::ssize(which) * most + members() + 5 * kernel.lanes);
        Found<T> found{log.get(), nullptr, 0};
        std::vector<std::int64_t> sizes(which.size());
        for (std::size_t first = 0; first < which.size(); first += static_cast<std::size_t>(at_once_)) {
            const std::int64_t units = std::min(std::ssize(which) - static_cast<std::int64_t>(first), at_once_);
            for (std::size_t j = 0; j < static_cast<std::size_t>(units); ++j) {
                batch.below[j] = windows.lo[which[first + j]], batch.above[j] = windows.hi[which[first + j]];
                batch.s[j] = 0.0, batch.k[j] = T(0);
            }
            runs(at.subspan(first), units, [&](const T* const* y, std::int64_t n, std::int64_t known) {
                kernel.rows_window(y, n, units, known, batch.below, batch.above, batch.s, batch.k, &found, most, &sizes[first]);
            });
            for (std::size_t j = 0; j < static_cast<std::size_t>(units); ++j)
                if (sizes[first + j] >= 0) windows.keep(which[first + j], batch.s[j], batch.k[j], sizes[first + j]);
        }
        Array<T> lists(found.members, found.members + found.size);
        const T* list = lists.data();
        for (std::size_t j = 0; j < which.size(); ++j)
            if (sizes[j] >= 0) windows.point(which[j], list), list += sizes[j];
        windows.hold(job, std::move(lists));
    }

    // In a cache, and of short groups, windows cost more than another look; and a list is whole where members follow one another.
    bool can_collect() const {
        return !near_ && !Packed && members() >= Windows<T>::fewest_members && view_.member.outer_count() == 1;
    }

    // Nor are any where caps of fewer groups are doubtful. Of short groups, to read those again costs less.
    double fewest_doubtful() const { return members() < 2000 ? 0.35 : 0.115; }

    std::int64_t cluster_at(std::int64_t g) const { return g; }

    // The given groups, one after another.
    std::unique_ptr<GroupCopy> copy(std::span<const std::int64_t> places, Team&) const {
        // A power of two would have the rows compete for the same few places in the cache.
        const std::int64_t stride = (members() + lane_limit - 1) / lane_limit * lane_limit + lane_limit;
        auto copy = std::make_unique<GroupCopy>(std::vector(places.begin(), places.end()),
                                                std::ssize(places) * stride * static_cast<std::int64_t>(sizeof(T)));
        T* to = static_cast<T*>(copy->memory.get());
        copy->view.dtype = sizeof(T) == sizeof(float) ? Dtype::f32 : Dtype::f64, copy->view.in = to;
        copy->view.group.push({std::ssize(places), {stride, 0, 0}});
        copy->view.member.push({members(), {1, 0, 0}});
        for (const std::int64_t g : places) {
            T* row = to;
            runs({&g, 1}, 1, [&](const T* const* y, std::int64_t n, std::int64_t) { row = std::copy_n(*y, n, row); });
            to += stride;
        }
        return copy;
    }

private:
    static constexpr std::int64_t chunk_elements = std::int64_t(1) << 17;
    static constexpr std::int64_t pack_elements = 1024;
    static constexpr std::int64_t batch_bytes = std::int64_t(1) << 16;  // stays near while its caps are found
    static constexpr std::int64_t batch_limit = 64;

    void stats_of(std::int64_t begin, std::int64_t end, double* sums, double* peaks, StatsLook<T> look) const {
        const Kernels<T>& kernel = kernels<T>();
        if (!Packed && view_.member.outer_count() == 1 && view_.group.outer_count() == 1) {
            const std::int64_t stride = view_.group.inner().stride.in;
            const T* first = static_cast<const T*>(view_.in) + begin * stride;
            if (look.s != nullptr) look.s += begin, look.k += begin;
            return kernel.row_stats(first, members(), stride, end - begin, near_ ? 0 : groups() - begin, sums + begin,
                                    peaks + begin, look);
        }
        for (std::int64_t g = begin; g < end; ++g) {
            sums[g] = peaks[g] = 0.0;
            runs({&g, 1}, 1, [&](const T* const* y, std::int64_t n, std::int64_t) {
                double s = 0.0, p = 0.0;
                kernel.row_stats(*y, n, 0, 1, 0, &s, &p, {});
                sums[g] += s, peaks[g] = std::max(peaks[g], p);
            });
        }
    }

    // Calls f(a pointer for each group, n, how many are coming) for every run of n members of the first `count` groups.
    template <class F>
    void runs(std::span<const std::int64_t> places, std::int64_t count, F f) const {
        if constexpr (Packed) {
            alignas(64) double buffer[pack_elements];
            const double* const packed = buffer;
            for (std::int64_t first = 0; first < members(); first += pack_elements) {
                const std::int64_t n = std::min(pack_elements, members() - first);
                load_magnitudes(view_, places[0], first, n, scale_, buffer);
                f(&packed, n, 0);
            }
        } else {
            const T* base[2 * batch_limit];
            const std::int64_t known = near_ ? count : std::min(std::ssize(places), count + batch_limit);
            for (std::int64_t j = 0; j < known; ++j)
                base[j] = static_cast<const T*>(view_.in) + view_.group.at(places[static_cast<std::size_t>(j)]).in;
            const std::int64_t n = view_.member.inner().extent, outer = view_.member.outer_count();
            if (outer == 1) return f(base, n, near_ ? 0 : known);
            for (std::int64_t i = 0; i < outer; ++i) {
                const T* run[2 * batch_limit];
                const std::int64_t offset = view_.member.outer_at(i).in;
                for (std::int64_t j = 0; j < known; ++j) run[j] = base[j] + offset;
                f(run, n, near_ ? 0 : known);
            }
        }
    }

    const View& view_;
    double scale_;
    std::int64_t per_chunk_, at_once_;
    bool near_;  // all of it lies in a cache
};

}  // namespace normball
