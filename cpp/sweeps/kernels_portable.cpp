// SPDX-License-Identifier: Apache-2.0
//
// The kernels for any processor: two doubles per vector, as every 64-bit baseline has.
#define PRIME_ROS_VECTOR_BYTES 16
#include "kernels.hpp"

namespace prime_ros {
namespace sweeps {

const Kernels& portable_kernels() {
  static constexpr Kernels kernels = make_kernels("portable");
  return kernels;
}

}  // namespace sweeps
}  // namespace prime_ros
