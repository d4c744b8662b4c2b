// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <crocoddyl/core/state-base.hpp>
#include <memory>
#include <pinocchio/multibody/model.hpp>

namespace prime_ros {

/// State x = (q, v, theta) of a floating-base robot with constant parameters; tangent (dq, dv, dtheta).
///
/// q is integrated on its manifold as in Pinocchio (base twist in the base frame, linear then angular); v and
/// theta are vectors.
class StateInertial : public crocoddyl::StateAbstractTpl<double> {
 public:
  using Base = crocoddyl::StateAbstractTpl<double>;
  using Vector = Eigen::VectorXd;
  using Matrix = Eigen::MatrixXd;
  CROCODDYL_BASE_DERIVED_CAST(crocoddyl::StateBase, StateInertial)

  StateInertial(const pinocchio::Model& model, int ntheta);

  Vector zero() const override;
  Vector rand() const override;
  void diff(const Eigen::Ref<const Vector>& x0, const Eigen::Ref<const Vector>& x1,
            Eigen::Ref<Vector> dx) const override;
  void integrate(const Eigen::Ref<const Vector>& x, const Eigen::Ref<const Vector>& dx,
                 Eigen::Ref<Vector> xout) const override;
  void Jdiff(const Eigen::Ref<const Vector>& x0, const Eigen::Ref<const Vector>& x1,
             Eigen::Ref<Matrix> Jfirst, Eigen::Ref<Matrix> Jsecond,
             crocoddyl::Jcomponent which) const override;
  void Jintegrate(const Eigen::Ref<const Vector>& x, const Eigen::Ref<const Vector>& dx,
                  Eigen::Ref<Matrix> Jfirst, Eigen::Ref<Matrix> Jsecond, crocoddyl::Jcomponent which,
                  crocoddyl::AssignmentOp op = crocoddyl::setto) const override;
  void JintegrateTransport(const Eigen::Ref<const Vector>& x, const Eigen::Ref<const Vector>& dx,
                           Eigen::Ref<Matrix> Jin, crocoddyl::Jcomponent which) const override;

  const pinocchio::Model& model() const { return *model_; }
  int ntheta() const { return ntheta_; }

 private:
  int nq() const { return model_->nq; }
  int nv() const { return model_->nv; }
  int nflat() const { return model_->nv + ntheta_; }  ///< size of the vector part (v, theta)

  std::shared_ptr<pinocchio::Model> model_;
  int ntheta_;
};

}  // namespace prime_ros
