// The derivative of the projection: how each entry of the result moves when the matrix moves along v.
//
// In a group that is not zero, an entry that is not clipped moves as v says. The k clipped ones move with their cap, by
// sign * (a - mean) / k: a is the sum of v over them, with their signs, and the mean of all the a, weighted by 1 / k, is
// how theta moves, since the caps keep their sum. A zero group stays where it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dispatch.hpp"
#include "parallel.hpp"
#include "rounding.hpp"
#include "view.hpp"
#include "write.hpp"

namespace normball {

// For floats in one of the two plain layouts; v and the view's output lie alike.
template <class T>
class Tangent {
public:
    static bool handles(const View& view) {
        const Offset member = view.member.inner().stride, group = view.group.inner().stride;
        if (sizeof(T) == sizeof(float) && view.members() >= std::int64_t(1) << 24) return false;  // counts are in T
        return (member.in == 1 && member.out == 1) || (group.in == 1 && group.out == 1);
    }

    // `caps` as they were written, in the view's own order: those of zero groups are 0.
    Tangent(const View& view, const T* v, const double* caps, Team& team)
        : view_(view), v_(v), team_(team), caps_(static_cast<std::size_t>(view.groups())), moves_(caps_.size()) {
        std::transform(caps, caps + view.groups(), caps_.begin(),
                       [](double cap) { return cap > 0.0 ? static_cast<T>(cap) : T(0); });
    }

    // Writes, and returns how theta moves.
    double write() {
        const Offset member = view_.member.inner().stride;
        const bool rows = member.in == 1 && member.out == 1;
        std::vector<double> sums(caps_.size() + lane_limit);
        std::vector<T> counts(caps_.size() + lane_limit);
        rows ? sum_rows(sums.data(), counts.data()) : sum_strips(sums.data(), counts.data());
        double weight = 0.0, total = 0.0;
        for (std::size_t g = 0; g < caps_.size(); ++g) {
            if (counts[g] == T(0)) continue;
            weight += 1.0 / static_cast<double>(counts[g]);
            total += sums[g] / static_cast<double>(counts[g]);
        }
        const double mean = weight > 0.0 ? total / weight : 0.0;
        for (std::size_t g = 0; g < caps_.size(); ++g)
            moves_[g] = counts[g] == T(0) ? T(0) : static_cast<T>((sums[g] - mean) / static_cast<double>(counts[g]));
        const bool stream = streams(view_);
        touch_pages(view_, team_);
        rows ? write_rows(stream) : write_strips(stream);
        return mean;
    }

private:
    const T* in() const { return static_cast<const T*>(view_.in); }
    T* out() const { return static_cast<T*>(view_.out); }

    // body(group, offset, length) for every run of the members of the groups, a chunk of groups after another.
    template <class Body>
    void each_run(Body body) {
        const std::int64_t m = view_.groups(), runs = view_.member.outer_count(), run = view_.member.inner().extent;
        const std::int64_t per_chunk = std::max<std::int64_t>(1, chunk_elements / view_.members());
        team_.run((m + per_chunk - 1) / per_chunk, [&](std::int64_t c) {
            for (std::int64_t g = c * per_chunk; g < std::min((c + 1) * per_chunk, m); ++g)
                for (std::int64_t i = 0; i < runs; ++i) body(g, view_.group.at(g) + view_.member.outer_at(i), run);
        });
    }

    void sum_rows(double* sums, T* counts) {
        each_run([&](std::int64_t g, Offset at, std::int64_t n) {
            const T cap = caps_[static_cast<std::size_t>(g)];
            if (cap == T(0)) return;
            std::int64_t count = 0;
            sums[g] += tangent_kernels<T>().row_sums(in() + at.in, v_ + at.out, n, cap, &count);
            counts[g] += static_cast<T>(count);
        });
    }

    void write_rows(bool stream) {
        each_run([&](std::int64_t g, Offset at, std::int64_t n) {
            const auto j = static_cast<std::size_t>(g);
            tangent_kernels<T>().row(in() + at.in, v_ + at.out, out() + at.out, n, caps_[j], moves_[j], stream);
        });
    }

    // body(group, offset of its first member, width) for blocks of neighbouring groups.
    template <class Body>
    void each_block(Body body) {
        const std::int64_t m = view_.groups(), line = view_.group.inner().extent;
        const std::int64_t block = std::min(line, block_bytes / static_cast<std::int64_t>(sizeof(T)));
        const std::int64_t blocks = (line + block - 1) / block;
        team_.run(m / line * blocks, [&](std::int64_t c) {
            const std::int64_t column = c % blocks * block, g = c / blocks * line + column;
            body(g, view_.group.at(g), std::min(block, line - column));
        });
    }

    void sum_strips(double* sums, T* counts) {
        const std::int64_t runs = view_.member.outer_count();
        const Axis inner = view_.member.inner();
        each_block([&](std::int64_t g, Offset at, std::int64_t width) {
            // Sums of neighbouring blocks lie side by side and are padded each.
            std::vector<double> block_sums(static_cast<std::size_t>(width + lane_limit));
            std::vector<T> block_counts(block_sums.size());
            for (std::int64_t i = 0; i < runs; ++i) {
                const Offset from = at + view_.member.outer_at(i);
                tangent_kernels<T>().strip_sums(in() + from.in, inner.stride.in, v_ + from.out, inner.stride.out,
                                                inner.extent, width, caps_.data() + g, block_sums.data(),
                                                block_counts.data());
            }
            std::copy_n(block_sums.begin(), width, sums + g);
            // Zero groups among the others of a register were counted with them.
            for (std::int64_t j = 0; j < width; ++j)
                counts[g + j] = caps_[static_cast<std::size_t>(g + j)] > T(0) ? block_counts[static_cast<std::size_t>(j)] : T(0);
        });
    }

    void write_strips(bool stream) {
        // As in write_strips: looking for zero groups pays where most registers hold nothing else.
        const std::int64_t m = view_.groups(), alive = m - std::count(caps_.begin(), caps_.end(), T(0));
        const bool sparse = alive * 4 * kernels<T>().lanes < m;
        each_block([&](std::int64_t g, Offset at, std::int64_t width) {
            for (std::int64_t i = 0; i < view_.members(); ++i) {
                const Offset from = at + view_.member.at(i);
                tangent_kernels<T>().strip(in() + from.in, v_ + from.out, out() + from.out, width, caps_.data() + g,
                                           moves_.data() + g, stream, sparse);
            }
        });
    }

    static constexpr std::int64_t chunk_elements = std::int64_t(1) << 16, block_bytes = std::int64_t(1) << 13;

    const View& view_;
    const T* v_;
    Team& team_;
    std::vector<T> caps_, moves_;
};

}  // namespace normball
