#include "dispatch.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace normball {

InstructionSet make_baseline();
#if defined(__x86_64__)
InstructionSet make_avx2();
InstructionSet make_avx512();
#endif

const char* const* instruction_sets() {
    static const std::array<const char*, 4> names = [] {
        std::array<const char*, 4> found{"baseline"};
#if defined(__x86_64__)
        std::size_t n = 1;
        if (__builtin_cpu_supports("avx2")) found[n++] = "avx2";
        // The four parts of AVX-512 that every server chip since Skylake has, and that isa/avx512.cpp is compiled for.
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
            found[n++] = "avx512";
#endif
        return found;
    }();
    return names.data();
}

static InstructionSet choose() {
    const char* const* names = instruction_sets();
    std::string known, best;
    for (const char* const* name = names; *name != nullptr; ++name) {
        known += (known.empty() ? "" : ", ") + std::string(*name);
        best = *name;
    }
    const char* forced = std::getenv("NORMBALL_ISA");
    if (forced != nullptr && *forced != '\0') {
        bool has = false;
        for (const char* const* name = names; *name != nullptr; ++name) has = has || std::strcmp(*name, forced) == 0;
        if (!has)
            throw std::runtime_error("NORMBALL_ISA: expected an instruction set of this machine (" + known + "), got '" +
                                     forced + "'");
        best = forced;
    }
#if defined(__x86_64__)
    if (best == "avx512") return make_avx512();
    if (best == "avx2") return make_avx2();
#endif
    return make_baseline();
}

const InstructionSet& instruction_set() {
    static const InstructionSet set = choose();
    return set;
}

}  // namespace normball
