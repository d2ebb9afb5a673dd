// Counts what holds and what does not, and says where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

inline int passed = 0;
inline int failed = 0;
inline std::string context;  // the case at hand, for the messages

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (condition) {                                                                     \
            ++passed;                                                                        \
        } else if (++failed <= 20) {                                                         \
            std::printf("line %d: %s (%s)\n", __LINE__, #condition, context.c_str());        \
        }                                                                                    \
    } while (false)

// The exit status.
inline int verdict() {
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}

inline std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
