// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/moving_horizon.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <stdexcept>

namespace prime_ros {
namespace pin = pinocchio;

namespace {

constexpr double kSurprise =
    2.0;  ///< cost of a control, over that of the linear step, beyond which that stays

void check(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument("MovingHorizon: " + message);
}

}  // namespace

MovingHorizon::MovingHorizon(std::shared_ptr<ContactStep> step, int horizon, VectorXd walk)
    : step_((check(step != nullptr, "no contact step"), std::move(step))), nq_(step_->nq()), nv_(step_->nv()),
      ntheta_(step_->ntheta()), ndx_(2 * nv_ + ntheta_), horizon_(horizon), walk_(std::move(walk)),
      cost_(nv_), linearisation_(nv_, nu(), ntheta_), posterior_(nv_, nu(), ntheta_, 3 * step_->ncontacts()),
      window_{sweeps::Sweep({nv_, ntheta_, nu()}, std::max(horizon, 1), {true, true})},
      recent_{sweeps::Sweep({nv_, ntheta_, nu()}, std::max(horizon, 1), {true, true})},
      oldest_({nv_, ntheta_, nu()}, 1) {
  check(horizon >= 1, "horizon is " + std::to_string(horizon) + ", expected at least 1");
  check(walk_.size() == ntheta_,
        "walk has size " + std::to_string(walk_.size()) + ", expected " + std::to_string(ntheta_));
  check(walk_.minCoeff() >= 0.0, "walk is negative");
  for (int k = 0; k <= horizon; ++k) {
    auto each = std::make_unique<Knot>();
    each->y = KnotMeasurement(nv_, nu());
    each->x = VectorXd::Zero(nx());
    each->u = VectorXd::Zero(nu());
    each->v_next = each->velocity_gap = each->configuration_gap = VectorXd::Zero(nv_);
    each->data = std::make_unique<ContactStepData>(*step_);
    knots_.push_back(std::move(each));
  }
  linearised_at_.assign(knots_.size(), VectorXd::Zero(nx()));
  arrival_.hessian = recent_arrival_.hessian = MatrixXd::Zero(ndx_, ndx_);
  arrival_.gradient = recent_arrival_.gradient = VectorXd::Zero(ndx_);
}

VectorXd MovingHorizon::tangent(const VectorXd& from, const VectorXd& to) const {
  VectorXd dx(ndx_);
  pin::difference(step_->model(), from.head(nq_), to.head(nq_), dx.head(nv_));
  dx.tail(nv_ + ntheta_) = to.tail(nv_ + ntheta_) - from.tail(nv_ + ntheta_);
  return dx;
}

void MovingHorizon::retract(VectorXd& x, const Eigen::Ref<const VectorXd>& dx) const {
  const VectorXd q = x.head(nq_);
  pin::integrate(step_->model(), q, dx.head(nv_), x.head(nq_));
  x.tail(nv_ + ntheta_) += dx.tail(nv_ + ntheta_);
}

void MovingHorizon::reset(const VectorXd& mean, const MatrixXd& information, const KnotMeasurement& y,
                          const VectorXd& start) {
  check(mean.size() == nx() && start.size() == nx(), "mean or start has the wrong size");
  check(information.rows() == ndx_ && information.cols() == ndx_, "information has the wrong size");
  check(mean.allFinite() && start.allFinite() && information.allFinite(), "the prior is not finite");
  checkSensors(y);
  arrival_ = {mean, VectorXd::Zero(ndx_), information};
  steps_ = 0;
  forgetSweeps();
  knot(0).y = y;
  knot(0).x = start;
}

void MovingHorizon::append(const KnotMeasurement& y) {
  check(steps_ >= 0, "append before reset");
  check(y.torque.size() == nv_ - 6 && y.control_weight.size() == nu(), "torque or control weight");
  check(y.torque.allFinite() && y.control_weight.allFinite() && y.control_weight.minCoeff() > 0.0,
        "the torque is not finite or a control weight not positive");
  checkSensors(y);
  if (steps_ == horizon()) marginalise();
  Knot& last = knot(steps_);
  last.y.torque = y.torque;
  last.y.control_weight = y.control_weight;
  last.u.setZero();
  last.v_next = last.x.segment(nq_, nv_);
  last.explained = false;
  WindowReport ignored;
  solveStep(steps_, ignored);
  Knot& next = knot(++steps_);
  next.y = y;
  next.x = last.x;
  if (last.v_next.allFinite()) {
    next.x.segment(nq_, nv_) = last.v_next;
    pin::integrate(step_->model(), last.x.head(nq_), step_->settings().dt * last.v_next, next.x.head(nq_));
  }
  forgetSweeps();
}

void MovingHorizon::forgetSweeps() {
  for (Part* part : {&window_, &recent_}) part->forward = part->backward = false;
}

const VectorXd& MovingHorizon::state(int age) const {
  check(age >= 0 && age <= steps_, "no knot of that age");
  return knot(steps_ - age).x;
}

void MovingHorizon::setMeasurement(int age, const KnotMeasurement& y) {
  check(age >= 0 && age <= steps_, "no knot of that age");
  checkSensors(y);
  KnotMeasurement& at = knot(steps_ - age).y;
  at.configuration = y.configuration;
  at.configuration_weight = y.configuration_weight;
  at.base_time_offset = y.base_time_offset;
  at.velocity = y.velocity;
  at.velocity_weight = y.velocity_weight;
  forgetSweeps();
}

void MovingHorizon::setHorizon(int horizon) {
  check(horizon >= 1 && horizon < static_cast<int>(knots_.size()), "horizon out of range");
  while (steps_ > horizon) marginalise();
  horizon_ = horizon;
  forgetSweeps();
}

void MovingHorizon::checkSensors(const KnotMeasurement& y) const {
  check(y.configuration.size() == nq_ && y.velocity.size() == nv_, "size of the measurement");
  check(y.configuration_weight.size() == nv_ && y.velocity_weight.size() == nv_, "size of the weights");
  check(y.configuration.allFinite() && y.velocity.allFinite() && std::isfinite(y.base_time_offset),
        "the measurement is not finite");
  check(y.configuration_weight.allFinite() && y.velocity_weight.allFinite() &&
            y.configuration_weight.minCoeff() >= 0.0 && y.velocity_weight.minCoeff() >= 0.0,
        "a weight is negative or not finite");
}

void MovingHorizon::solveStep(int k, WindowReport& report) {
  Knot& at = knot(k);
  VectorXd force = at.u.head(nv_);
  force.tail(nv_ - 6) += at.y.torque;
  const auto q = at.x.head(nq_), v = at.x.segment(nq_, nv_), theta = at.x.tail(ntheta_);
  const auto slack = at.u.tail(3 * step_->ncontacts());
  if (at.explained) {
    step_->resume(*at.data, q, v, at.v_next, force, slack, theta);
    return;
  }
  at.data->v_next = at.v_next;
  step_->solve(*at.data, q, v, force, slack, theta);
  at.v_next = at.data->v_next;
  report.newton_worst = std::max(report.newton_worst, at.data->iterations);
  report.newton_failures += at.data->converged ? 0 : 1;
}

void MovingHorizon::lineariseStep(int k, WindowReport& report) {
  solveStep(k, report);
  Knot& at = knot(k);
  step_->differentiate(*at.data, at.x.head(nq_), at.x.segment(nq_, nv_));
}

void MovingHorizon::gaps(int k) {
  Knot& at = knot(k);
  const VectorXd& next = knot(k + 1).x;
  at.velocity_gap = at.v_next - next.segment(nq_, nv_);
  const VectorXd shifted =
      pin::integrate(step_->model(), at.x.head(nq_), step_->settings().dt * next.segment(nq_, nv_));
  pin::difference(step_->model(), next.head(nq_), shifted, at.configuration_gap);
}

double MovingHorizon::expandKnot(sweeps::Sweep& sweep, int local, int k) {
  const Knot& at = knot(k);
  const double value = cost_.expand(at.y, at.x.head(nq_), at.x.segment(nq_, nv_));
  VectorXd gradient(ndx_), diagonal(ndx_);
  gradient << cost_.gradient, VectorXd::Zero(ntheta_);
  diagonal << cost_.diagonal, VectorXd::Zero(ntheta_);
  sweep.set_cost(local, diagonal.data(), cost_.base_block.data(), gradient.data());
  return value;
}

void MovingHorizon::storeStep(sweeps::Sweep& sweep, int local, int k) {
  const Knot& at = knot(k);
  const VectorXd gradient = at.y.control_weight.cwiseProduct(at.u);
  linearisation_.store(sweep, local, *at.data, step_->settings().dt, knot(k + 1).x.segment<6>(nq_),
                       at.y.control_weight, gradient, at.velocity_gap, at.configuration_gap);
}

double MovingHorizon::setArrival(sweeps::Sweep& sweep, const Arrival& arrival, int k) const {
  const VectorXd& x = knot(k).x;
  const VectorXd dx = tangent(arrival.reference, x);
  MatrixXd jacobian = MatrixXd::Identity(ndx_, ndx_);
  pin::dDifference(step_->model(), arrival.reference.head(nq_), x.head(nq_), jacobian.topLeftCorner(nv_, nv_),
                   pin::ARG1);
  const MatrixXd hessian = jacobian.transpose() * arrival.hessian * jacobian;
  const VectorXd gradient = jacobian.transpose() * (arrival.hessian * dx + arrival.gradient);
  sweep.set_arrival(hessian.data(), gradient.data());
  return dx.dot(0.5 * arrival.hessian * dx + arrival.gradient);
}

/// Solves and differentiates the steps and sweeps forward, so that the newest knot is known first.
bool MovingHorizon::linearise(Part& part, const Arrival& arrival, WindowReport& report) {
  part.sweep.set_steps(steps_ - part.first);
  part.backward = false;
  report.newton_worst = report.newton_failures = 0;
  report.largest_gap = 0.0;
  report.cost = setArrival(part.sweep, arrival, part.first);
  for (int k = part.first; k <= steps_; ++k) {
    report.cost += expandKnot(part.sweep, k - part.first, k);
    if (k == steps_) break;
    Knot& at = knot(k);
    lineariseStep(k, report);
    gaps(k);
    storeStep(part.sweep, k - part.first, k);
    report.cost += 0.5 * at.u.dot(at.y.control_weight.cwiseProduct(at.u));
    report.largest_gap = std::max({report.largest_gap, at.velocity_gap.lpNorm<Eigen::Infinity>(),
                                   at.configuration_gap.lpNorm<Eigen::Infinity>()});
  }
  part.forward = static_cast<bool>(part.sweep.forward());
  return part.forward;
}

/// Takes the whole step to the minimiser of the linearised problem; controls are found anew, as GaussNewton
/// does, where the linear step left no surprise.
bool MovingHorizon::solve(Part& part) {
  if (!part.sweep.solve_from_arrival()) return false;
  for (int k = part.first; k <= steps_; ++k) {
    const Eigen::Map<const VectorXd> dx(part.sweep.dx(k - part.first), ndx_);
    retract(knot(k).x, dx);
    if (k < steps_) knot(k).u += Eigen::Map<const VectorXd>(part.sweep.du(k - part.first), nu());
  }
  if (part.first > 0) knot(part.first - 1).explained = false;
  for (int k = part.first; k < steps_; ++k) explain(k);
  return true;
}

/// Far from the minimum, where states still contradict each other, forces that explain them are absurd: there
/// the step keeps its linear control, and its defect.
void MovingHorizon::explain(int k) {
  Knot &at = knot(k), &next = knot(k + 1);
  VectorXd force = VectorXd::Zero(nv_), velocity(nv_);
  force.tail(nv_ - 6) = at.y.torque;
  pin::difference(step_->model(), at.x.head(nq_), next.x.head(nq_), velocity);
  velocity /= step_->settings().dt;
  const double linear = 0.5 * at.u.dot(at.y.control_weight.cwiseProduct(at.u));
  const double cost = step_->invert(*at.data, at.x.head(nq_), at.x.segment(nq_, nv_), velocity, force,
                                    at.y.control_weight, at.x.tail(ntheta_));
  at.explained = cost < kSurprise * linear + nu();
  if (at.explained) {
    at.u = at.data->control;
    next.x.segment(nq_, nv_) = velocity;
  }
  at.v_next = next.x.segment(nq_, nv_);
}

WindowReport MovingHorizon::iterate(Part& part, const Arrival& arrival, int iterations) {
  check(steps_ >= 1, "iterate needs two knots");
  WindowReport report;
  for (int i = 0; i < iterations; ++i) {
    if (&part == &window_)
      for (int k = 0; k <= steps_; ++k) linearised_at_[static_cast<size_t>(k)] = knot(k).x;
    report.ok = linearise(part, arrival, report) && solve(part);
    if (!report.ok) break;
  }
  return report;
}

WindowReport MovingHorizon::iterate(int iterations) {
  recent_.forward = recent_.backward = false;
  return iterate(window_, arrival_, iterations);
}

WindowReport MovingHorizon::refine(int steps, int iterations) {
  check(steps >= 1, "refine needs a step");
  if (!window_.forward) return iterate(iterations);
  const int first = std::max(0, steps_ - steps);
  window_.sweep.arrival(first, false, recent_arrival_.hessian.data(), recent_arrival_.gradient.data());
  recent_arrival_.reference = linearised_at_[static_cast<size_t>(first)];
  recent_.first = first;
  return iterate(recent_, recent_arrival_, iterations);
}

WindowEstimate MovingHorizon::estimate(int age) {
  check(age >= 1 && age <= steps_, "no step of that age");
  WindowEstimate out;
  const int k = steps_ - age;
  WindowReport report;
  Part& part = recent_.forward && k >= recent_.first ? recent_ : window_;
  if (!part.forward && !linearise(part, arrival_, report)) return out;
  if (!part.backward) part.backward = static_cast<bool>(part.sweep.backward());
  out.covariance.resize(ndx_, ndx_);
  if (!part.backward || !part.sweep.covariance(k - part.first, out.covariance.data())) return out;
  lineariseStep(k, report);
  const Knot& at = knot(k);
  out.state = at.x;
  out.control = at.u;
  out.impulse = at.data->impulse;
  posterior_.compute(part.sweep, k - part.first, *step_, *at.data, out.covariance);
  out.control_std = posterior_.control_std;
  out.impulse_std = posterior_.impulse_std;
  out.ok = out.covariance.allFinite() && out.impulse_std.allFinite() && out.impulse.allFinite();
  return out;
}

VectorXd MovingHorizon::residual(int age) {
  check(age >= 0 && age <= steps_, "no knot of that age");
  const Knot& at = knot(steps_ - age);
  cost_.value(at.y, at.x.head(nq_), at.x.segment(nq_, nv_));
  return cost_.residual;
}

/// The oldest knot leaves the window: the cost to arrive at the next one, at the smoothed iterate.
void MovingHorizon::marginalise() {
  WindowReport ignored;
  lineariseStep(0, ignored);
  gaps(0);
  setArrival(oldest_, arrival_, 0);
  expandKnot(oldest_, 0, 0);
  storeStep(oldest_, 0, 0);
  const VectorXd nothing = VectorXd::Zero(ndx_);
  oldest_.set_cost(1, nothing.data(), nullptr, nothing.data());
  arrival_.reference = knot(1).x;
  if (oldest_.forward()) {
    oldest_.arrival(1, false, arrival_.hessian.data(), arrival_.gradient.data());
    widen();
  } else {  // nothing usable can be said of what came before: keep the old certainty, about the new knot
    arrival_.gradient.setZero();
  }
  std::rotate(knots_.begin(), knots_.begin() + 1, knots_.begin() + steps_ + 1);
  --steps_;
}

// (H^-1 + E Q E')^-1 = H - H E (Q^-1 + E'H E)^-1 E'H for the parameters with Q > 0; the minimiser stays where
// it is, so the gradient at the reference changes with the Hessian.
void MovingHorizon::widen() {
  std::vector<int> walking;
  for (int i = 0; i < ntheta_; ++i)
    if (walk_[i] > 0.0) walking.push_back(2 * nv_ + i);
  if (walking.empty()) return;
  const auto n = static_cast<Eigen::Index>(walking.size());
  MatrixXd columns(ndx_, n), inner(n, n);
  for (Eigen::Index i = 0; i < n; ++i) columns.col(i) = arrival_.hessian.col(walking[static_cast<size_t>(i)]);
  for (Eigen::Index i = 0; i < n; ++i) {
    inner.row(i) = columns.row(walking[static_cast<size_t>(i)]);
    inner(i, i) += 1.0 / walk_[walking[static_cast<size_t>(i)] - 2 * nv_];
  }
  const Eigen::LLT<MatrixXd> factor(inner);
  if (factor.info() != Eigen::Success) return;
  VectorXd slope(n);
  for (Eigen::Index i = 0; i < n; ++i) slope[i] = arrival_.gradient[walking[static_cast<size_t>(i)]];
  arrival_.gradient -= columns * factor.solve(slope);
  arrival_.hessian -= columns * factor.solve(columns.transpose());
  arrival_.hessian = 0.5 * (arrival_.hessian + arrival_.hessian.transpose()).eval();
}

}  // namespace prime_ros
