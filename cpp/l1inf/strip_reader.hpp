// Reads a matrix many neighbouring groups at a time: the groups lie side by side, their members far apart.
//
// A chunk is a strip of groups, small enough that every read of it after the first comes from the cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "l1inf/records.hpp"

namespace normball {

template <class Element>
class StripReader {
public:
    using T = Element;

    // A strip counts in T, and a float counts exactly only to 2^24.
    static bool can_read(const View& view) {
        return view.group.inner().stride.in == 1 && view.group.inner().extent >= 8 &&
               view.members() <= std::int64_t(1) << 24;
    }

    explicit StripReader(const View& view) : view_(view), line_(view.group.inner().extent) {
        constexpr std::int64_t granule = 256 / static_cast<std::int64_t>(sizeof(T));
        const std::int64_t fit = strip_bytes / (view.members() * static_cast<std::int64_t>(sizeof(T)));
        width_ = std::clamp(fit / granule * granule, granule, 16 * granule);
        per_line_ = (line_ + width_ - 1) / width_;
    }

    std::int64_t groups() const { return view_.groups(); }
    std::int64_t members() const { return view_.members(); }
    std::int64_t chunks() const { return groups() / line_ * per_line_; }
    std::int64_t chunk_of(std::int64_t group) const { return group / line_ * per_line_ + group % line_ / width_; }

    // Sums and peaks of the chunk's groups, and a record for each whose sum is above the aim.
    void first_read(std::int64_t c, const Aim* aim, double* sums, double* peaks, Chunk<T>& chunk) const {
        const Strip strip = strip_of(c);
        std::vector<double> sum(strip.padded());
        std::vector<T> peak(strip.padded());
        blocks(strip, [&](const T* y, std::int64_t stride, std::int64_t n) {
            kernel_.strip_stats(y, stride, n, strip.width, sum.data(), peak.data());
        });
        chunk.reads += static_cast<double>(strip.width * members());
        for (std::int64_t i = 0; i < strip.width; ++i) {
            const std::int64_t g = strip.group + i;
            sums[g] = sum[static_cast<std::size_t>(i)];
            peaks[g] = static_cast<double>(peak[static_cast<std::size_t>(i)]);
            if (aim != nullptr && aim->reaches(sums[g])) chunk.records.push_back(Record::unread(g, sums[g], peaks[g]));
        }
        if (!chunk.records.empty()) settle(strip, *aim, chunk);
    }

    // Reads the stale records again: the whole strip, for their cache lines are everybody's.
    void refresh(std::int64_t c, const Aim& aim, Chunk<T>& chunk) const {
        const Strip strip = strip_of(c);
        chunk.reads += static_cast<double>(strip.width * members());
        settle(strip, aim, chunk);
    }

    // The magnitudes of the given groups, one group after another. Taken row by row, since group by group would fetch
    // each cache line once for every group in it.
    void copy(const std::vector<std::int64_t>& which, T* to) const {
        std::vector<std::int64_t> offsets;
        for (const std::int64_t g : which) offsets.push_back(view_.group.at(g).in);
        for (std::int64_t i = 0; i < members(); ++i) {
            const T* row = static_cast<const T*>(view_.in) + view_.member.at(i).in;
            for (std::size_t j = 0; j < which.size(); ++j)
                to[static_cast<std::int64_t>(j) * members() + i] = std::fabs(row[offsets[j]]);
        }
    }
    static constexpr std::int64_t cluster = 64 / sizeof(T);  // groups to a cache line, worth sampling together

private:
    static constexpr std::int64_t strip_bytes = std::int64_t(1) << 21;

    struct Strip {
        const T* base;
        std::int64_t group, width;
        std::size_t padded() const {
            return static_cast<std::size_t>((width + strip_padding - 1) / strip_padding * strip_padding);
        }
        std::size_t column(const Record& r) const { return static_cast<std::size_t>(r.group - group); }
    };

    Strip strip_of(std::int64_t c) const {
        const std::int64_t column = c % per_line_ * width_, group = c / per_line_ * line_ + column;
        return {static_cast<const T*>(view_.in) + view_.group.at(group).in, group, std::min(width_, line_ - column)};
    }

    template <class F>
    void blocks(const Strip& strip, F f) const {
        const Axis inner = view_.member.inner();
        for (std::int64_t i = 0; i < view_.member.outer_count(); ++i)
            f(strip.base + view_.member.outer_at(i).in, inner.stride.in, inner.extent);
    }

