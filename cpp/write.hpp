// Writes a result once one number is known for each group: every member clipped to it, shrunk towards zero by it,
// shifted down by it, or scaled by it.
//
// NaN fills its group with NaN. Numbers that leave nothing of a group have it filled with zeros, and not read.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "dispatch.hpp"
#include "pages.hpp"
#include "parallel.hpp"
#include "rounding.hpp"
#include "scratch.hpp"
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

inline bool streams(const View& view) {
    return with_type(view.dtype, [&]<class T>(T*) {
        return view.size() * static_cast<std::int64_t>(sizeof(T)) >= streamed_bytes;
    });
}

// Makes the output ready, where all of it is about to be overwritten.
inline void touch_pages(const View& view, Team& team) {
    const auto size = with_type(view.dtype, []<class T>(T*) { return static_cast<std::int64_t>(sizeof(T)); });
    if (view.size() * size < large_page) return;
    const auto [low, high] = view.reach(&Offset::out);
    const auto [in_low, in_high] = view.reach(&Offset::in);
    char* const out = static_cast<char*>(view.out) + low * size;
    const char* const in = static_cast<const char*>(view.in) + in_low * size;
    const std::int64_t bytes = (high - low + 1) * size;
    const bool apart = in + (in_high - in_low + 1) * size <= out || out + bytes <= in;
    if (!apart || bytes > view.size() * size) return;  // else bytes that are still to be read, or not ours
    touch_pages(out, bytes, [&](std::int64_t count, auto touch) { team.run(count, touch); });
}

// Rows of a strip that are written together, or a multiple of it.
inline constexpr std::int64_t rows_together = 16;

enum class Write { shrink, shift, scale, clip };

inline bool leaves_nothing(Write kind, double p) {
    return kind == Write::shrink || kind == Write::shift ? p == HUGE_VAL : p == 0.0;
}

inline bool leaves_all(Write kind, double p) {
    return (kind == Write::shrink && p == 0.0) || (kind == Write::scale && p == 1.0);
}

// y * factor rounded towards zero, which the product of subnormal numbers is not.
inline double scaled_down(double y, double factor) {
    const double x = y * factor;
    if (std::fabs(x) > 0x1p-960) return x;
    return std::ldexp(std::trunc(std::ldexp(std::ldexp(y, 200) * factor, 874)), -1074);
}

// One member of any type. Entries are rounded towards zero, so that many small ones do not add up to more than they may.
template <class T>
T written(Write kind, T y, double p) {
    if (std::isnan(p)) return CapOf<T>::not_a_number();
    if (leaves_nothing(kind, p)) return T{};
    if (leaves_all(kind, p)) return y;
    using R = typename CapOf<T>::type;
    if (kind == Write::clip) return clip(y, round_down<R>(p));
    if constexpr (std::is_same_v<T, Half>) {
        const bool negative = y.bits & Half::sign;
        const double value = negative ? -magnitude(y) : magnitude(y);
        const double size = kind == Write::scale ? std::fabs(value * p)
                            : kind == Write::shift ? std::max(value - p, 0.0)
                                                   : std::max(std::fabs(value) - p, 0.0);
        const Half x = round_down<Half>(size);
        const bool keeps_sign = kind != Write::shift && negative && x.bits != 0;
        return {static_cast<std::uint16_t>(x.bits | (keeps_sign ? Half::sign : 0))};
    } else if constexpr (std::is_floating_point_v<T>) {
        const auto value = static_cast<double>(y);
        const double x = kind == Write::scale   ? scaled_down(value, p)
                         : kind == Write::shift ? std::max(value - p, 0.0)
                                                : std::copysign(std::max(std::fabs(value) - p, 0.0), value);
        const T size = round_down<T>(std::fabs(x));
        return x < 0.0 ? -size : size;
    } else {
        double factor = p;
        if (kind != Write::scale) {
            // As in clip: the modulus may overflow, that of a subnormal number is better magnified.
            const double scale = std::max(std::fabs(y.real()), std::fabs(y.imag())) < R(1) ? 0x1p60 : 0.25;
            const double modulus = magnitude(y, scale);
            if (!(modulus > scale * p)) return T{};
            factor = (modulus - scale * p) / modulus;
        }
        const auto part = [&](R v) {
            const double x = scaled_down(static_cast<double>(v), factor);
            const R size = round_down<R>(std::fabs(x));
            return x < 0.0 ? -size : size;
        };
        return {part(y.real()), part(y.imag())};
    }
}

