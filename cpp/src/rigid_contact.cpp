// SPDX-License-Identifier: Apache-2.0
// Everything about a foot is in its own axes, so that a force that turns with the foot is constant there:
//   r1 = RNEA(q, v, a; -f) - tau = 0,   r2 = c(q, v, a) + rate J v = 0,   c: acceleration of the foot,
// and [M -J'; J 0] (da, df) = -(dr1, dr2) with a and f fixed.
#include "prime_ros/rigid_contact.hpp"

#include <omp.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/frames-derivatives.hpp>
#include <pinocchio/algorithm/frames.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics-derivatives.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/regressor.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/spatial/skew.hpp>
#include <stdexcept>

#include "prime_ros/log_cholesky.hpp"

namespace prime_ros {
namespace pin = pinocchio;

namespace {

using Eigen::Index;
using Matrix6X = Eigen::Matrix<double, 6, Eigen::Dynamic>;
using Rows6 = Eigen::Matrix<double, Eigen::Dynamic, 6>;
using RowVector6 = Eigen::Matrix<double, 1, 6>;

constexpr int kFacets = 8;  ///< of the linearised friction cone, inside the true one

void check(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument("RigidContact: " + message);
}

RowVector6 row(double fx, double fy, double fz, double mx = 0.0, double my = 0.0, double mz = 0.0) {
  RowVector6 r;
  r << fx, fy, fz, mx, my, mz;
  return r;
}

/// Rows whose product with a wrench (force, moment; z up) is negative inside the friction cone of a foot: for
/// a sole also where the centre of pressure is on it and friction holds the moment about z (S. Caron, Q.-C.
/// Pham and Y. Nakamura, "Stability of surface contacts for humanoid robots", ICRA 2015).
Rows6 frictionRows(const RigidFoot& foot) {
  const double mu = foot.friction, inner = mu * std::cos(M_PI / kFacets);
  std::vector<RowVector6> rows{row(0.0, 0.0, -1.0)};
  for (int i = 0; i < kFacets; ++i) {
    const double angle = 2.0 * M_PI * i / kFacets;
    rows.push_back(row(std::cos(angle), std::sin(angle), -inner));
  }
  if (foot.flat()) {
    const double x = 0.5 * foot.size[0], y = 0.5 * foot.size[1];
    for (double sign : {-1.0, 1.0}) {
      rows.push_back(row(0.0, 0.0, -y, sign));
      rows.push_back(row(0.0, 0.0, -x, 0.0, sign));
      for (double a : {-1.0, 1.0})
        for (double b : {-1.0, 1.0})
          rows.push_back(row(a * y, b * x, -mu * (x + y), sign * a * mu, sign * b * mu, sign));
    }
  }
  Rows6 all(static_cast<Index>(rows.size()), 6);
  for (size_t i = 0; i < rows.size(); ++i) all.row(static_cast<Index>(i)) = rows[i];
  return all;
}

}  // namespace

/// Model and memory of one thread.
struct RigidContact::Workspace {
  struct Foot {
    Foot(const RigidFoot& foot, int nv, int nx)
        : given(foot), size(foot.flat() ? 6 : 3), limits(frictionRows(foot)), velocity_q(6, nv),
          acceleration_q(6, nv), acceleration_v(6, nv), jacobian(6, nv), wrench_x(size, nx),
          wrench_u(size, nv), violation(limits.rows()) {}

    RigidFoot given;
    Index size;    ///< of its force or wrench
    Rows6 limits;  ///< of friction
    Matrix6X velocity_q, acceleration_q, acceleration_v, jacobian;
    pin::Motion velocity;
    pin::Force force;             ///< in axes of the foot
    MatrixXd wrench_x, wrench_u;  ///< of the force as the cone sees it
    VectorXd violation;
    Index first = 0;  ///< row among the constraints
  };

