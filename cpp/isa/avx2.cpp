#define NORMBALL_ISA avx2
#include "isa/kernels_family.hpp"
#include "isa/kernels_panels.hpp"
#include "isa/kernels_tangent.hpp"

namespace normball {
InstructionSet make_avx2() {
    return {"avx2", avx2::table<float>(), avx2::table<double>(), avx2::family_table<float>(),
            avx2::family_table<double>(), avx2::panel_table<float>(), avx2::panel_table<double>(),
            avx2::tangent_table<float>(), avx2::tangent_table<double>()};
}
}  // namespace normball
