// SPDX-License-Identifier: Apache-2.0
#include <eigenpy/eigenpy.hpp>

#include "bindings.hpp"
#include "prime_ros/actions.hpp"

namespace bp = boost::python;

namespace prime_ros {
namespace python {
namespace {

using ActionBase = crocoddyl::ActionModelAbstractTpl<double>;
using DataPtr = std::shared_ptr<crocoddyl::ActionDataAbstractTpl<double>>;

// Crocoddyl's Python methods are bound to its own trampoline class, so that they have to be defined again
// here.
template <class Action>
bp::class_<Action, bp::bases<ActionBase>, std::shared_ptr<Action>> exposeAction(const char* name,
                                                                                const char* doc) {
  bp::class_<Action, bp::bases<ActionBase>, std::shared_ptr<Action>> cls(name, doc, bp::no_init);
  cls.def(
         "calc", +[](Action& a, const DataPtr& d, const VectorXd& x, const VectorXd& u) { a.calc(d, x, u); })
      .def(
          "calc", +[](Action& a, const DataPtr& d, const VectorXd& x) { a.calc(d, x); })
      .def(
          "calcDiff",
          +[](Action& a, const DataPtr& d, const VectorXd& x, const VectorXd& u) { a.calcDiff(d, x, u); })
      .def(
          "calcDiff", +[](Action& a, const DataPtr& d, const VectorXd& x) { a.calcDiff(d, x); })
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
      .def(
          "diff",
          +[](const StateInertial& s, const VectorXd& a, const VectorXd& b) {
            VectorXd dx(s.get_ndx());
            s.diff(a, b, dx);
            return dx;
          })
      .def(
          "integrate",
          +[](const StateInertial& s, const VectorXd& x, const VectorXd& dx) {
            VectorXd out(s.get_nx());
            s.integrate(x, dx, out);
            return out;
          })
      .def(
          "Jdiff",
          +[](const StateInertial& s, const VectorXd& a, const VectorXd& b) {
            MatrixXd first(s.get_ndx(), s.get_ndx()), second(first);
            s.Jdiff(a, b, first, second, crocoddyl::both);
            return bp::make_tuple(first, second);
          })
      .def(
          "Jintegrate", +[](const StateInertial& s, const VectorXd& x, const VectorXd& dx) {
            MatrixXd first(s.get_ndx(), s.get_ndx()), second(first);
            s.Jintegrate(x, dx, first, second, crocoddyl::both);
            return bp::make_tuple(first, second);
          });
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
