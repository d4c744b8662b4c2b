// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <crocoddyl/core/action-base.hpp>
#include <memory>

#include "prime_ros/measurement.hpp"
#include "prime_ros/state.hpp"
#include "prime_ros/workspace_pool.hpp"

namespace prime_ros {

/// One step of the contact dynamics with the measurements of the knot it starts from, as a Crocoddyl action.
///
/// State (q, v, theta), control u = (disturbance w, contact slack s):
///   x+ = (q (+) dt v+, v+, theta),  v+ from ContactStep;  cost = measurement cost + 1/2 |u|^2_weight.
/// As a terminal action (no control) it has the measurement cost alone.
class ActionContactStep : public crocoddyl::ActionModelAbstractTpl<double> {
 public:
  using Base = crocoddyl::ActionModelAbstractTpl<double>;
  using DataBase = crocoddyl::ActionDataAbstractTpl<double>;
  CROCODDYL_BASE_DERIVED_CAST(crocoddyl::ActionModelBase, ActionContactStep)

  struct Data : DataBase {
    explicit Data(ActionContactStep* action);
    MeasurementCost measurement;
    VectorXd v_next, force, displacement;
    Eigen::Matrix<double, 6, 6> integrate_q, integrate_v;  ///< base block of the configuration step
    Eigen::MatrixXd base_rows_x, base_rows_u;
    bool step_converged = false;
  };

  /// @throws std::invalid_argument  if the sizes of state, step and measurement differ.
  ActionContactStep(std::shared_ptr<StateInertial> state, std::shared_ptr<ContactStep> step,
                    std::shared_ptr<WorkspacePool> pool, KnotMeasurement measurement);

  void calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
            const Eigen::Ref<const VectorXd>& u) override;
  void calc(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x) override;
  void calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x,
                const Eigen::Ref<const VectorXd>& u) override;
  void calcDiff(const std::shared_ptr<DataBase>& data, const Eigen::Ref<const VectorXd>& x) override;
  std::shared_ptr<DataBase> createData() override;
  void print(std::ostream& os) const override;

  const ContactStep& step() const { return *step_; }

 private:
  ContactStepData& solveStep(Data& d, const Eigen::Ref<const VectorXd>& x,
                             const Eigen::Ref<const VectorXd>& u);
  void expandMeasurement(Data& d, const Eigen::Ref<const VectorXd>& x);

  std::shared_ptr<StateInertial> inertial_state_;
  std::shared_ptr<ContactStep> step_;
  std::shared_ptr<WorkspacePool> pool_;
  KnotMeasurement measurement_;
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
