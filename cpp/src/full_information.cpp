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
constexpr double kExplained = 1e-8;   ///< cost of a knot up to which its controls are found
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

GaussNewton::GaussNewton(FullInformationProblem problem, int threads, int segment)
    : problem_((checkProblem(problem), std::move(problem))), nq_(problem_.step->nq()),
      nv_(problem_.step->nv()), ntheta_(problem_.step->ntheta()), ndx_(2 * nv_ + ntheta_), threads_(threads),
      segment_(segment), pool_(*problem_.step), sweep_({nv_, ntheta_, nu()}, steps(), segment, {}) {
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
  start_ = Start::kMeasured;
}

void GaussNewton::setKappa(double kappa) {
  problem_.step->setKappa(kappa);
  evaluated_ = false;
  if (start_ == Start::kNone) start_ = Start::kOtherSmoothing;
  damping_ = 0.0;
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
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 16) reduction(max : worst) \
    reduction(+ : failures)
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

sweeps::SegmentedSweep::Linearise GaussNewton::linearisation(double damping) {
  return
      [this, damping](sweeps::Sweep& sweep, sweeps::Segment segment) { linearise(sweep, segment, damping); };
}

void GaussNewton::linearise(sweeps::Sweep& sweep, sweeps::Segment segment, double damping) {
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
      luu = y.control_weight;
      linearisation.store(sweep, local, workspace, dt, current_.states.col(k + 1).segment<6>(nq_), luu, lu,
                          current_.velocity_gap.col(k), current_.configuration_gap.col(k));
    }
  }
}

// The step of the sweep in the states; velocities follow from the configurations, so that these never
// contradict each other.
void GaussNewton::move(double alpha, Trajectory& trial) const {
  const auto& model = problem_.step->model();
  const double dt = problem_.step->settings().dt;
  for (int k = 0; k <= steps(); ++k) {
    const Eigen::Map<const VectorXd> dx(sweep_.dx(k), ndx_);
    retract(current_.states.col(k), alpha * dx, trial.states.col(k));
    if (k == 0) continue;
    const auto before = trial.states.col(k - 1).head(nq_), at = trial.states.col(k).head(nq_);
    VectorXd velocity(nv_);
    pin::difference(model, before, at, velocity);
    trial.states.col(k).segment(nq_, nv_) = velocity / dt;
  }
  trial.impulses = current_.impulses;
}

// Finds the controls that the states need: no defect is left, whatever the states.
void GaussNewton::explain(Trajectory& t) {
  const int K = steps();
  VectorXd costs = VectorXd::Zero(K + 1);
  int worst = 0, failures = 0;
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 16) reduction(max : worst) \
    reduction(+ : failures)
  for (int k = 0; k <= K; ++k) {
    const auto x = t.states.col(k);
    auto& cost = costs_[static_cast<size_t>(omp_get_thread_num())];
    costs[k] = cost.value(knot(k), x.head(nq_), x.segment(nq_, nv_));
    if (k == K) continue;
    const KnotView y = knot(k);
    ContactStepData& workspace = pool_.get();
    VectorXd force = VectorXd::Zero(nv_);
    force.tail(nv_ - 6) = y.torque;
    workspace.impulse = t.impulses.col(k);
    costs[k] += problem_.step->invert(workspace, x.head(nq_), x.segment(nq_, nv_),
                                      t.states.col(k + 1).segment(nq_, nv_), force, y.control_weight,
                                      x.tail(ntheta_), kExplained);
    worst = std::max(worst, workspace.iterations);
    failures += workspace.converged ? 0 : 1;
    t.controls.col(k) = workspace.control;
    t.impulses.col(k) = workspace.impulse;
    t.v_next.col(k) = t.states.col(k + 1).segment(nq_, nv_);
  }
  t.explain_worst = worst;
  t.explain_failures = failures;
  t.velocity_gap.setZero();
  t.configuration_gap.setZero();
  summarise(t, costs);
}

// The first step leaves states that contradict each other and have no controls: it is taken as it is.
bool GaussNewton::search(const sweeps::ExpectedChange& model, IterationReport& report) {
  report.expected = -(model.linear + 0.5 * model.quadratic);
  const double rounding = kExplained * steps();
  double alpha = 1.0;
  for (int halving = 0; halving < kHalvings; ++halving, alpha *= 0.5) {
    move(alpha, trial_);
    explain(trial_);
    if (!trial_.finite) continue;
    const double predicted = -alpha * (model.linear + 0.5 * alpha * model.quadratic);
    if (start_ != Start::kMeasured && current_.cost - trial_.cost < kSufficient * predicted - rounding)
      continue;
    report.accepted = true;
    report.step_length = alpha;
    return true;
  }
  return false;
}

IterationReport GaussNewton::evaluate() {
  if (!evaluated_) evaluate(current_);
  evaluated_ = true;
  IterationReport report;
  report.cost = current_.cost;
  report.largest_gap = current_.gap_max;
  report.newton_worst = current_.newton_worst;
  report.newton_failures = current_.newton_failures;
  report.explain_worst = current_.explain_worst;
  report.explain_failures = current_.explain_failures;
  return report;
}

IterationReport GaussNewton::iterate() {
  if (start_ == Start::kOtherSmoothing) {
    explain(current_);
    evaluated_ = false;
    start_ = Start::kNone;
  }
  const double cost_before = evaluate().cost;
  check(current_.finite, "the cost of the start is not finite");
  IterationReport report;
  setArrival(sweep_);
  if (sweep_.solve(linearisation(damping_))) search(sweep_.expected_change(), report);
  if (report.accepted) {
    std::swap(current_, trial_);
    start_ = Start::kNone;
    evaluated_ = false;
    damping_ = damping_ > kDampingMin ? 0.1 * damping_ : 0.0;
  } else {
    damping_ = std::max(kDampingStart, 10.0 * damping_);
  }
  const IterationReport judged = evaluate();
  report.cost = judged.cost;
  report.largest_gap = judged.largest_gap;
  report.newton_worst = judged.newton_worst;
  report.newton_failures = judged.newton_failures;
  report.explain_worst = judged.explain_worst;
  report.explain_failures = judged.explain_failures;
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
