// SPDX-License-Identifier: Apache-2.0
#include <eigenpy/eigenpy.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>

#include "bindings.hpp"
#include "prime_ros/contact_step.hpp"

#include <chrono>

namespace bp = boost::python;

namespace prime_ros {
namespace python {
namespace {

std::shared_ptr<ContactStep> makeStep(const pinocchio::Model& model, const bp::list& contacts,
                                      const bp::list& bodies, const StepSettings& settings) {
  std::vector<ContactPoint> points;
  for (bp::ssize_t i = 0; i < bp::len(contacts); ++i)
    points.push_back(bp::extract<ContactPoint>(contacts[i]));
  std::vector<pinocchio::JointIndex> joints;
  for (bp::ssize_t i = 0; i < bp::len(bodies); ++i)
    joints.push_back(bp::extract<pinocchio::JointIndex>(bodies[i]));
  return std::make_shared<ContactStep>(model, points, joints, settings);
}

void checkSize(const VectorXd& value, int expected, const char* name) {
  if (value.size() != expected)
    throw std::invalid_argument(std::string("ContactStep: ") + name + " has size " +
                                std::to_string(value.size()) + ", expected " + std::to_string(expected));
}

void checkData(const ContactStep& step, const ContactStepData& data) {
  if (!data.fits(step)) throw std::invalid_argument("ContactStep: data was made for another step");
}

void solve(const ContactStep& step, ContactStepData& data, const VectorXd& q, const VectorXd& v,
           const VectorXd& force, const VectorXd& slack, const VectorXd& theta) {
  checkData(step, data);
  checkSize(data.v_next, step.nv(), "data.v_next");
  checkSize(q, step.nq(), "q");
  checkSize(v, step.nv(), "v");
  checkSize(force, step.nv(), "force");
  checkSize(slack, 3 * step.ncontacts(), "slack");
  checkSize(theta, step.ntheta(), "theta");
  step.solve(data, q, v, force, slack, theta);
}

void differentiate(const ContactStep& step, ContactStepData& data, const VectorXd& q, const VectorXd& v) {
  checkData(step, data);
  checkSize(q, step.nq(), "q");
  checkSize(v, step.nv(), "v");
  step.differentiate(data, q, v);
}

VectorXd contactVelocity(const ContactStep& step, ContactStepData& data, const VectorXd& q,
                         const VectorXd& v) {
  checkData(step, data);
  checkSize(q, step.nq(), "q");
  checkSize(v, step.nv(), "v");
  return step.contactVelocity(data, q, v);
}

double invert(const ContactStep& step, ContactStepData& data, const VectorXd& q, const VectorXd& v,
              const VectorXd& v_next, const VectorXd& force, const VectorXd& weight, const VectorXd& theta) {
  checkData(step, data);
  checkSize(q, step.nq(), "q");
  checkSize(v, step.nv(), "v");
  checkSize(v_next, step.nv(), "v_next");
  checkSize(force, step.nv(), "force");
  checkSize(weight, step.nv() + 3 * step.ncontacts(), "weight");
  checkSize(theta, step.ntheta(), "theta");
  return step.invert(data, q, v, v_next, force, weight, theta);
}

bp::tuple contactGraph(const Eigen::Vector2d& friction, double kappa, const Vector3d& p,
                       const Vector3d& slope_z, const Vector3d& slope_impulse) {
  const SmoothedEllipticCone cone(friction);
  const auto at = cone.onGraph(p, kappa);
  return bp::make_tuple(at.z, at.impulse, at.dz_dp, at.dimpulse_dp,
                        cone.graphCurvature(p, kappa, slope_z, slope_impulse));
}

bp::tuple impulseDerivatives(const ContactStep& step, const ContactStepData& data) {
  checkData(step, data);
  MatrixXd dx(3 * step.ncontacts(), 2 * step.nv() + step.ntheta());
  MatrixXd du(3 * step.ncontacts(), step.nv() + 3 * step.ncontacts());
  step.impulseDerivatives(data, dx, du);
  return bp::make_tuple(dx, du);
}

}  // namespace

void exposeContactStep() {
  bp::class_<ContactPoint>("ContactPoint", "A sphere fixed to a link that may touch the ground.",
                           bp::init<>())
      .def_readwrite("joint", &ContactPoint::joint, "Joint that moves the link.")
      .add_property("offset", copied(&ContactPoint::offset), assigned(&ContactPoint::offset),
                    "Centre in the joint frame, (3,) [m].")
      .def_readwrite("radius", &ContactPoint::radius, "[m], zero for a point.")
      .add_property("friction", copied(&ContactPoint::friction), assigned(&ContactPoint::friction),
                    "Coulomb coefficients along world x and y, (2,) [-].");

  bp::def("contact_graph", &contactGraph,
          (bp::arg("friction"), bp::arg("kappa"), bp::arg("coordinate"), bp::arg("slope_z"),
           bp::arg("slope_impulse")),
          "z, impulse, their derivatives by the coordinate, and the Hessian of slope_z . z + slope_impulse . "
          "impulse, on the graph of the smoothed elliptic cone.");

  bp::class_<StepSettings>("StepSettings", "What does not change from step to step.", bp::init<>())
      .def_readwrite("dt", &StepSettings::dt, "[s]")
      .def_readwrite("kappa", &StepSettings::kappa, "Sharpness of the contact smoothing [1/J].")
      .add_property("damping", copied(&StepSettings::damping), assigned(&StepSettings::damping),
                    "(nv,) [Nm s/rad]")
      .add_property("friction", copied(&StepSettings::friction), assigned(&StepSettings::friction),
                    "(nv,) [Nm]")
      .def_readwrite("friction_velocity", &StepSettings::friction_velocity, "[rad/s]")
      .def_readwrite("tolerance", &StepSettings::tolerance,
                     "On kappa times the squared Newton decrement [-].")
      .def_readwrite("max_iterations", &StepSettings::max_iterations);

  bp::class_<ContactStepData, std::shared_ptr<ContactStepData>, boost::noncopyable>(
      "ContactStepData", "Scratch memory and results of ContactStep.", bp::init<const ContactStep&>())
      .add_property("v_next", copied(&ContactStepData::v_next), assigned(&ContactStepData::v_next))
      .add_property("impulse", copied(&ContactStepData::impulse), assigned(&ContactStepData::impulse))
      .add_property("control", copied(&ContactStepData::control))
      .add_property("z", copied(&ContactStepData::z))
      .def_readonly("iterations", &ContactStepData::iterations)
      .def_readonly("converged", &ContactStepData::converged)
      .add_property(
          "dq", +[](const ContactStepData& d) -> MatrixXd { return d.dq(); })
      .add_property(
          "dv", +[](const ContactStepData& d) -> MatrixXd { return d.dv(); })
      .add_property(
          "df", +[](const ContactStepData& d) -> MatrixXd { return d.df(); })
      .add_property(
          "dslack", +[](const ContactStepData& d) -> MatrixXd { return d.dslack(); })
      .add_property("dtheta", +[](const ContactStepData& d) -> MatrixXd { return d.dtheta(); });

  bp::class_<ContactStep, std::shared_ptr<ContactStep>, boost::noncopyable>(
      "ContactStep", "One step of the smoothed contact dynamics.", bp::no_init)
      .def("__init__", bp::make_constructor(
                           &makeStep, bp::default_call_policies(),
                           (bp::arg("model"), bp::arg("contacts"), bp::arg("bodies"), bp::arg("settings"))))
      .add_property("nq", &ContactStep::nq)
      .add_property("nv", &ContactStep::nv)
      .add_property("ncontacts", &ContactStep::ncontacts)
      .add_property("ntheta", &ContactStep::ntheta)
      .add_property(
          "kappa", +[](const ContactStep& s) { return s.settings().kappa; }, &ContactStep::setKappa)
      .def("nominal_theta", &ContactStep::nominalTheta, (bp::arg("ground_height")))
      .def(
          "solve", &solve,
          (bp::arg("data"), bp::arg("q"), bp::arg("v"), bp::arg("force"), bp::arg("slack"), bp::arg("theta")),
          "Solves the step; data.v_next is the first guess and the result.")
      .def("invert", &invert,
           (bp::arg("data"), bp::arg("q"), bp::arg("v"), bp::arg("v_next"), bp::arg("force"),
            bp::arg("weight"), bp::arg("theta")),
           "The least improbable generalised force and slack (data.control) that lead to v_next, and their "
           "cost; "
           "data.impulse is the first guess and the result.")
      .def("contact_velocity", &contactVelocity, (bp::arg("data"), bp::arg("q"), bp::arg("v")),
           "Velocities of the contact points in world axes, (3 nc,) [m/s].")
      .def("differentiate", &differentiate, (bp::arg("data"), bp::arg("q"), bp::arg("v")),
           "Derivatives of v_next at the step just solved.")
      .def("impulse_derivatives", &impulseDerivatives, (bp::arg("data")),
           "Derivatives of the impulses: with respect to (q, v, theta) and (force, slack).");
}

}  // namespace python
}  // namespace prime_ros