  explicit Workspace(const RigidContact& owner)
      : settings(owner.settings_), model(owner.model_), data(model), external(data.f) {
    const int nv = model.nv, nx = 2 * nv + owner.ntheta(), rows = 6 * owner.nfeet();
    for (const auto& foot : owner.feet_) feet.emplace_back(foot, nv, nx);
    for (auto* m : {&rnea_q, &rnea_v, &rnea_a}) m->setZero(nv, nv);
    parameter_force.setZero(nv, owner.ntheta());
    zero.setZero(nv);
    step.acceleration.resize(nv);
    step.wrench.setZero(6, owner.nfeet());
    step.acceleration_x.resize(nv, nx);
    step.acceleration_u.resize(nv, nv);
    step.wrench_x.setZero(rows, nx);
    step.wrench_u.setZero(rows, nv);
    step.cone_gradient_x.resize(nx);
    step.cone_gradient_u.resize(nv);
    step.cone_xx.resize(nx, nx);
    step.cone_xu.resize(nx, nv);
    step.cone_uu.resize(nv, nv);
  }

  bool stands(size_t i) const { return (standing >> i) & 1u; }

  /// Acceleration and forces.
  void dynamics(const ConstVectorRef& q, const ConstVectorRef& v, const ConstVectorRef& tau) {
    pin::forwardKinematics(model, data, q, v, ConstVectorRef(zero));
    pin::computeJointJacobians(model, data, q);
    const Index rows = constraints();
    pin::crba(model, data, q);
    data.M.triangularView<Eigen::StrictlyLower>() = data.M.transpose();
    mass.compute(data.M);
    inverse_mass_jt = mass.solve(jacobian.transpose());
    const VectorXd free = mass.solve(tau - pin::nonLinearEffects(model, data, q, v));
    constraint.compute(jacobian * inverse_mass_jt);
    const VectorXd f = rows ? VectorXd(constraint.solve(drift - jacobian * free)) : VectorXd(0);
    step.acceleration = free + inverse_mass_jt * f;
    for (size_t i = 0; i < feet.size(); ++i) {
      feet[i].force.setZero();
      if (stands(i)) feet[i].force.toVector().head(feet[i].size) = f.segment(feet[i].first, feet[i].size);
    }
  }

  /// Jacobian of the standing feet, and the acceleration that it has to give beside that of the joints.
  Index constraints() {
    Index rows = 0;
    for (size_t i = 0; i < feet.size(); ++i) {
      feet[i].first = rows;
      if (stands(i)) rows += feet[i].size;
    }
    jacobian.resize(rows, model.nv);
    drift.resize(rows);
    for (size_t i = 0; i < feet.size(); ++i) {
      if (!stands(i)) continue;
      Foot& foot = feet[i];
      const auto joint = foot.given.joint;
      foot.jacobian.setZero();
      pin::getFrameJacobian(model, data, joint, foot.given.placement, pin::LOCAL, foot.jacobian);
      foot.velocity = pin::getFrameVelocity(model, data, joint, foot.given.placement, pin::LOCAL);
      jacobian.middleRows(foot.first, foot.size) = foot.jacobian.topRows(foot.size);
      drift.segment(foot.first, foot.size) =
          -(acceleration(foot) + settings.settle_rate * foot.velocity.toVector()).head(foot.size);
    }
    return rows;
  }

  /// Of a foot by the accelerations in `data`: of the point for a point, spatial for a sole.
  pin::Motion::Vector6 acceleration(const Foot& foot) const {
    return foot.given.flat()
               ? pin::getFrameAcceleration(model, data, foot.given.joint, foot.given.placement, pin::LOCAL)
                     .toVector()
               : pin::getFrameClassicalAcceleration(model, data, foot.given.joint, foot.given.placement,
                                                    pin::LOCAL)
                     .toVector();
  }

