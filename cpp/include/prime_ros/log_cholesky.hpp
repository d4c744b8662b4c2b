// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Cholesky>
#include <pinocchio/spatial/inertia.hpp>

namespace prime_ros {

using Vector10d = Eigen::Matrix<double, 10, 1>;
using Matrix10d = Eigen::Matrix<double, 10, 10>;

/// Log-Cholesky parameters (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3) of a spatial inertia.
///
/// The pseudo-inertia is U U' with U = e^alpha [[e^d1 s12 s13 t1] [0 e^d2 s23 t2] [0 0 e^d3 t3] [0 0 0 1]],
/// so every parameter vector is a physical inertia (Rucker and Wensing, "Smooth parameterization of
/// rigid-body inertia", RA-L 2022; the convention of pinocchio::LogCholeskyParameters).
namespace log_cholesky {

inline Vector10d toDynamicParameters(const Vector10d& theta) {
  return pinocchio::LogCholeskyParameters(theta).toDynamicParameters();
}

/// Jacobian of the dynamic parameters (m, m c, I about the joint origin) with respect to theta.
inline Matrix10d jacobian(const Vector10d& theta) {
  return pinocchio::LogCholeskyParameters(theta).calculateJacobian();
}

/// Inverse map. The inertia must be physical: pseudo-inertia positive definite (NaN is returned otherwise).
inline Vector10d fromInertia(const pinocchio::Inertia& inertia) {
  const Vector10d pi = inertia.toDynamicParameters();
  Eigen::Matrix3d moments;
  moments << pi[4], pi[5], pi[7], pi[5], pi[6], pi[8], pi[7], pi[8], pi[9];
  Eigen::Matrix4d pseudo;
  pseudo.topLeftCorner<3, 3>() = 0.5 * moments.trace() * Eigen::Matrix3d::Identity() - moments;
  pseudo.topRightCorner<3, 1>() = pi.segment<3>(1);
  pseudo.bottomLeftCorner<1, 3>() = pi.segment<3>(1).transpose();
  pseudo(3, 3) = pi[0];
  // An upper-triangular factor is the lower one of the matrix with both axes reversed.
  const Eigen::LLT<Eigen::Matrix4d> llt(Eigen::Matrix4d(pseudo.reverse()));
  if (llt.info() != Eigen::Success) return Vector10d::Constant(std::numeric_limits<double>::quiet_NaN());
  const Eigen::Matrix4d lower = llt.matrixL();
  const Eigen::Matrix4d upper = Eigen::Matrix4d(lower.reverse()) / lower(0, 0);
  Vector10d theta;
  theta << std::log(lower(0, 0)), std::log(upper(0, 0)), std::log(upper(1, 1)), std::log(upper(2, 2)),
      upper(0, 1), upper(1, 2), upper(0, 2), upper(0, 3), upper(1, 3), upper(2, 3);
  return theta;
}

}  // namespace log_cholesky
}  // namespace prime_ros
