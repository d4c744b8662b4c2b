// SPDX-License-Identifier: Apache-2.0
#include <eigenpy/eigenpy.hpp>

#include "bindings.hpp"
#include "prime_ros/actions.hpp"

namespace bp = boost::python;

namespace prime_ros {
namespace python {
namespace {

void checkSize(const VectorXd& value, size_t expected, const char* name) {
  if (static_cast<size_t>(value.size()) != expected)
    throw std::invalid_argument(std::string(name) + " has size " + std::to_string(value.size()) +
                                ", expected " + std::to_string(expected));
}

using ActionBase = crocoddyl::ActionModelAbstractTpl<double>;
using DataPtr = std::shared_ptr<crocoddyl::ActionDataAbstractTpl<double>>;

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

template <class Action>
void calc(Action& action, const DataPtr& data, const VectorXd& x, const VectorXd& u) {
  checkSize(x, action.get_state()->get_nx(), "x");
  checkSize(u, action.get_nu(), "u");
  action.calc(data, x, u);
}

template <class Action>
void calcTerminal(Action& action, const DataPtr& data, const VectorXd& x) {
  checkSize(x, action.get_state()->get_nx(), "x");
  action.calc(data, x);
}

template <class Action>
void calcDiff(Action& action, const DataPtr& data, const VectorXd& x, const VectorXd& u) {
  checkSize(x, action.get_state()->get_nx(), "x");
  checkSize(u, action.get_nu(), "u");
  action.calcDiff(data, x, u);
}

template <class Action>
void calcDiffTerminal(Action& action, const DataPtr& data, const VectorXd& x) {
  checkSize(x, action.get_state()->get_nx(), "x");
  action.calcDiff(data, x);
}

// Crocoddyl's Python methods are bound to its own trampoline class, so that they have to be defined again
// here.
template <class Action>
bp::class_<Action, bp::bases<ActionBase>, std::shared_ptr<Action>> exposeAction(const char* name,
                                                                                const char* doc) {
  bp::class_<Action, bp::bases<ActionBase>, std::shared_ptr<Action>> cls(name, doc, bp::no_init);
  cls.def("calc", &calc<Action>, (bp::arg("data"), bp::arg("x"), bp::arg("u")))
      .def("calc", &calcTerminal<Action>, (bp::arg("data"), bp::arg("x")))
      .def("calcDiff", &calcDiff<Action>, (bp::arg("data"), bp::arg("x"), bp::arg("u")))
      .def("calcDiff", &calcDiffTerminal<Action>, (bp::arg("data"), bp::arg("x")))
      .def("createData", +[](Action& a) { return a.createData(); });
  bp::implicitly_convertible<std::shared_ptr<Action>, std::shared_ptr<ActionBase>>();
  return cls;
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
