#define NORMBALL_ISA baseline
#include "isa/kernels_family.hpp"
#include "isa/kernels_panels.hpp"
#include "isa/kernels_tangent.hpp"

namespace normball {
InstructionSet make_baseline() {
    return {"baseline", baseline::table<float>(), baseline::table<double>(), baseline::family_table<float>(),
            baseline::family_table<double>(), baseline::panel_table<float>(), baseline::panel_table<double>(),
            baseline::tangent_table<float>(), baseline::tangent_table<double>()};
}
}  // namespace normball
