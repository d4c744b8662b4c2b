// SPDX-License-Identifier: Apache-2.0
#include "prime_ros/rigid_contact.hpp"

#include <eigenpy/eigenpy.hpp>

#include "action_binding.hpp"
#include "bindings.hpp"

namespace bp = boost::python;

namespace prime_ros {
namespace python {
namespace {

std::shared_ptr<RigidContact> makeContact(const pinocchio::Model& model, const bp::list& feet,
                                          const bp::list& bodies, const RigidSettings& settings) {
  std::vector<RigidFoot> all;
  for (bp::ssize_t i = 0; i < bp::len(feet); ++i) all.push_back(bp::extract<RigidFoot>(feet[i]));
  std::vector<pinocchio::JointIndex> joints;
  for (bp::ssize_t i = 0; i < bp::len(bodies); ++i)
    joints.push_back(bp::extract<pinocchio::JointIndex>(bodies[i]));
  return std::make_shared<RigidContact>(model, all, joints, settings);
}

bp::tuple wrenches(ActionRigidContact& action, const VectorXd& x, const VectorXd& u) {
  checkSize(x, action.get_state()->get_nx(), "x");
  checkSize(u, action.get_nu(), "u");
  const RigidStep& step = action.step(x, u);
  return bp::make_tuple(MatrixXd(step.wrench), step.wrench_x, step.wrench_u);
}

}  // namespace

void exposeRigidContact() {
  bp::class_<RigidFoot>("RigidFoot", "Where a link stands on the ground: a point, or a rectangle.")
      .def_readwrite("joint", &RigidFoot::joint)
      .def_readwrite("placement", &RigidFoot::placement)
      .def_readwrite("friction", &RigidFoot::friction)
      .add_property("size", copied(&RigidFoot::size), assigned(&RigidFoot::size));
  bp::class_<RigidSettings>("RigidSettings", "What does not change from knot to knot.")
      .def_readwrite("dt", &RigidSettings::dt)
      .def_readwrite("settle_rate", &RigidSettings::settle_rate)
      .def_readwrite("cone_weight", &RigidSettings::cone_weight);
  bp::class_<RigidContact, std::shared_ptr<RigidContact>, boost::noncopyable>(
      "RigidContact", "Dynamics with rigid contacts of given feet.", bp::no_init)
      .def("__init__",
           bp::make_constructor(&makeContact, bp::default_call_policies(),
                                (bp::arg("model"), bp::arg("feet"), bp::arg("bodies"), bp::arg("settings"))))
      .add_property("nv", &RigidContact::nv)
      .add_property("ntheta", &RigidContact::ntheta)
      .def("nominal_theta", &RigidContact::nominalTheta);
  exposeAction<ActionRigidContact>(
      "ActionRigidContact", "A step of rigid contact with the measurements of the knot it starts from.")
      .def("__init__",
           bp::make_constructor(
               +[](const std::shared_ptr<StateInertial>& state, const std::shared_ptr<RigidContact>& contact,
                   unsigned standing, const KnotMeasurement& measurement) {
                 return std::make_shared<ActionRigidContact>(state, contact, standing, measurement);
               },
               bp::default_call_policies(),
               (bp::arg("state"), bp::arg("contact"), bp::arg("standing"), bp::arg("measurement"))))
      .def("wrenches", &wrenches, (bp::arg("x"), bp::arg("u")));
}

}  // namespace python
}  // namespace prime_ros
