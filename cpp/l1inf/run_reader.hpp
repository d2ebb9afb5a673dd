// Reads a matrix group by group: the members of a group lie in runs, or are made to, in a small buffer.
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

    // Sums and peaks of the chunk's groups.
    void stats(std::int64_t c, double* sums, double* peaks) const {
        const Kernels<T>& kernel = kernels<T>();
        const std::int64_t begin = c * per_chunk_, end = std::min(begin + per_chunk_, groups());
        if (!Packed && view_.member.outer_count() == 1 && view_.group.outer_count() == 1) {
            const std::int64_t stride = view_.group.inner().stride.in;
            const T* first = static_cast<const T*>(view_.in) + begin * stride;
            return kernel.row_stats(first, members(), stride, end - begin, sums + begin, peaks + begin);
        }
        for (std::int64_t g = begin; g < end; ++g) {
            sums[g] = peaks[g] = 0.0;
            runs(g, [&](const T* y, std::int64_t n) {
                double s = 0.0, p = 0.0;
                kernel.row_stats(y, n, 0, 1, &s, &p);
                sums[g] += s, peaks[g] = std::max(peaks[g], p);
            });
        }
    }

    // Reads the stale lines. Each new one starts from its neighbour's cap.
    void refresh(std::int64_t, const Aim& aim, Chunk<T>& chunk) const {
        chunk.reads += static_cast<double>(std::ssize(chunk.stale) * members());
        double cap = aim.cap;
        for (const std::size_t i : chunk.stale) cap = find_cap(chunk, i, aim, cap);
    }

    // The members of the given groups, `stride` apart.
    void copy(const std::vector<std::int64_t>& which, T* to, std::int64_t stride) const {
        for (const std::int64_t g : which) {
            T* row = to;
            runs(g, [&](const T* y, std::int64_t n) {
                row = std::copy_n(y, n, row);
            });
            to += stride;
        }
    }
    static constexpr std::int64_t cluster = 1;  // neighbours worth sampling together

private:
    static constexpr std::int64_t chunk_elements = std::int64_t(1) << 17;
    static constexpr std::int64_t pack_elements = 1024;

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

    double find_cap(Chunk<T>& chunk, std::size_t i, const Aim& aim, double neighbour) const {
        const std::int64_t group = chunk.windows[i].group;
        const double start = chunk.start(i, aim, neighbour);
        const auto members_of_group = [&](auto f) { runs(group, f); };
        if (members() <= short_group) return settle_short(chunk, i, aim, start, members_of_group);
        return settle(chunk, i, aim, start, candidate_limit(per_chunk_ * members()), members_of_group);
    }

    const View& view_;
    double scale_;
    std::int64_t per_chunk_;
};

}  // namespace normball
