// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/actions.hpp"

#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/spatial/explog.hpp>
#include <pinocchio/spatial/se3.hpp>
#include <stdexcept>

namespace prime_ros {
namespace pin = pinocchio;

ActionKnot::Data::Data(ActionKnot* action)
    : DataBase(action), measurement(action->nv()), v_next(VectorXd::Constant(action->nv(), NAN)),
      force(action->nv()), displacement(action->nv()),
      base_rows_x(6, static_cast<Eigen::Index>(action->get_state()->get_ndx())),
      base_rows_u(6, static_cast<Eigen::Index>(action->get_nu())) {}

ActionKnot::ActionKnot(const std::string& name, std::shared_ptr<StateInertial> state, int nu, int nv,
                       int ntheta, double dt, KnotMeasurement measurement)
    : Base(state, static_cast<size_t>(nu), 0), inertial_state_(std::move(state)),
      measurement_(std::move(measurement)), nv_(nv), dt_(dt) {
  const auto check = [&name](Eigen::Index got, Eigen::Index expected, const std::string& what) {
    if (got != expected)
      throw std::invalid_argument(name + ": " + what + " has size " + std::to_string(got) + ", expected " +
                                  std::to_string(expected));
  };
  check(inertial_state_->model().nv, nv_, "the velocity of the state");
  check(inertial_state_->ntheta(), ntheta, "theta of the state");
  check(measurement_.configuration.size(), nq(), "measured configuration");
  check(measurement_.velocity.size(), nv_, "measured velocity");
  check(measurement_.configuration_weight.size(), nv_, "configuration weight");
  check(measurement_.velocity_weight.size(), nv_, "velocity weight");
  check(measurement_.torque.size(), nv_ - 6, "torque");
  check(measurement_.control_weight.size(), nu, "control weight");
}

void ActionKnot::appliedForce(Data& d, const Eigen::Ref<const VectorXd>& u) const {
  d.force = u.head(nv_);
  d.force.tail(nv_ - 6) += measurement_.torque;
}

void ActionKnot::advance(Data& d, const Eigen::Ref<const VectorXd>& x, const Eigen::Ref<const VectorXd>& u) {
  d.displacement = dt_ * d.v_next;
  pin::integrate(inertial_state_->model(), x.head(nq()), ConstVectorRef(d.displacement), d.xnext.head(nq()));
  d.xnext.segment(nq(), nv_) = d.v_next;
  d.xnext.tail(ntheta()) = x.tail(ntheta());
  d.cost = d.measurement.value(measurement_, x.head(nq()), x.segment(nq(), nv_)) +
           0.5 * u.dot(measurement_.control_weight.cwiseProduct(u));
}

void ActionKnot::calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x) {
  Data& d = *static_cast<Data*>(data.get());
  d.cost = d.measurement.value(measurement_, x.head(nq()), x.segment(nq(), nv_));
  d.xnext = x;
}

void ActionKnot::expandMeasurement(Data& d, const Eigen::Ref<const VectorXd>& x) {
  d.cost = d.measurement.expand(measurement_, x.head(nq()), x.segment(nq(), nv_));
  d.Lx.setZero();
  d.Lx.head(2 * nv_) = d.measurement.gradient;
  d.Lxx.setZero();
  d.Lxx.diagonal().head(2 * nv_) = d.measurement.diagonal;
  const auto& block = d.measurement.base_block;
  d.Lxx.block<6, 6>(0, 0) += block.topLeftCorner<6, 6>();
  d.Lxx.block<6, 6>(0, nv_) += block.topRightCorner<6, 6>();
  d.Lxx.block<6, 6>(nv_, 0) += block.bottomLeftCorner<6, 6>();
  d.Lxx.block<6, 6>(nv_, nv_) += block.bottomRightCorner<6, 6>();
}

void ActionKnot::integrateRows(Data& d) const {
  const pin::Motion displacement(dt_ * d.v_next.head<6>());
  d.integrate_q = pin::exp6(displacement).toActionMatrixInverse();
  pin::Jexp6(displacement, d.integrate_v);
  d.Fx.topRows(nv_) = dt_ * d.Fx.middleRows(nv_, nv_);
  d.Fu.topRows(nv_) = dt_ * d.Fu.middleRows(nv_, nv_);
  d.base_rows_x.noalias() = d.integrate_v * d.Fx.topRows<6>();
  d.base_rows_u.noalias() = d.integrate_v * d.Fu.topRows<6>();
  d.Fx.topRows<6>() = d.base_rows_x;
  d.Fu.topRows<6>() = d.base_rows_u;
  d.Fx.topLeftCorner<6, 6>() += d.integrate_q;
  d.Fx.diagonal().segment(6, nv_ - 6).array() += 1.0;
  d.Fx.bottomRows(ntheta()).setZero();
  d.Fx.bottomRightCorner(ntheta(), ntheta()).setIdentity();
  d.Fu.bottomRows(ntheta()).setZero();
}

