// SPDX-License-Identifier: Apache-2.0
// Laplace approximation at the solution: Cov(x_k) = (Lambda_k + V_k)^-1 from the two sweeps; controls and
// impulses through the optimal policy, u_k = K dx_k + e with Cov(e) = Quu^-1 independent of x_k.
#include <Eigen/Geometry>
#include <limits>

#include "prime_ros/full_information.hpp"
#include "prime_ros/window_step.hpp"

namespace prime_ros {

namespace {

Posterior unknown(int nv, int ntheta, int nu, int nimpulse, int K) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Posterior p;
  p.position_std = MatrixXd::Constant(3, K + 1, nan);
  p.configuration_std = p.velocity_std = MatrixXd::Constant(nv, K + 1, nan);
  p.control_std = MatrixXd::Constant(nu, K, nan);
  p.impulse_std = MatrixXd::Constant(nimpulse, K, nan);
  p.impulse_covariance = MatrixXd::Constant(nimpulse * nimpulse, K, nan);
  p.theta_covariance = MatrixXd::Constant(ntheta, ntheta, nan);
  p.theta_step = VectorXd::Constant(ntheta, nan);
  p.configuration_leverage = p.velocity_leverage = VectorXd::Constant(nv, nan);
  p.control_leverage = VectorXd::Constant(nu, nan);
  return p;
}

}  // namespace

Posterior GaussNewton::posterior(int arrival_knot) {
  const int K = steps(), nimpulse = 3 * problem_.step->ncontacts();
  Posterior out = unknown(nv_, ntheta_, nu(), nimpulse, K);
  evaluate();
  sweep_.release();  // its memory serves the sweep of the posterior
  sweeps::SegmentedSweep sweep({nv_, ntheta_, nu()}, K, segment_, {true, false});
  setArrival(sweep);
  if (!sweep.solve(linearisation(0.0))) return out;
  const auto model = sweep.expected_change();
  out.expected = -(model.linear + 0.5 * model.quadratic);
  out.theta_step = Eigen::Map<const VectorXd>(sweep.dx(0) + 2 * nv_, ntheta_);
  MatrixXd hat = MatrixXd::Zero(2 * nv_ + nu(), K + 1);  // leverages of every knot
  bool ok = true;
  const auto status = sweep.visit_covariances([&](const sweeps::Sweep& part, sweeps::Segment segment) {
    if (segment.first <= arrival_knot && arrival_knot <= segment.last) {
      out.arrival_hessian.resize(ndx_, ndx_);
      out.arrival_gradient.resize(ndx_);
      part.arrival(arrival_knot - segment.first, false, out.arrival_hessian.data(),
                   out.arrival_gradient.data());
    }
    const int end = segment.last == K ? K : segment.last - 1;  // a knot between segments belongs to the later
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(&& : ok)
    for (int k = segment.first; k <= end; ++k) {
      posteriorOfKnot(part, segment.first, k, hat, out);
      ok = ok && out.configuration_std.col(k).allFinite();
    }
    return ok;
  });
  const VectorXd sums = hat.rowwise().sum();
  out.configuration_leverage = sums.head(nv_);
  out.velocity_leverage = sums.segment(nv_, nv_);
  out.control_leverage = sums.tail(nu());
  out.ok = ok && status;
  return out;
}

void GaussNewton::posteriorOfKnot(const sweeps::Sweep& sweep, int first, int k, MatrixXd& hat,
                                  Posterior& out) {
  const int local = k - first;
  const KnotView y = knot(k);
  const auto x = current_.states.col(k);
  MatrixXd covariance(ndx_, ndx_);
  if (!sweep.covariance(local, covariance.data())) return;
  const VectorXd std = standardDeviations(covariance);
  out.configuration_std.col(k) = std.head(nv_);
  out.velocity_std.col(k) = std.segment(nv_, nv_);
  if (k == 0) out.theta_covariance = covariance.bottomRightCorner(ntheta_, ntheta_);
  const Matrix3d rotation = Eigen::Quaterniond(x[6], x[3], x[4], x[5]).toRotationMatrix();
  out.position_std.col(k) =
      standardDeviations(rotation * covariance.topLeftCorner<3, 3>() * rotation.transpose());

  MeasurementCost& cost = costs_[static_cast<size_t>(omp_get_thread_num())];
  cost.expand(y, x.head(nq_), x.segment(nq_, nv_));
  Eigen::Matrix<double, 12, 12> base;
  base << covariance.topLeftCorner<6, 6>(), covariance.block<6, 6>(0, nv_), covariance.block<6, 6>(nv_, 0),
      covariance.block<6, 6>(nv_, nv_);
  const Eigen::Matrix<double, 6, 6> pose = cost.base_jacobian * base * cost.base_jacobian.transpose();
  hat.col(k).head(nv_) = y.configuration_weight.cwiseProduct(covariance.diagonal().head(nv_));
  hat.col(k).head<6>() = y.configuration_weight.head<6>().cwiseProduct(pose.diagonal());
  hat.col(k).segment(nv_, nv_) = y.velocity_weight.cwiseProduct(covariance.diagonal().segment(nv_, nv_));
  if (k == steps()) return;

  ContactStepData& workspace = pool_.get();
  evaluateStep(current_, k, workspace);
  problem_.step->differentiate(workspace, x.head(nq_), x.segment(nq_, nv_));
  StepPosterior step(nv_, nu(), ntheta_, 3 * problem_.step->ncontacts());
  step.compute(sweep, local, *problem_.step, workspace, covariance);
  out.control_std.col(k) = step.control_std;
  out.impulse_std.col(k) = step.impulse_std;
  out.impulse_covariance.col(k) = step.impulse_covariance.reshaped();
  hat.col(k).tail(nu()) = y.control_weight.cwiseProduct(step.control_std.cwiseAbs2());
}

}  // namespace prime_ros
