// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <memory>
#include <pinocchio/multibody/data.hpp>
#include <pinocchio/multibody/model.hpp>
#include <string>
#include <utility>
#include <vector>

#include "prime_ros/contact_potential.hpp"
#include "prime_ros/log_cholesky.hpp"
#include "prime_ros/tree_cholesky.hpp"

namespace prime_ros {

using Eigen::Matrix3d;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using ConstVectorRef = Eigen::Ref<const VectorXd>;

/// A sphere fixed to a link that may touch the ground.
struct ContactPoint {
  pinocchio::JointIndex joint = 0;     ///< joint that moves the link
  Vector3d offset = Vector3d::Zero();  ///< centre of the sphere in the joint frame [m]
  double radius = 0.0;                 ///< [m], zero for a point
  Eigen::Vector2d friction{0.8, 0.8};  ///< Coulomb coefficients along world x and y [-]
};

/// Everything about one time step that does not change from knot to knot.
struct StepSettings {
  double dt = 0.01;      ///< step length [s]
  double kappa = 500.0;  ///< sharpness of the contact smoothing [1/J]
  VectorXd damping;  ///< viscous joint damping, at the mean of old and new velocity, size nv [Nm s/rad]; zero
                     ///< for the base
  VectorXd friction;                ///< Coulomb joint friction, size nv [Nm]; zero for the base
  double friction_velocity = 0.05;  ///< width of the pseudo-Huber friction potential [rad/s]
  double tolerance = 1e-8;   ///< on kappa times the squared Newton decrement [-]: the scale of the barrier
  int max_iterations = 100;  ///< of Newton's method
};

class ContactStep;

/// Scratch memory and results of ContactStep. One per thread: it is overwritten by every step.
class ContactStepData {
 public:
  explicit ContactStepData(const ContactStep& step);

  // Results, valid after ContactStep::solve
  VectorXd v_next;     ///< velocity at the end of the step, size nv [m/s, rad/s]
  VectorXd impulse;    ///< contact impulses (x, y, z world axes per contact), size 3 nc [N s]
  VectorXd z;          ///< argument of the contact potentials, size 3 nc [m/s]
  int iterations = 0;  ///< Newton iterations of the last solve
  bool converged = false;

  /// Generalised force and slack of ContactStep::invert, size nv + 3 nc.
  VectorXd control;

  /// Derivatives of v_next, valid after ContactStep::differentiate: nv rows and, in this order of columns, q
  /// (tangent as in pinocchio::integrate), v, generalised force, contact slack, parameters.
  RowMatrixXd sensitivity;

  /// Whether it was made for a step of these sizes.
  bool fits(const ContactStep& step) const;

  auto dq() const { return sensitivity.leftCols(nv_); }
  auto dv() const { return sensitivity.middleCols(nv_, nv_); }
  auto df() const { return sensitivity.middleCols(2 * nv_, nv_); }
  auto dslack() const { return sensitivity.middleCols(3 * nv_, nslack_); }
  auto dtheta() const { return sensitivity.rightCols(ntheta_); }

