// SPDX-License-Identifier: Apache-2.0
#include <eigenpy/eigenpy.hpp>

#include "action_binding.hpp"
#include "bindings.hpp"
#include "prime_ros/actions.hpp"

namespace bp = boost::python;

namespace prime_ros {
namespace python {
namespace {

VectorXd difference(const StateInertial& state, const VectorXd& x0, const VectorXd& x1) {
  checkSize(x0, state.get_nx(), "x0");
  checkSize(x1, state.get_nx(), "x1");
  VectorXd dx(state.get_ndx());
  state.diff(x0, x1, dx);
  return dx;
}

VectorXd integrate(const StateInertial& state, const VectorXd& x, const VectorXd& dx) {
  checkSize(x, state.get_nx(), "x");
  checkSize(dx, state.get_ndx(), "dx");
  VectorXd out(state.get_nx());
  state.integrate(x, dx, out);
  return out;
}

bp::tuple differenceJacobians(const StateInertial& state, const VectorXd& x0, const VectorXd& x1) {
  checkSize(x0, state.get_nx(), "x0");
  checkSize(x1, state.get_nx(), "x1");
  MatrixXd first(state.get_ndx(), state.get_ndx()), second(first);
  state.Jdiff(x0, x1, first, second, crocoddyl::both);
  return bp::make_tuple(first, second);
}

bp::tuple integrateJacobians(const StateInertial& state, const VectorXd& x, const VectorXd& dx) {
  checkSize(x, state.get_nx(), "x");
  checkSize(dx, state.get_ndx(), "dx");
  MatrixXd first(state.get_ndx(), state.get_ndx()), second(first);
  state.Jintegrate(x, dx, first, second, crocoddyl::both);
  return bp::make_tuple(first, second);
}

}  // namespace

void exposeActions() {
  using State = crocoddyl::StateAbstractTpl<double>;
  bp::class_<StateInertial, bp::bases<State>, std::shared_ptr<StateInertial>>(
      "StateInertial", "State (q, v, theta) of a floating-base robot with constant parameters.",
      bp::init<const pinocchio::Model&, int>((bp::arg("model"), bp::arg("ntheta"))))
      .add_property("ntheta", &StateInertial::ntheta)
      .def("zero", &StateInertial::zero)
      .def("rand", &StateInertial::rand)
      .def("diff", &difference, (bp::arg("x0"), bp::arg("x1")))
      .def("integrate", &integrate, (bp::arg("x"), bp::arg("dx")))
      .def("Jdiff", &differenceJacobians, (bp::arg("x0"), bp::arg("x1")))
      .def("Jintegrate", &integrateJacobians, (bp::arg("x"), bp::arg("dx")));
  bp::implicitly_convertible<std::shared_ptr<StateInertial>, std::shared_ptr<State>>();

  bp::class_<WorkspacePool, std::shared_ptr<WorkspacePool>, boost::noncopyable>(
      "WorkspacePool", "One ContactStepData per thread, shared by the actions of a problem.",
      bp::init<const ContactStep&>((bp::arg("step"))))
      .def("__len__", &WorkspacePool::size);

  exposeAction<ActionContactStep>("ActionContactStep",
                                  "A contact step with the measurements of the knot it starts from.")
      .def("__init__",
           bp::make_constructor(
               +[](const std::shared_ptr<StateInertial>& state, const std::shared_ptr<ContactStep>& step,
                   const std::shared_ptr<WorkspacePool>& pool, const KnotMeasurement& measurement) {
                 return std::make_shared<ActionContactStep>(state, step, pool, measurement);
               },
               bp::default_call_policies(),
               (bp::arg("state"), bp::arg("step"), bp::arg("pool"), bp::arg("measurement"))));
  exposeAction<ActionArrival>("ActionArrival",
                              "Prior of the first state: the control is its increment from the mean.")
      .def("__init__", bp::make_constructor(
                           +[](const std::shared_ptr<StateInertial>& state, const MatrixXd& information) {
                             return std::make_shared<ActionArrival>(state, information);
                           },
                           bp::default_call_policies(), (bp::arg("state"), bp::arg("information"))));
}

}  // namespace python
}  // namespace prime_ros
