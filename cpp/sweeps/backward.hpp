// SPDX-License-Identifier: Apache-2.0
//
// The backward recursion of sweep.hpp, in its symbols. Included once per instruction set.
#pragma once

#include "cholesky.hpp"
#include "common.hpp"
#include "substitution.hpp"

namespace prime_ros {
namespace sweeps {
namespace {

/// Moves R from the panel [R X] to `R` (ldr), its lower triangle zero, and R' to `L`; leaves [0 X].
inline void extract_factor(const Layout& s, double* panel, double* R, int ldr, double* L) {
  for (int i = 0; i < s.n; ++i) {
    fill(R + i * ldr, 0, i);
    copy(panel + i * s.columns + i, R + i * ldr + i, s.n - i);
    fill(panel + i * s.columns, 0, s.n);
  }
  transpose(R, ldr, L, s.square, s.n);
}

/// Z = R A + [0 X] and Phi = I + R S R', with L = R'.
inline void condition_on_step(const Layout& s, const StepData& step, const Workspace& w, double* Z, int ldz) {
  Tile t;
  double* SL = w.E;
  for (int i = 0; i < s.n; i += kRowTile) {
    for (int j = 0; j < s.columns; j += kStrip) {
      load(t, w.panel + i * s.columns + j, s.columns);
      add_product<1>(t, w.L + i, s.square, step.A + j, s.columns, i, s.n);
      store(t, Z + i * ldz + j, ldz);
    }
    for (int j = 0; j < s.n; j += kStrip) {
      clear(t);
      add_product<1>(t, step.S + i, s.square, w.L + j, s.square, j, s.n);
      store(t, SL + i * s.square + j, s.square);
    }
  }
  for (int i = 0; i < s.n; i += kRowTile) {
    for (int j = strip_of(i); j < s.n; j += kStrip) {
      clear(t);
      add_product<1>(t, w.L + i, s.square, SL + j, s.square, i, s.n);
      store(t, w.Phi + i * s.square + j, s.square);
    }
  }
  for (int i = 0; i < s.n; ++i) w.Phi[i * s.square + i] += 1;
}

inline Outcome backward_step(const Layout& s, const StepData& step, const CostData& cost, const double* next,
                             double* value, const Workspace& w) {
  const int ldz = s.columns + s.square;
  double* Z = step.policy;
  double* T = step.policy + s.columns;
  substitute(s, next, Transition{step.Jq, step.Jv, step.dt, step.fq}, w.panel, value, w);
  Outcome outcome = partial_cholesky({w.panel, s.columns, s.columns}, {nullptr, 0, 0}, s.n, s.nv,
                                     Pivoting::kSemidefinite, w.inverse_pivot);
  if (outcome != Outcome::kOk) return outcome;
  extract_factor(s, w.panel, T, ldz, w.L);
  condition_on_step(s, step, w, Z, ldz);
  outcome = partial_cholesky({w.Phi, s.square, s.square}, {Z, ldz, ldz}, s.n, s.nv, Pivoting::kDefinite,
                             w.inverse_pivot);
  if (outcome != Outcome::kOk) return outcome;
  complete(s, w.panel, Z, ldz, value);
  add_cost(s, cost, value);
  return Outcome::kOk;
}

inline void evaluate_policy(const Layout& s, const StepData& step, const double* x, double* dv_next,
                            double* du, double* buffer) {
  double *z = buffer, *mu = buffer + s.square;
  const int ldz = s.columns + s.square;
  multiply(s, step.policy, ldz, x, s.columns, z);
  multiply_transposed(s, step.policy + s.columns, ldz, z, mu);
  multiply(s, step.A, s.columns, x, s.columns, dv_next);
  control_from_multiplier(s, step, mu, x[s.one], dv_next, du);
}

}  // namespace
}  // namespace sweeps
}  // namespace prime_ros