    // Newton steps on the caps of all the stale records together, then their windows.
    void settle(const Strip& strip, const Aim& aim, Chunk<T>& chunk) const {
        std::vector<Record*> open;
        for (Record& r : chunk.records)
            if (r.stale) open.push_back(&r);
        // Nothing is above the threshold of a column without a stale record.
        std::vector<T> threshold(strip.padded(), std::numeric_limits<T>::infinity()), k(strip.padded());
        std::vector<double> s(strip.padded()), cap(open.size());
        for (std::size_t i = 0; i < open.size(); ++i) cap[i] = aim.start(*open[i]);

        std::size_t unsettled = open.size();
        for (bool first = true; unsettled > 0; first = false) {
            for (std::size_t i = 0; i < open.size(); ++i) threshold[strip.column(*open[i])] = round_down<T>(cap[i]);
            std::fill(s.begin(), s.end(), 0.0);
            std::fill(k.begin(), k.end(), T(0));
            blocks(strip, [&](const T* y, std::int64_t stride, std::int64_t n) {
                kernel_.strip_above(y, stride, n, strip.width, threshold.data(), s.data(), k.data());
            });
            unsettled = 0;
            for (std::size_t i = 0; i < open.size(); ++i) {
                const std::size_t c = strip.column(*open[i]);
                unsettled += !open[i]->template step<T>(s[c], static_cast<double>(k[c]), members(), aim, first, cap[i]);
            }
        }
        for (Record* r : open) r->close_window();
        if (aim.spread > 0.0) open_windows(strip, open, cap, aim, chunk);
    }

    void open_windows(const Strip& strip, const std::vector<Record*>& open, const std::vector<double>& cap,
                      const Aim& aim, Chunk<T>& chunk) const {
        constexpr T never = std::numeric_limits<T>::infinity();
        std::vector<T> lo(strip.padded(), never), hi(strip.padded(), never), k(strip.padded());
        std::vector<double> s(strip.padded());
        for (std::size_t i = 0; i < open.size(); ++i) {
            const std::size_t c = strip.column(*open[i]);
            const double half = half_window<T>(cap[i], open[i]->k, aim.spread);
            lo[c] = round_down<T>(std::max(cap[i] - half, 0.0)), hi[c] = round_down<T>(cap[i] + half);
        }
        const std::int64_t room = candidate_limit(strip.width * members());
        const auto found = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(room));
        const auto column = std::make_unique_for_overwrite<std::int32_t[]>(static_cast<std::size_t>(room));
        std::int64_t total = 0;
        blocks(strip, [&](const T* y, std::int64_t stride, std::int64_t n) {
            if (total < 0) return;
            const std::int64_t more =
                kernel_.strip_collect(y, stride, n, strip.width, lo.data(), hi.data(), s.data(), k.data(),
                                      found.get() + total, column.get() + total, room - total);
            total = more < 0 ? -1 : total + more;
        });
        T* sorted = total < 0 ? nullptr : chunk.candidates.room(total, room);
        if (sorted == nullptr) return;

        // Counting sort of the candidates by column: first the places, then the candidates into them.
        std::vector<std::int64_t> place(strip.padded() + 1);
        for (std::int64_t i = 0; i < total; ++i) ++place[static_cast<std::size_t>(column[static_cast<std::size_t>(i)]) + 1];
        for (std::size_t c = 1; c < place.size(); ++c) place[c] += place[c - 1];
        for (Record* r : open) {
            const std::size_t c = strip.column(*r);
            r->first = chunk.candidates.size() + place[c], r->count = place[c + 1] - place[c];
        }
        for (std::int64_t i = 0; i < total; ++i)
            sorted[place[static_cast<std::size_t>(column[static_cast<std::size_t>(i)])]++] = found[static_cast<std::size_t>(i)];
        chunk.candidates.keep(total);

        for (std::size_t i = 0; i < open.size(); ++i) {
            Record& r = *open[i];
            const std::size_t c = strip.column(r);
            r.s_hi = s[c], r.k_hi = static_cast<double>(k[c]);
            r.lo = static_cast<double>(lo[c]), r.hi = static_cast<double>(hi[c]);
            chunk.evaluate(r, cap[i]);
        }
    }

    const View& view_;
    std::int64_t line_, width_, per_line_;
    const Kernels<T>& kernel_ = kernels<T>();
};

}  // namespace normball
