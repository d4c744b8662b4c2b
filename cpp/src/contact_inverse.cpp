// SPDX-License-Identifier: Apache-2.0
// The inverse of the contact step. With a = (v+ - v) / dt the equation of motion gives, for any impulses,
//   w = RNEA(q, v, a) + A a + D (v + v+) / 2 + friction(v+) - force - J'lambda / dt,
// and the graph of the contact potentials the slack s = z - (J v+ + phi / dt).
#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include "prime_ros/contact_step.hpp"

namespace prime_ros {
namespace pin = pinocchio;

namespace {

constexpr int kIterations = 40;
constexpr double kRounding = 1e-12;  ///< relative decrease of the cost that rounding may hide
constexpr double kSufficient = 1e-4;
constexpr double kDampingLeast = 1e-6, kDampingStart = 1e-4, kDampingMax = 1e6;

}  // namespace

void ContactStep::computeInverseTerms(ContactStepData& d, const ConstVectorRef& q, const ConstVectorRef& v,
                                      const ConstVectorRef& v_next, const ConstVectorRef& force) const {
  const double dt = settings_.dt;
  d.acceleration_ = (v_next - v) / dt;
  pin::rnea(d.model_, d.data_, q, v, ConstVectorRef(d.acceleration_));
  pin::computeJointJacobians(d.model_, d.data_, q);
  contactJacobians(d);
  d.force_free_ = d.data_.tau - force;
  d.force_free_.array() += 0.5 * settings_.damping.array() * (v + v_next).array();
  if (has_friction_) {
    const double width2 = settings_.friction_velocity * settings_.friction_velocity;
    d.force_free_.array() +=
        settings_.friction.array() * v_next.array() / (v_next.array().square() + width2).sqrt();
  }
  applyJacobian(d, v_next, d.z_bare_);
  for (int i = 0; i < ncontacts(); ++i) d.z_bare_[3 * i + 2] += (d.point_(2, i) - d.ground_height_) / dt;
}

// Puts the contacts at the coordinates; the control that this needs is left in d.control, its cost returned.
double ContactStep::explain(ContactStepData& d, const VectorXd& coordinate,
                            const ConstVectorRef& weight) const {
  auto force = d.control.head(nv());
  auto slack = d.control.tail(3 * ncontacts());
  force = d.force_free_;
  for (const auto& support : contact_supports_)
    for (int i : support.contacts) {
      const auto s = static_cast<size_t>(i);
      auto& at = d.on_graph_[s];
      at = potentials_[s]->onGraph(coordinate.segment<3>(3 * i), settings_.kappa);
      slack.segment<3>(3 * i) = at.z - d.z_bare_.segment<3>(3 * i);
      for (size_t k = 0; k < support.dofs.size(); ++k)
        force[support.dofs[k]] -=
            d.jacobian_[s].col(static_cast<Eigen::Index>(k)).dot(at.impulse) / settings_.dt;
    }
  return 0.5 * d.control.dot(weight.cwiseProduct(d.control));
}

// Slope of the cost over the coordinates, its Gauss-Newton matrix, and by contact what its Hessian has on
// top; the coordinates are those of the last `explain`.
void ContactStep::expandExplanation(ContactStepData& d, const ConstVectorRef& weight) const {
  d.weighted_force_ = weight.head(nv()).cwiseProduct(d.control.head(nv()));
  for (const auto& support : contact_supports_)
    for (int i : support.contacts) {
      const auto s = static_cast<size_t>(i);
      Vector3d pushed = Vector3d::Zero();
      for (size_t k = 0; k < support.dofs.size(); ++k)
        pushed += d.jacobian_[s].col(static_cast<Eigen::Index>(k)) * d.weighted_force_[support.dofs[k]];
      const auto& at = d.on_graph_[s];
      const Vector3d slack = weight.segment<3>(nv() + 3 * i).cwiseProduct(d.control.segment<3>(nv() + 3 * i));
      d.slope_.segment<3>(3 * i) =
          at.dz_dp.transpose() * slack - at.dimpulse_dp.transpose() * pushed / settings_.dt;
      d.graph_curvature_[s] = potentials_[s]->graphCurvature(d.coordinate_.segment<3>(3 * i), settings_.kappa,
                                                             slack, -pushed / settings_.dt);
    }
  for (int i = 0; i < ncontacts(); ++i)
    for (int j = 0; j <= i; ++j) {
      const auto a = static_cast<size_t>(i), b = static_cast<size_t>(j);
      auto block = d.normal_.block<3, 3>(3 * i, 3 * j);
      block.noalias() = d.on_graph_[a].dimpulse_dp.transpose() * d.compliance_.block<3, 3>(3 * i, 3 * j) *
                        d.on_graph_[b].dimpulse_dp;
      if (i == j)
        block += d.on_graph_[a].dz_dp.transpose() * weight.segment<3>(nv() + 3 * i).asDiagonal() *
                 d.on_graph_[a].dz_dp;
    }
}

double ContactStep::invert(ContactStepData& d, const ConstVectorRef& q, const ConstVectorRef& v,
                           const ConstVectorRef& v_next, const ConstVectorRef& force,
                           const ConstVectorRef& weight, const ConstVectorRef& theta,
                           double tolerance) const {
  if (!(q.allFinite() && v.allFinite() && v_next.allFinite() && force.allFinite() && theta.allFinite()))
    return std::numeric_limits<double>::infinity();
  setParameters(d, theta);
  computeInverseTerms(d, q, v, v_next, force);
  for (int i = 0; i < ncontacts(); ++i)
    d.coordinate_.segment<3>(3 * i) =
        potentials_[static_cast<size_t>(i)]->coordinate(d.impulse.segment<3>(3 * i), settings_.kappa);
  contactCompliance(d, weight);
  double cost = explain(d, d.coordinate_, weight), damping = 0.0;
  d.converged = ncontacts() == 0;
  for (d.iterations = 0; d.iterations < kIterations && !d.converged; ++d.iterations) {
    expandExplanation(d, weight);
    bool better = false;
    while (!better && !d.converged && damping < kDampingMax) {
      if (explanationStep(d, damping)) {
        const double expected = -0.5 * d.slope_.dot(d.coordinate_step_);
        d.coordinate_trial_ = d.coordinate_ + d.coordinate_step_;
        const double trial = explain(d, d.coordinate_trial_, weight);
        d.converged = expected <= std::max(tolerance, kRounding * cost);
        better = trial < cost - (d.converged ? 0.0 : kSufficient * expected);
        if (better) cost = trial;
      }
      damping =
          better ? (damping > kDampingLeast ? 0.1 * damping : 0.0) : std::max(kDampingStart, 8.0 * damping);
    }
    if (better) d.coordinate_.swap(d.coordinate_trial_);
    if (!better) break;
  }
  cost = explain(d, d.coordinate_, weight);
  for (int i = 0; i < ncontacts(); ++i)
    d.impulse.segment<3>(3 * i) = d.on_graph_[static_cast<size_t>(i)].impulse;
  d.v_next = v_next;
  return cost;
}

// Newton's step, damped in units of the Gauss-Newton matrix; false if that is not positive definite.
bool ContactStep::explanationStep(ContactStepData& d, double damping) const {
  d.damped_ = d.normal_;
  for (int i = 0; i < ncontacts(); ++i)
    d.damped_.block<3, 3>(3 * i, 3 * i) += d.graph_curvature_[static_cast<size_t>(i)];
  d.damped_.diagonal() += damping * d.normal_.diagonal();
  d.coordinate_factor_.compute(d.damped_);
  if (d.coordinate_factor_.info() != Eigen::Success) return false;
  d.coordinate_step_ = -d.coordinate_factor_.solve(d.slope_);
  return true;
}

VectorXd ContactStep::contactVelocity(ContactStepData& d, const ConstVectorRef& q,
                                      const ConstVectorRef& v) const {
  pin::computeJointJacobians(d.model_, d.data_, q);
  contactJacobians(d);
  VectorXd velocity(3 * ncontacts());
  applyJacobian(d, v, velocity);
  return velocity;
}

// J diag(weight) J' / dt^2, lower blocks: what impulses of the contacts cost in generalised force.
void ContactStep::contactCompliance(ContactStepData& d, const ConstVectorRef& weight) const {
  const double scale = 1.0 / (settings_.dt * settings_.dt);
  for (int i = 0; i < ncontacts(); ++i)
    for (int j = 0; j <= i; ++j) {
      const auto& a =
          contact_supports_[static_cast<size_t>(support_of_contact_[static_cast<size_t>(i)])].dofs;
      const auto& b =
          contact_supports_[static_cast<size_t>(support_of_contact_[static_cast<size_t>(j)])].dofs;
      Matrix3d sum = Matrix3d::Zero();
      for (size_t k = 0, l = 0; k < a.size() && l < b.size();) {
        if (a[k] < b[l])
          ++k;
        else if (a[k] > b[l])
          ++l;
        else {
          sum += (scale * weight[a[k]]) *
                 d.jacobian_[static_cast<size_t>(i)].col(static_cast<Eigen::Index>(k)) *
                 d.jacobian_[static_cast<size_t>(j)].col(static_cast<Eigen::Index>(l)).transpose();
          ++k;
          ++l;
        }
      }
      d.compliance_.block<3, 3>(3 * i, 3 * j) = sum;
    }
}

}  // namespace prime_ros
