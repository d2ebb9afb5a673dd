// A strided array seen as groups of members: the only owner of strides.
//
// Every axis of the user's array is a group axis or a member axis (batch axes are looped over before). Axes of one kind
// that lie behind one another in memory are fused, the rest are kept from the widest stride to the narrowest, so the
// last axis of a kind tells how neighbours lie. Offsets count elements. Groups are numbered in this internal order; the
// `info` stride leads from there to the group's place among all the groups in the user's own order.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace normball {

enum class Dtype { f16, f32, f64, c64, c128 };

// Neither of the two sets its own numbers: a view has room for many axes and uses few, in every call.
struct Offset {
    std::int64_t in, out, info;
    Offset& operator+=(const Offset& o) { return in += o.in, out += o.out, info += o.info, *this; }
    friend Offset operator+(Offset a, const Offset& b) { return a += b; }
    friend Offset operator*(std::int64_t i, const Offset& o) { return {i * o.in, i * o.out, i * o.info}; }
    friend bool operator==(const Offset&, const Offset&) = default;
};

struct Axis {
    std::int64_t extent;
    Offset stride;
};

class Axes {
public:
    static constexpr int limit = 64;  // as many as a NumPy array can have

    Axes() = default;
    Axes(const Axes& other) { *this = other; }
    Axes& operator=(const Axes& other) {
        std::copy_n(other.axes_.begin(), other.size_, axes_.begin());
        size_ = other.size_, count_ = other.count_;
        return *this;
    }

    void push(const Axis& axis) {
        axes_[static_cast<std::size_t>(size_++)] = axis;
        count_ *= axis.extent;
    }

    // Drops the axes of one element, turns round those that run backwards in the input, sorts and fuses. Returns where
    // the turned axes now begin.
    Offset fuse() {
        Offset origin{};
        const auto end = std::remove_if(axes_.begin(), axes_.begin() + size_, [](const Axis& a) { return a.extent == 1; });
        size_ = static_cast<int>(end - axes_.begin());
        for (int i = 0; i < size_; ++i) {
            Axis& axis = axes_[static_cast<std::size_t>(i)];
            if (axis.stride.in >= 0) continue;
            origin += (axis.extent - 1) * axis.stride;
            axis.stride = -1 * axis.stride;
        }
        std::sort(axes_.begin(), axes_.begin() + size_,
                  [](const Axis& a, const Axis& b) { return a.stride.in > b.stride.in; });
        int kept = 0;
        for (int i = 0; i < size_; ++i) {
            const Axis& axis = axes_[static_cast<std::size_t>(i)];
            Axis* last = kept > 0 ? &axes_[static_cast<std::size_t>(kept - 1)] : nullptr;
            if (last != nullptr && last->stride == axis.extent * axis.stride)
                *last = {last->extent * axis.extent, axis.stride};
            else
                axes_[static_cast<std::size_t>(kept++)] = axis;
        }
        size_ = kept;
        return origin;
    }

    std::int64_t count() const { return count_; }
    bool empty() const { return size_ == 0; }
    // The axis of neighbours; a single element where there is none.
    Axis inner() const { return size_ == 0 ? Axis{1, {}} : axes_[static_cast<std::size_t>(size_ - 1)]; }
    std::int64_t outer_count() const { return count_ / inner().extent; }
    bool in_place() const {
        return std::all_of(axes_.begin(), axes_.begin() + size_, [](const Axis& a) { return a.stride.in == a.stride.out; });
    }

    Offset at(std::int64_t index) const { return decode(index, size_); }
    // Offset of the index-th run of the inner axis.
    Offset outer_at(std::int64_t index) const { return decode(index, size_ - 1); }

    // The lowest and the highest offset of all.
    std::pair<std::int64_t, std::int64_t> reach(std::int64_t Offset::* which) const {
        std::int64_t low = 0, high = 0;
        for (int i = 0; i < size_; ++i) {
            const Axis& axis = axes_[static_cast<std::size_t>(i)];
            const std::int64_t last = (axis.extent - 1) * (axis.stride.*which);
            (last < 0 ? low : high) += last;
        }
        return {low, high};
    }

private:
    Offset decode(std::int64_t index, int axes) const {
        Offset offset{};
        for (int i = axes - 1; i > 0; --i) {
            const Axis& axis = axes_[static_cast<std::size_t>(i)];
            offset += (index % axis.extent) * axis.stride;
            index /= axis.extent;
        }
        return axes > 0 ? offset + index * axes_[0].stride : offset;
    }

