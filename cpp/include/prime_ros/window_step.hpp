// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "prime_ros/contact_step.hpp"
#include "sweeps/sweep.hpp"

namespace prime_ros {

/// Scratch for passing linearised steps to a sweep; one per thread.
struct StepLinearisation {
  StepLinearisation(int nv, int nu, int ntheta) : sensitivity(nv, 2 * nv + nu + ntheta) {}

  /// Stores step `k` of `sweep`. @param data  differentiated at the step.  @param base_twist  velocity of the
  /// base at the next knot, where the configuration gap is taken.  @param weight, gradient  of the control
  /// cost.
  void store(sweeps::Sweep& sweep, int k, const ContactStepData& data, double dt,
             const Eigen::Ref<const Eigen::Matrix<double, 6, 1>>& base_twist, const VectorXd& weight,
             const VectorXd& gradient, const Eigen::Ref<const VectorXd>& velocity_gap,
             const Eigen::Ref<const VectorXd>& configuration_gap);

  MatrixXd sensitivity;  ///< of v_next, column by column
};

/// Standard deviations of the control and the contact impulses of a step whose first knot has a covariance:
/// the control is u = K dx + e, where e has the covariance that remains when the knot is known.
struct StepPosterior {
  StepPosterior(int nv, int nu, int ntheta, int nimpulse)
      : gain(nu, 2 * nv + ntheta), given(nu, nu), impulse_x(nimpulse, 2 * nv + ntheta),
        impulse_u(nimpulse, nu), feedforward(nu) {}

  /// @param data  differentiated at step k of the sweep;  @param covariance  of knot k.
  void compute(const sweeps::Sweep& sweep, int k, const ContactStep& step, const ContactStepData& data,
               const MatrixXd& covariance);

  VectorXd control_std, impulse_std;
  MatrixXd impulse_covariance;
  MatrixXd gain, given, impulse_x, impulse_u;
  VectorXd feedforward;
};

/// Square roots of the diagonal; rounding may have left a zero slightly negative.
VectorXd standardDeviations(const MatrixXd& covariance);

}  // namespace prime_ros
