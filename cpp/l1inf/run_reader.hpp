// Reads a matrix group by group: the members of a group lie in runs, or are made to, in a small buffer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "l1inf/records.hpp"

namespace normball {

// Packed reads through a buffer of scaled magnitudes, which serves every dtype and every stride.
template <class Element, bool Packed>
class RunReader {
public:
    using T = Element;

    // Short runs cost more in calls than packing does.
    static bool can_read(const View& view) {
        const Axis inner = view.member.inner();
        return inner.stride.in == 1 && (inner.extent >= 32 || view.member.outer_count() == 1);
    }

    explicit RunReader(const View& view, double scale = 1.0)
        : view_(view), scale_(scale), per_chunk_(std::max<std::int64_t>(1, chunk_elements / view.members())) {}

    std::int64_t groups() const { return view_.groups(); }
    std::int64_t members() const { return view_.members(); }
    std::int64_t chunks() const { return (groups() + per_chunk_ - 1) / per_chunk_; }
    std::int64_t chunk_of(std::int64_t group) const { return group / per_chunk_; }

    // Sums and peaks of the chunk's groups, and a record for each whose sum is above the aim.
    void first_read(std::int64_t c, const Aim* aim, double* sums, double* peaks, Chunk<T>& chunk) const {
        const std::int64_t begin = c * per_chunk_, end = std::min(begin + per_chunk_, groups());
        chunk.reads += static_cast<double>((end - begin) * members());
        Aim here = aim != nullptr ? *aim : Aim{};
        for (std::int64_t g = begin; g < end; ++g) {
            double sum = 0.0, peak = 0.0;
            runs(g, [&](const T* y, std::int64_t n) {
                double s = 0.0, p = 0.0;
                kernel_.row_stats(y, n, 0, 1, &s, &p);
                sum += s, peak = std::max(peak, p);
            });
            sums[g] = sum, peaks[g] = peak;
            if (aim == nullptr || !here.reaches(sum)) continue;
            chunk.records.push_back(Record::unread(g, sum, peak));
            here.cap = settle(chunk.records.back(), here, chunk);  // where the neighbour starts
        }
    }

    // Reads the stale records again.
    void refresh(std::int64_t, const Aim& aim, Chunk<T>& chunk) const {
        for (Record& r : chunk.records) {
            if (!r.stale) continue;
            chunk.reads += static_cast<double>(members());
            settle(r, aim, chunk);
        }
    }

    // The magnitudes of the given groups, one group after another.
    void copy(const std::vector<std::int64_t>& which, T* to) const {
        for (const std::int64_t g : which)
            runs(g, [&](const T* y, std::int64_t n) {
                for (std::int64_t i = 0; i < n; ++i) *to++ = std::fabs(y[i]);
            });
    }
    static constexpr std::int64_t cluster = 1;  // neighbours worth sampling together

private:
    static constexpr std::int64_t chunk_elements = std::int64_t(1) << 17;
    static constexpr std::int64_t pack_elements = 1024;  // 8 KB: a quarter of the first cache

    template <class F>
    void runs(std::int64_t g, F f) const {
        if constexpr (Packed) {
            alignas(64) double buffer[pack_elements];
            for (std::int64_t first = 0; first < members(); first += pack_elements) {
                const std::int64_t n = std::min(pack_elements, members() - first);
                load_magnitudes(view_, g, first, n, scale_, buffer);
                f(static_cast<const double*>(buffer), n);
            }
        } else {
            const T* base = static_cast<const T*>(view_.in) + view_.group.at(g).in;
            const std::int64_t n = view_.member.inner().extent, outer = view_.member.outer_count();
            for (std::int64_t i = 0; i < outer; ++i) f(base + view_.member.outer_at(i).in, n);
        }
    }

    // Newton steps on the cap of one group, then its window. Returns the cap.
    double settle(Record& r, const Aim& aim, Chunk<T>& chunk) const {
        double cap = aim.start(r);
        for (bool first = true, settled = false; !settled; first = false) {
            double s = 0.0;
            std::int64_t k = 0;
            const T t = round_down<T>(cap);
            runs(r.group, [&](const T* y, std::int64_t n) { kernel_.row_above(y, n, t, &s, &k); });
            settled = r.step<T>(s, static_cast<double>(k), members(), aim, first, cap);
        }
        r.close_window();
        if (aim.spread > 0.0) open_window(r, cap, half_window<T>(cap, r.k, aim.spread), chunk);
        return cap;
    }

    void open_window(Record& r, double cap, double half, Chunk<T>& chunk) const {
        const T lo = round_down<T>(std::max(cap - half, 0.0)), hi = round_down<T>(cap + half);
        const std::int64_t first = chunk.candidates.size(), limit = candidate_limit(per_chunk_ * members());
        double s = 0.0;
        std::int64_t k = 0;
        bool fits = true;
        runs(r.group, [&](const T* y, std::int64_t n) {
            for (std::int64_t i = 0; fits && i < n; i += pack_elements) {
                const std::int64_t piece = std::min(pack_elements, n - i);
                T* found = chunk.candidates.room(piece + strip_padding, limit);
                fits = found != nullptr;
                if (fits) chunk.candidates.keep(kernel_.row_collect(y + i, piece, lo, hi, found, &s, &k));
            }
        });
        if (!fits) return chunk.candidates.drop_from(first);
        r.first = first, r.count = chunk.candidates.size() - first;
        r.s_hi = s, r.k_hi = static_cast<double>(k), r.lo = static_cast<double>(lo), r.hi = static_cast<double>(hi);
        chunk.evaluate(r, cap);
    }

    const View& view_;
    double scale_;
    std::int64_t per_chunk_;
    const Kernels<T>& kernel_ = kernels<T>();
};

}  // namespace normball
