// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <crocoddyl/core/action-base.hpp>
#include <memory>
#include <string>

#include "prime_ros/measurement.hpp"
#include "prime_ros/state.hpp"
#include "prime_ros/workspace_pool.hpp"

namespace prime_ros {

/// One step q+ = q (+) dt v+, theta+ = theta with the measurements of the knot it starts from: what the
/// actions of all contact models share. The cost is that of the measurements and of the disturbance in the
/// control, to which a contact model may add its own. As a terminal action (no control) it has the
/// measurement cost alone.
class ActionKnot : public crocoddyl::ActionModelAbstractTpl<double> {
 public:
  using Base = crocoddyl::ActionModelAbstractTpl<double>;
  using DataBase = crocoddyl::ActionDataAbstractTpl<double>;

  struct Data : DataBase {
    explicit Data(ActionKnot* action);
    MeasurementCost measurement;
    VectorXd v_next, force, displacement;
    Eigen::Matrix<double, 6, 6> integrate_q, integrate_v;  ///< base block of the configuration step
    Eigen::MatrixXd base_rows_x, base_rows_u;
    bool step_converged = false;
  };

  void calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
            const Eigen::Ref<const VectorXd>& u) override = 0;
  void calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x) override;
  void calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                const Eigen::Ref<const VectorXd>& u) override = 0;
  void calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x) override;
  std::shared_ptr<DataBase> createData() override;

  const KnotMeasurement& measurement() const { return measurement_; }
  int nq() const { return nv_ + 1; }
  int nv() const { return nv_; }
  int ntheta() const { return inertial_state_->ntheta(); }

 protected:
  /// @param name  of the action in messages.  @throws std::invalid_argument  if sizes differ.
  ActionKnot(const std::string& name, std::shared_ptr<StateInertial> state, int nu, int nv, int ntheta,
             double dt, KnotMeasurement measurement);

  /// Measured torque and disturbance.
  void appliedForce(Data& d, const Eigen::Ref<const VectorXd>& u) const;
  /// Next state from `v_next`, and the cost.
  void advance(Data& d, const Eigen::Ref<const VectorXd>& x, const Eigen::Ref<const VectorXd>& u);
  /// All of Fx and Fu once the rows of v_next are there; derivatives and value of the cost.
  void expand(Data& d, const Eigen::Ref<const VectorXd>& x, const Eigen::Ref<const VectorXd>& u);

 private:
  void integrateRows(Data& d) const;
  void expandMeasurement(Data& d, const Eigen::Ref<const VectorXd>& x);

  std::shared_ptr<StateInertial> inertial_state_;
  KnotMeasurement measurement_;
  int nv_;
  double dt_;
};

/// One step of the smoothed contact dynamics as a Crocoddyl action.
///
/// State (q, v, theta), control u = (disturbance w, contact slack s):
///   x+ = (q (+) dt v+, v+, theta),  v+ from ContactStep;  cost = measurement cost + 1/2 |u|^2_weight.
class ActionContactStep : public ActionKnot {
 public:
  CROCODDYL_BASE_DERIVED_CAST(crocoddyl::ActionModelBase, ActionContactStep)

  /// @throws std::invalid_argument  if the sizes of state, step and measurement differ.
  ActionContactStep(std::shared_ptr<StateInertial> state, std::shared_ptr<ContactStep> step,
                    std::shared_ptr<WorkspacePool> pool, KnotMeasurement measurement);

  using ActionKnot::calc;
  using ActionKnot::calcDiff;
  void calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
            const Eigen::Ref<const VectorXd>& u) override;
  void calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                const Eigen::Ref<const VectorXd>& u) override;
  void print(std::ostream& os) const override;

  const ContactStep& step() const { return *step_; }

 private:
  ContactStepData& solveStep(Data& d, const Eigen::Ref<const VectorXd>& x,
                             const Eigen::Ref<const VectorXd>& u);

  std::shared_ptr<ContactStep> step_;
  std::shared_ptr<WorkspacePool> pool_;
};

/// First action: its control is the increment of the state from the prior mean, x+ = x (+) u, cost 1/2 u' P
/// u.
class ActionArrival : public crocoddyl::ActionModelAbstractTpl<double> {
 public:
  using Base = crocoddyl::ActionModelAbstractTpl<double>;
  using DataBase = crocoddyl::ActionDataAbstractTpl<double>;
  CROCODDYL_BASE_DERIVED_CAST(crocoddyl::ActionModelBase, ActionArrival)

  /// @param information  P, inverse covariance of the prior, ndx x ndx.
  ActionArrival(std::shared_ptr<StateInertial> state, Eigen::MatrixXd information);

  void calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
            const Eigen::Ref<const VectorXd>& u) override;
  void calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x) override;
  void calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                const Eigen::Ref<const VectorXd>& u) override;
  void calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x) override;
  void print(std::ostream& os) const override;

 private:
  Eigen::MatrixXd information_;
};

}  // namespace prime_ros
