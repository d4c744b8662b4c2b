// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/python.hpp>

namespace prime_ros {
namespace python {

void exposeContactStep();
void exposeActions();
void exposeFullInformation();
void exposeMovingHorizon();
void exposeRigidContact();
void exposeSweep();
void exposeBenchmark();

/// Read-only property that returns a copy of an Eigen member.
template <class Class, class Member>
boost::python::object copied(Member Class::* member) {
  return boost::python::make_getter(member,
                                    boost::python::return_value_policy<boost::python::return_by_value>());
}

template <class Class, class Member>
boost::python::object assigned(Member Class::* member) {
  return boost::python::make_setter(member,
                                    boost::python::return_value_policy<boost::python::return_by_value>());
}

}  // namespace python
}  // namespace prime_ros
