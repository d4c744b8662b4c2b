// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/measurement.hpp"

#include <Eigen/Geometry>
#include <pinocchio/spatial/explog.hpp>
#include <pinocchio/spatial/se3.hpp>

namespace prime_ros {
namespace pin = pinocchio;

KnotMeasurement::KnotMeasurement(int nv, int ncontrol)
    : configuration(Eigen::VectorXd::Zero(nv + 1)), configuration_weight(Eigen::VectorXd::Zero(nv)),
      velocity(configuration_weight), velocity_weight(configuration_weight),
      torque(Eigen::VectorXd::Zero(nv - 6)), control_weight(Eigen::VectorXd::Zero(ncontrol)) {
  configuration[6] = 1.0;
}

KnotView::KnotView(const KnotMeasurement& y)
    : configuration(y.configuration), configuration_weight(y.configuration_weight),
      base_time_offset(y.base_time_offset), velocity(y.velocity), velocity_weight(y.velocity_weight),
      torque(y.torque), control_weight(y.control_weight) {}

KnotView::KnotView(const KnotSeries& s, int k)
    : configuration(s.configuration.col(k)), configuration_weight(s.configuration_weight.col(k)),
      base_time_offset(s.base_time_offset[k]), velocity(s.velocity.col(k)),
      velocity_weight(s.velocity_weight.col(k)), torque(s.torque.col(k)),
      control_weight(s.control_weight.col(k)) {}

MeasurementCost::MeasurementCost(int nv)
    : residual(Eigen::VectorXd::Zero(2 * nv)), gradient(residual), diagonal(residual), weighted_(residual) {
  base_block.setZero();
  base_jacobian.setZero();
}

void MeasurementCost::residuals(const KnotView& y, const ConstRef& q, const ConstRef& v) {
  const auto nv = v.size(), joints = nv - 6;
  const pin::SE3 knot(Eigen::Quaterniond(q[6], q[3], q[4], q[5]).toRotationMatrix(), q.head<3>());
  const pin::SE3 pose = knot * pin::exp6(pin::Motion(y.base_time_offset * v.head<6>()));
  const auto& m = y.configuration;
  rotation_ = pose.rotation();
  rotation_error_ = Eigen::Quaterniond(m[6], m[3], m[4], m[5]).toRotationMatrix().transpose() * rotation_;
  residual.head<3>() = pose.translation() - m.head<3>();
  residual.segment<3>(3) = pin::log3(rotation_error_);
  residual.segment(6, joints) = q.tail(joints) - m.tail(joints);
  residual.tail(nv) = v - y.velocity;
  weighted_.head(nv) = y.configuration_weight.cwiseProduct(residual.head(nv));
  weighted_.tail(nv) = y.velocity_weight.cwiseProduct(residual.tail(nv));
}

double MeasurementCost::value(const KnotView& y, const ConstRef& q, const ConstRef& v) {
  residuals(y, q, v);
  return 0.5 * weighted_.dot(residual);
}

double MeasurementCost::expand(const KnotView& y, const ConstRef& q, const ConstRef& v) {
  residuals(y, q, v);
  const auto nv = v.size();
  Eigen::Matrix<double, 6, 6> pose_jacobian =
      Eigen::Matrix<double, 6, 6>::Zero();  // with respect to its own twist
  pose_jacobian.topLeftCorner<3, 3>() = rotation_;
  Eigen::Matrix3d log_jacobian;
  pin::Jlog3(rotation_error_, log_jacobian);
  pose_jacobian.bottomRightCorner<3, 3>() = log_jacobian;

  const pin::Motion shift(y.base_time_offset * v.head<6>());
  Eigen::Matrix<double, 6, 6> right_jacobian;
  pin::Jexp6(shift, right_jacobian);
  base_jacobian.leftCols<6>().noalias() = pose_jacobian * pin::exp6(shift).toActionMatrixInverse();
  base_jacobian.rightCols<6>().noalias() = y.base_time_offset * pose_jacobian * right_jacobian;

  gradient = weighted_;
  gradient.head<6>().setZero();
  Eigen::Matrix<double, 12, 1> base_gradient = base_jacobian.transpose() * weighted_.head<6>();
  gradient.head<6>() += base_gradient.head<6>();
  gradient.segment<6>(nv) += base_gradient.tail<6>();

  diagonal.head(nv) = y.configuration_weight;
  diagonal.tail(nv) = y.velocity_weight;
  diagonal.head<6>().setZero();
  diagonal.segment<6>(nv).setZero();
  base_block.noalias() =
      base_jacobian.transpose() * y.configuration_weight.head<6>().asDiagonal() * base_jacobian;
  base_block.diagonal().tail<6>() += y.velocity_weight.head<6>();
  return 0.5 * weighted_.dot(residual);
}

}  // namespace prime_ros
