// SPDX-License-Identifier: Apache-2.0
//
// The kernels for x86-64 with AVX2 and FMA: the only file compiled with -mavx2 -mfma. Nothing it defines
// besides avx2_kernels() has external linkage, so none of its code can be picked by the linker for another
// processor.
#define PRIME_ROS_VECTOR_BYTES 32
#include "kernels.hpp"

namespace prime_ros {
namespace sweeps {

const Kernels& avx2_kernels() {
  static constexpr Kernels kernels = make_kernels("avx2");
  return kernels;
}

}  // namespace sweeps
}  // namespace prime_ros
