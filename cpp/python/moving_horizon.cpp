// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/moving_horizon.hpp"

#include <eigenpy/eigenpy.hpp>

#include "bindings.hpp"
#include "unlocked.hpp"

namespace bp = boost::python;

namespace prime_ros {
namespace python {
namespace {

std::shared_ptr<MovingHorizon> makeWindow(const std::shared_ptr<ContactStep>& step, int horizon,
                                          const VectorXd& walk) {
  return std::make_shared<MovingHorizon>(step, horizon, walk);
}

WindowReport iterate(MovingHorizon& window, int iterations) {
  Unlocked unlocked;
  return window.iterate(iterations);
}

WindowReport refine(MovingHorizon& window, int steps, int iterations) {
  Unlocked unlocked;
  return window.refine(steps, iterations);
}

WindowEstimate estimate(MovingHorizon& window, int age) {
  Unlocked unlocked;
  return window.estimate(age);
}

void append(MovingHorizon& window, const KnotMeasurement& y) {
  Unlocked unlocked;
  window.append(y);
}

}  // namespace

void exposeMovingHorizon() {
  using R = WindowReport;
  bp::class_<R>("WindowReport", "How far a window got in one update.", bp::no_init)
      .def_readonly("cost", &R::cost)
      .def_readonly("largest_gap", &R::largest_gap)
      .def_readonly("newton_worst", &R::newton_worst)
      .def_readonly("newton_failures", &R::newton_failures)
      .def_readonly("ok", &R::ok);
  using E = WindowEstimate;
  bp::class_<E>("WindowEstimate", "One knot of the window and the step that leaves it.", bp::no_init)
      .add_property("state", copied(&E::state))
      .add_property("control", copied(&E::control))
      .add_property("impulse", copied(&E::impulse))
      .add_property("covariance", copied(&E::covariance))
      .add_property("control_std", copied(&E::control_std))
      .add_property("impulse_std", copied(&E::impulse_std))
      .def_readonly("ok", &E::ok);
  using M = MovingHorizon;
  bp::class_<M, std::shared_ptr<M>, boost::noncopyable>("MovingHorizon", "Moving-horizon estimation.",
                                                        bp::no_init)
      .def("__init__", bp::make_constructor(&makeWindow, bp::default_call_policies(),
                                            (bp::arg("step"), bp::arg("horizon"), bp::arg("walk"))))
      .add_property("steps", &M::steps)
      .add_property("horizon", &M::horizon)
      .add_property("nx", &M::nx)
      .add_property("nu", &M::nu)
      .def("reset", &M::reset, (bp::arg("mean"), bp::arg("information"), bp::arg("knot"), bp::arg("start")))
      .def("append", &append, (bp::arg("knot")))
      .def("set_measurement", &M::setMeasurement, (bp::arg("age"), bp::arg("knot")))
      .def("set_horizon", &M::setHorizon, (bp::arg("horizon")))
      .def("iterate", &iterate, (bp::arg("iterations")))
      .def("refine", &refine, (bp::arg("steps"), bp::arg("iterations")))
      .def(
          "state", +[](const M& window, int age) -> VectorXd { return window.state(age); }, (bp::arg("age")))
      .def("estimate", &estimate, (bp::arg("age")))
      .def("residual", &M::residual, (bp::arg("age")));
}

}  // namespace python
}  // namespace prime_ros
