// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/contact_step.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <stdexcept>

namespace prime_ros {
namespace pin = pinocchio;

namespace {

constexpr double kLiftMargin = 0.01;  ///< normal velocity left after a start was made feasible [m/s]
constexpr double kSufficient = 1e-4;  ///< share of the predicted decrease that a step must reach
constexpr int kMaxHalvings = 40;
constexpr int kPatience = 15;  ///< Newton iterations before the way through soft contact
constexpr double kSoftening = 125.0, kSofteningStep = 5.0, kSoftTolerance = 1e-2;

void check(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument("ContactStep: " + message);
}

VectorXd perDof(const VectorXd& values, int nv, const std::string& name) {
  if (values.size() == 0) return VectorXd::Zero(nv);
  check(values.size() == nv,
        name + " has size " + std::to_string(values.size()) + ", expected nv = " + std::to_string(nv));
  check(values.allFinite() && values.minCoeff() >= 0.0, name + " must be finite and not negative");
  return values;
}

}  // namespace

ContactStep::ContactStep(const pin::Model& model, std::vector<ContactPoint> contacts,
                         std::vector<pin::JointIndex> bodies, StepSettings settings)
    : model_(model), contacts_(std::move(contacts)), bodies_(std::move(bodies)),
      settings_(std::move(settings)) {
  check(model_.njoints > 1 && model_.joints[1].nq() == 7 && model_.joints[1].nv() == 6,
        "the first joint of the model must be a free-flyer");
  check(settings_.dt > 0.0 && settings_.kappa > 0.0, "dt and kappa must be positive");
  check(settings_.friction_velocity > 0.0, "friction_velocity must be positive");
  settings_.damping = perDof(settings_.damping, model_.nv, "damping");
  settings_.friction = perDof(settings_.friction, model_.nv, "friction");
  has_friction_ = settings_.friction.maxCoeff() > 0.0;
  const auto njoints = static_cast<pin::JointIndex>(model_.njoints);
  for (const auto& c : contacts_) {
    check(c.joint > 0 && c.joint < njoints,
          "contact on joint " + std::to_string(c.joint) + " of " + std::to_string(njoints));
    check(c.radius >= 0.0 && c.friction.minCoeff() > 0.0, "contact radius must be >= 0 and friction > 0");
    potentials_.push_back(std::make_unique<SmoothedEllipticCone>(c.friction));
  }
  for (auto body : bodies_) {
    check(body > 0 && body < njoints,
          "body of joint " + std::to_string(body) + " of " + std::to_string(njoints));
    check(log_cholesky::fromInertia(model_.inertias[body]).allFinite(),
          "the nominal inertia of the body of joint '" + model_.names[body] + "' is not physical");
    body_supports_.push_back(supportOf(body));
  }
  for (int i = 0; i < ncontacts(); ++i) {
    size_t s = 0;
    while (s < contact_supports_.size() && contact_supports_[s].joint != contacts_[i].joint) ++s;
    if (s == contact_supports_.size()) contact_supports_.push_back(supportOf(contacts_[i].joint));
    contact_supports_[s].contacts.push_back(i);
    support_of_contact_.push_back(static_cast<int>(s));
  }
}

ContactStep::Support ContactStep::supportOf(pin::JointIndex joint) const {
  Support support;
  support.joint = joint;
  for (auto j : model_.supports[joint]) {
    if (j == 0) continue;
    for (int k = 0; k < model_.joints[j].nv(); ++k) {
      support.dofs.push_back(model_.joints[j].idx_v() + k);
      support.parent_of_dof.push_back(model_.parents[j]);
    }
  }
  return support;
}

ContactStepData::ContactStepData(const ContactStep& step)
    : v_next(VectorXd::Constant(step.nv(), std::numeric_limits<double>::quiet_NaN())),
      impulse(VectorXd::Zero(3 * step.ncontacts())), z(impulse),
      sensitivity(RowMatrixXd::Zero(step.nv(), 3 * step.nv() + 3 * step.ncontacts() + step.ntheta())),
      nv_(step.nv()), nslack_(3 * step.ncontacts()), ntheta_(step.ntheta()), model_(step.model()),
      data_(model_), log_cholesky_(step.bodies().size(), Vector10d::Zero()),
      mass_(RowMatrixXd::Zero(nv_, nv_)), hessian_(mass_), momentum_(VectorXd::Zero(nv_)),
      mass_velocity_(momentum_), gradient_(momentum_), newton_(momentum_), mass_newton_(momentum_),
      acceleration_(momentum_), z_free_(impulse), z_trial_(impulse), dz_(impulse),
      centre_(3, step.ncontacts()), point_(3, step.ncontacts()),
      curvature_(static_cast<size_t>(step.ncontacts()), Matrix3d::Zero()), factor_(model_),
      external_(static_cast<size_t>(model_.njoints), pin::Force::Zero()), rnea_dq_(MatrixXd::Zero(nv_, nv_)),
      rnea_dv_(rnea_dq_), rnea_da_(rnea_dq_) {
  size_t widest = 0;
  for (const auto& support : step.contact_supports_) widest = std::max(widest, support.dofs.size());
  const auto n = static_cast<Eigen::Index>(widest);
  control = VectorXd::Zero(step.nv() + 3 * step.ncontacts());
  force_free_ = weighted_force_ = momentum_;
  z_bare_ = coordinate_ = coordinate_trial_ = coordinate_step_ = slope_ = impulse;
  graph_curvature_.assign(static_cast<size_t>(step.ncontacts()), Matrix3d::Zero());
  compliance_ = normal_ = damped_ = MatrixXd::Zero(3 * step.ncontacts(), 3 * step.ncontacts());
  on_graph_.resize(static_cast<size_t>(step.ncontacts()));
  for (int s : step.support_of_contact_)
    jacobian_.emplace_back(3, step.contact_supports_[static_cast<size_t>(s)].dofs.size());
  slide_ = jacobian_;
  angular_.resize(3, n);
  effect_.resize(3, n);
  angular_effect_.resize(3, n);
  parent_velocity_.resize(6, n);
}

bool ContactStepData::fits(const ContactStep& step) const {
  return nv_ == step.nv() && nslack_ == 3 * step.ncontacts() && ntheta_ == step.ntheta() &&
         log_cholesky_.size() == step.bodies().size();
}

void ContactStep::setKappa(double kappa) {
  check(kappa > 0.0, "kappa must be positive");
  settings_.kappa = kappa;
}

VectorXd ContactStep::nominalTheta(double ground_height) const {
  VectorXd theta(ntheta());
  for (size_t b = 0; b < bodies_.size(); ++b)
    theta.segment<10>(10 * static_cast<int>(b)) = log_cholesky::fromInertia(model_.inertias[bodies_[b]]);
  theta[ntheta() - 1] = ground_height;
  return theta;
}

void ContactStep::setParameters(ContactStepData& d, const ConstVectorRef& theta) const {
  for (size_t b = 0; b < bodies_.size(); ++b) {
    d.log_cholesky_[b] = theta.segment<10>(10 * static_cast<int>(b));
    d.model_.inertias[bodies_[b]] =
        pin::Inertia::FromDynamicParameters(log_cholesky::toDynamicParameters(d.log_cholesky_[b]));
  }
  d.ground_height_ = theta[ntheta() - 1];
}

bool ContactStep::fail(ContactStepData& d) {
  d.converged = false;
  d.v_next.setConstant(std::numeric_limits<double>::quiet_NaN());
  d.impulse.setConstant(std::numeric_limits<double>::quiet_NaN());
  return false;
}

void ContactStep::solve(ContactStepData& d, const ConstVectorRef& q, const ConstVectorRef& v,
                        const ConstVectorRef& force, const ConstVectorRef& slack,
                        const ConstVectorRef& theta) const {
  d.iterations = 0;
  if (!(q.allFinite() && v.allFinite() && force.allFinite() && slack.allFinite() && theta.allFinite())) {
    fail(d);
    return;
  }
  if (!d.v_next.allFinite()) d.v_next = v;
  setParameters(d, theta);
  computeTerms(d, q, v, force, slack);
  makeFeasible(d);
  minimise(d);
}

void ContactStep::resume(ContactStepData& d, const ConstVectorRef& q, const ConstVectorRef& v,
                         const ConstVectorRef& v_next, const ConstVectorRef& force,
                         const ConstVectorRef& slack, const ConstVectorRef& theta) const {
  setParameters(d, theta);
  computeTerms(d, q, v, force, slack);
  d.v_next = v_next;
  d.mass_velocity_.noalias() = d.mass_ * d.v_next;
  applyJacobian(d, d.v_next, d.z);
  d.z += d.z_free_;
  d.kappa_ = settings_.kappa;
  d.iterations = 0;
  d.converged = true;
  updateGradient(d);
}

void ContactStep::computeTerms(ContactStepData& d, const ConstVectorRef& q, const ConstVectorRef& v,
                               const ConstVectorRef& force, const ConstVectorRef& slack) const {
  const double dt = settings_.dt;
  pin::crba(d.model_, d.data_, q, pin::Convention::WORLD);  // with armature; also fills the joint Jacobian
  pin::nonLinearEffects(d.model_, d.data_, q, v);
  d.mass_ = d.data_.M.selfadjointView<Eigen::Upper>();
  d.momentum_.noalias() = d.mass_ * v;
  d.momentum_ += dt * (force - d.data_.nle);
  d.mass_.diagonal() += 0.5 * dt * settings_.damping;
  d.momentum_.array() -= 0.5 * dt * settings_.damping.array() * v.array();
  contactJacobians(d);
  d.z_free_ = slack;
  for (int i = 0; i < ncontacts(); ++i) d.z_free_[3 * i + 2] += (d.point_(2, i) - d.ground_height_) / dt;
}

void ContactStep::contactJacobians(ContactStepData& d) const {
  for (const auto& support : contact_supports_)
    for (int i : support.contacts) {
      const auto& contact = contacts_[static_cast<size_t>(i)];
      d.centre_.col(i) = d.data_.oMi[support.joint].act(contact.offset);
      d.point_.col(i) = d.centre_.col(i);
      d.point_(2, i) -= contact.radius;
      const Vector3d point = d.point_.col(i);
      auto& jacobian = d.jacobian_[static_cast<size_t>(i)];
      for (size_t k = 0; k < support.dofs.size(); ++k) {
        const auto column = d.data_.J.col(support.dofs[k]);
        jacobian.col(static_cast<Eigen::Index>(k)) = column.head<3>() + column.tail<3>().cross(point);
      }
    }
}

void ContactStep::applyJacobian(const ContactStepData& d, const VectorXd& velocity, VectorXd& out) const {
  for (const auto& support : contact_supports_)
    for (int i : support.contacts) {
      Vector3d sum = Vector3d::Zero();
      const auto& jacobian = d.jacobian_[static_cast<size_t>(i)];
      for (size_t k = 0; k < support.dofs.size(); ++k)
        sum += jacobian.col(static_cast<Eigen::Index>(k)) * velocity[support.dofs[k]];
      out.segment<3>(3 * i) = sum;
    }
}

// The free-flyer can always be moved up until every contact velocity lies inside the domain of its potential.
void ContactStep::makeFeasible(ContactStepData& d) const {
  applyJacobian(d, d.v_next, d.z);
  d.z += d.z_free_;
  double lift = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < ncontacts(); ++i)
    lift = std::max(lift, potentials_[static_cast<size_t>(i)]->lift(d.z.segment<3>(3 * i)));
  if (lift < -1e-9 || ncontacts() == 0) return;
  lift += kLiftMargin;
  d.v_next.head<3>() += lift * d.data_.oMi[1].rotation().row(2).transpose();
  for (int i = 0; i < ncontacts(); ++i) d.z[3 * i + 2] += lift;
}

