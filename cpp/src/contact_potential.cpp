// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/contact_potential.hpp"

namespace prime_ros {

namespace {

// Impulse per velocity on the graph where neither of the two dominates [kg].
constexpr double kScale = 0.5;
constexpr double kSmall = 1e-12;

// Jordan algebra of the Lorentz cone, vectors as (t, n): x = a (d, 1) / 2 + b (-d, 1) / 2 with |d| = 1
// (Alizadeh and Goldfarb, Second-order cone programming, 2003, section 4).
struct Spectral {
  explicit Spectral(const Eigen::Vector3d& x) : a(x[2] + x.head<2>().norm()), b(2.0 * x[2] - a) {
    const double norm = x.head<2>().norm();
    direction = norm > kSmall ? Eigen::Vector2d(x.head<2>() / norm) : Eigen::Vector2d(1.0, 0.0);
  }
  double a, b;
  Eigen::Vector2d direction;

  Eigen::Vector3d vector(double fa, double fb) const {
    Eigen::Vector3d x;
    x << 0.5 * (fa - fb) * direction, 0.5 * (fa + fb);
    return x;
  }
  // Derivative of the spectral function with values fa, fb and slopes ga, gb.
  Eigen::Matrix3d derivative(double fa, double fb, double ga, double gb) const {
    const double mean = 0.5 * (ga + gb), half = 0.5 * (ga - gb);
    const double across = a - b > kSmall ? (fa - fb) / (a - b) : mean;
    Eigen::Matrix3d out;
    out.topLeftCorner<2, 2>() =
        across * Eigen::Matrix2d::Identity() + (mean - across) * direction * direction.transpose();
    out.topRightCorner<2, 1>() = half * direction;
    out.bottomLeftCorner<1, 2>() = half * direction.transpose();
    out(2, 2) = mean;
    return out;
  }
};

// Positive root f of f g = c with f - kScale g = p, and its derivatives.
struct Branch {
  Branch(double p, double c) {
    const double root = std::sqrt(p * p + 4.0 * kScale * c);
    value = p > 0.0 ? 0.5 * (p + root) : 2.0 * kScale * c / (root - p);
    slope = value / root;
    curvature = 2.0 * kScale * c / (root * root * root);
  }
  double value, slope, curvature;
};

}  // namespace

// The impulse is c times the inverse, in the Jordan algebra, of the velocity, both scaled to the Lorentz cone
// (c = 2 / kappa): the central path of the complementarity of rigid contact. p = impulse - kScale velocity
// parametrises it (smoothing of Chen, Harker, Kanzow and Smale; Fukushima, Luo, Tseng, SIAM J. Optim. 12,
// 2002).
ContactPotential::OnGraph SmoothedEllipticCone::onGraph(const Eigen::Vector3d& p, double kappa) const {
  const double c = 2.0 / kappa;
  const Spectral spectral(p);
  const Branch a(spectral.a, c), b(spectral.b, c);
  const Eigen::Vector3d scale(friction_[0], friction_[1], 1.0);
  const Eigen::Matrix3d slope = spectral.derivative(a.value, b.value, a.slope, b.slope);
  OnGraph out;
  out.impulse = scale.cwiseProduct(spectral.vector(a.value, b.value));
  out.z = spectral.vector(c / a.value, c / b.value).cwiseQuotient(scale);
  out.dimpulse_dp = scale.asDiagonal() * slope;
  out.dz_dp = scale.cwiseInverse().asDiagonal() * ((slope - Eigen::Matrix3d::Identity()) / kScale);
  return out;
}

// Both parts of the pair have the second derivative of the impulse, z with the factor 1 / kScale. With
// p = (r d, n), a = n + r, b = n - r, the impulse is (h d, g), h = (f(a) - f(b)) / 2, g = (f(a) + f(b)) / 2.
Eigen::Matrix3d SmoothedEllipticCone::graphCurvature(const Eigen::Vector3d& p, double kappa,
                                                     const Eigen::Vector3d& slope_z,
                                                     const Eigen::Vector3d& slope_impulse) const {
  const Eigen::Vector3d scale(friction_[0], friction_[1], 1.0);
  const Eigen::Vector3d y = scale.cwiseProduct(slope_impulse) + slope_z.cwiseQuotient(scale) / kScale;
  const Spectral spectral(p);
  const Branch a(spectral.a, 2.0 / kappa), b(spectral.b, 2.0 / kappa);
  const double r = 0.5 * (spectral.a - spectral.b);
  const double odd = 0.5 * (a.curvature - b.curvature), even = 0.5 * (a.curvature + b.curvature);
  const bool centre = r < kSmall;
  const double turn =
      centre ? 0.0 : (0.5 * (a.slope + b.slope) - 0.5 * (a.value - b.value) / r) / r;  // d(h / r) / dr
  const double split = centre ? even : 0.5 * (a.slope - b.slope) / r;
  const Eigen::Vector2d d = spectral.direction, across(-d[1], d[0]);
  const double along_y = y.head<2>().dot(d), across_y = y.head<2>().dot(across);
  Eigen::Matrix2d tangential = (along_y * odd + y[2] * even) * d * d.transpose();
  tangential += (along_y * turn + y[2] * split) * across * across.transpose();
  tangential += across_y * turn * (d * across.transpose() + across * d.transpose());
  Eigen::Matrix3d out;
  out.topLeftCorner<2, 2>() = tangential;
  out.topRightCorner<2, 1>() = (along_y * even + y[2] * odd) * d + across_y * split * across;
  out.bottomLeftCorner<1, 2>() = out.topRightCorner<2, 1>().transpose();
  out(2, 2) = along_y * odd + y[2] * even;
  return out;
}

Eigen::Vector3d SmoothedEllipticCone::coordinate(const Eigen::Vector3d& impulse, double kappa) const {
  const double c = 2.0 / kappa;
  const Spectral spectral(impulse.cwiseQuotient(Eigen::Vector3d(friction_[0], friction_[1], 1.0)));
  if (!(spectral.b > kSmall)) return Eigen::Vector3d::Zero();
  const auto at = [&](double f) { return f - kScale * c / f; };
  return spectral.vector(at(spectral.a), at(spectral.b));
}

}  // namespace prime_ros
