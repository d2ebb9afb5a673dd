#define NORMBALL_ISA avx2
#include "isa/kernels.hpp"

namespace normball {
InstructionSet make_avx2() { return {"avx2", avx2::table<float>(), avx2::table<double>()}; }
}  // namespace normball
