// SPDX-License-Identifier: Apache-2.0
//
// All kernels, and the ends of a chain. Included once per instruction set.
#pragma once

#include "backward.hpp"
#include "forward.hpp"

namespace prime_ros {
namespace sweeps {
namespace {

/// Unit diagonal where a form has padding, so that it can be factored as a whole.
inline void close_padding(const Layout& s, double* form) {
  for (int i = 0; i < s.one; ++i) {
    const bool padding = i < 2 * s.n ? i % s.n >= s.nv : i >= 2 * s.n + s.nt;
    if (padding) form[i * s.columns + i] = 1;
  }
}

inline Outcome minimise(const Layout& s, double* form, double* x, double* inverse_pivot) {
  close_padding(s, form);
  const Outcome outcome = partial_cholesky({form, s.columns, s.columns}, {nullptr, 0, 0}, s.rows, s.one,
                                           Pivoting::kDefinite, inverse_pivot);
  if (outcome != Outcome::kOk) return outcome;
  fill(x, 0, s.columns);
  for (int i = 0; i < s.one; ++i) x[i] = -form[i * s.columns + s.one];
  solve_upper(form, s.columns, inverse_pivot, s.one, x);
  x[s.one] = 1;
  return Outcome::kOk;
}

inline Outcome invert(const Layout& s, double* form, double* root, double* inverse, double* inverse_pivot) {
  close_padding(s, form);
  fill(root, 0, s.rows * s.columns);
  for (int i = 0; i < s.one; ++i) root[i * s.columns + i] = 1;
  const Outcome outcome = partial_cholesky({form, s.columns, s.columns}, {root, s.columns, s.columns}, s.rows,
                                           s.one, Pivoting::kDefinite, inverse_pivot);
  if (outcome != Outcome::kOk) return outcome;
  Tile t;
  for (int i = 0; i < s.rows; i += kRowTile) {
    for (int j = strip_of(i); j < s.columns; j += kStrip) {
      clear(t);
      add_product<1>(t, root + i, s.columns, root + j, s.columns, strip_of(i), s.rows);
      store(t, inverse + i * s.columns + j, s.columns);
    }
  }
  return Outcome::kOk;
}

constexpr Kernels make_kernels(const char* name) {
  return Kernels{name,          &condense,        &add_cost,         &backward_step,
                 &forward_step, &evaluate_policy, &evaluate_arrival, &minimise,
                 &invert};
}

}  // namespace
}  // namespace sweeps
}  // namespace prime_ros
