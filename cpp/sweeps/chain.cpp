// SPDX-License-Identifier: Apache-2.0
#include "chain.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace prime_ros {
namespace sweeps {
namespace {

/// (6, 6) block of an (8, 8) row-major matrix inverted by Gauss-Jordan with partial pivoting.
Outcome invert_base(const double* M, double* inverse) {
  double work[kBase][2 * kBase];
  for (int i = 0; i < kBase; ++i) {
    for (int j = 0; j < kBase; ++j) {
      work[i][j] = M[i * kBaseStride + j];
      work[i][kBase + j] = i == j;
    }
  }
  for (int p = 0; p < kBase; ++p) {
    int best = p;
    for (int i = p + 1; i < kBase; ++i) best = std::fabs(work[i][p]) > std::fabs(work[best][p]) ? i : best;
    if (work[best][p] == 0) return Outcome::kSingular;
    std::swap(work[p], work[best]);
    const double scale = 1 / work[p][p];
    for (double& entry : work[p]) entry *= scale;
    for (int i = 0; i < kBase; ++i) {
      const double factor = work[i][p];
      for (int j = 0; i != p && j < 2 * kBase; ++j) work[i][j] -= factor * work[p][j];
    }
  }
  for (int i = 0; i < kBaseStride; ++i) {
    for (int j = 0; j < kBaseStride; ++j) {
      inverse[i * kBaseStride + j] = i < kBase && j < kBase ? work[i][kBase + j] : i == j;
    }
  }
  return Outcome::kOk;
}

}  // namespace

Outcome invert_transition(const Layout& s, const StepData& step, ArrivalFactors& factors) {
  const Outcome outcome = invert_base(step.Jq, factors.Jq_inverse);
  for (int i = 0; i < kBaseStride; ++i) {
    for (int j = 0; j < kBaseStride; ++j) {
      double total = 0;
      for (int k = 0; k < kBaseStride; ++k) {
        total += factors.Jq_inverse[i * kBaseStride + k] * step.Jv[k * kBaseStride + j];
      }
      factors.Pv[i * kBaseStride + j] = total;
    }
  }
  for (int i = 0; i < s.n; ++i) factors.f[i] = -step.fq[i];
  for (int i = 0; i < kBase; ++i) {
    factors.f[i] = 0;
    for (int j = 0; j < kBase; ++j) factors.f[i] -= factors.Jq_inverse[i * kBaseStride + j] * step.fq[j];
  }
  return outcome;
}

void advance(const Layout& s, const StepData& step, const double* x, double* x_next) {
  for (int i = 0; i < s.nv; ++i) x_next[s.n + i] = x[s.n + i] + step.dt * x_next[i] + step.fq[i];
  for (int i = 0; i < kBase; ++i) {
    double total = step.fq[i];
    for (int j = 0; j < kBase; ++j) {
      total += step.Jq[i * kBaseStride + j] * x[s.n + j] + step.dt * step.Jv[i * kBaseStride + j] * x_next[j];
    }
    x_next[s.n + i] = total;
  }
  std::copy(x + 2 * s.n, x + s.columns, x_next + 2 * s.n);
}

void add_knot_change(const Layout& s, const CostData& cost, const double* x, ExpectedChange& change) {
  double base[2 * kBase];
  for (int i = 0; i < 2 * kBase; ++i) base[i] = i < kBase ? x[i] : x[s.n + i - kBase];
  for (int i = 0; i < s.one; ++i) {
    change.linear += cost.gradient[i] * x[i];
    change.quadratic += cost.diagonal[i] * x[i] * x[i];
  }
  for (int i = 0; i < 2 * kBase; ++i) {
    for (int j = 0; j < 2 * kBase; ++j) change.quadratic += base[i] * cost.base[i * 2 * kBase + j] * base[j];
  }
}

void add_control_change(const Layout& s, const StepData& step, const double* du, ExpectedChange& change) {
  for (int k = 0; k < s.nu; ++k) {
    change.linear += step.lu[k] * du[k];
    change.quadratic += du[k] * du[k] / (step.inverse_root[k] * step.inverse_root[k]);
  }
}

void add_prior_change(const Layout& s, const double* prior, const double* x, ExpectedChange& change) {
  for (int i = 0; i < s.one; ++i) {
    const double* row = prior + i * s.columns;
    change.linear += row[s.one] * x[i];
    change.quadratic += row[i] * x[i] * x[i];
    for (int j = i + 1; j < s.one; ++j) change.quadratic += 2 * row[j] * x[i] * x[j];
  }
}

}  // namespace sweeps
}  // namespace prime_ros
