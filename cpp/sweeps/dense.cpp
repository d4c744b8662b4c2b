// SPDX-License-Identifier: Apache-2.0
//
// Dense views of a sweep: not hot, written for clarity.
#include <algorithm>
#include <vector>

#include "data.hpp"

namespace prime_ros {
namespace sweeps {
namespace {

/// M = diag(1 / luu) B', of one control.
double weighted_column(const Layout& s, const StepData& step, int control, const double* v) {
  double total = 0;
  for (int i = 0; i < s.nv; ++i) total += step.B[control * s.square + i] * v[i];
  return step.inverse_root[control] * total;
}

}  // namespace

int Sweep::Data::internal_index(int i) const {
  const Layout& s = layout;
  if (i < s.nv) return s.n + i;
  if (i < 2 * s.nv) return i - s.nv;
  return 2 * s.n + i - 2 * s.nv;
}

void Sweep::Data::to_internal(const double* dense, double* internal) const {
  const Layout& s = layout;
  std::copy_n(dense, s.nv, internal + s.n);
  std::copy_n(dense + s.nv, s.nv, internal);
  std::copy_n(dense + 2 * s.nv, s.nt, internal + 2 * s.n);
}

void Sweep::Data::from_internal(const double* internal, double* dense) const {
  const Layout& s = layout;
  std::copy_n(internal + s.n, s.nv, dense);
  std::copy_n(internal, s.nv, dense + s.nv);
  std::copy_n(internal + 2 * s.n, s.nt, dense + 2 * s.nv);
}

void Sweep::Data::form_from_dense(const double* hessian, const double* gradient, double* form) const {
  const int ndx = dimensions.ndx();
  std::fill_n(form, form_size(), 0.0);
  for (int j = 0; j < ndx; ++j) {
    for (int i = j; i < ndx; ++i) {
      const auto ends = std::minmax({internal_index(i), internal_index(j)});
      form[ends.first * layout.columns + ends.second] = hessian[j * ndx + i];
    }
    form[internal_index(j) * layout.columns + layout.one] = gradient[j];
  }
}

void Sweep::Data::dense_from_form(const double* form, double* hessian, double* gradient) const {
  const int ndx = dimensions.ndx();
  for (int j = 0; j < ndx; ++j) {
    for (int i = j; i < ndx; ++i) {
      const auto ends = std::minmax({internal_index(i), internal_index(j)});
      hessian[j * ndx + i] = hessian[i * ndx + j] = form[ends.first * layout.columns + ends.second];
    }
    if (gradient) gradient[j] = form[internal_index(j) * layout.columns + layout.one];
  }
}

void Sweep::value(int k, double* hessian, double* gradient) const {
  data_->require_knot(k, data_->steps);
  data_->require(data_->has_policy, "value() needs a successful backward()");
  data_->require(data_->storage.values || k == 0, "value() of knots other than 0 needs Storage::values");
  data_->dense_from_form(data_->value_form(k), hessian, gradient);
}

void Sweep::arrival(int k, bool with_cost, double* hessian, double* gradient) const {
  const Data& d = *data_;
  d.require_knot(k, d.steps);
  d.require(d.has_arrivals, "arrival() needs a successful forward()");
  d.require(d.storage.values || k == d.steps, "arrival() of knots other than the last needs Storage::values");
  std::vector<double> form(d.arrival_form(k), d.arrival_form(k) + d.form_size());
  if (with_cost) d.kernels.add_cost(d.layout, d.memory.costs[k], form.data());
  d.dense_from_form(form.data(), hessian, gradient);
}

Status Sweep::covariance(int k, double* covariance) const {
  const Data& d = *data_;
  d.require_knot(k, d.steps);
  d.require(d.has_policy && d.has_arrivals && d.storage.values,
            "covariance() needs a successful backward() and forward(), and Storage::values");
  std::vector<double> form(d.form_size()), root(d.form_size()), inverse(d.form_size()), pivots(d.layout.rows);
  for (std::size_t i = 0; i < form.size(); ++i) form[i] = d.value_form(k)[i] + d.arrival_form(k)[i];
  const Outcome outcome = d.kernels.invert(d.layout, form.data(), root.data(), inverse.data(), pivots.data());
  if (outcome != Outcome::kOk) return {outcome, k};
  d.dense_from_form(inverse.data(), covariance, nullptr);
  return {};
}

void Sweep::policy(int k, double* gain, double* feedforward) const {
  const Dimensions& sizes = data_->dimensions;
  std::vector<double> x(sizes.ndx(), 0.0);
  control(k, x.data(), 1, nullptr, feedforward);
  for (int j = 0; j < sizes.ndx(); ++j) {
    x[j] = 1;
    control(k, x.data(), 0, nullptr, gain + j * sizes.nu);
    x[j] = 0;
  }
}

void Sweep::control_covariance(int k, double* covariance) const {
  const Data& d = *data_;
  const Layout& s = d.layout;
  d.require_knot(k, d.steps - 1);
  d.require(d.has_policy, "control_covariance() needs a successful backward()");
  const StepData& step = d.memory.steps[k];
  std::vector<double> TB(s.nu *
                         s.nv);  // T B diag(1 / luu), one row per control; Quu^-1 = diag(1 / luu) - (TB)'(TB)
  for (int a = 0; a < s.nu; ++a) {
    for (int i = 0; i < s.nv; ++i) {
      const double* T = step.policy + i * (s.columns + s.square) + s.columns;
      TB[a * s.nv + i] = weighted_column(s, step, a, T);
    }
  }
  for (int a = 0; a < s.nu; ++a) {
    for (int b = 0; b < s.nu; ++b) {
      double total = a == b ? step.inverse_root[a] * step.inverse_root[a] : 0;
      for (int i = 0; i < s.nv; ++i) total -= TB[a * s.nv + i] * TB[b * s.nv + i];
      covariance[b * s.nu + a] = total;
    }
  }
}

}  // namespace sweeps
}  // namespace prime_ros
