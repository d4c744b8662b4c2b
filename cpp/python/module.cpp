// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Core>
#include <eigenpy/eigenpy.hpp>

#include "bindings.hpp"

namespace bp = boost::python;

BOOST_PYTHON_MODULE(_core) {
  bp::import("pinocchio");  // registers Model
  bp::import("crocoddyl");  // registers StateAbstract, ActionModelAbstract and their data
  eigenpy::enableEigenPy();
  Eigen::setNbThreads(1);  // Eigen's own threads slow the small products of the sweeps down
  bp::docstring_options options(true, true, false);
  prime_ros::python::exposeContactStep();
  prime_ros::python::exposeActions();
  prime_ros::python::exposeFullInformation();
  prime_ros::python::exposeMovingHorizon();
  prime_ros::python::exposeRigidContact();
  prime_ros::python::exposeSweep();
  prime_ros::python::exposeBenchmark();
}