void ActionKnot::expand(Data& d, const Eigen::Ref<const VectorXd>& x, const Eigen::Ref<const VectorXd>& u) {
  integrateRows(d);
  expandMeasurement(d, x);
  d.Lu = measurement_.control_weight.cwiseProduct(u);
  d.Luu.setZero();
  d.Luu.diagonal() = measurement_.control_weight;
  d.Lxu.setZero();
  d.cost += 0.5 * u.dot(d.Lu);  // Crocoddyl takes the current cost from here
}

void ActionKnot::calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x) {
  expandMeasurement(*static_cast<Data*>(data.get()), x);
}

std::shared_ptr<ActionKnot::DataBase> ActionKnot::createData() {
  return std::allocate_shared<Data>(Eigen::aligned_allocator<Data>(), this);
}

ActionContactStep::ActionContactStep(std::shared_ptr<StateInertial> state, std::shared_ptr<ContactStep> step,
                                     std::shared_ptr<WorkspacePool> pool, KnotMeasurement measurement)
    : ActionKnot("ActionContactStep", std::move(state), step->nv() + 3 * step->ncontacts(), step->nv(),
                 step->ntheta(), step->settings().dt, std::move(measurement)),
      step_(std::move(step)), pool_(std::move(pool)) {
  if (!pool_->fits(*step_)) throw std::invalid_argument("ActionContactStep: pool was made for another step");
}

ContactStepData& ActionContactStep::solveStep(Data& d, const Eigen::Ref<const VectorXd>& x,
                                              const Eigen::Ref<const VectorXd>& u) {
  ContactStepData& workspace = pool_->get();
  appliedForce(d, u);
  workspace.v_next = d.v_next;
  step_->solve(workspace, x.head(nq()), x.segment(nq(), nv()), d.force, u.tail(3 * step_->ncontacts()),
               x.tail(ntheta()));
  d.v_next = workspace.v_next;
  d.step_converged = workspace.converged;
  return workspace;
}

void ActionContactStep::calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                             const Eigen::Ref<const VectorXd>& u) {
  Data& d = *static_cast<Data*>(data.get());
  solveStep(d, x, u);
  advance(d, x, u);
}

void ActionContactStep::calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                                 const Eigen::Ref<const VectorXd>& u) {
  Data& d = *static_cast<Data*>(data.get());
  ContactStepData& step = solveStep(d, x, u);
  step_->differentiate(step, x.head(nq()), x.segment(nq(), nv()));
  auto velocity_x = d.Fx.middleRows(nv(), nv());
  velocity_x.leftCols(nv()) = step.dq();
  velocity_x.middleCols(nv(), nv()) = step.dv();
  velocity_x.rightCols(ntheta()) = step.dtheta();
  auto velocity_u = d.Fu.middleRows(nv(), nv());
  velocity_u.leftCols(nv()) = step.df();
  velocity_u.rightCols(3 * step_->ncontacts()) = step.dslack();
  expand(d, x, u);
}

void ActionContactStep::print(std::ostream& os) const {
  os << "ActionContactStep {nv=" << step_->nv() << ", contacts=" << step_->ncontacts()
     << ", ntheta=" << step_->ntheta() << "}";
}

ActionArrival::ActionArrival(std::shared_ptr<StateInertial> state, Eigen::MatrixXd information)
    : Base(state, state->get_ndx(), 0), information_(std::move(information)) {
  const auto ndx = static_cast<Eigen::Index>(state->get_ndx());
  if (information_.rows() != ndx || information_.cols() != ndx)
    throw std::invalid_argument("ActionArrival: information is " + std::to_string(information_.rows()) +
                                " x " + std::to_string(information_.cols()) + ", expected " +
                                std::to_string(ndx) + " square");
}

void ActionArrival::calc(const std::shared_ptr<DataBase>& d, const Eigen::Ref<const VectorXd>& x,
                         const Eigen::Ref<const VectorXd>& u) {
  state_->integrate(x, u, d->xnext);
  d->cost = 0.5 * u.dot(information_ * u);
}

void ActionArrival::calc(const std::shared_ptr<DataBase>& d, const Eigen::Ref<const VectorXd>& x) {
  d->xnext = x;
  d->cost = 0.0;
}

void ActionArrival::calcDiff(const std::shared_ptr<DataBase>& d, const Eigen::Ref<const VectorXd>& x,
                             const Eigen::Ref<const VectorXd>& u) {
  state_->Jintegrate(x, u, d->Fx, d->Fu, crocoddyl::both, crocoddyl::setto);
  d->Lu = information_ * u;
  d->Luu = information_;
  d->Lx.setZero();
  d->Lxx.setZero();
  d->Lxu.setZero();
  d->cost = 0.5 * u.dot(d->Lu);
}

void ActionArrival::calcDiff(const std::shared_ptr<DataBase>& d, const Eigen::Ref<const VectorXd>&) {
  d->Lx.setZero();
  d->Lxx.setZero();
}

void ActionArrival::print(std::ostream& os) const {
  os << "ActionArrival {ndx=" << state_->get_ndx() << "}";
}

}  // namespace prime_ros