double ContactStep::contactValue(const ContactStepData& d, const VectorXd& z) const {
  double value = 0.0;
  for (int i = 0; i < ncontacts(); ++i)
    value += potentials_[static_cast<size_t>(i)]->value(z.segment<3>(3 * i), d.kappa_);
  return value;
}

double ContactStep::frictionValue(const ContactStepData& d, double step) const {
  if (!has_friction_) return 0.0;
  const double width2 = settings_.friction_velocity * settings_.friction_velocity;
  const auto v = d.v_next.array() + step * d.newton_.array();
  return settings_.dt * (settings_.friction.array() * (v.square() + width2).sqrt()).sum();
}

void ContactStep::updateGradient(ContactStepData& d) const {
  d.gradient_ = d.mass_velocity_ - d.momentum_;
  if (has_friction_) {
    const double width2 = settings_.friction_velocity * settings_.friction_velocity;
    const auto v = d.v_next.array();
    d.gradient_.array() += settings_.dt * settings_.friction.array() * v / (v.square() + width2).sqrt();
  }
  for (const auto& support : contact_supports_)
    for (int i : support.contacts) {
      Vector3d slope;
      potentials_[static_cast<size_t>(i)]->derivatives(d.z.segment<3>(3 * i), d.kappa_, slope,
                                                       d.curvature_[static_cast<size_t>(i)]);
      d.impulse.segment<3>(3 * i) = -slope;
      const auto& jacobian = d.jacobian_[static_cast<size_t>(i)];
      for (size_t k = 0; k < support.dofs.size(); ++k)
        d.gradient_[support.dofs[k]] += jacobian.col(static_cast<Eigen::Index>(k)).dot(slope);
    }
}