    std::array<Axis, limit> axes_;
    int size_ = 0;
    std::int64_t count_ = 1;
};

struct View {
    Dtype dtype = Dtype::f64;
    const void* in = nullptr;
    void* out = nullptr;  // nullptr where nothing is to be written
    bool blank = false;   // the output of groups of which nothing is left is zeros
    std::int64_t info = 0;  // where the first group stands in the user's order
    Axes group, member;

    std::int64_t groups() const { return group.count(); }
    std::int64_t members() const { return member.count(); }
    std::int64_t size() const { return groups() * members(); }
    bool in_place() const { return in == out && group.in_place() && member.in_place(); }

    std::pair<std::int64_t, std::int64_t> reach(std::int64_t Offset::* which) const {
        const auto across = group.reach(which), along = member.reach(which);
        return {across.first + along.first, across.second + along.second};
    }

    // f(g, place) for every group, with its place in the user's order.
    template <class F>
    void each_group(F f) const {
        const Axis inner = group.inner();
        std::int64_t g = 0;
        for (std::int64_t run = 0; run < group.outer_count(); ++run) {
            std::int64_t place = info + group.outer_at(run).info;
            for (std::int64_t i = 0; i < inner.extent; ++i, place += inner.stride.info) f(g++, place);
        }
    }
};

// Half precision as its bits: sign, then a magnitude that is ordered as an integer.
struct Half {
    std::uint16_t bits;
    static constexpr std::uint16_t sign = 0x8000;
};

// scale * |y|. Complex numbers are scaled before the modulus is taken, which may overflow where its parts do not.
inline double magnitude(double y, double scale = 1.0) { return scale * std::fabs(y); }
inline double magnitude(float y, double scale = 1.0) { return scale * std::fabs(static_cast<double>(y)); }
inline double magnitude(std::complex<double> y, double scale = 1.0) {
    return std::hypot(scale * y.real(), scale * y.imag());
}
inline double magnitude(std::complex<float> y, double scale = 1.0) {
    return magnitude(std::complex<double>(y), scale);
}
inline double magnitude(Half y, double scale = 1.0) {
    const int exponent = (y.bits >> 10) & 31, fraction = y.bits & 1023;
    if (exponent == 31) return fraction != 0 ? NAN : HUGE_VAL;
    return scale * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

// Calls f with a null pointer of the element type.
template <class F>
decltype(auto) with_type(Dtype dtype, F&& f) {
    switch (dtype) {
        case Dtype::f16: return f(static_cast<Half*>(nullptr));
        case Dtype::f32: return f(static_cast<float*>(nullptr));
        case Dtype::c64: return f(static_cast<std::complex<float>*>(nullptr));
        case Dtype::c128: return f(static_cast<std::complex<double>*>(nullptr));
        default: return f(static_cast<double*>(nullptr));
    }
}

// Writes scale * |y| for members [first, first + count) of a group.
inline void load_magnitudes(const View& view, std::int64_t group, std::int64_t first, std::int64_t count, double scale,
                            double* to) {
    with_type(view.dtype, [&]<class T>(T*) {
        const T* base = static_cast<const T*>(view.in) + view.group.at(group).in;
        const Axis inner = view.member.inner();
        const std::int64_t step = inner.stride.in;
        while (count > 0) {
            const std::int64_t at = first % inner.extent, n = std::min(count, inner.extent - at);
            const T* y = base + view.member.outer_at(first / inner.extent).in + at * step;
            for (std::int64_t i = 0; i < n; ++i) to[i] = magnitude(y[i * step], scale);
            to += n, first += n, count -= n;
        }
    });
}

// Of the magnitudes of a few members of some groups.
struct Moments {
    double mean = 0.0, square = 0.0;
};

inline Moments rough_moments(const View& view) {
    constexpr std::int64_t some = 16;
    const std::int64_t members = std::min(view.members(), some);
    Moments sum;
    double magnitudes[some];
    for (std::int64_t i = 0; i < some; ++i) {
        const std::int64_t g = (2 * i + 1) * view.groups() / (2 * some), first = (view.members() - members) * i / some;
        load_magnitudes(view, g, first, members, 1.0, magnitudes);
        for (std::int64_t j = 0; j < members; ++j) sum.mean += magnitudes[j], sum.square += magnitudes[j] * magnitudes[j];
    }
    const double share = 1.0 / static_cast<double>(some * members);
    return {sum.mean * share, sum.square * share};
}

}  // namespace normball
