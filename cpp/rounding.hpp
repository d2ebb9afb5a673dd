// Conversions of a cap to the element type, always towards zero, so that a rounded cap never leaves the ball; and a sum
// that does not drift with its length.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <span>

#include "dispatch.hpp"
#include "view.hpp"

namespace normball {

// The largest T below x, for x > 0, and the least above, for x >= 0. Much quicker than std::nextafter.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == sizeof(double), std::uint64_t, std::uint32_t>;
template <class T>
T just_below(T x) {
    return std::bit_cast<T>(std::bit_cast<BitsOf<T>>(x) - 1);
}
template <class T>
T just_above(T x) {
    return std::bit_cast<T>(std::bit_cast<BitsOf<T>>(x) + 1);
}

// The largest T that is not above x, for x >= 0. A magnitude y of type T is above x exactly when it is above this.
template <class T>
T round_down(double x) {
    if constexpr (sizeof(T) == sizeof(double)) {
        return x;
    } else {
        if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
        const T near = static_cast<T>(x);
        return static_cast<double>(near) > x ? just_below(near) : near;
    }
}

template <>
inline Half round_down<Half>(double x) {
    if (x >= 65504.0) return {0x7bff};
    if (x < std::ldexp(1.0, -14)) return {static_cast<std::uint16_t>(std::ldexp(x, 24))};
    const int exponent = std::ilogb(x);
    const auto fraction = static_cast<std::uint16_t>(std::ldexp(x, 10 - exponent) - 1024.0);
    return {static_cast<std::uint16_t>((exponent + 15) << 10 | fraction)};
}

// x as the real type of dtype holds it, rounded towards zero.
inline double round_down(double x, Dtype dtype) {
    switch (dtype) {
        case Dtype::f16: return magnitude(round_down<Half>(x));
        case Dtype::f32:
        case Dtype::c64: return static_cast<double>(round_down<float>(x));
        default: return x;
    }
}

// Sum with the rounding errors carried along: exact to the last bit or two for terms of one sign.
inline double careful_sum(std::span<const double> x) { return kernels<double>().careful_sum(x.data(), std::ssize(x)); }

// The largest T that is not above x, of either sign.
template <class T>
T floor_to(double x) {
    if (x >= 0.0) return round_down<T>(x);
    if (x <= -static_cast<double>(std::numeric_limits<T>::max())) return -std::numeric_limits<T>::max();
    const T near = static_cast<T>(x);
    return static_cast<double>(near) > x ? std::nextafter(near, -std::numeric_limits<T>::infinity()) : near;
}

}  // namespace normball
