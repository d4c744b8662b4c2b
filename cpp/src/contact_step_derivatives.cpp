// SPDX-License-Identifier: Apache-2.0
// Sensitivities of the contact step by the implicit function theorem: H dv+ = -dg, with
//   g = dt (RNEA(q, v, a) - f) + dt D v+ + friction - sum_i J_i' lambda_i,   a = (v+ - v) / dt.
#include <limits>
#include <pinocchio/algorithm/regressor.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>

#include "prime_ros/contact_step.hpp"

namespace prime_ros {
namespace pin = pinocchio;

void ContactStep::differentiate(ContactStepData& d, const ConstVectorRef& q, const ConstVectorRef& v) const {
  const double dt = settings_.dt;
  updateHessian(d);
  if (!d.factor_.compute(d.hessian_)) {
    d.sensitivity.setConstant(std::numeric_limits<double>::quiet_NaN());
    return;
  }
  d.acceleration_ = (d.v_next - v) / dt;
  reactionForces(d);
  d.rnea_dq_.setZero();
  d.rnea_dv_.setZero();
  d.rnea_da_.setZero();
  pin::computeRNEADerivatives(d.model_, d.data_, q, v, ConstVectorRef(d.acceleration_), d.external_,
                              d.rnea_dq_, d.rnea_dv_, d.rnea_da_);
  d.sensitivity.setZero();
  d.sensitivity.leftCols(nv()) = -dt * d.rnea_dq_;
  auto dv = d.sensitivity.middleCols(nv(), nv());
  dv = d.mass_ - dt * d.rnea_dv_;
  dv.diagonal() -= dt * settings_.damping;  // half of it is in the mass, with the sign of the new velocity
  d.sensitivity.middleCols(2 * nv(), nv()).diagonal().setConstant(dt);
  for (const auto& support : contact_supports_) addContactConfigurationTerms(d, support);
  parameterDerivatives(d);
  d.factor_.solveInPlace(d.sensitivity);
}

// Contact forces in the joint frames: computeRNEADerivatives then differentiates J'lambda for forces that
// turn with the link; addContactConfigurationTerms adds what is missing for forces in world axes at a point
// that does not turn.
void ContactStep::reactionForces(ContactStepData& d) const {
  for (const auto& support : contact_supports_) {
    const auto& placement = d.data_.oMi[support.joint];
    pin::Force sum = pin::Force::Zero();
    for (int i : support.contacts) {
      const Vector3d force = placement.rotation().transpose() * d.impulse.segment<3>(3 * i) / settings_.dt;
      const Vector3d arm = placement.rotation().transpose() * (d.point_.col(i) - placement.translation());
      sum.linear() += force;
      sum.angular() += arm.cross(force);
    }
    d.external_[support.joint] = sum;
  }
}

void ContactStep::addContactConfigurationTerms(ContactStepData& d, const Support& support) const {
  using Vector6d = Eigen::Matrix<double, 6, 1>;
  const auto n = static_cast<Eigen::Index>(support.dofs.size());
  auto angular = d.angular_.leftCols(n), effect = d.effect_.leftCols(n),
       angular_effect = d.angular_effect_.leftCols(n);

  // Spatial velocity at v+ of the link and of the parent of each degree of freedom, about the world origin.
  Vector6d velocity = Vector6d::Zero(), parent = Vector6d::Zero();
  for (Eigen::Index k = 0; k < n; ++k) {
    const auto s = static_cast<size_t>(k);
    if (k == 0 || support.parent_of_dof[s] != support.parent_of_dof[s - 1]) parent = velocity;
    d.parent_velocity_.col(k) = parent;
    velocity += d.data_.J.col(support.dofs[s]) * d.v_next[support.dofs[s]];
    angular.col(k) = d.data_.J.col(support.dofs[s]).tail<3>();
  }

  for (int i : support.contacts) {
    const Vector3d point = d.point_.col(i), centre = d.centre_.col(i), impulse = d.impulse.segment<3>(3 * i);
    const Vector3d drop(0.0, 0.0, contacts_[static_cast<size_t>(i)].radius);
    const Matrix3d& curvature = d.curvature_[static_cast<size_t>(i)];
    const auto& jacobian = d.jacobian_[static_cast<size_t>(i)];
    auto& slide = d.slide_[static_cast<size_t>(i)];
    for (Eigen::Index k = 0; k < n; ++k) {
      const auto column = d.data_.J.col(support.dofs[static_cast<size_t>(k)]);
      const Vector3d jv = column.head<3>(), jw = column.tail<3>();
      const Vector3d relative_v = velocity.head<3>() - d.parent_velocity_.col(k).head<3>();
      const Vector3d relative_w = velocity.tail<3>() - d.parent_velocity_.col(k).tail<3>();
      const Vector3d turned = jw.cross(relative_w);
      const Vector3d centre_shift = jv + jw.cross(centre);
      Vector3d dz = jw.cross(relative_v) + jv.cross(relative_w) + turned.cross(point) +
                    velocity.tail<3>().cross(centre_shift);
      dz[2] += centre_shift[2] / settings_.dt;
      slide.col(k) = dz;
      effect.col(k) = impulse.cross(jw) - curvature * dz;
      angular_effect.col(k) = jw.cross(drop).cross(impulse);
    }
    for (Eigen::Index a = 0; a < n; ++a) {
      double* row = d.sensitivity.row(support.dofs[static_cast<size_t>(a)]).data();
      const Vector3d axis = jacobian.col(a), turn = angular.col(a);
      for (Eigen::Index b = 0; b < n; ++b)
        row[support.dofs[static_cast<size_t>(b)]] +=
            axis.dot(effect.col(b)) + turn.dot(angular_effect.col(b));
      Eigen::Map<Vector3d>(row + 3 * nv() + 3 * i) = -curvature * axis;
    }
  }
}

// Inertia: dt J_body' Y(v, a) dpi/dtheta with Y the body regressor. Ground height: it enters every phi_i with
// -1.
void ContactStep::parameterDerivatives(ContactStepData& d) const {
  auto dtheta = d.sensitivity.rightCols(ntheta());
  for (size_t b = 0; b < bodies_.size(); ++b) {
    const auto& placement = d.data_.oMi[bodies_[b]];
    const pin::Motion velocity = placement.actInv(d.data_.ov[bodies_[b]]);
    const pin::Motion acceleration = placement.actInv(d.data_.oa_gf[bodies_[b]]);
    d.regressor_ = -settings_.dt * pin::bodyRegressor(velocity, acceleration) *
                   log_cholesky::jacobian(d.log_cholesky_[b]);
    for (int dof : body_supports_[b].dofs) {
      const pin::Motion axis = placement.actInv(pin::Motion(d.data_.J.col(dof)));
      dtheta.row(dof).segment<10>(10 * static_cast<int>(b)).noalias() =
          axis.toVector().transpose() * d.regressor_;
    }
  }
  for (int i = 0; i < ncontacts(); ++i)
    dtheta.col(ntheta() - 1) -= d.sensitivity.col(3 * nv() + 3 * i + 2) / settings_.dt;
}

// lambda = -grad l(z): dlambda = -W dz, z = J v+ + (phi / dt) + s.
void ContactStep::impulseDerivatives(const ContactStepData& d, Eigen::Ref<MatrixXd> dx,
                                     Eigen::Ref<MatrixXd> du) const {
  const int n = nv();
  for (const auto& support : contact_supports_)
    for (int i : support.contacts) {
      const auto s = static_cast<size_t>(i);
      auto rows_x = dx.middleRows<3>(3 * i), rows_u = du.middleRows<3>(3 * i);
      rows_x.setZero();
      rows_u.setZero();
      for (size_t k = 0; k < support.dofs.size(); ++k) {
        const Vector3d column = d.jacobian_[s].col(static_cast<Eigen::Index>(k));
        const int dof = support.dofs[k];
        rows_x.leftCols(n) += column * d.dq().row(dof);
        rows_x.middleCols(n, n) += column * d.dv().row(dof);
        rows_x.rightCols(ntheta()) += column * d.dtheta().row(dof);
        rows_u.leftCols(n) += column * d.df().row(dof);
        rows_u.rightCols(3 * ncontacts()) += column * d.dslack().row(dof);
        rows_x.col(dof) += d.slide_[s].col(static_cast<Eigen::Index>(k));
      }
      rows_x(2, 2 * n + ntheta() - 1) -= 1.0 / settings_.dt;
      rows_u.middleCols<3>(n + 3 * i) += Matrix3d::Identity();
      rows_x = (-d.curvature_[s] * rows_x).eval();
      rows_u = (-d.curvature_[s] * rows_u).eval();
    }
}

}  // namespace prime_ros
