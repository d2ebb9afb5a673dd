// Memory that is fresh from the system, made ready for a result.
//
// Such memory is laid out when it is first touched, in pages of two megabytes where these are to be had. Linux clears such
// a page from its ends towards the place that was touched: most of it downwards, where that was the beginning, which takes
// more than twice as long as upwards. So the last byte of each page is touched before anything is written. Where the pages
// are there already this costs nothing.
#pragma once

#include <cstdint>

#include "parallel.hpp"
#include "view.hpp"

namespace normball {

// All of the output is about to be overwritten.
inline void touch_pages(const View& view, Team& team) {
    constexpr std::int64_t page = std::int64_t(1) << 21;
    const auto size = with_type(view.dtype, []<class T>(T*) { return static_cast<std::int64_t>(sizeof(T)); });
    if (view.size() * size < page) return;
    const auto [low, high] = view.reach(&Offset::out);
    const auto [in_low, in_high] = view.reach(&Offset::in);
    char* const out = static_cast<char*>(view.out) + low * size;
    const char* const in = static_cast<const char*>(view.in) + in_low * size;
    const std::int64_t bytes = (high - low + 1) * size;
    const bool apart = in + (in_high - in_low + 1) * size <= out || out + bytes <= in;
    if (!apart || bytes > view.size() * size) return;  // else bytes that are still to be read, or not ours
    const std::int64_t first = page - 1 - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out) % page);
    team.run(bytes > first ? (bytes - first - 1) / page + 1 : 0,
             [&](std::int64_t i) { *static_cast<volatile char*>(out + first + i * page) = 0; });
}

}  // namespace normball
