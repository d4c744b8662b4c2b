// SPDX-License-Identifier: Apache-2.0
//
// State of a Sweep, shared by the files that implement it.
#pragma once

#include <string>

#include "storage.hpp"

namespace prime_ros {
namespace sweeps {

constexpr int kLargestSize = 1024;              // of ndx + nu: rows of this size live on the stack
constexpr int kLargestRow = kLargestSize + 64;  // with padding
constexpr int kLargestBuffer = 4 * kLargestRow;

struct Sweep::Data {
  Data(const Dimensions& dimensions, int step_count, const Storage& storage);

  std::size_t form_size() const { return static_cast<std::size_t>(layout.rows) * layout.columns; }
  double* value_form(int k) const { return memory.values[storage.values ? k : k % 2]; }
  double* arrival_form(int k) const { return memory.arrivals[storage.values ? k : k % 2]; }
  ArrivalFactors& factors(int k) { return memory.factors[storage.arrival_factors ? k : 0]; }
  double* dx(int k) const { return memory.solution_dx + static_cast<std::size_t>(k) * dimensions.ndx(); }
  double* du(int k) const { return memory.solution_du + static_cast<std::size_t>(k) * dimensions.nu; }
  /// Condenses step k unless that was done since it was set: here, not there, as a sweep needs it near
  /// anyway.
  void condense(int k);
  /// What is known of the input of step k and the cost of knot k.
  Outcome input_state(int k) const;

  /// (dq, dv, dtheta) to the rows [v, q, theta] of the internal order; padding and "1" are left alone.
  void to_internal(const double* dense, double* internal) const;
  void from_internal(const double* internal, double* dense) const;
  /// Internal index of entry i of (dq, dv, dtheta).
  int internal_index(int i) const;
  void form_from_dense(const double* hessian, const double* gradient, double* form) const;
  void dense_from_form(const double* form, double* hessian, double* gradient) const;

  /// Stores the solution x of knot k, and du(k) has been set if k < steps; adds to the expected change.
  void record(int k, const double* x);
  /// The linear steps from the internal state x of knot 0; x, x_next: rows of kLargestRow.
  void propagate(double* x, double* x_next);
  Status solution_status() const;

  void require_knot(int k, int last) const;
  void require(bool condition, const char* what) const;

  Dimensions dimensions;
  Storage storage;
  Layout layout;
  const Kernels& kernels;
  Memory memory;
  int steps;
  Outcome prior_state = Outcome::kOk;
  Outcome terminal_state = Outcome::kOk;
  bool has_policy = false;
  bool has_arrivals = false;
  ExpectedChange change{};
};

}  // namespace sweeps
}  // namespace prime_ros
