// SPDX-License-Identifier: Apache-2.0
//
// The forward recursion of sweep.hpp, in its symbols. Included once per instruction set.
#pragma once

#include "cholesky.hpp"
#include "common.hpp"
#include "substitution.hpp"

namespace prime_ros {
namespace sweeps {
namespace {

/// [R X] and T of the arrival form of a knot, its cost included; the form keeps its rows y.
inline Outcome factor_arrival(const Layout& s, const StepData& step, double* form,
                              const ArrivalFactors& factors) {
  copy(form, factors.RX, s.n * s.columns);
  transpose(step.A, s.columns, factors.T, s.square, s.n);
  return partial_cholesky({factors.RX, s.columns, s.columns}, {factors.T, s.square, s.square}, s.n, s.nv,
                          Pivoting::kDefinite, factors.inverse_pivot);
}

/// Sigma = S + T'T in w.Phi and Z = [-I, Ay - T'X].
inline void predict(const Layout& s, const StepData& step, const ArrivalFactors& factors,
                    const Workspace& w) {
  Tile t;
  for (int i = 0; i < s.n; i += kRowTile) {
    for (int j = strip_of(i); j < s.n; j += kStrip) {
      load(t, step.S + i * s.square + j, s.square);
      add_product<1>(t, factors.T + i, s.square, factors.T + j, s.square, 0, s.n);
      store(t, w.Phi + i * s.square + j, s.square);
    }
    for (int j = strip_of(s.n); j < s.columns; j += kStrip) {
      load(t, step.A + i * s.columns + j, s.columns);
      add_product<-1>(t, factors.T + i, s.square, factors.RX + j, s.columns, 0, s.n);
      store(t, factors.Z + i * s.columns + j, s.columns);
    }
  }
  for (int i = 0; i < s.n; ++i) {
    fill(factors.Z + i * s.columns, 0, s.n);
    factors.Z[i * s.columns + i] = -1;
  }
}

inline Outcome forward_step(const Layout& s, const StepData& step, const CostData& cost,
                            const double* arrival, double* next, const ArrivalFactors& factors,
                            const Workspace& w) {
  copy(arrival, w.form, s.rows * s.columns);
  add_cost(s, cost, w.form);
  Outcome outcome = factor_arrival(s, step, w.form, factors);
  if (outcome != Outcome::kOk) return outcome;
  predict(s, step, factors, w);
  outcome = partial_cholesky({w.Phi, s.square, s.square}, {factors.Z, s.columns, s.columns}, s.n, s.nv,
                             Pivoting::kDefinite, w.inverse_pivot);
  if (outcome != Outcome::kOk) return outcome;
  complete(s, factors.RX, factors.Z, s.columns, w.form);
  substitute(s, w.form, Transition{factors.Jq_inverse, factors.Pv, -step.dt, factors.f}, next, next, w);
  return Outcome::kOk;
}

/// q = Jq^-1 (q+ - dt Jv v+ - fq).
inline void previous_configuration(const Layout& s, const ArrivalFactors& factors, double dt,
                                   const double* x_next, double* x) {
  const double *v_next = x_next, *q_next = x_next + s.n;
  for (int i = 0; i < s.n; ++i) x[s.n + i] = q_next[i] - dt * v_next[i] + factors.f[i];
  for (int i = 0; i < kBase; ++i) {
    double total = factors.f[i];
    for (int j = 0; j < kBase; ++j) {
      total += factors.Jq_inverse[i * kBaseStride + j] * q_next[j];
      total -= dt * factors.Pv[i * kBaseStride + j] * v_next[j];
    }
    x[s.n + i] = total;
  }
}

inline void evaluate_arrival(const Layout& s, const StepData& step, const ArrivalFactors& factors,
                             const double* x_next, double* x, double* du, double* buffer) {
  double *z = buffer, *mu = buffer + s.square;
  copy(x_next, x, s.columns);
  previous_configuration(s, factors, step.dt, x_next, x);  // x is now [v+, q, theta, 1]
  multiply(s, factors.Z, s.columns, x, s.columns, z);
  multiply_transposed(s, factors.Z, s.columns, z, mu);  // the columns v+ of Z are -P^-T
  for (int i = 0; i < s.square; ++i) mu[i] = i < s.n ? -mu[i] : 0;
  control_from_multiplier(s, step, mu, x[s.one], nullptr, du);
  fill(x, 0, s.n);
  for (int i = 0; i < s.n; ++i) {
    z[i] = -dot(factors.RX + i * s.columns + strip_of(s.n), x + strip_of(s.n), s.columns - strip_of(s.n)) -
           dot(factors.T + i * s.square, mu, s.square);
  }
  solve_upper(factors.RX, s.columns, factors.inverse_pivot, s.n, z);
  copy(z, x, s.n);
}

}  // namespace
}  // namespace sweeps
}  // namespace prime_ros
