// The members of any group of a view, run by run: where they lie, or through a small buffer.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "parallel.hpp"
#include "rounding.hpp"
#include "view.hpp"

namespace normball {

// Writes scale * y for members [first, first + count) of a group of real numbers.
inline void load_values(const View& view, std::int64_t group, std::int64_t first, std::int64_t count, double scale,
                        double* to) {
    with_type(view.dtype, [&]<class T>(T*) {
        const T* base = static_cast<const T*>(view.in) + view.group.at(group).in;
        for (std::int64_t i = 0; i < count; ++i) {
            const T y = base[view.member.at(first + i).in];
            if constexpr (std::is_same_v<T, Half>)
                to[i] = y.bits & Half::sign ? -magnitude(y, scale) : magnitude(y, scale);
            else if constexpr (std::is_floating_point_v<T>)
                to[i] = scale * static_cast<double>(y);
        }
    });
}

// T as they lie if not Packed; else double, times `scale`: magnitudes unless Signed.
template <class Element, bool Packed, bool Signed>
class Runs {
public:
    using T = Element;
    static constexpr bool is_signed = Signed, lie_in_memory = !Packed;

    explicit Runs(const View& view, double scale = 1.0) : view_(view), scale_(scale) {}
    std::int64_t groups() const { return view_.groups(); }
    std::int64_t members() const { return view_.members(); }

    // f(y, n) for members [first, first + count), a run at a time.
    template <class F>
    void each(std::int64_t group, std::int64_t first, std::int64_t count, F f) const {
        if constexpr (Packed) {
            alignas(64) double buffer[buffered];
            for (const std::int64_t end = first + count; first < end; first += buffered) {
                const std::int64_t n = std::min(buffered, end - first);
                if constexpr (Signed)
                    load_values(view_, group, first, n, scale_, buffer);
                else
                    load_magnitudes(view_, group, first, n, scale_, buffer);
                f(static_cast<const double*>(buffer), n);
            }
        } else {
            const T* base = static_cast<const T*>(view_.in) + view_.group.at(group).in;
            const std::int64_t extent = view_.member.inner().extent;
            for (const std::int64_t end = first + count; first < end;) {
                const std::int64_t at = first % extent, n = std::min(extent - at, end - first);
                f(base + view_.member.outer_at(first / extent).in + at, n);
                first += n;
            }
        }
    }

private:
    static constexpr std::int64_t buffered = 1024;
    const View& view_;
    double scale_;
};

// Whether the members lie in runs that are worth a call each.
inline bool lies_in_runs(const View& view) {
    const Axis inner = view.member.inner();
    return (view.dtype == Dtype::f32 || view.dtype == Dtype::f64) && inner.stride.in == 1 &&
           (inner.extent >= 32 || view.member.outer_count() == 1);
}

// Calls f with the runs that suit the view.
template <bool Signed, class F>
decltype(auto) with_runs(const View& view, F&& f) {
    if (lies_in_runs(view) && view.dtype == Dtype::f32) return f(Runs<float, false, Signed>(view));
    if (lies_in_runs(view)) return f(Runs<double, false, Signed>(view));
    return f(Runs<double, true, Signed>(view));
}

}  // namespace normball