  /// Derivatives of acceleration and forces by (q, v, theta) and tau.
  void derivatives(const ConstVectorRef& q, const ConstVectorRef& v, const ConstVectorRef& theta,
                   const std::vector<pin::JointIndex>& bodies) {
    const Index nv = model.nv, n = 2 * nv, nx = step.acceleration_x.cols(), rows = jacobian.rows();
    for (auto& force : external) force.setZero();
    for (size_t i = 0; i < feet.size(); ++i)
      if (stands(i)) external[feet[i].given.joint] += feet[i].given.placement.act(feet[i].force);
    const ConstVectorRef a(step.acceleration);
    rnea_q.setZero();
    rnea_v.setZero();
    rnea_a.setZero();
    pin::computeRNEADerivatives(model, data, q, v, a, external, rnea_q, rnea_v, rnea_a);
    parameterForce(q, v, theta, bodies);
    pin::computeForwardKinematicsDerivatives(model, data, q, v, a);

    MatrixXd dynamic(nv, nx + nv), kinematic = MatrixXd::Zero(rows, nx + nv);
    dynamic << rnea_q, rnea_v, parameter_force, -MatrixXd::Identity(nv, nv);
    for (size_t i = 0; i < feet.size(); ++i)
      if (stands(i)) kinematic.block(feet[i].first, 0, feet[i].size, n) = constraintDerivative(feet[i]);
    const MatrixXd response = mass.solve(dynamic);
    const MatrixXd forces =
        rows ? MatrixXd(constraint.solve(jacobian * response - kinematic)) : MatrixXd(0, nx + nv);
    const MatrixXd accelerations = inverse_mass_jt * forces - response;
    step.acceleration_x = accelerations.leftCols(nx);
    step.acceleration_u = accelerations.rightCols(nv);
    step.wrench_x.setZero();
    step.wrench_u.setZero();
    for (size_t i = 0; i < feet.size(); ++i) {
      if (!stands(i)) continue;
      Foot& foot = feet[i];
      foot.wrench_x = forces.block(foot.first, 0, foot.size, nx);
      foot.wrench_u = forces.block(foot.first, nx, foot.size, nv);
      if (!foot.given.flat()) intoWorld(foot);
      const Index first = 6 * static_cast<Index>(i);
      step.wrench_x.middleRows(first, foot.size) = foot.wrench_x;
      step.wrench_u.middleRows(first, foot.size) = foot.wrench_u;
    }
  }

  /// Derivative of the acceleration of a foot plus rate times its velocity, by (q, v).
  MatrixXd constraintDerivative(Foot& foot) {
    const Index nv = model.nv;
    for (auto* m : {&foot.velocity_q, &foot.acceleration_q, &foot.acceleration_v}) m->setZero();
    foot.jacobian.setZero();
    pin::getFrameAccelerationDerivatives(model, data, foot.given.joint, foot.given.placement, pin::LOCAL,
                                         foot.velocity_q, foot.acceleration_q, foot.acceleration_v,
                                         foot.jacobian);
    if (!foot.given.flat()) {  // the acceleration of a point has omega x v on top
      const Eigen::Matrix3d omega = pin::skew(foot.velocity.angular()), v = pin::skew(foot.velocity.linear());
      foot.acceleration_q.topRows<3>() +=
          omega * foot.velocity_q.topRows<3>() - v * foot.velocity_q.bottomRows<3>();
      foot.acceleration_v.topRows<3>() +=
          omega * foot.jacobian.topRows<3>() - v * foot.jacobian.bottomRows<3>();
    }
    MatrixXd both(foot.size, 2 * nv);
    both << (foot.acceleration_q + settings.settle_rate * foot.velocity_q).topRows(foot.size),
        (foot.acceleration_v + settings.settle_rate * foot.jacobian).topRows(foot.size);
    return both;
  }

  Eigen::Matrix3d axes(const Foot& foot) const {
    return data.oMi[foot.given.joint].rotation() * foot.given.placement.rotation();
  }

  /// Derivatives of the force of a point from its own axes to those of the world.
  void intoWorld(Foot& foot) {
    foot.wrench_x.leftCols(model.nv) -= pin::skew(foot.force.linear()) * foot.jacobian.bottomRows<3>();
    foot.wrench_x = axes(foot) * foot.wrench_x;
    foot.wrench_u = axes(foot) * foot.wrench_u;
  }

