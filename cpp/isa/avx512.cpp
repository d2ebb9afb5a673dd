#define NORMBALL_ISA avx512
#include "isa/kernels_family.hpp"
#include "isa/kernels_panels.hpp"
#include "isa/kernels_tangent.hpp"

namespace normball {
InstructionSet make_avx512() {
    return {"avx512", avx512::table<float>(), avx512::table<double>(), avx512::family_table<float>(),
            avx512::family_table<double>(), avx512::panel_table<float>(), avx512::panel_table<double>(),
            avx512::tangent_table<float>(), avx512::tangent_table<double>()};
}
}  // namespace normball
