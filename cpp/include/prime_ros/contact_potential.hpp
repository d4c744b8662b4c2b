// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

namespace prime_ros {

/// Convex potential l(z) of the velocity z = (tangential x, tangential y, normal) [m/s] of one contact point.
///
/// The contact impulse is lambda = -grad l(z) [N s]; kappa [1/J] is the sharpness of the smoothing: the
/// larger, the closer to rigid contact. The domain does not depend on kappa. A potential is +infinity outside
/// an open convex domain that holds every z with a large enough normal component, so that a strictly feasible
/// point can always be reached by `lift`.
class ContactPotential {
 public:
  virtual ~ContactPotential() = default;

  /// l(z) [J]; +infinity outside the domain.
  virtual double value(const Eigen::Vector3d& z, double kappa) const = 0;

  /// Gradient [N s] and Hessian [kg] at a point of the domain.
  virtual void derivatives(const Eigen::Vector3d& z, double kappa, Eigen::Vector3d& gradient,
                           Eigen::Matrix3d& hessian) const = 0;

  /// Smallest amount [m/s] to add to the normal velocity so that z reaches the closure of the domain (<= 0
  /// inside).
  virtual double lift(const Eigen::Vector3d& z) const = 0;

  /// A coordinate of the graph {(z, lambda): lambda = -grad l(z)} without bounds, and smooth in both: every p
  /// of R^3 is one pair, and where one of the two hardly changes, p follows the other.
  struct OnGraph {
    Eigen::Vector3d z, impulse;
    Eigen::Matrix3d dz_dp, dimpulse_dp;
  };
  virtual OnGraph onGraph(const Eigen::Vector3d& p, double kappa) const = 0;

  /// Hessian over p of slope_z . z(p) + slope_impulse . impulse(p), the slopes held.
  virtual Eigen::Matrix3d graphCurvature(const Eigen::Vector3d& p, double kappa,
                                         const Eigen::Vector3d& slope_z,
                                         const Eigen::Vector3d& slope_impulse) const = 0;

  /// The coordinate of the pair with this impulse; 0, between contact and none, if there is no such pair.
  virtual Eigen::Vector3d coordinate(const Eigen::Vector3d& impulse, double kappa) const = 0;
};

/// Log-barrier of the elliptic friction cone in velocity space (PRIME, eq. of the smoothed contact;
/// Anitescu's convex friction as kappa tends to infinity):
///
///   l(z) = -(1/kappa) log( z_n^2 - (mu_x z_x)^2 - (mu_y z_y)^2 ),   z_n > |(mu_x z_x, mu_y z_y)|.
class SmoothedEllipticCone final : public ContactPotential {
 public:
  /// @param friction  Coulomb coefficients along the two tangential axes [-], positive.
  explicit SmoothedEllipticCone(const Eigen::Vector2d& friction)
      : metric_(-friction[0] * friction[0], -friction[1] * friction[1], 1.0), friction_(friction) {}

  double value(const Eigen::Vector3d& z, double kappa) const override {
    const double s = margin(z);
    return z[2] > 0.0 && s > 0.0 ? -std::log(s) / kappa : std::numeric_limits<double>::infinity();
  }

  void derivatives(const Eigen::Vector3d& z, double kappa, Eigen::Vector3d& gradient,
                   Eigen::Matrix3d& hessian) const override {
    const double scale = 2.0 / (kappa * margin(z));
    const Eigen::Vector3d half_slope = metric_.cwiseProduct(z);
    gradient = -scale * half_slope;
    hessian.noalias() = (kappa * scale * scale) * half_slope * half_slope.transpose();
    hessian.diagonal() -= scale * metric_;
  }

  double lift(const Eigen::Vector3d& z) const override {
    return friction_.cwiseProduct(z.head<2>()).norm() - z[2];
  }

  OnGraph onGraph(const Eigen::Vector3d& p, double kappa) const override;
  Eigen::Matrix3d graphCurvature(const Eigen::Vector3d& p, double kappa, const Eigen::Vector3d& slope_z,
                                 const Eigen::Vector3d& slope_impulse) const override;
  Eigen::Vector3d coordinate(const Eigen::Vector3d& impulse, double kappa) const override;

 private:
  double margin(const Eigen::Vector3d& z) const { return z.dot(metric_.cwiseProduct(z)); }

  Eigen::Vector3d metric_;  ///< diagonal of the quadratic form of the cone
  Eigen::Vector2d friction_;
};

}  // namespace prime_ros
