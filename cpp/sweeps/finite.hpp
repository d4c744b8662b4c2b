// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfloat>
#include <cmath>

#include "sweep.hpp"

namespace prime_ros {
namespace sweeps {

/// Collects whether every number it is shown is finite.
class FiniteCheck {
 public:
  void add(const double* x, int size) {
    int bad = 0;
    for (int i = 0; i < size; ++i) bad |= !(std::fabs(x[i]) <= DBL_MAX);
    bad_ |= bad;
  }
  void add(const double* M, int rows, int columns, int ld) {
    for (int j = 0; j < columns; ++j) add(M + j * ld, rows);
  }
  Outcome outcome() const { return bad_ ? Outcome::kNotFinite : Outcome::kOk; }

 private:
  int bad_ = 0;
};

}  // namespace sweeps
}  // namespace prime_ros
