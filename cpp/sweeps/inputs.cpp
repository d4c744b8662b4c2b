// SPDX-License-Identifier: Apache-2.0
//
// Input of a sweep: conversion to the internal layout, and the checks that mark a knot.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "data.hpp"
#include "finite.hpp"

namespace prime_ros {
namespace sweeps {
namespace {

void copy_transposed(const double* from, int ld_from, int rows, int columns, double* to, int ld_to) {
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < rows; ++i) to[i * ld_to + j] = from[j * ld_from + i];
  }
}

Outcome check_step(const Layout& s, const StepInput& input) {
  FiniteCheck finite;
  finite.add(&input.dt, 1);
  finite.add(input.Aq, s.nv, s.nv, input.lda);
  finite.add(input.Av, s.nv, s.nv, input.lda);
  finite.add(input.At, s.nv, s.nt, input.lda);
  finite.add(input.B, s.nv, s.nu, input.ldb);
  finite.add(input.c, s.nv);
  finite.add(input.fq, s.nv);
  finite.add(input.Jq6, kBase * kBase);
  finite.add(input.Jv6, kBase * kBase);
  return finite.outcome();
}

Outcome check_quadratic(int ndx, const double* hessian, const double* gradient) {
  FiniteCheck finite;
  finite.add(hessian, ndx * ndx);
  finite.add(gradient, ndx);
  return finite.outcome();
}

void store_model(const Layout& s, const StepInput& input, StepData& step) {
  step.dt = input.dt;
  copy_transposed(input.Av, input.lda, s.nv, s.nv, step.A, s.columns);
  copy_transposed(input.Aq, input.lda, s.nv, s.nv, step.A + s.n, s.columns);
  copy_transposed(input.At, input.lda, s.nv, s.nt, step.A + 2 * s.n, s.columns);
  copy_transposed(input.Jq6, kBase, kBase, kBase, step.Jq, kBaseStride);
  copy_transposed(input.Jv6, kBase, kBase, kBase, step.Jv, kBaseStride);
  for (int i = 0; i < s.nv; ++i) {
    step.c[i] = input.c[i];
    step.fq[i] = input.fq[i];
  }
}

/// Stores luu^-1/2 and lu. A weight that is not positive marks the step and keeps the one before.
void store_control_cost(const Layout& s, const double* luu, const double* lu, StepData& step) {
  FiniteCheck finite;
  finite.add(luu, s.nu);
  finite.add(lu, s.nu);
  step.cost_state = finite.outcome();
  for (int k = 0; k < s.nu; ++k) {
    step.lu[k] = lu[k];
    if (luu[k] > 0 && luu[k] <= DBL_MAX) {
      step.inverse_root[k] = 1 / std::sqrt(luu[k]);
    } else if (step.cost_state == Outcome::kOk) {
      step.cost_state = Outcome::kIndefinite;
    }
  }
}

}  // namespace

void Sweep::set_step(int k, const StepInput& input) {
  data_->require_knot(k, data_->steps - 1);
  const Layout& s = data_->layout;
  StepData& step = data_->memory.steps[k];
  step.model_state = check_step(s, input);
  store_model(s, input, step);
  store_control_cost(s, input.luu, input.lu, step);
  for (int j = 0; j < s.nu; ++j) {
    const double *from = input.B + j * input.ldb, scale = step.inverse_root[j];
    for (int i = 0; i < s.nv; ++i) step.B[j * s.square + i] = scale * from[i];
  }
  step.condensed = false;
}

void Sweep::set_control_cost(int k, const double* luu, const double* lu) {
  data_->require_knot(k, data_->steps - 1);
  const Layout& s = data_->layout;
  StepData& step = data_->memory.steps[k];
  double before[kLargestSize];
  std::copy(step.inverse_root, step.inverse_root + s.nu, before);
  store_control_cost(s, luu, lu, step);
  for (int j = 0; j < s.nu; ++j) {
    const double ratio = step.inverse_root[j] / before[j];
    if (ratio == 1.0) continue;
    for (int i = 0; i < s.nv; ++i) step.B[j * s.square + i] *= ratio;
  }
  step.condensed = false;
}

void Sweep::set_cost(int k, const double* diagonal, const double* base_block, const double* gradient) {
  data_->require_knot(k, data_->steps);
  CostData& cost = data_->memory.costs[k];
  FiniteCheck finite;
  finite.add(diagonal, data_->dimensions.ndx());
  finite.add(gradient, data_->dimensions.ndx());
  if (base_block) finite.add(base_block, 4 * kBase * kBase);
  cost.state = finite.outcome();
  data_->to_internal(diagonal, cost.diagonal);
  data_->to_internal(gradient, cost.gradient);
  constexpr int size = 2 * kBase;
  for (int i = 0; i < size; ++i) {  // (dq, dv) becomes (v, q)
    for (int j = 0; j < size; ++j) {
      const int from = (j + kBase) % size * size + (i + kBase) % size;
      cost.base[i * size + j] = base_block ? base_block[from] : 0;
    }
  }
}

void Sweep::set_arrival(const double* hessian, const double* gradient) {
  data_->prior_state = check_quadratic(data_->dimensions.ndx(), hessian, gradient);
  data_->form_from_dense(hessian, gradient, data_->memory.prior);
}

void Sweep::set_terminal(const double* hessian, const double* gradient) {
  data_->terminal_state = check_quadratic(data_->dimensions.ndx(), hessian, gradient);
  data_->form_from_dense(hessian, gradient, data_->memory.terminal);
}

void Sweep::clear_terminal() {
  data_->terminal_state = Outcome::kOk;
  std::fill_n(data_->memory.terminal, data_->form_size(), 0.0);
}

}  // namespace sweeps
}  // namespace prime_ros