// Any type and any strides, along whichever of the two inner axes lies closer together in the output.
template <class T>
void write_anywhere(const View& view, Write kind, const double* p) {
    const auto* in = static_cast<const T*>(view.in);
    auto* out = static_cast<T*>(view.out);
    const auto step = [](const Axes& axes) { return axes.empty() ? INT64_MAX : std::abs(axes.inner().stride.out); };
    if (step(view.member) <= step(view.group))
        for (std::int64_t g = 0; g < view.groups(); ++g) {
            const Offset at = view.group.at(g);
            for (std::int64_t i = 0; i < view.members(); ++i) {
                const Offset to = at + view.member.at(i);
                out[to.out] = written(kind, in[to.in], p[g]);
            }
        }
    else
        for (std::int64_t i = 0; i < view.members(); ++i) {
            const Offset at = view.member.at(i);
            for (std::int64_t g = 0; g < view.groups(); ++g) {
                const Offset to = at + view.group.at(g);
                out[to.out] = written(kind, in[to.in], p[g]);
            }
        }
}

// What T cannot hold of a parameter, rounded up: nobody may keep more than is his.
template <class T>
T rest_of(double p) {
    const double rest = std::isfinite(p) ? p - static_cast<double>(floor_to<T>(p)) : 0.0;
    const T near = static_cast<T>(rest);
    return static_cast<double>(near) < rest ? just_above(near) : near;
}

// A run of one group's members, or of several groups of which nothing is left.
template <class T>
void write_run(const View& view, Write kind, const T* y, T* x, std::int64_t n, double p, bool stream) {
    constexpr double nothing = 0.0;
    if (kind == Write::clip || leaves_nothing(kind, p))
        kernels<T>().rows_clip(y, 0, x, 0, n, 1, kind == Write::clip ? &p : &nothing, stream, view.blank);
    else
        family_kernels<T>().row_map[static_cast<int>(kind)](y, x, n, floor_to<T>(p), rest_of<T>(p), stream);
}

// Groups [begin, end), whose members lie in contiguous runs.
template <class T>
void write_rows(const View& view, Write kind, const double* p, std::int64_t begin, std::int64_t end, bool stream) {
    const std::int64_t run = view.member.inner().extent, runs = view.member.outer_count();
    const T* const y = static_cast<const T*>(view.in);
    T* const x = static_cast<T*>(view.out);
    const bool even = runs == 1 && view.group.outer_count() == 1;  // from one group to the next
    if (even && kind == Write::clip) {
        const Offset at = view.group.at(begin), apart = view.group.inner().stride;
        return kernels<T>().rows_clip(y + at.in, apart.in, x + at.out, apart.out, run, end - begin, p + begin, stream, view.blank);
    }
    for (std::int64_t g = begin; g < end; ++g)
        for (std::int64_t i = 0; i < runs; ++i) {
            const Offset at = view.group.at(g) + view.member.outer_at(i);
            write_run(view, kind, y + at.in, x + at.out, run, p[g], stream);
        }
}

// All of them. Backwards, for the end of the array is what the last read left in the cache.
template <class T>
void write_all_rows(const View& view, Write kind, const double* p, bool stream, Team& team) {
    const std::int64_t m = view.groups(), n = view.members(), run = view.member.inner().extent;
    if (n <= piece_elements) {
        const std::int64_t per_task = std::max<std::int64_t>(1, piece_elements / n), tasks = (m + per_task - 1) / per_task;
        team.run(tasks, [&](std::int64_t t) {
            const std::int64_t begin = (tasks - 1 - t) * per_task;
            write_rows<T>(view, kind, p, begin, std::min(begin + per_task, m), stream);
        });
        return;
    }
    const std::int64_t runs = view.member.outer_count(), pieces = (run + piece_elements - 1) / piece_elements;
    const std::int64_t tasks = m * runs * pieces;
    team.run(tasks, [&](std::int64_t t) {
        const std::int64_t task = tasks - 1 - t, g = task / (runs * pieces), first = task % pieces * piece_elements;
        const Offset from = view.group.at(g) + view.member.outer_at(task / pieces % runs);
        write_run(view, kind, static_cast<const T*>(view.in) + from.in + first, static_cast<T*>(view.out) + from.out + first,
                  std::min(piece_elements, run - first), p[g], stream);
    });
}

