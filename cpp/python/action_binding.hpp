// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/python.hpp>
#include <crocoddyl/core/action-base.hpp>
#include <memory>
#include <stdexcept>
#include <string>

namespace prime_ros {
namespace python {

inline void checkSize(const Eigen::VectorXd& value, size_t expected, const char* name) {
  if (static_cast<size_t>(value.size()) != expected)
    throw std::invalid_argument(std::string(name) + " has size " + std::to_string(value.size()) +
                                ", expected " + std::to_string(expected));
}

using ActionBase = crocoddyl::ActionModelAbstractTpl<double>;
using DataPtr = std::shared_ptr<crocoddyl::ActionDataAbstractTpl<double>>;

template <class Action>
void calc(Action& action, const DataPtr& data, const Eigen::VectorXd& x, const Eigen::VectorXd& u) {
  checkSize(x, action.get_state()->get_nx(), "x");
  checkSize(u, action.get_nu(), "u");
  action.calc(data, x, u);
}

template <class Action>
void calcTerminal(Action& action, const DataPtr& data, const Eigen::VectorXd& x) {
  checkSize(x, action.get_state()->get_nx(), "x");
  action.calc(data, x);
}

template <class Action>
void calcDiff(Action& action, const DataPtr& data, const Eigen::VectorXd& x, const Eigen::VectorXd& u) {
  checkSize(x, action.get_state()->get_nx(), "x");
  checkSize(u, action.get_nu(), "u");
  action.calcDiff(data, x, u);
}

template <class Action>
void calcDiffTerminal(Action& action, const DataPtr& data, const Eigen::VectorXd& x) {
  checkSize(x, action.get_state()->get_nx(), "x");
  action.calcDiff(data, x);
}

// Crocoddyl's Python methods are bound to its own trampoline class, so that they have to be defined again
// here.
template <class Action>
boost::python::class_<Action, boost::python::bases<ActionBase>, std::shared_ptr<Action>> exposeAction(
    const char* name, const char* doc) {
  boost::python::class_<Action, boost::python::bases<ActionBase>, std::shared_ptr<Action>> cls(
      name, doc, boost::python::no_init);
  cls.def("calc", &calc<Action>,
          (boost::python::arg("data"), boost::python::arg("x"), boost::python::arg("u")))
      .def("calc", &calcTerminal<Action>, (boost::python::arg("data"), boost::python::arg("x")))
      .def("calcDiff", &calcDiff<Action>,
           (boost::python::arg("data"), boost::python::arg("x"), boost::python::arg("u")))
      .def("calcDiff", &calcDiffTerminal<Action>, (boost::python::arg("data"), boost::python::arg("x")))
      .def("createData", +[](Action& a) { return a.createData(); });
  boost::python::implicitly_convertible<std::shared_ptr<Action>, std::shared_ptr<ActionBase>>();
  return cls;
}

}  // namespace python
}  // namespace prime_ros
