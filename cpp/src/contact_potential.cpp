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

// Positive root and its slope: f g = c with f - kScale g = p.
void split(double p, double c, double& f, double& slope) {
  const double root = std::sqrt(p * p + 4.0 * kScale * c);
  f = p > 0.0 ? 0.5 * (p + root) : 2.0 * kScale * c / (root - p);
  slope = f / root;
}

}  // namespace

// The impulse is c times the inverse, in the Jordan algebra, of the velocity, both scaled to the Lorentz cone
// (c = 2 / kappa): the central path of the complementarity of rigid contact. p = impulse - kScale velocity
// parametrises it (smoothing of Chen, Harker, Kanzow and Smale; Fukushima, Luo, Tseng, SIAM J. Optim. 12,
// 2002).
ContactPotential::OnGraph SmoothedEllipticCone::onGraph(const Eigen::Vector3d& p, double kappa) const {
  const double c = 2.0 / kappa;
  const Spectral spectral(p);
  double fa, fb, ga, gb;
  split(spectral.a, c, fa, ga);
  split(spectral.b, c, fb, gb);
  const Eigen::Vector3d scale(friction_[0], friction_[1], 1.0);
  const Eigen::Matrix3d slope = spectral.derivative(fa, fb, ga, gb);
  OnGraph out;
  out.impulse = scale.cwiseProduct(spectral.vector(fa, fb));
  out.z = spectral.vector(c / fa, c / fb).cwiseQuotient(scale);
  out.dimpulse_dp = scale.asDiagonal() * slope;
  out.dz_dp = scale.cwiseInverse().asDiagonal() * ((slope - Eigen::Matrix3d::Identity()) / kScale);
  return out;
}

Eigen::Vector3d SmoothedEllipticCone::coordinate(const Eigen::Vector3d& impulse, double kappa) const {
  const double c = 2.0 / kappa;
  const Spectral spectral(impulse.cwiseQuotient(Eigen::Vector3d(friction_[0], friction_[1], 1.0)));
  const auto at = [&](double f) { return f - kScale * c / f; };
  const double a = std::max(spectral.a, kSmall), b = std::max(spectral.b, kSmall);
  return spectral.vector(at(a), at(b));
}

}  // namespace prime_ros
