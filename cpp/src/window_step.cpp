// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/window_step.hpp"

#include <pinocchio/spatial/explog.hpp>
#include <pinocchio/spatial/se3.hpp>

namespace prime_ros {
namespace pin = pinocchio;

void StepLinearisation::store(sweeps::Sweep& sweep, int k, const ContactStepData& data, double dt,
                              const Eigen::Ref<const Eigen::Matrix<double, 6, 1>>& base_twist,
                              const VectorXd& weight, const VectorXd& gradient,
                              const Eigen::Ref<const VectorXd>& velocity_gap,
                              const Eigen::Ref<const VectorXd>& configuration_gap) {
  const auto nv = static_cast<int>(sensitivity.rows()), nu = static_cast<int>(weight.size());
  sensitivity = data.sensitivity;
  const pin::Motion shift(dt * base_twist);
  const Eigen::Matrix<double, 6, 6> Jq = pin::exp6(shift).toActionMatrixInverse();
  Eigen::Matrix<double, 6, 6> Jv;
  pin::Jexp6(shift, Jv);
  const double *Aq = sensitivity.data(), *Av = sensitivity.col(nv).data(),
               *B = sensitivity.col(2 * nv).data();
  const double* At = sensitivity.data() + static_cast<std::ptrdiff_t>(nv) * (2 * nv + nu);
  sweep.set_step(k, {dt, Aq, Av, At, nv, B, nv, weight.data(), gradient.data(), velocity_gap.data(),
                     configuration_gap.data(), Jq.data(), Jv.data()});
}

void StepPosterior::compute(const sweeps::Sweep& sweep, int k, const ContactStep& step,
                            const ContactStepData& data, const MatrixXd& covariance) {
  sweep.policy(k, gain.data(), feedforward.data());
  sweep.control_covariance(k, given.data());
  step.impulseDerivatives(data, impulse_x, impulse_u);
  impulse_x += impulse_u * gain;
  control_std = standardDeviations(gain * covariance * gain.transpose() + given);
  impulse_covariance =
      impulse_x * covariance * impulse_x.transpose() + impulse_u * given * impulse_u.transpose();
  impulse_std = standardDeviations(impulse_covariance);
}

VectorXd standardDeviations(const MatrixXd& covariance) {
  return covariance.diagonal().cwiseMax(0.0).cwiseSqrt();
}

}  // namespace prime_ros