 private:
  friend class ContactStep;
  int nv_, nslack_, ntheta_;
  pinocchio::Model model_;  ///< private copy: its inertias follow theta
  pinocchio::Data data_;
  double ground_height_ = 0.0, kappa_ = 0.0;
  std::vector<Vector10d> log_cholesky_;
  RowMatrixXd mass_, hessian_;  ///< of the Hessian only the lower triangle
  VectorXd momentum_, mass_velocity_, gradient_, newton_, mass_newton_, acceleration_, z_free_, z_trial_, dz_;
  Eigen::Matrix3Xd centre_, point_;
  std::vector<Eigen::Matrix3Xd> jacobian_;  ///< of the contact velocity, columns of the support only
  std::vector<Eigen::Matrix3Xd> slide_;  ///< change of z with q at fixed v_next, columns of the support only
  std::vector<Matrix3d> curvature_;      ///< Hessian of the contact potential
  TreeCholesky factor_;
  decltype(pinocchio::Data::f) external_;
  MatrixXd rnea_dq_, rnea_dv_, rnea_da_;
  Eigen::Matrix3Xd angular_, effect_, angular_effect_;  ///< scratch of one contact support
  Eigen::Matrix<double, 6, Eigen::Dynamic> parent_velocity_;
  Eigen::Matrix<double, 6, 10> regressor_;
  VectorXd force_free_, z_bare_, weighted_force_;  ///< of the inversion
  VectorXd coordinate_, coordinate_trial_, coordinate_step_, slope_;
  MatrixXd compliance_, normal_, damped_;  ///< lower triangles
  Eigen::LLT<MatrixXd> coordinate_factor_;
  std::vector<Matrix3d> graph_curvature_;
  std::vector<ContactPotential::OnGraph> on_graph_;
};

/// One step of the smoothed contact dynamics of a floating-base robot on the plane z = ground height:
///
///   v+ = argmin_v 1/2 v'(M + A + dt/2 D) v - p'v + sum_i l_i(z_i(v)) + dt sum_j c_j sqrt(v_j^2 + v_s^2)
///   z_i(v) = J_i v + (0, 0, phi_i / dt) + s_i,      p = (M + A - dt/2 D) v_k + dt (f - h(q, v_k))
///
/// f = S'tau + w is the generalised force, s the contact slack, A the armature, D damping, c Coulomb
/// friction. Damping acts on the mean of v_k and v+: as v_k is the mean over the interval before the knot and
/// v+ over the one after it, this is the mean over the triangle that weights all forces of the step. The
/// parameters theta are ten log-Cholesky numbers per identified body, in the order given, and the ground
/// height last. The contact location of a sphere is its lowest point, fixed to the centre in world axes.
class ContactStep {
 public:
  /// @param model  free-flyer root joint first; `armature` set.
  /// @param bodies  joints whose body inertia is part of theta.
  /// @throws std::invalid_argument  naming what does not fit.
  ContactStep(const pinocchio::Model& model, std::vector<ContactPoint> contacts,
              std::vector<pinocchio::JointIndex> bodies, StepSettings settings);

  int nv() const { return model_.nv; }
  int nq() const { return model_.nq; }
  int ncontacts() const { return static_cast<int>(contacts_.size()); }
  int ntheta() const { return 10 * static_cast<int>(bodies_.size()) + 1; }
  const pinocchio::Model& model() const { return model_; }
  const StepSettings& settings() const { return settings_; }
  const std::vector<ContactPoint>& contacts() const { return contacts_; }
  const std::vector<pinocchio::JointIndex>& bodies() const { return bodies_; }

  /// Not safe while another thread steps.
  void setKappa(double kappa);

  /// Parameters of the model's own inertias and the given ground height [m].
  VectorXd nominalTheta(double ground_height) const;

  /// Solves the step. `data.v_next` holds the first guess on entry and the result on return; a guess that is
  /// not finite is replaced by v. With non-finite input `data.converged` is false and `data.v_next` NaN.
  void solve(ContactStepData& data, const ConstVectorRef& q, const ConstVectorRef& v,
             const ConstVectorRef& force, const ConstVectorRef& slack, const ConstVectorRef& theta) const;

  /// Puts `data` where `solve` would leave it, with a result that is known, such as that of `invert`.
  void resume(ContactStepData& data, const ConstVectorRef& q, const ConstVectorRef& v,
              const ConstVectorRef& v_next, const ConstVectorRef& force, const ConstVectorRef& slack,
              const ConstVectorRef& theta) const;

  /// Inverse of the step: of all generalised forces w (on top of `force`) and slacks s that lead from (q, v)
  /// to `v_next`, `data.control` = (w, s) is (locally) the least improbable:
  ///
  ///   min 1/2 w'diag(weight_w) w + 1/2 s'diag(weight_s) s   with v_next = step(q, v, force + w, s, theta)
  ///
  /// The equation of motion is linear in w and the impulses, so only (z, impulse) of each contact on the
  /// graph of its potential are unknown. `data.iterations` and `data.converged` tell how that was found; what
  /// was not converged still leads to `v_next`, it is only not the least improbable. On entry `data.impulse`
  /// holds the first guess; zero is none.
  /// @param tolerance  decrease of the cost [-] below which a step is the last one: by far less than
  /// information.
  /// @return  the minimum; infinity for input that is not finite.
  double invert(ContactStepData& data, const ConstVectorRef& q, const ConstVectorRef& v,
                const ConstVectorRef& v_next, const ConstVectorRef& force, const ConstVectorRef& weight,
                const ConstVectorRef& theta, double tolerance = 1e-5) const;

