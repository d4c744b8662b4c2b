// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/full_information.hpp"
#include "prime_ros/window_step.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/spatial/explog.hpp>
#include <pinocchio/spatial/se3.hpp>
#include <stdexcept>

namespace prime_ros {
namespace pin = pinocchio;

namespace {

constexpr double kSufficient = 1e-4;  ///< share of the predicted decrease of the merit that a step must reach
constexpr double kPenaltyShare = 0.3;     ///< share of the defects' penalty kept as predicted decrease
constexpr double kNoGap = 1e-12;          ///< sum of defects that counts as none
constexpr double kNoStep = 1e-16;         ///< squared norm of a control step that tells nothing
constexpr double kCurvatureChange = 2.0;  ///< largest factor of the curvature of a knot per iteration
constexpr double kCurvatureMax = 1e3;
constexpr int kHalvings = 6;
constexpr double kDampingStart = 1e-2, kDampingMin = 1e-6;

// Scale of the proximal term: a step of this size in every state costs damping / 2 per knot.
constexpr double kDampedConfiguration = 0.01, kDampedVelocity = 0.5, kDampedParameter = 0.1;

void check(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument("GaussNewton: " + message);
}

std::string sizes(Eigen::Index got, Eigen::Index expected) {
  return std::to_string(got) + ", expected " + std::to_string(expected);
}

void checkSize(const MatrixXd& matrix, Eigen::Index rows, Eigen::Index columns, const std::string& name) {
  check(matrix.rows() == rows && matrix.cols() == columns,
        name + " is " + std::to_string(matrix.rows()) + " x " + std::to_string(matrix.cols()) +
            ", expected " + std::to_string(rows) + " x " + std::to_string(columns));
  for (Eigen::Index k = 0; k < columns; ++k)
    check(matrix.col(k).allFinite(), name + " of knot " + std::to_string(k) + " is not finite");
}

void checkControlWeight(const MatrixXd& weight) {
  for (Eigen::Index k = 0; k + 1 < weight.cols(); ++k)
    check(weight.col(k).minCoeff() > 0.0, "control weight of knot " + std::to_string(k) + " is not positive");
}

void checkProblem(const FullInformationProblem& p) {
  check(p.step != nullptr, "no contact step");
  const auto& y = p.knots;
  const Eigen::Index M = y.size();
  check(M >= 2, "needs at least two knots, got " + std::to_string(M));
  const int nq = p.step->nq(), nv = p.step->nv(), ntheta = p.step->ntheta(),
            nu = nv + 3 * p.step->ncontacts();
  checkSize(p.prior, nq + nv + ntheta, 1, "prior");
  checkSize(p.prior_information, 2 * nv + ntheta, 2 * nv + ntheta, "prior_information");
  checkSize(y.configuration, nq, M, "configuration");
  checkSize(y.configuration_weight, nv, M, "configuration weight");
  checkSize(y.base_time_offset, M, 1, "base time offset");
  checkSize(y.velocity, nv, M, "velocity");
  checkSize(y.velocity_weight, nv, M, "velocity weight");
  checkSize(y.torque, nv - 6, M, "torque");
  checkSize(y.control_weight, nu, M, "control weight");
  checkControlWeight(y.control_weight);
}

}  // namespace

GaussNewton::GaussNewton(FullInformationProblem problem, double cost_tolerance, int threads, int segment)
    : problem_((checkProblem(problem), std::move(problem))), nq_(problem_.step->nq()),
      nv_(problem_.step->nv()), ntheta_(problem_.step->ntheta()), ndx_(2 * nv_ + ntheta_), threads_(threads),
      cost_tolerance_(cost_tolerance), segment_(segment), pool_(*problem_.step),
      sweep_({nv_, ntheta_, nu()}, steps(), segment, {}) {
  Eigen::setNbThreads(1);  // the parallelism is over knots
  if (threads_ <= 0) threads_ = omp_get_max_threads();
  threads_ = std::min(threads_, pool_.size());
  costs_.assign(static_cast<size_t>(threads_), MeasurementCost(nv_));
  const int K = steps();
  auto allocate = [&](Trajectory& t) {
    t.states = MatrixXd::Zero(nx(), K + 1);
    t.controls = MatrixXd::Zero(nu(), K);
    t.v_next = MatrixXd::Zero(nv_, K);
    t.impulses = MatrixXd::Zero(3 * problem_.step->ncontacts(), K);
    t.velocity_gap = t.configuration_gap = MatrixXd::Zero(nv_, K);
  };
  curvature_ = VectorXd::Ones(K);
  last_du_ = MatrixXd::Zero(nu(), K);
  allocate(current_);
  allocate(trial_);
}

void GaussNewton::setTrajectory(const MatrixXd& states, const MatrixXd& controls) {
  check(states.rows() == nx() && states.cols() == steps() + 1,
        "states have " + sizes(states.rows(), nx()) + " rows");
  check(controls.rows() == nu() && controls.cols() == steps(),
        "controls have " + sizes(controls.rows(), nu()) + " rows");
  check(states.allFinite() && controls.allFinite(), "the trajectory is not finite");
  current_.states = states;
  current_.controls = controls;
  current_.v_next = states.middleRows(nq_, nv_).rightCols(steps());
  evaluated_ = false;
}

void GaussNewton::setKappa(double kappa) {
  problem_.step->setKappa(kappa);
  evaluated_ = false;
  damping_ = penalty_ = last_alpha_ = 0.0;
  curvature_.setOnes();
}

void GaussNewton::setWeights(const MatrixXd& configuration, const MatrixXd& velocity,
                             const MatrixXd& control) {
  const Eigen::Index M = problem_.knots.size();
  checkSize(configuration, nv_, M, "configuration weight");
  checkSize(velocity, nv_, M, "velocity weight");
  checkSize(control, nu(), M, "control weight");
  checkControlWeight(control);
  problem_.knots.configuration_weight = configuration;
  problem_.knots.velocity_weight = velocity;
  problem_.knots.control_weight = control;
  evaluated_ = false;
  last_alpha_ = 0.0;
}

VectorXd GaussNewton::gaps() const {
  return current_.velocity_gap.cwiseAbs().colwise().maxCoeff().transpose().cwiseMax(
      current_.configuration_gap.cwiseAbs().colwise().maxCoeff().transpose());
}

VectorXd GaussNewton::tangent(const Eigen::Ref<const VectorXd>& from,
                              const Eigen::Ref<const VectorXd>& to) const {
  VectorXd dx(ndx_);
  pin::difference(problem_.step->model(), from.head(nq_), to.head(nq_), dx.head(nv_));
  dx.tail(nv_ + ntheta_) = to.tail(nv_ + ntheta_) - from.tail(nv_ + ntheta_);
  return dx;
}

void GaussNewton::retract(const Eigen::Ref<const VectorXd>& x, const Eigen::Ref<const VectorXd>& dx,
                          Eigen::Ref<VectorXd> out) const {
  pin::integrate(problem_.step->model(), x.head(nq_), dx.head(nv_), out.head(nq_));
  out.tail(nv_ + ntheta_) = x.tail(nv_ + ntheta_) + dx.tail(nv_ + ntheta_);
}

// Solves step k at the state and control of the trajectory; returns the cost of the knot.
double GaussNewton::evaluateStep(Trajectory& t, int k, ContactStepData& workspace) const {
  const KnotView y = knot(k);
  const auto x = t.states.col(k);
  const auto u = t.controls.col(k);
  VectorXd force = u.head(nv_);
  force.tail(nv_ - 6) += y.torque;
  workspace.v_next = t.v_next.col(k);
  problem_.step->solve(workspace, x.head(nq_), x.segment(nq_, nv_), force,
                       u.tail(3 * problem_.step->ncontacts()), x.tail(ntheta_));
  t.v_next.col(k) = workspace.v_next;
  t.impulses.col(k) = workspace.impulse;
  return 0.5 * u.dot(y.control_weight.cwiseProduct(u));
}

void GaussNewton::evaluate(Trajectory& t) {
  const int K = steps();
  const auto& model = problem_.step->model();
  const double dt = problem_.step->settings().dt;
  VectorXd costs = VectorXd::Zero(K + 1);
  t.newton_worst = t.newton_failures = 0;
  int worst = 0, failures = 0;
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(max : worst) reduction(+ : failures)
  for (int k = 0; k <= K; ++k) {
    const auto x = t.states.col(k);
    auto& cost = costs_[static_cast<size_t>(omp_get_thread_num())];
    costs[k] = cost.value(knot(k), x.head(nq_), x.segment(nq_, nv_));
    if (k == K) continue;
    ContactStepData& workspace = pool_.get();
    costs[k] += evaluateStep(t, k, workspace);
    worst = std::max(worst, workspace.iterations);
    failures += workspace.converged ? 0 : 1;
    const auto next = t.states.col(k + 1);
    t.velocity_gap.col(k) = t.v_next.col(k) - next.segment(nq_, nv_);
    const VectorXd shifted = pin::integrate(model, x.head(nq_), dt * next.segment(nq_, nv_));
    pin::difference(model, next.head(nq_), shifted, t.configuration_gap.col(k));
  }
  t.newton_worst = worst;
  t.newton_failures = failures;
  summarise(t, costs);
}

void GaussNewton::summarise(Trajectory& t, const VectorXd& costs) const {
  t.cost = costs.sum() + arrivalCost(t);
  t.gap_l1 = t.velocity_gap.lpNorm<1>() + t.configuration_gap.lpNorm<1>();
  t.gap_max =
      std::max(t.velocity_gap.lpNorm<Eigen::Infinity>(), t.configuration_gap.lpNorm<Eigen::Infinity>());
  t.finite = std::isfinite(t.cost) && std::isfinite(t.gap_l1) && t.states.allFinite();
}

double GaussNewton::arrivalCost(const Trajectory& t) const {
  const VectorXd dx = tangent(problem_.prior, t.states.col(0));
  return 0.5 * dx.dot(problem_.prior_information * dx);
}

void GaussNewton::setArrival(sweeps::SegmentedSweep& sweep) {
  const VectorXd dx = tangent(problem_.prior, current_.states.col(0));
  MatrixXd jacobian = MatrixXd::Identity(ndx_, ndx_);
  pin::dDifference(problem_.step->model(), problem_.prior.head(nq_), current_.states.col(0).head(nq_),
                   jacobian.topLeftCorner(nv_, nv_), pin::ARG1);
  const MatrixXd hessian = jacobian.transpose() * problem_.prior_information * jacobian;
  const VectorXd gradient = jacobian.transpose() * (problem_.prior_information * dx);
  sweep.set_arrival(hessian.data(), gradient.data());
}

sweeps::SegmentedSweep::Linearise GaussNewton::linearisation(double damping, VectorXd curvature) {
  return [this, damping, curvature = std::move(curvature)](sweeps::Sweep& sweep, sweeps::Segment segment) {
    linearise(sweep, segment, damping, curvature);
  };
}

void GaussNewton::linearise(sweeps::Sweep& sweep, sweeps::Segment segment, double damping,
                            const VectorXd& curvature) {
  const int K = steps();
  const double dt = problem_.step->settings().dt;
  const VectorXd nothing = VectorXd::Zero(ndx_);
#pragma omp parallel num_threads(threads_)
  {
    auto& cost = costs_[static_cast<size_t>(omp_get_thread_num())];
    ContactStepData& workspace = pool_.get();
    StepLinearisation linearisation(nv_, nu(), ntheta_);
    VectorXd luu(nu()), lu(nu()), gradient(ndx_), diagonal(ndx_);
#pragma omp for schedule(static)
    for (int k = segment.first; k <= segment.last; ++k) {
      const int local = k - segment.first;
      if (k == segment.last && k < K) {  // the segment that begins here has the cost of this knot
        sweep.set_cost(local, nothing.data(), nullptr, nothing.data());
        continue;
      }
      const KnotView y = knot(k);
      const auto x = current_.states.col(k);
      cost.expand(y, x.head(nq_), x.segment(nq_, nv_));
      gradient << cost.gradient, VectorXd::Zero(ntheta_);
      diagonal << cost.diagonal, VectorXd::Zero(ntheta_);
      diagonal.head(nv_).array() += damping / (kDampedConfiguration * kDampedConfiguration);
      diagonal.segment(nv_, nv_).array() += damping / (kDampedVelocity * kDampedVelocity);
      diagonal.tail(ntheta_).array() += damping / (kDampedParameter * kDampedParameter * K);
      sweep.set_cost(local, diagonal.data(), cost.base_block.data(), gradient.data());
      if (k == K) continue;
      evaluateStep(current_, k, workspace);
      problem_.step->differentiate(workspace, x.head(nq_), x.segment(nq_, nv_));
      lu = y.control_weight.cwiseProduct(current_.controls.col(k));
      luu = y.control_weight * curvature[k];
      linearisation.store(sweep, local, workspace, dt, current_.states.col(k + 1).segment<6>(nq_), luu, lu,
                          current_.velocity_gap.col(k), current_.configuration_gap.col(k));
    }
  }
}

void GaussNewton::shoot(double alpha, Trajectory& trial) {
  const int K = steps();
  for (int k = 0; k <= K; ++k) {
    const Eigen::Map<const VectorXd> dx(sweep_.dx(k), ndx_);
    retract(current_.states.col(k), alpha * dx, trial.states.col(k));
    if (k < K)
      trial.controls.col(k) =
          current_.controls.col(k) + alpha * Eigen::Map<const VectorXd>(sweep_.du(k), nu());
  }
  trial.v_next = trial.states.middleRows(nq_, nv_).rightCols(K);
  evaluate(trial);
}

void GaussNewton::rollOut(double alpha, Trajectory& trial) {
  const int K = steps();
  const auto& model = problem_.step->model();
  const double dt = problem_.step->settings().dt;
  VectorXd dx(ndx_), du(nu()), dv(nv_), costs = VectorXd::Zero(K + 1);
  ContactStepData& workspace = pool_.get();
  trial.newton_worst = trial.newton_failures = 0;
  trial.finite = false;
  retract(current_.states.col(0), alpha * Eigen::Map<const VectorXd>(sweep_.dx(0), ndx_),
          trial.states.col(0));
  for (int k = 0; k <= K; ++k) {
    const auto x = trial.states.col(k);
    costs[k] = costs_[0].value(knot(k), x.head(nq_), x.segment(nq_, nv_));
    if (!std::isfinite(costs[k])) return;
    if (k == K) break;
    dx = tangent(current_.states.col(k), x);
    sweep_.control(k, dx.data(), alpha, dv.data(), du.data());
    trial.controls.col(k) = current_.controls.col(k) + du;
    trial.v_next.col(k) = current_.states.col(k + 1).segment(nq_, nv_) + dv;
    costs[k] += evaluateStep(trial, k, workspace);
    trial.newton_worst = std::max(trial.newton_worst, workspace.iterations);
    trial.newton_failures += workspace.converged ? 0 : 1;
    trial.velocity_gap.col(k) = (1.0 - alpha) * current_.velocity_gap.col(k);
    trial.configuration_gap.col(k) = (1.0 - alpha) * current_.configuration_gap.col(k);
    auto next = trial.states.col(k + 1);
    next.segment(nq_, nv_) = trial.v_next.col(k) - trial.velocity_gap.col(k);
    const VectorXd shifted = pin::integrate(model, x.head(nq_), dt * next.segment(nq_, nv_));
    pin::integrate(model, shifted, -trial.configuration_gap.col(k), next.head(nq_));
    next.tail(ntheta_) = x.tail(ntheta_);
  }
  summarise(trial, costs);
}

double GaussNewton::merit(const Trajectory& t) const {
  return t.cost + penalty_ * t.gap_l1;
}

bool GaussNewton::tryStep(Candidate candidate, double alpha, double predicted, IterationReport& report) {
  candidate == Candidate::kRollOut ? rollOut(alpha, trial_) : shoot(alpha, trial_);
  if (!trial_.finite) return false;
  const double rounding = 1e-13 * std::abs(merit(current_));
  if (merit(current_) - merit(trial_) < kSufficient * predicted - rounding) return false;
  accept(candidate, alpha, report);
  return true;
}

void GaussNewton::accept(Candidate candidate, double alpha, IterationReport& report) const {
  report.accepted = true;
  report.step_length = alpha;
  report.rolled_out = candidate == Candidate::kRollOut;
}

// Near the optimum a full rollout changes the cost by less than the tolerance and leaves no defect at all.
bool GaussNewton::tryToClose(IterationReport& report) {
  const double tolerance = cost_tolerance_ * current_.cost;
  if (std::abs(report.expected) > tolerance) return false;
  rollOut(1.0, trial_);
  if (!trial_.finite || std::abs(trial_.cost - current_.cost) > tolerance) return false;
  accept(Candidate::kRollOut, 1.0, report);
  return true;
}

// The penalty makes the step a direction of descent of the merit (Nocedal and Wright, Numerical
// Optimization, 18.3).
bool GaussNewton::search(const sweeps::ExpectedChange& model, IterationReport& report) {
  report.expected = -(model.linear + 0.5 * model.quadratic);
  if (tryToClose(report)) return true;
  if (current_.gap_l1 > kNoGap)
    penalty_ = std::max(penalty_, -report.expected / ((1.0 - kPenaltyShare) * current_.gap_l1));
  for (const auto candidate : {Candidate::kShoot, Candidate::kRollOut}) {
    double alpha = 1.0;
    for (int halving = 0; halving < kHalvings; ++halving, alpha *= 0.5) {
      const double predicted =
          -alpha * (model.linear + 0.5 * alpha * model.quadratic) + alpha * penalty_ * current_.gap_l1;
      if (tryStep(candidate, alpha, predicted, report)) return true;
    }
  }
  return false;
}

// Where a foot is about to land, the curvature of the dynamics, which Gauss-Newton leaves out, makes single
// knots overshoot or lag, iteration after iteration. The part of the last control step that is left over
// tells by how much: with h the true curvature over the modelled one, a step alpha du leaves (1 - alpha h)
// du.
void GaussNewton::adaptCurvature() {
  if (last_alpha_ == 0.0) return;
  for (int k = 0; k < steps(); ++k) {
    const Eigen::Map<const VectorXd> step(sweep_.du(k), nu());
    const auto weight = problem_.knots.control_weight.col(k);
    const auto last = last_du_.col(k);
    const double norm = last.dot(weight.cwiseProduct(last));
    if (!(norm > kNoStep)) continue;
    const double left = step.dot(weight.cwiseProduct(last)) / norm;
    const double ratio = std::clamp((1.0 - left) / last_alpha_, 1.0 / kCurvatureChange, kCurvatureChange);
    curvature_[k] = std::clamp(curvature_[k] * ratio, 1.0, kCurvatureMax);
  }
}

void GaussNewton::rememberStep(double alpha) {
  last_alpha_ = alpha;
  if (alpha == 0.0) return;
  for (int k = 0; k < steps(); ++k) last_du_.col(k) = Eigen::Map<const VectorXd>(sweep_.du(k), nu());
}

IterationReport GaussNewton::evaluate() {
  if (!evaluated_) evaluate(current_);
  evaluated_ = true;
  IterationReport report;
  report.cost = current_.cost;
  report.largest_gap = current_.gap_max;
  report.newton_worst = current_.newton_worst;
  report.newton_failures = current_.newton_failures;
  return report;
}

IterationReport GaussNewton::iterate() {
  const double cost_before = evaluate().cost;
  check(current_.finite, "the cost of the start is not finite");
  IterationReport report;
  setArrival(sweep_);
  if (sweep_.solve(linearisation(damping_, curvature_))) {
    adaptCurvature();
    search(sweep_.expected_change(), report);
    rememberStep(report.step_length);
  }
  if (report.accepted) {
    std::swap(current_, trial_);
    damping_ = damping_ > kDampingMin ? 0.1 * damping_ : 0.0;
  } else {
    damping_ = std::max(kDampingStart, 10.0 * damping_);
  }
  const IterationReport judged = evaluate();
  report.cost = judged.cost;
  report.largest_gap = judged.largest_gap;
  report.newton_worst = judged.newton_worst;
  report.newton_failures = judged.newton_failures;
  report.relative_change = std::abs(cost_before - report.cost) / std::max(1.0, report.cost);
  report.damping = damping_;
  return report;
}

MatrixXd GaussNewton::residuals() const {
  MeasurementCost cost(nv_);
  MatrixXd out(2 * nv_, steps() + 1);
  for (int k = 0; k <= steps(); ++k) {
    cost.value(knot(k), current_.states.col(k).head(nq_), current_.states.col(k).segment(nq_, nv_));
    out.col(k) = cost.residual;
  }
  return out;
}

}  // namespace prime_ros