// Groups side by side: a few rows of members at a time. Backwards, as above.
template <class T>
void write_strips(const View& view, Write kind, const double* p, bool stream, Team& team) {
    const std::int64_t m = view.groups(), line = view.group.inner().extent, runs = view.member.outer_count();
    const Axis inner = view.member.inner();
    // A load waits for the stores before it whose addresses end in the same 12 bits: the numbers are kept half a page off.
    constexpr std::int64_t page = 4096 / sizeof(T);
    const std::int64_t apart = (m + page - 1) / page * page;
    const Scratch<T> numbers(2 * apart + page);
    const auto past_page = [](const void* address) {
        return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) % 4096 / sizeof(T));
    };
    T* const high = numbers.get() + (past_page(view.out) + page / 2 + page - past_page(numbers.get())) % page;
    T* const low = high + apart;
    std::transform(p, p + m, high, floor_to<T>);
    if (kind == Write::shrink || kind == Write::shift) std::transform(p, p + m, low, rest_of<T>);
    // The numbers of a block of columns stay in a cache from row to row.
    constexpr std::int64_t widest = (std::int64_t(1) << 17) / sizeof(T);
    const std::int64_t block = std::min(line, widest), blocks = (line + block - 1) / block;
    const std::int64_t rows = std::max<std::int64_t>(rows_together, piece_elements / block / rows_together * rows_together);
    const std::int64_t chunks = (inner.extent + rows - 1) / rows, tasks = m / line * blocks * runs * chunks;
    team.run(tasks, [&](std::int64_t t) {
        const std::int64_t task = tasks - 1 - t, run = task / chunks % runs, column = task / (chunks * runs) % blocks * block;
        const std::int64_t g = task / (chunks * runs * blocks) * line, begin = task % chunks * rows;
        const Offset from = view.group.at(g) + view.member.outer_at(run) + begin * inner.stride;
        family_kernels<T>().strip_map[static_cast<int>(kind)](
            static_cast<const T*>(view.in) + from.in + column, inner.stride.in, static_cast<T*>(view.out) + from.out + column,
            inner.stride.out, std::min(rows, inner.extent - begin), begin, std::min(block, line - column),
            high + g + column, low + g + column, stream);
    });
}

// p: one number for each group, in the view's own order. `tiny` asks for entries that are rounded towards zero, which
// matters where they are subnormal.
inline void write(const View& view, Write kind, const double* p, bool tiny, Team& team) {
    const Offset member = view.member.inner().stride, group = view.group.inner().stride;
    const bool sound = std::none_of(p, p + view.groups(), [](double x) { return std::isnan(x); });
    with_type(view.dtype, [&]<class T>(T*) {
        if constexpr (std::is_floating_point_v<T>) {
            const bool rows = member.in == 1 && member.out == 1;
            const bool fast = sound && (!tiny || kind == Write::clip);
            // Rows are written from the end, which touches the pages as it should, and touches few where few groups are left.
            const bool lazily = rows && view.blank, stream = streams(view) && !lazily;
            if (!lazily) touch_pages(view, team);
            if (fast && rows) return write_all_rows<T>(view, kind, p, stream, team);
            if (fast && group.in == 1 && group.out == 1) return write_strips<T>(view, kind, p, stream, team);
        }
        write_anywhere<T>(view, kind, p);
    });
}

inline void write_zeros(const View& view, std::span<const std::int64_t> groups) {
    const Axis inner = view.member.inner();
    with_type(view.dtype, [&]<class T>(T*) {
        for (const std::int64_t g : groups)
            for (std::int64_t run = 0; run < view.member.outer_count(); ++run) {
                T* const x = static_cast<T*>(view.out) + (view.group.at(g) + view.member.outer_at(run)).out;
                for (std::int64_t i = 0; i < inner.extent; ++i) x[i * inner.stride.out] = T{};
            }
    });
}

// The projection itself: every entry clipped to its group's cap.
inline void apply(const View& view, const double* caps, Team& team) { write(view, Write::clip, caps, false, team); }

}  // namespace normball