  /// Generalised force of the inertia per theta.
  void parameterForce(const ConstVectorRef& q, const ConstVectorRef& v, const ConstVectorRef& theta,
                      const std::vector<pin::JointIndex>& bodies) {
    if (bodies.empty()) return;
    pin::computeJointTorqueRegressor(model, data, q, v, ConstVectorRef(step.acceleration));
    for (size_t b = 0; b < bodies.size(); ++b) {
      const Index column = 10 * static_cast<Index>(b);
      parameter_force.middleCols<10>(column).noalias() =
          data.jointTorqueRegressor.middleCols<10>(10 * (static_cast<Index>(bodies[b]) - 1)) *
          log_cholesky::jacobian(theta.segment<10>(column));
    }
  }

  /// Force in world axes of a point, wrench in its own axes of a sole; the penalty outside the cones.
  void wrenchesAndCones() {
    step.wrench.setZero();
    step.cone_cost = 0.0;
    for (size_t i = 0; i < feet.size(); ++i) {
      if (!stands(i)) continue;
      Foot& foot = feet[i];
      auto wrench = step.wrench.col(static_cast<Index>(i));
      wrench = foot.force.toVector();
      if (!foot.given.flat()) wrench.head<3>() = axes(foot) * foot.force.linear();
      foot.violation = (foot.limits * wrench).cwiseMax(0.0);
      step.cone_cost += 0.5 * settings.cone_weight * foot.violation.squaredNorm();
    }
  }

  /// Gradient and Gauss-Newton Hessian of the penalty.
  void coneDerivatives() {
    for (auto* m : {&step.cone_xx, &step.cone_xu, &step.cone_uu}) m->setZero();
    step.cone_gradient_x.setZero();
    step.cone_gradient_u.setZero();
    for (size_t i = 0; i < feet.size(); ++i) {
      const Foot& foot = feet[i];
      if (!stands(i) || foot.violation.isZero(0.0)) continue;
      const VectorXd outside = (foot.violation.array() > 0.0).cast<double>() * settings.cone_weight;
      const auto limits = foot.limits.leftCols(foot.size);
      const MatrixXd curvature = limits.transpose() * outside.asDiagonal() * limits;
      const VectorXd gradient = settings.cone_weight * limits.transpose() * foot.violation;
      step.cone_gradient_x += foot.wrench_x.transpose() * gradient;
      step.cone_gradient_u += foot.wrench_u.transpose() * gradient;
      step.cone_xx += foot.wrench_x.transpose() * curvature * foot.wrench_x;
      step.cone_xu += foot.wrench_x.transpose() * curvature * foot.wrench_u;
      step.cone_uu += foot.wrench_u.transpose() * curvature * foot.wrench_u;
    }
  }

