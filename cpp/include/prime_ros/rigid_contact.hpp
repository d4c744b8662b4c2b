// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <pinocchio/multibody/model.hpp>
#include <pinocchio/spatial/se3.hpp>
#include <vector>

#include "prime_ros/actions.hpp"

namespace prime_ros {

/// Where a link stands on the ground: a point that takes a force, or a rectangle that takes a wrench.
struct RigidFoot {
  pinocchio::JointIndex joint = 0;                        ///< joint that moves the link
  pinocchio::SE3 placement = pinocchio::SE3::Identity();  ///< in the joint frame; z of a sole is up
  double friction = 0.8;                                  ///< Coulomb coefficient [-]
  Eigen::Vector2d size = Eigen::Vector2d::Zero();         ///< along x and y [m]; zero for a point

  bool flat() const { return size.minCoeff() > 0.0; }
};

/// Everything about rigid contact that does not change from knot to knot.
struct RigidSettings {
  double dt = 0.01;           ///< step length [s]
  double settle_rate = 50.0;  ///< rate at which the velocity of a standing foot dies out [1/s]
  double cone_weight = 1.0;   ///< of half the squared force outside the friction cone [1/N^2]
};

/// Results of one step of rigid contact; F feet, derivatives by (q, v, theta) and by generalised force.
struct RigidStep {
  VectorXd acceleration;                            ///< nv
  Eigen::Matrix<double, 6, Eigen::Dynamic> wrench;  ///< force in world axes (point) or wrench in foot axes
                                                    ///< (sole) on the robot, zero where a foot is in the air
  double cone_cost = 0.0;
  MatrixXd acceleration_x, acceleration_u;  ///< nv x (2 nv + ntheta), nv x nv
  MatrixXd wrench_x, wrench_u;              ///< 6 F x (2 nv + ntheta), 6 F x nv
  VectorXd cone_gradient_x, cone_gradient_u;
  MatrixXd cone_xx, cone_xu, cone_uu;
};

/// Dynamics with rigid contacts of given feet: M a + h = tau + J'f, J a + dJ v = -rate J v.
///
/// Crocoddyl has the same models (ContactModel3D, ContactModel6D), but those in the wheels of its
/// version 3.2.1 were built with Pinocchio 4.0, whose Model has another layout than that of 4.1: they read
/// past its frames and crash. Friction is a quadratic penalty on the force outside a linearised friction
/// cone, or a wrench cone for a sole. The inertia of identified bodies follows theta, ten log-Cholesky
/// numbers each.
class RigidContact {
 public:
  /// @throws std::invalid_argument  naming what does not fit.
  RigidContact(const pinocchio::Model& model, std::vector<RigidFoot> feet,
               std::vector<pinocchio::JointIndex> bodies, RigidSettings settings);
  ~RigidContact();

  int nv() const { return nv_; }
  int ntheta() const { return 10 * static_cast<int>(bodies_.size()); }
  int nfeet() const { return static_cast<int>(feet_.size()); }
  const RigidSettings& settings() const { return settings_; }
  VectorXd nominalTheta() const;

  /// Solves the step on the workspace of the calling thread, whose results it returns.
  /// @param standing  bit i: foot i stands.  @param force  generalised force.  @param derivatives  as well.
  const RigidStep& solve(unsigned standing, const ConstVectorRef& q, const ConstVectorRef& v,
                         const ConstVectorRef& theta, const ConstVectorRef& force, bool derivatives);

 private:
  struct Workspace;
  pinocchio::Model model_;
  std::vector<RigidFoot> feet_;
  std::vector<pinocchio::JointIndex> bodies_;
  RigidSettings settings_;
  int nv_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;
};

/// One step of rigid contact with given feet on the ground as a Crocoddyl action; control: disturbance.
class ActionRigidContact : public ActionKnot {
 public:
  CROCODDYL_BASE_DERIVED_CAST(crocoddyl::ActionModelBase, ActionRigidContact)

  /// @param standing  bit i: foot i stands.  @throws std::invalid_argument  if sizes differ.
  ActionRigidContact(std::shared_ptr<StateInertial> state, std::shared_ptr<RigidContact> contact,
                     unsigned standing, KnotMeasurement measurement);

  using ActionKnot::calc;
  using ActionKnot::calcDiff;
  void calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
            const Eigen::Ref<const VectorXd>& u) override;
  void calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                const Eigen::Ref<const VectorXd>& u) override;
  void print(std::ostream& os) const override;

  /// The contact wrenches of a step and their derivatives, on the workspace of the calling thread.
  const RigidStep& step(const VectorXd& x, const VectorXd& u);

 private:
  const RigidStep& solve(Data& d, const Eigen::Ref<const VectorXd>& x, const Eigen::Ref<const VectorXd>& u,
                         bool derivatives);

  std::shared_ptr<RigidContact> contact_;
  unsigned standing_;
};

}  // namespace prime_ros
