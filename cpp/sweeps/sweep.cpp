// SPDX-License-Identifier: Apache-2.0
#include "sweep.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "chain.hpp"
#include "data.hpp"
#include "finite.hpp"

namespace prime_ros {
namespace sweeps {
namespace {

void check(bool valid, const std::string& message) {
  if (!valid) throw std::invalid_argument("sweep: " + message);
}

/// A form is finite if its diagonal and gradient are: whatever is not spreads to them through the products.
Outcome check_form(const Layout& s, const double* form) {
  FiniteCheck finite;
  for (int i = 0; i < s.rows; ++i) {
    finite.add(form + i * s.columns + i, 1);
    finite.add(form + i * s.columns + s.one, 1);
  }
  return finite.outcome();
}

}  // namespace

Sweep::Data::Data(const Dimensions& dimensions, int step_count, const Storage& storage)
    : dimensions(dimensions), storage(storage), layout(make_layout(dimensions)), kernels(active_kernels()),
      memory(layout, step_count, storage), steps(step_count) {}

void Sweep::Data::require_knot(int k, int last) const {
  if (k < 0 || k > last) {
    throw std::out_of_range("sweep: got knot " + std::to_string(k) + ", expected 0 to " +
                            std::to_string(last));
  }
}

void Sweep::Data::require(bool condition, const char* what) const {
  if (!condition) throw std::logic_error(std::string("sweep: ") + what);
}

void Sweep::Data::condense(int k) {
  StepData& step = memory.steps[k];
  if (!step.condensed) kernels.condense(layout, step);
  step.condensed = true;
}

Outcome Sweep::Data::input_state(int k) const {
  const StepData& step = memory.steps[k];
  for (Outcome state : {memory.costs[k].state, step.model_state, step.cost_state}) {
    if (state != Outcome::kOk) return state;
  }
  return Outcome::kOk;
}

void Sweep::Data::record(int k, const double* x) {
  from_internal(x, dx(k));
  add_knot_change(layout, memory.costs[k], x, change);
  if (k < steps) add_control_change(layout, memory.steps[k], du(k), change);
}

void Sweep::Data::propagate(double* x, double* x_next) {
  double buffer[kLargestBuffer];
  for (int k = 0; k < steps; ++k) {
    const StepData& step = memory.steps[k];
    kernels.evaluate_policy(layout, step, x, x_next, du(k), buffer);
    advance(layout, step, x, x_next);
    record(k, x);
    std::swap(x, x_next);
  }
  record(steps, x);
}

Status Sweep::Data::solution_status() const {
  for (int k = 0; k <= steps; ++k) {
    FiniteCheck finite;
    finite.add(dx(k), dimensions.ndx());
    if (k < steps) finite.add(du(k), dimensions.nu);
    if (finite.outcome() != Outcome::kOk) return {finite.outcome(), k};
  }
  return {};
}

Sweep::Sweep(Dimensions dimensions, int steps, Storage storage) {
  const Dimensions& d = dimensions;
  check(d.nv >= kBase, "nv is " + std::to_string(d.nv) + ", expected at least 6");
  check(d.nt >= 0, "nt is " + std::to_string(d.nt) + ", expected at least 0");
  check(d.nu >= 1, "nu is " + std::to_string(d.nu) + ", expected at least 1");
  check(d.ndx() + d.nu <= kLargestSize, "ndx + nu exceeds " + std::to_string(kLargestSize));
  check(steps >= 1, "steps is " + std::to_string(steps) + ", expected at least 1");
  data_ = std::make_unique<Data>(dimensions, steps, storage);
}

Sweep::~Sweep() = default;
Sweep::Sweep(Sweep&&) noexcept = default;
Sweep& Sweep::operator=(Sweep&&) noexcept = default;

const Dimensions& Sweep::dimensions() const {
  return data_->dimensions;
}
int Sweep::steps() const {
  return data_->steps;
}
std::size_t Sweep::memory() const {
  return data_->memory.bytes();
}

void Sweep::set_steps(int steps) {
  const int allocated = static_cast<int>(data_->memory.steps.size());
  check(steps >= 1 && steps <= allocated,
        "steps is " + std::to_string(steps) + ", expected 1 to " + std::to_string(allocated));
  data_->steps = steps;
  data_->has_policy = data_->has_arrivals = false;
}

Status Sweep::backward() {
  Data& d = *data_;
  d.has_policy = false;
  if (d.terminal_state != Outcome::kOk) return {d.terminal_state, d.steps};
  double* last = d.value_form(d.steps);
  std::copy_n(d.memory.terminal, d.form_size(), last);
  d.kernels.add_cost(d.layout, d.memory.costs[d.steps], last);
  if (d.memory.costs[d.steps].state != Outcome::kOk) return {d.memory.costs[d.steps].state, d.steps};
  for (int k = d.steps - 1; k >= 0; --k) {
    d.condense(k);
    Outcome outcome = d.input_state(k);
    if (outcome == Outcome::kOk) {
      outcome = d.kernels.backward_step(d.layout, d.memory.steps[k], d.memory.costs[k], d.value_form(k + 1),
                                        d.value_form(k), d.memory.workspace);
    }
    if (outcome == Outcome::kOk) outcome = check_form(d.layout, d.value_form(k));
    if (outcome != Outcome::kOk) return {outcome, k};
  }
  d.has_policy = true;
  return {};
}

Status Sweep::solve() {
  Data& d = *data_;
  d.require(d.has_policy, "solve() needs a successful backward()");
  const Layout& s = d.layout;
  if (d.prior_state != Outcome::kOk) return {d.prior_state, 0};
  double* form = d.memory.workspace.form;
  for (std::size_t i = 0; i < d.form_size(); ++i) form[i] = d.value_form(0)[i] + d.memory.prior[i];
  double rows[2][kLargestRow] = {};
  const Outcome outcome = d.kernels.minimise(s, form, rows[0], d.memory.workspace.inverse_pivot);
  if (outcome != Outcome::kOk) return {outcome, 0};
  d.change = {};
  add_prior_change(s, d.memory.prior, rows[0], d.change);
  d.propagate(rows[0], rows[1]);
  return d.solution_status();
}

Status Sweep::solve_from(const double* dx_0) {
  Data& d = *data_;
  d.require(d.has_policy, "solve_from() needs a successful backward()");
  double rows[2][kLargestRow] = {};
  d.to_internal(dx_0, rows[0]);
  rows[0][d.layout.one] = 1;
  d.change = {};
  d.propagate(rows[0], rows[1]);
  return d.solution_status();
}

Status Sweep::forward() {
  Data& d = *data_;
  d.has_arrivals = false;
  if (d.prior_state != Outcome::kOk) return {d.prior_state, 0};
  std::copy_n(d.memory.prior, d.form_size(), d.arrival_form(0));
  for (int k = 0; k < d.steps; ++k) {
    ArrivalFactors& factors = d.factors(k);
    d.condense(k);
    Outcome outcome = d.input_state(k);
    if (outcome == Outcome::kOk) outcome = invert_transition(d.layout, d.memory.steps[k], factors);
    if (outcome == Outcome::kOk) {
      outcome = d.kernels.forward_step(d.layout, d.memory.steps[k], d.memory.costs[k], d.arrival_form(k),
                                       d.arrival_form(k + 1), factors, d.memory.workspace);
    }
    if (outcome == Outcome::kOk) outcome = check_form(d.layout, d.arrival_form(k + 1));
    if (outcome != Outcome::kOk) return {outcome, k};
  }
  d.has_arrivals = true;
  return {};
}

Status Sweep::solve_from_arrival() {
  Data& d = *data_;
  d.require(d.has_arrivals && d.storage.arrival_factors,
            "solve_from_arrival() needs a successful forward() and Storage::arrival_factors");
  const Layout& s = d.layout;
  const CostData& last = d.memory.costs[d.steps];
  if (last.state != Outcome::kOk) return {last.state, d.steps};
  double* form = d.memory.workspace.form;
  std::copy_n(d.arrival_form(d.steps), d.form_size(), form);
  d.kernels.add_cost(s, last, form);
  double rows[2][kLargestRow] = {}, buffer[kLargestBuffer];
  double *x = rows[0], *x_next = rows[1];
  const Outcome outcome = d.kernels.minimise(s, form, x_next, d.memory.workspace.inverse_pivot);
  if (outcome != Outcome::kOk) return {outcome, d.steps};
  d.change = {};
  for (int k = d.steps - 1; k >= 0; --k) {
    d.record(k + 1, x_next);
    d.kernels.evaluate_arrival(s, d.memory.steps[k], d.factors(k), x_next, x, d.du(k), buffer);
    std::swap(x, x_next);
  }
  d.record(0, x_next);
  add_prior_change(s, d.memory.prior, x_next, d.change);
  return d.solution_status();
}

const double* Sweep::dx(int k) const {
  data_->require_knot(k, data_->steps);
  return data_->dx(k);
}

const double* Sweep::du(int k) const {
  data_->require_knot(k, data_->steps - 1);
  return data_->du(k);
}

ExpectedChange Sweep::expected_change() const {
  return data_->change;
}

void Sweep::control(int k, const double* dx, double alpha, double* dv_next, double* du) const {
  const Data& d = *data_;
  d.require_knot(k, d.steps - 1);
  d.require(d.has_policy, "control() needs a successful backward()");
  double x[kLargestRow], v[kLargestRow], u[kLargestRow], buffer[kLargestBuffer];
  std::fill_n(x, d.layout.columns, 0.0);
  std::fill_n(v, d.layout.columns, 0.0);
  d.to_internal(dx, x);
  x[d.layout.one] = alpha;
  d.kernels.evaluate_policy(d.layout, d.memory.steps[k], x, v, u, buffer);
  if (dv_next) std::copy_n(v, d.layout.nv, dv_next);
  if (du) std::copy_n(u, d.layout.nu, du);
}
}  // namespace sweeps
}  // namespace prime_ros
