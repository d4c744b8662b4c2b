// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/state.hpp"

#include <limits>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <stdexcept>

namespace prime_ros {
namespace pin = pinocchio;
using crocoddyl::AssignmentOp;
using crocoddyl::Jcomponent;

namespace {

void assign(Eigen::Ref<Eigen::MatrixXd> out, const Eigen::MatrixXd& value, AssignmentOp op) {
  if (op == crocoddyl::setto) out = value;
  if (op == crocoddyl::addto) out += value;
  if (op == crocoddyl::rmfrom) out -= value;
}

}  // namespace

StateInertial::StateInertial(const pin::Model& model, int ntheta)
    : Base(static_cast<size_t>(model.nq + model.nv + ntheta), static_cast<size_t>(2 * model.nv + ntheta)),
      model_(std::make_shared<pin::Model>(model)), ntheta_(ntheta) {
  nq_ = static_cast<size_t>(model.nq);
  nv_ = static_cast<size_t>(model.nv);
  lb_.setConstant(-std::numeric_limits<double>::infinity());
  ub_.setConstant(std::numeric_limits<double>::infinity());
}

StateInertial::Vector StateInertial::zero() const {
  Vector x = Vector::Zero(nq() + nflat());
  x.head(nq()) = pin::neutral(*model_);
  return x;
}

StateInertial::Vector StateInertial::rand() const {
  Vector x = Vector::Random(nq() + nflat());
  const Vector dq = Vector::Random(nv());
  x.head(nq()) = pin::integrate(*model_, pin::neutral(*model_), dq);
  return x;
}

void StateInertial::diff(const Eigen::Ref<const Vector>& x0, const Eigen::Ref<const Vector>& x1,
                         Eigen::Ref<Vector> dx) const {
  pin::difference(*model_, x0.head(nq()), x1.head(nq()), dx.head(nv()));
  dx.tail(nflat()) = x1.tail(nflat()) - x0.tail(nflat());
}

void StateInertial::integrate(const Eigen::Ref<const Vector>& x, const Eigen::Ref<const Vector>& dx,
                              Eigen::Ref<Vector> xout) const {
  pin::integrate(*model_, x.head(nq()), dx.head(nv()), xout.head(nq()));
  xout.tail(nflat()) = x.tail(nflat()) + dx.tail(nflat());
}

void StateInertial::Jdiff(const Eigen::Ref<const Vector>& x0, const Eigen::Ref<const Vector>& x1,
                          Eigen::Ref<Matrix> Jfirst, Eigen::Ref<Matrix> Jsecond, Jcomponent which) const {
  if (which != crocoddyl::second) {
    Jfirst.setZero();
    pin::dDifference(*model_, x0.head(nq()), x1.head(nq()), Jfirst.topLeftCorner(nv(), nv()), pin::ARG0);
    Jfirst.diagonal().tail(nflat()).setConstant(-1.0);
  }
  if (which != crocoddyl::first) {
    Jsecond.setZero();
    pin::dDifference(*model_, x0.head(nq()), x1.head(nq()), Jsecond.topLeftCorner(nv(), nv()), pin::ARG1);
    Jsecond.diagonal().tail(nflat()).setConstant(1.0);
  }
}

void StateInertial::Jintegrate(const Eigen::Ref<const Vector>& x, const Eigen::Ref<const Vector>& dx,
                               Eigen::Ref<Matrix> Jfirst, Eigen::Ref<Matrix> Jsecond, Jcomponent which,
                               AssignmentOp op) const {
  Matrix J = Matrix::Identity(nv() + nflat(), nv() + nflat());
  if (which != crocoddyl::second) {
    pin::dIntegrate(*model_, x.head(nq()), dx.head(nv()), J.topLeftCorner(nv(), nv()), pin::ARG0);
    assign(Jfirst, J, op);
  }
  if (which != crocoddyl::first) {
    pin::dIntegrate(*model_, x.head(nq()), dx.head(nv()), J.topLeftCorner(nv(), nv()), pin::ARG1);
    assign(Jsecond, J, op);
  }
}

void StateInertial::JintegrateTransport(const Eigen::Ref<const Vector>& x, const Eigen::Ref<const Vector>& dx,
                                        Eigen::Ref<Matrix> Jin, Jcomponent which) const {
  if (which == crocoddyl::both)
    throw std::invalid_argument("StateInertial: transport takes first or second, not both");
  pin::dIntegrateTransport(*model_, x.head(nq()), dx.head(nv()), Jin.topRows(nv()),
                           which == crocoddyl::first ? pin::ARG0 : pin::ARG1);
}

}  // namespace prime_ros
