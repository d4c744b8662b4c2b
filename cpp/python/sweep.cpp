// SPDX-License-Identifier: Apache-2.0
#include "sweeps/sweep.hpp"

#include <Eigen/Core>
#include <eigenpy/eigenpy.hpp>
#include <stdexcept>

#include "bindings.hpp"

namespace bp = boost::python;

namespace prime_ros {
namespace python {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using sweeps::Sweep;

void require(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(std::string("Sweep: wrong size of ") + what);
}

void setStep(Sweep& s, int k, double dt, const MatrixXd& Aq, const MatrixXd& Av, const MatrixXd& At,
             const MatrixXd& B, const VectorXd& luu, const VectorXd& lu, const VectorXd& c,
             const VectorXd& fq, const MatrixXd& Jq6, const MatrixXd& Jv6) {
  const auto& n = s.dimensions();
  require(Aq.rows() == n.nv && Aq.cols() == n.nv && Av.rows() == n.nv && Av.cols() == n.nv, "Aq or Av");
  require(At.rows() == n.nv && At.cols() == n.nt && B.rows() == n.nv && B.cols() == n.nu, "At or B");
  require(luu.size() == n.nu && lu.size() == n.nu && c.size() == n.nv && fq.size() == n.nv,
          "luu, lu, c or fq");
  require(Jq6.rows() == 6 && Jq6.cols() == 6 && Jv6.rows() == 6 && Jv6.cols() == 6, "Jq6 or Jv6");
  s.set_step(k, {dt, Aq.data(), Av.data(), At.data(), n.nv, B.data(), n.nv, luu.data(), lu.data(), c.data(),
                 fq.data(), Jq6.data(), Jv6.data()});
}

void setCost(Sweep& s, int k, const VectorXd& diagonal, const MatrixXd& base_block,
             const VectorXd& gradient) {
  const auto ndx = s.dimensions().ndx();
  require(diagonal.size() == ndx && gradient.size() == ndx, "diagonal or gradient");
  require(base_block.rows() == 12 && base_block.cols() == 12, "base_block");
  s.set_cost(k, diagonal.data(), base_block.data(), gradient.data());
}

void setArrival(Sweep& s, const MatrixXd& hessian, const VectorXd& gradient) {
  const auto ndx = s.dimensions().ndx();
  require(hessian.rows() == ndx && hessian.cols() == ndx && gradient.size() == ndx, "arrival");
  s.set_arrival(hessian.data(), gradient.data());
}

void setTerminal(Sweep& s, const MatrixXd& hessian, const VectorXd& gradient) {
  const auto ndx = s.dimensions().ndx();
  require(hessian.rows() == ndx && hessian.cols() == ndx && gradient.size() == ndx, "terminal");
  s.set_terminal(hessian.data(), gradient.data());
}

void raise(const sweeps::Status& status) {
  if (status) return;
  const char* why[] = {"ok", "not finite", "indefinite", "singular"};
  throw std::runtime_error(std::string("Sweep: ") + why[static_cast<int>(status.outcome)] + " at knot " +
                           std::to_string(status.knot));
}

bp::tuple value(const Sweep& s, int k) {
  const auto n = s.dimensions().ndx();
  MatrixXd hessian(n, n);
  VectorXd gradient(n);
  s.value(k, hessian.data(), gradient.data());
  return bp::make_tuple(hessian, gradient);
}

bp::tuple arrival(const Sweep& s, int k, bool with_cost) {
  const auto n = s.dimensions().ndx();
  MatrixXd hessian(n, n);
  VectorXd gradient(n);
  s.arrival(k, with_cost, hessian.data(), gradient.data());
  return bp::make_tuple(hessian, gradient);
}

MatrixXd covariance(const Sweep& s, int k) {
  const auto n = s.dimensions().ndx();
  MatrixXd out(n, n);
  raise(s.covariance(k, out.data()));
  return out;
}

MatrixXd controlCovariance(const Sweep& s, int k) {
  MatrixXd out(s.dimensions().nu, s.dimensions().nu);
  s.control_covariance(k, out.data());
  return out;
}

bp::tuple policy(const Sweep& s, int k) {
  MatrixXd gain(s.dimensions().nu, s.dimensions().ndx());
  VectorXd feedforward(s.dimensions().nu);
  s.policy(k, gain.data(), feedforward.data());
  return bp::make_tuple(gain, feedforward);
}

}  // namespace

void exposeSweep() {
  bp::def("set_instruction_set", &sweeps::set_instruction_set, (bp::arg("name")),
          "Kernels of the sweeps made from now on: 'auto', 'portable' or 'avx2'; returns the name in force.");
  bp::class_<Sweep, std::shared_ptr<Sweep>, boost::noncopyable>(
      "Sweep", "Structured Riccati and information sweeps.", bp::no_init)
      .def("__init__", bp::make_constructor(
                           +[](int nv, int nt, int nu, int steps, bool values, bool arrival_factors) {
                             return std::make_shared<Sweep>(sweeps::Dimensions{nv, nt, nu}, steps,
                                                            sweeps::Storage{values, arrival_factors});
                           },
                           bp::default_call_policies(),
                           (bp::arg("nv"), bp::arg("nt"), bp::arg("nu"), bp::arg("steps"),
                            bp::arg("values") = true, bp::arg("arrival_factors") = true)))
      .def("set_step", &setStep)
      .def("set_cost", &setCost)
      .def("set_arrival", &setArrival)
      .def("set_terminal", &setTerminal)
      .def("clear_terminal", &Sweep::clear_terminal)
      .def(
          "backward", +[](Sweep& s) { raise(s.backward()); })
      .def(
          "solve", +[](Sweep& s) { raise(s.solve()); })
      .def(
          "solve_from",
          +[](Sweep& s, const VectorXd& dx_0) {
            require(dx_0.size() == s.dimensions().ndx(), "dx_0");
            raise(s.solve_from(dx_0.data()));
          })
      .def(
          "forward", +[](Sweep& s) { raise(s.forward()); })
      .def(
          "solve_from_arrival", +[](Sweep& s) { raise(s.solve_from_arrival()); })
      .def(
          "dx",
          +[](const Sweep& s, int k) -> VectorXd {
            return Eigen::Map<const VectorXd>(s.dx(k), s.dimensions().ndx());
          })
      .def(
          "du",
          +[](const Sweep& s, int k) -> VectorXd {
            return Eigen::Map<const VectorXd>(s.du(k), s.dimensions().nu);
          })
      .def("value", &value)
      .def("arrival", &arrival)
      .def("covariance", &covariance)
      .def("control_covariance", &controlCovariance)
      .def("policy", &policy)
      .def(
          "expected_change",
          +[](const Sweep& s) {
            const auto change = s.expected_change();
            return bp::make_tuple(change.linear, change.quadratic);
          })
      .def("memory", &Sweep::memory);
}

}  // namespace python
}  // namespace prime_ros
