// SPDX-License-Identifier: Apache-2.0
// Timing inside C++, so that the call overhead of Python does not blur ratios.
#include <chrono>
#include <eigenpy/eigenpy.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>

#include "bindings.hpp"
#include "prime_ros/contact_step.hpp"
#include "sweeps/sweep.hpp"

namespace bp = boost::python;

namespace prime_ros {
namespace python {
namespace {

using Clock = std::chrono::steady_clock;

double perColumn(Clock::time_point start, Eigen::Index columns) {
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(columns);
}

double benchmarkStep(const ContactStep& step, const MatrixXd& q, const MatrixXd& v, const MatrixXd& force,
                     const MatrixXd& slack, const VectorXd& theta, const MatrixXd& v_guess) {
  ContactStepData data(step);
  const auto start = Clock::now();
  for (Eigen::Index k = 0; k < q.cols(); ++k) {
    data.v_next = v_guess.col(k);
    step.solve(data, q.col(k), v.col(k), force.col(k), slack.col(k), theta);
    step.differentiate(data, q.col(k), v.col(k));
  }
  return perColumn(start, q.cols());
}

double benchmarkRneaDerivatives(const pinocchio::Model& model, const MatrixXd& q, const MatrixXd& v,
                                const MatrixXd& a) {
  pinocchio::Data data(model);
  MatrixXd dq = MatrixXd::Zero(model.nv, model.nv), dv = dq, da = dq;
  const auto start = Clock::now();
  for (Eigen::Index k = 0; k < q.cols(); ++k)
    pinocchio::computeRNEADerivatives(model, data, ConstVectorRef(q.col(k)), ConstVectorRef(v.col(k)),
                                      ConstVectorRef(a.col(k)), dq, dv, da);
  return perColumn(start, q.cols());
}

double benchmarkControlCost(sweeps::Sweep& sweep, const MatrixXd& luu, const MatrixXd& lu) {
  const auto start = Clock::now();
  for (int k = 0; k < sweep.steps(); ++k) sweep.set_control_cost(k, luu.col(k).data(), lu.col(k).data());
  return perColumn(start, sweep.steps());
}

}  // namespace

void exposeBenchmark() {
  bp::def("benchmark_step", &benchmarkStep,
          (bp::arg("step"), bp::arg("q"), bp::arg("v"), bp::arg("force"), bp::arg("slack"), bp::arg("theta"),
           bp::arg("v_guess")),
          "Seconds per contact step with all derivatives, in one pass over the columns.");
  bp::def("benchmark_rnea_derivatives", &benchmarkRneaDerivatives,
          (bp::arg("model"), bp::arg("q"), bp::arg("v"), bp::arg("a")),
          "Seconds per call of pinocchio::computeRNEADerivatives, in one pass over the columns.");
  bp::def("benchmark_control_cost", &benchmarkControlCost, (bp::arg("sweep"), bp::arg("luu"), bp::arg("lu")),
          "Seconds per step to set all control costs, (nu, steps), so that the next sweep condenses anew.");
}

}  // namespace python
}  // namespace prime_ros
