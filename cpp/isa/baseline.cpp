#define NORMBALL_ISA baseline
#include "isa/kernels_family.hpp"

namespace normball {
InstructionSet make_baseline() {
    return {"baseline", baseline::table<float>(), baseline::table<double>(), baseline::family_table<float>(),
            baseline::family_table<double>()};
}
}  // namespace normball