  /// Velocities J(q) v of the contact points, world axes, size 3 nc [m/s].
  VectorXd contactVelocity(ContactStepData& data, const ConstVectorRef& q, const ConstVectorRef& v) const;

  /// Derivatives of v_next at the step just solved on `data` with the same arguments.
  void differentiate(ContactStepData& data, const ConstVectorRef& q, const ConstVectorRef& v) const;

  /// Derivatives of the contact impulses after `differentiate`.
  /// @param dx  with respect to (q, v, theta), 3 nc x (2 nv + ntheta) [N s / tangent unit].
  /// @param du  with respect to (generalised force, slack), 3 nc x (nv + 3 nc).
  void impulseDerivatives(const ContactStepData& data, Eigen::Ref<MatrixXd> dx,
                          Eigen::Ref<MatrixXd> du) const;

 private:
  /// Degrees of freedom that move one link, and the contact points on it.
  struct Support {
    pinocchio::JointIndex joint;
    std::vector<int> dofs;                             ///< increasing velocity indices
    std::vector<pinocchio::JointIndex> parent_of_dof;  ///< parent of the joint that owns each of them
    std::vector<int> contacts;
  };

  Support supportOf(pinocchio::JointIndex joint) const;
  void setParameters(ContactStepData& d, const ConstVectorRef& theta) const;
  void computeTerms(ContactStepData& d, const ConstVectorRef& q, const ConstVectorRef& v,
                    const ConstVectorRef& force, const ConstVectorRef& slack) const;
  void contactJacobians(ContactStepData& d) const;
  void applyJacobian(const ContactStepData& d, const VectorXd& velocity, VectorXd& out) const;
  void makeFeasible(ContactStepData& d) const;
  void minimise(ContactStepData& d) const;
  bool newton(ContactStepData& d, double kappa, double tolerance, int max_iterations) const;
  bool lineSearch(ContactStepData& d, double decrement) const;
  double contactValue(const ContactStepData& d, const VectorXd& z) const;
  double frictionValue(const ContactStepData& d, double step) const;
  void updateGradient(ContactStepData& d) const;
  void updateHessian(ContactStepData& d) const;
  void reactionForces(ContactStepData& d) const;
  void addContactConfigurationTerms(ContactStepData& d, const Support& support) const;
  void parameterDerivatives(ContactStepData& d) const;
  /// Square of the change of the argument of a contact potential in the norm of its Hessian.
  static bool fail(ContactStepData& d);
  void computeInverseTerms(ContactStepData& d, const ConstVectorRef& q, const ConstVectorRef& v,
                           const ConstVectorRef& v_next, const ConstVectorRef& force) const;
  void contactCompliance(ContactStepData& d, const ConstVectorRef& weight) const;
  double explain(ContactStepData& d, const VectorXd& coordinate, const ConstVectorRef& weight) const;
  void expandExplanation(ContactStepData& d, const ConstVectorRef& weight) const;
  bool explanationStep(ContactStepData& d, double damping) const;

  pinocchio::Model model_;
  std::vector<ContactPoint> contacts_;
  std::vector<pinocchio::JointIndex> bodies_;
  StepSettings settings_;
  std::vector<std::unique_ptr<ContactPotential>> potentials_;
  std::vector<Support> contact_supports_;  ///< one per link that carries contact points
  std::vector<Support> body_supports_;     ///< one per identified body
  std::vector<int> support_of_contact_;
  bool has_friction_ = false;
  friend class ContactStepData;
};

}  // namespace prime_ros
