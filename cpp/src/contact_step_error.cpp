// SPDX-License-Identifier: Apache-2.0
// How far the linear model of a step may be off at some distance from where it was made.
#include <algorithm>
#include <cmath>
#include <limits>

#include "prime_ros/contact_step.hpp"

namespace prime_ros {

namespace {

constexpr double kTrust = 0.5;  ///< local norm of the change of a contact beyond which nothing is said
constexpr double kArm = 0.2;    ///< of a force that has the effect of a joint torque [m]
constexpr double kGravity = 9.81;

}  // namespace

// The contact potential is self-concordant: in its local norm r the Hessian changes by a share of about 2 r,
// so that the force, which goes with 1/z, is off by r^2 / 2 of itself. Friction c v / sqrt(v^2 + s^2) changes
// its slope c s^2 / (v^2 + s^2)^(3/2) by a share of at most 3 dv / sqrt(v^2 + s^2). Weight goes with
// e^(2 alpha) and with the cosine of an angle.
double ContactStep::linearisationError(const ContactStepData& d, const ConstVectorRef& dq,
                                       const ConstVectorRef& v_next, const ConstVectorRef& dslack,
                                       const ConstVectorRef& dtheta) const {
  double error = 0.0;
  for (const auto& support : contact_supports_)
    for (int i : support.contacts) {
      const double square = d.kappa_ * localSquare(d, support, i, dq, v_next, dslack, dtheta);
      if (!(square < kTrust * kTrust)) return std::numeric_limits<double>::infinity();
      error = std::max(error, 0.5 * square * d.impulse.segment<3>(3 * i).norm() / settings_.dt);
    }
  const double width2 = settings_.friction_velocity * settings_.friction_velocity;
  for (int j = 6; j < nv(); ++j) {
    const double scale2 = d.v_next[j] * d.v_next[j] + width2, dv = v_next[j] - d.v_next[j];
    error = std::max(error, 1.5 * settings_.friction[j] * width2 * dv * dv / (scale2 * scale2) / kArm);
  }
  const double turned = dq.tail(nv() - 3).cwiseAbs().maxCoeff();
  double weight = 0.0;
  for (const auto& inertia : d.model_.inertias) weight += kGravity * inertia.mass();
  error = std::max(error, 0.5 * weight * turned * turned);
  for (size_t b = 0; b < bodies_.size(); ++b)
    error = std::max(error, 2.0 * kGravity * d.model_.inertias[bodies_[b]].mass() *
                                dtheta.segment<10>(10 * static_cast<int>(b)).squaredNorm());
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

double ContactStep::localSquare(const ContactStepData& d, const Support& support, int i,
                                const ConstVectorRef& dq, const ConstVectorRef& v_next,
                                const ConstVectorRef& dslack, const ConstVectorRef& dtheta) const {
  const auto s = static_cast<size_t>(i);
  Vector3d dz = dslack.segment<3>(3 * i);
  dz[2] -= dtheta[ntheta() - 1] / settings_.dt;
  for (size_t k = 0; k < support.dofs.size(); ++k) {
    const auto column = static_cast<Eigen::Index>(k);
    const int dof = support.dofs[k];
    dz += d.jacobian_[s].col(column) * (v_next[dof] - d.v_next[dof]) + d.slide_[s].col(column) * dq[dof];
  }
  return dz.dot(d.curvature_[s] * dz);
}

}  // namespace prime_ros