void ContactStep::updateHessian(ContactStepData& d) const {
  d.hessian_ = d.mass_;
  if (has_friction_) {
    const double width2 = settings_.friction_velocity * settings_.friction_velocity;
    const auto huber = d.v_next.array().square() + width2;
    d.hessian_.diagonal().array() +=
        settings_.dt * width2 * settings_.friction.array() / (huber * huber.sqrt());
  }
  for (const auto& support : contact_supports_)
    for (int i : support.contacts) {
      const auto& jacobian = d.jacobian_[static_cast<size_t>(i)];
      const Matrix3d& curvature = d.curvature_[static_cast<size_t>(i)];
      for (size_t a = 0; a < support.dofs.size(); ++a) {
        const Vector3d column = curvature * jacobian.col(static_cast<Eigen::Index>(a));
        double* row = d.hessian_.row(support.dofs[a]).data();
        for (size_t b = 0; b <= a; ++b)
          row[support.dofs[b]] += column.dot(jacobian.col(static_cast<Eigen::Index>(b)));
      }
    }
}

// From a far guess at a sharp contact Newton's method may take hundreds of damped steps. Where it does not
// converge soon, it goes through soft contact instead.
void ContactStep::minimise(ContactStepData& d) const {
  d.mass_velocity_.noalias() = d.mass_ * d.v_next;
  const double kappa = settings_.kappa;
  const auto budget = [&](int most) { return std::min(most, settings_.max_iterations - d.iterations); };
  d.converged = newton(d, kappa, settings_.tolerance, budget(kPatience));
  if (!d.converged && d.v_next.allFinite()) {
    for (double soft = kappa / kSoftening; soft < kappa; soft *= kSofteningStep)
      newton(d, soft, kSoftTolerance, budget(kPatience));
    d.converged = newton(d, kappa, settings_.tolerance, budget(settings_.max_iterations));
  }
  d.kappa_ = kappa;
  if (d.v_next.allFinite()) updateGradient(d);  // impulses and curvature at the result
}

