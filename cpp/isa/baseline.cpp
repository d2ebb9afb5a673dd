#define NORMBALL_ISA baseline
#include "isa/kernels.hpp"

namespace normball {
InstructionSet make_baseline() { return {"baseline", baseline::table<float>(), baseline::table<double>()}; }
}  // namespace normball
