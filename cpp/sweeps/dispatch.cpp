// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <stdexcept>

#include "layout.hpp"

namespace prime_ros {
namespace sweeps {
namespace {

/// Kernels of that name, or null where this build or this processor lacks them.
const Kernels* find(const std::string& name) {
  if (name == "portable") return &portable_kernels();
#ifdef PRIME_ROS_HAVE_AVX2_KERNELS
  __builtin_cpu_init();
  const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (supported && (name == "avx2" || name == "auto")) return &avx2_kernels();
#endif
  return name == "auto" ? &portable_kernels() : nullptr;
}

std::atomic<const Kernels*>& active() {
  static std::atomic<const Kernels*> kernels{find("auto")};
  return kernels;
}

}  // namespace

std::string set_instruction_set(const std::string& name) {
  const Kernels* kernels = find(name);
  if (!kernels) {
    throw std::invalid_argument(
        "instruction set: got \"" + name +
        "\", expected \"auto\", \"portable\" or, where the processor has it, \"avx2\"");
  }
  active() = kernels;
  return kernels->name;
}

const Kernels& active_kernels() {
  return *active();
}

}  // namespace sweeps
}  // namespace prime_ros
