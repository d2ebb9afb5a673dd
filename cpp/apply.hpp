// Writes the projection once the caps are known: every entry clipped to its group's cap.
//
// A cap of 0 fills its group with zeros, NaN fills it with NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "dispatch.hpp"
#include "parallel.hpp"
#include "rounding.hpp"
#include "view.hpp"

namespace normball {

inline double clip(double y, double cap) { return std::max(std::min(y, cap), -cap); }
inline float clip(float y, float cap) { return std::max(std::min(y, cap), -cap); }
inline Half clip(Half y, Half cap) {
    const std::uint16_t sign = y.bits & Half::sign, size = y.bits & static_cast<std::uint16_t>(~Half::sign);
    return {static_cast<std::uint16_t>(sign | std::min(size, cap.bits))};
}
template <class R>
std::complex<R> clip(std::complex<R> y, R cap) {
    // The modulus of a finite number may overflow, a quarter of it does not; that of a subnormal one is better magnified.
    const double scale = std::max(std::fabs(y.real()), std::fabs(y.imag())) < R(1) ? 0x1p60 : 0.25;
    const double modulus = magnitude(y, scale), limit = scale * static_cast<double>(cap);
    if (modulus <= limit || cap == std::numeric_limits<R>::max()) return y;  // no cap at all
    const std::complex<double> x = std::complex<double>(y) * (limit / modulus);
    return {static_cast<R>(x.real()), static_cast<R>(x.imag())};
}

template <class T>
struct CapOf {
    using type = T;
    static T not_a_number() { return std::numeric_limits<T>::quiet_NaN(); }
};
template <class R>
struct CapOf<std::complex<R>> {
    using type = R;
    static std::complex<R> not_a_number() { return {CapOf<R>::not_a_number(), CapOf<R>::not_a_number()}; }
};
template <>
struct CapOf<Half> {
    using type = Half;
    static Half not_a_number() { return {0x7e00}; }
};

// Past the last cache, stores that go round it spare the fetch of every line that is about to be overwritten. What the
// system says of its caches is not to be trusted on virtual machines; this is half of a usual one.
inline constexpr std::int64_t streamed_bytes = std::int64_t(1) << 24;

// Where only a few columns of a row are read, the hardware does not foresee them, and they are asked for so many rows
// before.
inline constexpr std::int64_t rows_ahead = 8;

// Any dtype and any strides, along whichever of the two inner axes lies closer together in the output.
template <class T>
void apply_anywhere(const View& view, const double* caps) {
    const auto* in = static_cast<const T*>(view.in);
    auto* out = static_cast<T*>(view.out);
    const auto put = [&](Offset at, double cap) {
        if (std::isnan(cap))
            out[at.out] = CapOf<T>::not_a_number();
        else
            out[at.out] = cap > 0.0 ? clip(in[at.in], round_down<typename CapOf<T>::type>(cap)) : T{};
    };
    const auto step = [](const Axes& axes) { return axes.empty() ? INT64_MAX : std::abs(axes.inner().stride.out); };
    if (step(view.member) <= step(view.group))
        for (std::int64_t g = 0; g < view.groups(); ++g) {
            const Offset at = view.group.at(g);
            for (std::int64_t i = 0; i < view.members(); ++i) put(at + view.member.at(i), caps[g]);
        }
    else
        for (std::int64_t i = 0; i < view.members(); ++i) {
            const Offset at = view.member.at(i);
            for (std::int64_t g = 0; g < view.groups(); ++g) put(at + view.group.at(g), caps[g]);
        }
}

// Members in contiguous runs. Backwards, for the end of the matrix is what the last read left in the cache.
template <class T>
void apply_rows(const View& view, const double* caps, bool stream, Team& team) {
    const std::int64_t m = view.groups(), run = view.member.inner().extent, runs = view.member.outer_count();
    const std::int64_t per_chunk = std::max<std::int64_t>(1, (std::int64_t(1) << 16) / view.members());
    const std::int64_t chunks = (m + per_chunk - 1) / per_chunk;
    const bool dense = runs == 1 && view.group.outer_count() == 1 && view.group.inner().stride.out == run;
    team.run(chunks, [&](std::int64_t c) {
        const std::int64_t begin = (chunks - 1 - c) * per_chunk, end = std::min(begin + per_chunk, m);
        for (std::int64_t g = begin, next; g < end; g = next) {
            const Offset at = view.group.at(g);
            // Zero groups that lie behind one another are filled in one go.
            for (next = g + 1; dense && caps[g] == 0.0 && next < end && caps[next] == 0.0;) ++next;
            for (std::int64_t i = 0; i < runs; ++i) {
                const Offset from = at + view.member.outer_at(i);
                kernels<T>().row_clip(static_cast<const T*>(view.in) + from.in, static_cast<T*>(view.out) + from.out,
                                      run * (next - g), round_down<T>(caps[g]), stream);
            }
        }
    });
}

// Groups side by side: one row of members after another.
template <class T>
void apply_strips(const View& view, const double* caps, bool stream, Team& team) {
    const std::int64_t m = view.groups(), n = view.members(), line = view.group.inner().extent;
    std::vector<T> rounded(static_cast<std::size_t>(m));
    std::transform(caps, caps + m, rounded.begin(), round_down<T>);
    // Looking for zero caps pays where most registers of them are zero; elsewhere the guesses of the processor fail.
    const bool sparse = (m - std::count(rounded.begin(), rounded.end(), T(0))) * 4 * kernels<T>().lanes < m;
    // The caps of a block of columns stay in the first cache from row to row.
    const std::int64_t block = std::min(line, (std::int64_t(1) << 14) / static_cast<std::int64_t>(sizeof(T)));
    const std::int64_t blocks = (line + block - 1) / block;
    const std::int64_t rows = std::max<std::int64_t>(1, (std::int64_t(1) << 16) / block), chunks = (n + rows - 1) / rows;
    for (std::int64_t g = 0; g < m; g += line) {
        const Offset at = view.group.at(g);
        team.run(blocks * chunks, [&](std::int64_t c) {
            const std::int64_t column = c / chunks * block, width = std::min(block, line - column);
            const std::int64_t begin = c % chunks * rows, end = std::min(begin + rows, n);
            for (std::int64_t i = begin; i < end; ++i) {
                const Offset from = at + view.member.at(i);
                const std::int64_t ahead = i + rows_ahead < n ? view.member.at(i + rows_ahead).in + at.in - from.in : 0;
                kernels<T>().strip_clip(static_cast<const T*>(view.in) + from.in + column,
                                        static_cast<T*>(view.out) + from.out + column, width,
                                        rounded.data() + g + column, stream, sparse, ahead);
            }
        });
    }
}

// caps: one for each group, in the view's own order.
inline void apply(const View& view, const double* caps, Team& team) {
    const Offset member = view.member.inner().stride, group = view.group.inner().stride;
    const bool fast = !std::isnan(caps[0]);
    with_type(view.dtype, [&]<class T>(T*) {
        if constexpr (std::is_floating_point_v<T>) {
            const bool stream = view.size() * static_cast<std::int64_t>(sizeof(T)) >= streamed_bytes;
            if (fast && member.in == 1 && member.out == 1) return apply_rows<T>(view, caps, stream, team);
            if (fast && group.in == 1 && group.out == 1) return apply_strips<T>(view, caps, stream, team);
        }
        apply_anywhere<T>(view, caps);
    });
}

}  // namespace normball
