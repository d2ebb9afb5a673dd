// Memory that is fresh from the system, made ready to be written.
//
// Such memory is laid out when it is first touched, in pages of two megabytes where these are to be had. Linux clears such
// a page from its ends towards the place that was touched: most of it downwards, where that was the beginning, which takes
// more than twice as long as upwards. So the last byte of each page is touched before anything is written. Where the pages
// are there already this costs nothing.
#pragma once

#include <cstdint>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace normball {

inline constexpr std::int64_t large_page = std::int64_t(1) << 21;

// How many bytes come before the last one of the first large page.
inline std::int64_t before_page_end(const char* memory) {
    return large_page - 1 - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(memory) % large_page);
}

// Touches the ends of the pages, all of which are about to be overwritten. `loop` calls a function for so many numbers.
template <class Loop>
void touch_pages(char* memory, std::int64_t bytes, Loop loop) {
    const std::int64_t first = before_page_end(memory);
    loop(bytes > first ? (bytes - first - 1) / large_page + 1 : 0,
         [=](std::int64_t i) { *static_cast<volatile char*>(memory + first + i * large_page) = 0; });
}

// For memory of our own.
inline void ask_for_large_pages([[maybe_unused]] char* memory, [[maybe_unused]] std::int64_t bytes) {
#ifdef __linux__
    char* const begin = memory + (before_page_end(memory) + 1) % large_page;
    const std::int64_t pages = (bytes - (begin - memory)) / large_page;
    if (pages > 0) madvise(begin, static_cast<std::size_t>(pages * large_page), MADV_HUGEPAGE);
#endif
    touch_pages(memory, bytes, [](std::int64_t count, auto touch) {
        for (std::int64_t i = 0; i < count; ++i) touch(i);
    });
}

}  // namespace normball
