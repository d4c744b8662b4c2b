// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/full_information.hpp"

#include <eigenpy/eigenpy.hpp>

#include "bindings.hpp"
#include "unlocked.hpp"

namespace bp = boost::python;

namespace prime_ros {
namespace python {
namespace {

std::shared_ptr<GaussNewton> makeSolver(const std::shared_ptr<ContactStep>& step, const KnotSeries& knots,
                                        const VectorXd& prior, const MatrixXd& information, int threads,
                                        int segment) {
  return std::make_shared<GaussNewton>(FullInformationProblem{step, knots, prior, information}, threads,
                                       segment);
}

KnotMeasurement knotAt(const KnotSeries& series, int k) {
  if (k < 0 || k >= series.size()) throw std::out_of_range("KnotSeries: no knot " + std::to_string(k));
  KnotMeasurement y;
  const KnotView view(series, k);
  y.configuration = view.configuration;
  y.configuration_weight = view.configuration_weight;
  y.base_time_offset = view.base_time_offset;
  y.velocity = view.velocity;
  y.velocity_weight = view.velocity_weight;
  y.torque = view.torque;
  y.control_weight = view.control_weight;
  return y;
}

IterationReport iterate(GaussNewton& solver) {
  Unlocked unlocked;
  return solver.iterate();
}

Posterior posterior(GaussNewton& solver, int arrival_knot) {
  Unlocked unlocked;
  return solver.posterior(arrival_knot);
}

void exposeMeasurement() {
  using M = KnotMeasurement;
  bp::class_<M>("KnotMeasurement", "What the sensors say at one knot; weights are inverse variances.",
                bp::init<int, int>((bp::arg("nv"), bp::arg("ncontrol"))))
      .add_property("configuration", copied(&M::configuration), assigned(&M::configuration))
      .add_property("configuration_weight", copied(&M::configuration_weight),
                    assigned(&M::configuration_weight))
      .def_readwrite("base_time_offset", &M::base_time_offset)
      .add_property("velocity", copied(&M::velocity), assigned(&M::velocity))
      .add_property("velocity_weight", copied(&M::velocity_weight), assigned(&M::velocity_weight))
      .add_property("torque", copied(&M::torque), assigned(&M::torque))
      .add_property("control_weight", copied(&M::control_weight), assigned(&M::control_weight));
  using S = KnotSeries;
  bp::class_<S>("KnotSeries", "Measurements of many knots, one column each.", bp::init<>())
      .add_property("configuration", copied(&S::configuration), assigned(&S::configuration))
      .add_property("configuration_weight", copied(&S::configuration_weight),
                    assigned(&S::configuration_weight))
      .add_property("base_time_offset", copied(&S::base_time_offset), assigned(&S::base_time_offset))
      .add_property("velocity", copied(&S::velocity), assigned(&S::velocity))
      .add_property("velocity_weight", copied(&S::velocity_weight), assigned(&S::velocity_weight))
      .add_property("torque", copied(&S::torque), assigned(&S::torque))
      .add_property("control_weight", copied(&S::control_weight), assigned(&S::control_weight))
      .def("__len__", &S::size)
      .def("__getitem__", &knotAt);
}

void exposeReports() {
  using R = IterationReport;
  bp::class_<R>("IterationReport", "How far one iteration got.", bp::no_init)
      .def_readonly("cost", &R::cost)
      .def_readonly("largest_gap", &R::largest_gap)
      .def_readonly("expected", &R::expected)
      .def_readonly("relative_change", &R::relative_change)
      .def_readonly("step_length", &R::step_length)
      .def_readonly("damping", &R::damping)
      .def_readonly("newton_worst", &R::newton_worst)
      .def_readonly("newton_failures", &R::newton_failures)
      .def_readonly("explain_worst", &R::explain_worst)
      .def_readonly("explain_failures", &R::explain_failures)
      .def_readonly("accepted", &R::accepted);
  using P = Posterior;
  bp::class_<P>("Posterior", "Standard deviations and leverages at the solution.", bp::no_init)
      .add_property("position_std", copied(&P::position_std))
      .add_property("configuration_std", copied(&P::configuration_std))
      .add_property("velocity_std", copied(&P::velocity_std))
      .add_property("control_std", copied(&P::control_std))
      .add_property("impulse_std", copied(&P::impulse_std))
      .add_property("impulse_covariance", copied(&P::impulse_covariance))
      .add_property("theta_covariance", copied(&P::theta_covariance))
      .add_property("theta_step", copied(&P::theta_step))
      .add_property("configuration_leverage", copied(&P::configuration_leverage))
      .add_property("velocity_leverage", copied(&P::velocity_leverage))
      .add_property("control_leverage", copied(&P::control_leverage))
      .add_property("arrival_hessian", copied(&P::arrival_hessian))
      .add_property("arrival_gradient", copied(&P::arrival_gradient))
      .def_readonly("expected", &P::expected)
      .def_readonly("ok", &P::ok);
}

}  // namespace

void exposeFullInformation() {
  exposeMeasurement();
  exposeReports();
  using by_value = bp::return_value_policy<bp::return_by_value>;
  bp::class_<GaussNewton, std::shared_ptr<GaussNewton>, boost::noncopyable>(
      "GaussNewton", "Gauss-Newton on structured sweeps.", bp::no_init)
      .def("__init__", bp::make_constructor(
                           &makeSolver, bp::default_call_policies(),
                           (bp::arg("step"), bp::arg("knots"), bp::arg("prior"), bp::arg("prior_information"),
                            bp::arg("threads") = 0, bp::arg("segment") = 4096)))
      .add_property("steps", &GaussNewton::steps)
      .add_property("nx", &GaussNewton::nx)
      .add_property("nu", &GaussNewton::nu)
      .def("set_trajectory", &GaussNewton::setTrajectory, (bp::arg("states"), bp::arg("controls")))
      .add_property("states", bp::make_function(&GaussNewton::states, by_value()))
      .add_property("controls", bp::make_function(&GaussNewton::controls, by_value()))
      .add_property("impulses", bp::make_function(&GaussNewton::impulses, by_value()))
      .def("gaps", &GaussNewton::gaps)
      .def("set_weights", &GaussNewton::setWeights,
           (bp::arg("configuration"), bp::arg("velocity"), bp::arg("control")))
      .def("set_kappa", &GaussNewton::setKappa, (bp::arg("kappa")))
      .def(
          "evaluate", +[](GaussNewton& solver) { return solver.evaluate(); })
      .def("iterate", &iterate)
      .def("posterior", &posterior, (bp::arg("arrival_knot") = -1))
      .def("residuals", &GaussNewton::residuals);
}

}  // namespace python
}  // namespace prime_ros
