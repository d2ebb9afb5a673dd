#define NORMBALL_ISA avx512
#include "isa/kernels.hpp"

namespace normball {
InstructionSet make_avx512() { return {"avx512", avx512::table<float>(), avx512::table<double>()}; }
}  // namespace normball
