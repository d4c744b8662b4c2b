// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

namespace prime_ros {

/// What the sensors say at one knot, as weights (inverse variances; zero where nothing was measured).
struct KnotMeasurement {
  KnotMeasurement() = default;
  /// No measurement: all weights zero. @param nv degrees of freedom, @param ncontrol size of (disturbance,
  /// slack).
  KnotMeasurement(int nv, int ncontrol);

  Eigen::VectorXd configuration;  ///< base position, quaternion x y z w, joint positions; size nq
  Eigen::VectorXd
      configuration_weight;         ///< base position (world axes), rotation (base axes), joints; size nv
  double base_time_offset = 0.0;    ///< time of the base pose minus time of the knot [s]
  Eigen::VectorXd velocity;         ///< base twist in the base frame and joint rates; size nv
  Eigen::VectorXd velocity_weight;  ///< size nv
  Eigen::VectorXd torque;           ///< joint torque of the step that starts at the knot; size nv - 6 [Nm]
  Eigen::VectorXd control_weight;   ///< of the disturbance (nv) and the contact slack (3 nc)
};

/// Measurements of many knots, one column each; sizes as in KnotMeasurement.
struct KnotSeries {
  Eigen::MatrixXd configuration, configuration_weight;
  Eigen::VectorXd base_time_offset;
  Eigen::MatrixXd velocity, velocity_weight, torque, control_weight;

  int size() const { return static_cast<int>(configuration.cols()); }
};

/// One knot, wherever it is stored.
struct KnotView {
  using ConstRef = Eigen::Ref<const Eigen::VectorXd>;
  KnotView(const KnotMeasurement& y);  // NOLINT: a knot is viewed wherever one is expected
  KnotView(const KnotSeries& series, int k);

  ConstRef configuration, configuration_weight;
  double base_time_offset;
  ConstRef velocity, velocity_weight, torque, control_weight;
};

/// Cost 1/2 |r|^2_W of one knot and its Gauss-Newton expansion in the tangent (dq, dv) of the state.
///
/// The base pose is predicted at its own time by moving the knot along its velocity: T exp(offset * v_base).
/// The Hessian is diagonal but for the 12 x 12 block of (base of q, base of v).
class MeasurementCost {
 public:
  using Matrix12d = Eigen::Matrix<double, 12, 12>;
  using ConstRef = Eigen::Ref<const Eigen::VectorXd>;

  explicit MeasurementCost(int nv);

  /// Whitened squared residual / 2 at configuration q (nq) and velocity v (nv).
  double value(const KnotView& y, const ConstRef& q, const ConstRef& v);

  /// Fills `residual`, `gradient`, `diagonal` and `base_block`; returns the cost.
  double expand(const KnotView& y, const ConstRef& q, const ConstRef& v);

  Eigen::VectorXd residual;  ///< unweighted, prediction minus measurement: (q part, v part), size 2 nv
  Eigen::VectorXd gradient;  ///< size 2 nv
  Eigen::VectorXd diagonal;  ///< of the Hessian, zero on the 12 base entries; size 2 nv
  Matrix12d base_block;      ///< Hessian over (base of q, base of v)
  Eigen::Matrix<double, 6, 12>
      base_jacobian;  ///< of the pose residual with respect to (base of q, base of v)

 private:
  void residuals(const KnotView& y, const ConstRef& q, const ConstRef& v);
  Eigen::VectorXd weighted_;
  Eigen::Matrix3d rotation_, rotation_error_;
};

}  // namespace prime_ros