bool ContactStep::newton(ContactStepData& d, double kappa, double tolerance, int max_iterations) const {
  d.kappa_ = kappa;
  for (int iteration = 0; iteration < max_iterations; ++iteration) {
    ++d.iterations;
    updateGradient(d);
    updateHessian(d);
    if (!d.factor_.compute(d.hessian_)) return fail(d);
    d.newton_ = -d.gradient_;
    d.factor_.solveInPlace(d.newton_);
    const double decrement = -d.gradient_.dot(d.newton_);
    if (!std::isfinite(decrement)) return fail(d);
    applyJacobian(d, d.newton_, d.dz_);
    const bool last = kappa * decrement < tolerance;
    if (!lineSearch(d, decrement) || last) return last;
  }
  return false;
}

// Backtracking on the potential. The quadratic part is exact, so that only the difference of the contact and
// friction potentials is subject to rounding.
bool ContactStep::lineSearch(ContactStepData& d, double decrement) const {
  d.mass_newton_.noalias() = d.mass_ * d.newton_;
  const double linear = d.newton_.dot(d.mass_velocity_ - d.momentum_);
  const double quadratic = 0.5 * d.mass_newton_.dot(d.newton_);
  const double start = contactValue(d, d.z) + frictionValue(d, 0.0);
  double step = 1.0;
  for (int halving = 0; halving < kMaxHalvings; ++halving, step *= 0.5) {
    d.z_trial_ = d.z + step * d.dz_;
    const double contact = contactValue(d, d.z_trial_);
    if (!std::isfinite(contact)) continue;
    const double change = step * (linear + step * quadratic) + contact + frictionValue(d, step) - start;
    if (change <= -kSufficient * step * decrement + 1e-14) {
      d.v_next += step * d.newton_;
      d.mass_velocity_ += step * d.mass_newton_;
      d.z.swap(d.z_trial_);
      return true;
    }
  }
  return false;
}

}  // namespace prime_ros
