// SPDX-License-Identifier: Apache-2.0
//
// Memory of a sweep: one aligned, zeroed block, laid out once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "layout.hpp"

namespace prime_ros {
namespace sweeps {

Layout make_layout(const Dimensions& dimensions);

/// Hands out cache-line aligned pieces of a block; without a block it only counts.
class Arena {
 public:
  explicit Arena(double* block = nullptr) : block_(block) {}
  double* take(std::size_t count);
  std::size_t used() const { return used_; }

 private:
  double* block_;
  std::size_t used_ = 0;
};

/// Everything a sweep remembers. K is the number of steps allocated.
struct Memory {
  Memory(const Layout& layout, int steps, const Storage& storage);

  std::vector<StepData> steps;          // K
  std::vector<CostData> costs;          // K + 1
  std::vector<ArrivalFactors> factors;  // K, or one that every step reuses
  std::vector<double*> values;          // forms V_k (K + 1), or two that alternate
  std::vector<double*> arrivals;        // forms Lambda_k (K + 1), or two that alternate
  double* prior;                        // form of the arrival cost of knot 0
  double* terminal;                     // form of what follows knot K
  double* solution_dx;                  // (K + 1, ndx)
  double* solution_du;                  // (K, nu)
  Workspace workspace;
  std::size_t bytes() const { return size_ * sizeof(double); }

 private:
  struct Release {
    void operator()(double* block) const;
  };
  void lay_out(const Layout& layout, Arena arena);

  std::size_t size_ = 0;
  std::unique_ptr<double[], Release> block_;
};

}  // namespace sweeps
}  // namespace prime_ros