  RigidSettings settings;
  pin::Model model;  ///< its inertias follow theta
  pin::Data data;
  decltype(pin::Data::f) external;
  std::vector<Foot> feet;
  unsigned standing = 0;
  Eigen::LLT<MatrixXd> mass, constraint;
  MatrixXd jacobian, inverse_mass_jt, rnea_q, rnea_v, rnea_a;
  MatrixXd parameter_force;  ///< nv x ntheta
  VectorXd drift, zero;
  RigidStep step;
};

RigidContact::RigidContact(const pin::Model& model, std::vector<RigidFoot> feet,
                           std::vector<pin::JointIndex> bodies, RigidSettings settings)
    : model_(model), feet_(std::move(feet)), bodies_(std::move(bodies)), settings_(settings), nv_(model.nv) {
  const auto njoints = static_cast<pin::JointIndex>(model_.njoints);
  check(feet_.size() <= 32, "at most 32 feet");
  check(settings_.dt > 0.0 && settings_.settle_rate >= 0.0 && settings_.cone_weight >= 0.0,
        "dt must be positive, settle_rate and cone_weight not negative");
  for (const auto& foot : feet_) {
    check(foot.joint > 0 && foot.joint < njoints,
          "foot on joint " + std::to_string(foot.joint) + " of " + std::to_string(njoints));
    check(foot.friction > 0.0 && foot.size.minCoeff() >= 0.0, "friction must be > 0 and size >= 0");
  }
  for (auto body : bodies_) {
    check(body > 0 && body < njoints,
          "body of joint " + std::to_string(body) + " of " + std::to_string(njoints));
    check(log_cholesky::fromInertia(model_.inertias[body]).allFinite(),
          "the nominal inertia of the body of joint '" + model_.names[body] + "' is not physical");
  }
  const int count = std::max({1, omp_get_max_threads(), omp_get_num_procs()});
  for (int i = 0; i < count; ++i) workspaces_.push_back(std::make_unique<Workspace>(*this));
}

RigidContact::~RigidContact() = default;

VectorXd RigidContact::nominalTheta() const {
  VectorXd theta(ntheta());
  for (size_t b = 0; b < bodies_.size(); ++b)
    theta.segment<10>(10 * static_cast<Index>(b)) = log_cholesky::fromInertia(model_.inertias[bodies_[b]]);
  return theta;
}

const RigidStep& RigidContact::solve(unsigned standing, const ConstVectorRef& q, const ConstVectorRef& v,
                                     const ConstVectorRef& theta, const ConstVectorRef& force,
                                     bool derivatives) {
  Workspace& w = *workspaces_.at(static_cast<size_t>(omp_get_thread_num()));
  for (size_t b = 0; b < bodies_.size(); ++b)
    w.model.inertias[bodies_[b]] = pin::Inertia::FromDynamicParameters(
        log_cholesky::toDynamicParameters(theta.segment<10>(10 * static_cast<Index>(b))));
  w.standing = standing;
  w.dynamics(q, v, force);
  w.wrenchesAndCones();
  if (derivatives) {
    w.derivatives(q, v, theta, bodies_);
    w.coneDerivatives();
  }
  return w.step;
}

ActionRigidContact::ActionRigidContact(std::shared_ptr<StateInertial> state,
                                       std::shared_ptr<RigidContact> contact, unsigned standing,
                                       KnotMeasurement measurement)
    : ActionKnot("ActionRigidContact", std::move(state), contact->nv(), contact->nv(), contact->ntheta(),
                 contact->settings().dt, std::move(measurement)),
      contact_(std::move(contact)), standing_(standing) {}

const RigidStep& ActionRigidContact::solve(Data& d, const Eigen::Ref<const VectorXd>& x,
                                           const Eigen::Ref<const VectorXd>& u, bool derivatives) {
  appliedForce(d, u);
  const RigidStep& step =
      contact_->solve(standing_, x.head(nq()), x.segment(nq(), nv()), x.tail(ntheta()), d.force, derivatives);
  d.v_next = x.segment(nq(), nv()) + contact_->settings().dt * step.acceleration;
  return step;
}

const RigidStep& ActionRigidContact::step(const VectorXd& x, const VectorXd& u) {
  Data d(this);
  return solve(d, x, u, true);
}

void ActionRigidContact::calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                              const Eigen::Ref<const VectorXd>& u) {
  Data& d = *static_cast<Data*>(data.get());
  const RigidStep& step = solve(d, x, u, false);
  advance(d, x, u);
  d.cost += step.cone_cost;
}

void ActionRigidContact::calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                                  const Eigen::Ref<const VectorXd>& u) {
  Data& d = *static_cast<Data*>(data.get());
  const double dt = contact_->settings().dt;
  const RigidStep& step = solve(d, x, u, true);
  d.Fx.middleRows(nv(), nv()) = dt * step.acceleration_x;
  d.Fx.block(nv(), nv(), nv(), nv()).diagonal().array() += 1.0;
  d.Fu.middleRows(nv(), nv()) = dt * step.acceleration_u;
  expand(d, x, u);
  d.cost += step.cone_cost;
  d.Lx += step.cone_gradient_x;
  d.Lu += step.cone_gradient_u;
  d.Lxx += step.cone_xx;
  d.Lxu += step.cone_xu;
  d.Luu += step.cone_uu;
}

void ActionRigidContact::print(std::ostream& os) const {
  os << "ActionRigidContact {nv=" << nv() << ", standing=" << standing_ << " of " << contact_->nfeet()
     << " feet}";
}

}  // namespace prime_ros
