// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/actions.hpp"

#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/spatial/explog.hpp>
#include <pinocchio/spatial/se3.hpp>
#include <stdexcept>

namespace prime_ros {
namespace pin = pinocchio;

namespace {

void checkSize(Eigen::Index got, Eigen::Index expected, const std::string& name) {
  if (got != expected)
    throw std::invalid_argument("ActionContactStep: " + name + " has size " + std::to_string(got) +
                                ", expected " + std::to_string(expected));
}

}  // namespace

ActionContactStep::Data::Data(ActionContactStep* action)
    : DataBase(action), measurement(action->step().nv()),
      v_next(VectorXd::Constant(action->step().nv(), NAN)), force(action->step().nv()),
      displacement(action->step().nv()),
      base_rows_x(6, static_cast<Eigen::Index>(action->get_state()->get_ndx())),
      base_rows_u(6, static_cast<Eigen::Index>(action->get_nu())) {}

ActionContactStep::ActionContactStep(std::shared_ptr<StateInertial> state, std::shared_ptr<ContactStep> step,
                                     std::shared_ptr<WorkspacePool> pool, KnotMeasurement measurement)
    : Base(state, static_cast<size_t>(step->nv() + 3 * step->ncontacts()), 0),
      inertial_state_(std::move(state)), step_(std::move(step)), pool_(std::move(pool)),
      measurement_(std::move(measurement)) {
  const int nv = step_->nv();
  checkSize(inertial_state_->model().nv, nv, "the velocity of the state");
  if (!pool_->fits(*step_)) throw std::invalid_argument("ActionContactStep: pool was made for another step");
  checkSize(inertial_state_->ntheta(), step_->ntheta(), "theta of the state");
  checkSize(measurement_.configuration.size(), step_->nq(), "measured configuration");
  checkSize(measurement_.velocity.size(), nv, "measured velocity");
  checkSize(measurement_.configuration_weight.size(), nv, "configuration weight");
  checkSize(measurement_.velocity_weight.size(), nv, "velocity weight");
  checkSize(measurement_.torque.size(), nv - 6, "torque");
  checkSize(measurement_.control_weight.size(), static_cast<Eigen::Index>(nu_), "control weight");
}

ContactStepData& ActionContactStep::solveStep(Data& d, const Eigen::Ref<const VectorXd>& x,
                                              const Eigen::Ref<const VectorXd>& u) {
  const int nq = step_->nq(), nv = step_->nv();
  ContactStepData& workspace = pool_->get();
  d.force = u.head(nv);
  d.force.tail(nv - 6) += measurement_.torque;
  workspace.v_next = d.v_next;
  step_->solve(workspace, x.head(nq), x.segment(nq, nv), d.force, u.tail(3 * step_->ncontacts()),
               x.tail(step_->ntheta()));
  d.v_next = workspace.v_next;
  d.step_converged = workspace.converged;
  return workspace;
}

void ActionContactStep::calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                             const Eigen::Ref<const VectorXd>& u) {
  Data& d = *static_cast<Data*>(data.get());
  const int nq = step_->nq(), nv = step_->nv();
  solveStep(d, x, u);
  d.displacement = step_->settings().dt * d.v_next;
  pin::integrate(inertial_state_->model(), x.head(nq), ConstVectorRef(d.displacement), d.xnext.head(nq));
  d.xnext.segment(nq, nv) = d.v_next;
  d.xnext.tail(step_->ntheta()) = x.tail(step_->ntheta());
  d.cost = d.measurement.value(measurement_, x.head(nq), x.segment(nq, nv)) +
           0.5 * u.dot(measurement_.control_weight.cwiseProduct(u));
}

void ActionContactStep::calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x) {
  Data& d = *static_cast<Data*>(data.get());
  d.cost = d.measurement.value(measurement_, x.head(step_->nq()), x.segment(step_->nq(), step_->nv()));
  d.xnext = x;
}

void ActionContactStep::expandMeasurement(Data& d, const Eigen::Ref<const VectorXd>& x) {
  const int nq = step_->nq(), nv = step_->nv();
  d.cost = d.measurement.expand(measurement_, x.head(nq), x.segment(nq, nv));
  d.Lx.setZero();
  d.Lx.head(2 * nv) = d.measurement.gradient;
  d.Lxx.setZero();
  d.Lxx.diagonal().head(2 * nv) = d.measurement.diagonal;
  const auto& block = d.measurement.base_block;
  d.Lxx.block<6, 6>(0, 0) += block.topLeftCorner<6, 6>();
  d.Lxx.block<6, 6>(0, nv) += block.topRightCorner<6, 6>();
  d.Lxx.block<6, 6>(nv, 0) += block.bottomLeftCorner<6, 6>();
  d.Lxx.block<6, 6>(nv, nv) += block.bottomRightCorner<6, 6>();
}

void ActionContactStep::calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                                 const Eigen::Ref<const VectorXd>& u) {
  Data& d = *static_cast<Data*>(data.get());
  const int nq = step_->nq(), nv = step_->nv(), ntheta = step_->ntheta(), nslack = 3 * step_->ncontacts();
  const double dt = step_->settings().dt;
  ContactStepData& step = solveStep(d, x, u);
  step_->differentiate(step, x.head(nq), x.segment(nq, nv));

  auto velocity_x = d.Fx.middleRows(nv, nv);
  velocity_x.leftCols(nv) = step.dq();
  velocity_x.middleCols(nv, nv) = step.dv();
  velocity_x.rightCols(ntheta) = step.dtheta();
  auto velocity_u = d.Fu.middleRows(nv, nv);
  velocity_u.leftCols(nv) = step.df();
  velocity_u.rightCols(nslack) = step.dslack();

  const pin::Motion displacement(dt * d.v_next.head<6>());
  d.integrate_q = pin::exp6(displacement).toActionMatrixInverse();
  pin::Jexp6(displacement, d.integrate_v);
  d.Fx.topRows(nv) = dt * velocity_x;
  d.Fu.topRows(nv) = dt * velocity_u;
  d.base_rows_x.noalias() = d.integrate_v * d.Fx.topRows<6>();
  d.base_rows_u.noalias() = d.integrate_v * d.Fu.topRows<6>();
  d.Fx.topRows<6>() = d.base_rows_x;
  d.Fu.topRows<6>() = d.base_rows_u;
  d.Fx.topLeftCorner<6, 6>() += d.integrate_q;
  d.Fx.diagonal().segment(6, nv - 6).array() += 1.0;
  d.Fx.bottomRows(ntheta).setZero();
  d.Fx.bottomRightCorner(ntheta, ntheta).setIdentity();
  d.Fu.bottomRows(ntheta).setZero();

  expandMeasurement(d, x);
  d.Lu = measurement_.control_weight.cwiseProduct(u);
  d.Luu.setZero();
  d.Luu.diagonal() = measurement_.control_weight;
  d.Lxu.setZero();
  d.cost += 0.5 * u.dot(d.Lu);  // Crocoddyl takes the current cost from here
}

void ActionContactStep::calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x) {
  expandMeasurement(*static_cast<Data*>(data.get()), x);
}

std::shared_ptr<ActionContactStep::DataBase> ActionContactStep::createData() {
  return std::allocate_shared<Data>(Eigen::aligned_allocator<Data>(), this);
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
