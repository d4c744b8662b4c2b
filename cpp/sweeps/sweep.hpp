// SPDX-License-Identifier: Apache-2.0
//
// Structured Riccati and information sweeps: the linear algebra of one iteration of the estimator.
//
// The problem. A chain of K steps joins K + 1 knots. The tangent state of a knot is dx = (dq [nv], dv [nv],
// dtheta [nt]), ndx = 2 nv + nt. The control du [nu] of a step enters through the next velocity only:
//
//     dv+     = Aq dq + Av dv + At dtheta + c + B du        c: velocity gap
//     dq+     = Jq dq + dt Jv dv+ + fq                      fq: configuration gap
//     dtheta+ = dtheta
//
// where Jq and Jv are the identity except for their leading 6 x 6 blocks (the floating base). Minimised is
//
//     1/2 dx_0' P dx_0 + p' dx_0                            arrival: the prior of knot 0
//   + sum over knots  1/2 dx' L dx + lx' dx                 L = diagonal + a 12 x 12 block on base (dq, dv)
//   + sum over steps  1/2 du' diag(luu) du + lu' du         luu > 0
//
// The solution is exact: it equals dense Riccati recursions up to rounding, at a fraction of their cost.
//
// Backward sweep. Condensing a step gives S = B diag(luu)^-1 B' and d = c - B diag(luu)^-1 lu. Substituting
// dq+ in the cost to go V+ of the next knot leaves the form [G g; g' U] over (dv+, y),
// y = (dq, dtheta, 1). With
//     G = R'R,  X = R^-T g,  Phi = I + R S R' = P'P,  Z = P^-T (R [A d] + [0 X])
// the cost to go is  V = L + U - X'X + Z'Z  and the optimal step is
//     mu = R' P^-1 Z dx,   dv+ = A dx + d - S mu,   du = -diag(luu)^-1 (lu + B' mu).
// G may be singular (later data say nothing about some velocity): a zero pivot becomes a zero row of R and X.
//
// Forward sweep. The cost to arrive Lambda of a knot, its own cost added, has over (dv, y) the form
// [R'R, R'X; X'R, W]. Eliminating dv and du, with T = R^-T Av', Sigma = S + T'T = P'P and
// Z = P^-T [-I, Ay - T'X] over (dv+, y), leaves  W - X'X + Z'Z, in which dq is replaced by the inverse of the
// transition above. Lambda_k + V_k is the inverse of the posterior covariance of dx_k.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace prime_ros {
namespace sweeps {

/// Sizes of the problem, the same at every knot.
struct Dimensions {
  int nv;  ///< velocities, at least 6 (floating base first)
  int nt;  ///< constant parameters theta, may be 0
  int nu;  ///< controls of a step (disturbances, contact slack), at least 1
  int ndx() const { return 2 * nv + nt; }
};

/// What a sweep keeps for every knot beyond what the step needs.
struct Storage {
  bool values = false;           ///< every V_k and Lambda_k; else only those of the last knot reached
  bool arrival_factors = false;  ///< the factors that solve_from_arrival() needs
};

enum class Outcome {
  kOk = 0,
  kNotFinite,   ///< an input or an intermediate result is infinite or not a number
  kIndefinite,  ///< negative curvature: a cost is not convex, or a control weight is not positive
  kSingular,    ///< no unique solution: the prior leaves a direction of the state undetermined
};

/// Result of a sweep. `knot` is where it stopped, -1 if it did not. Bad numbers in a set_* call mark the
/// knot, and the next sweep reports it. Curvature that is negative only by rounding counts as zero.
struct Status {
  Outcome outcome = Outcome::kOk;
  int knot = -1;
  explicit operator bool() const { return outcome == Outcome::kOk; }
};

/// Linearised step from knot k to k + 1. All matrices column-major; every array is copied.
struct StepInput {
  double dt;          ///< [s]
  const double* Aq;   ///< (nv, nv), leading dimension lda
  const double* Av;   ///< (nv, nv), leading dimension lda
  const double* At;   ///< (nv, nt), leading dimension lda; may be null if nt = 0
  int lda;            ///< >= nv
  const double* B;    ///< (nv, nu), leading dimension ldb
  int ldb;            ///< >= nv
  const double* luu;  ///< (nu) diagonal of the control cost, regularisation included, > 0
  const double* lu;   ///< (nu) gradient of the control cost
  const double* c;    ///< (nv) velocity gap
  const double* fq;   ///< (nv) configuration gap
  const double* Jq6;  ///< (6, 6) d(q+)/dq of the base, leading dimension 6, invertible
  const double* Jv6;  ///< (6, 6) d(q+)/d(dt v+) of the base, leading dimension 6
};

/// Terms of the model of the cost along the last solution, for a step of length alpha:
/// predicted change = alpha * linear + alpha^2 / 2 * quadratic.
struct ExpectedChange {
  double linear;     ///< p'dx_0 + sum lx'dx + sum lu'du
  double quadratic;  ///< dx_0'P dx_0 + sum dx'L dx + sum du'diag(luu) du
};

/// Chooses the kernels of the sweeps constructed afterwards: "auto" (the best this processor runs),
/// "portable" or "avx2". Returns the name in force. Throws std::invalid_argument for an unknown or
/// unsupported name.
std::string set_instruction_set(const std::string& name);

/// Sweeps over one chain. Vectors over dx are in the order (dq, dv, dtheta); matrices are column-major.
///
/// Usage: set_arrival, set_step for all k < steps(), set_cost for all k <= steps(); then backward() and
/// solve(); or forward() and solve_from_arrival(). Setting anything makes the sweeps before it stale: run
/// them again before reading results other than dx and du.
///
/// Different knots may be set from different threads at once, and the const members may run concurrently with
/// each other; a sweep runs alone. Setting, sweeping, solving, control() and value() do not allocate. A knot
/// index out of range throws std::out_of_range, a call out of order std::logic_error.
class Sweep {
 public:
  /// `steps` is the largest number of steps K >= 1. Throws std::invalid_argument on impossible sizes.
  Sweep(Dimensions dimensions, int steps, Storage storage = {});
  ~Sweep();
  Sweep(Sweep&&) noexcept;
  Sweep& operator=(Sweep&&) noexcept;

  const Dimensions& dimensions() const;
  int steps() const;
  /// Uses only the first `steps` steps (a window that still grows), at most the number given at construction.
  void set_steps(int steps);

  /// Stores the step of knot k, 0 <= k < steps(). The next sweep condenses it when it comes by.
  void set_step(int k, const StepInput& input);
  /// Replaces the control cost of step k (a new regularisation); luu, lu: (nu).
  void set_control_cost(int k, const double* luu, const double* lu);
  /// Cost of knot k, 0 <= k <= steps(): `diagonal` (ndx) >= 0, `base_block` (12, 12) symmetric over
  /// (dq[0:6], dv[0:6]) added to it (null: none), `gradient` (ndx).
  void set_cost(int k, const double* diagonal, const double* base_block, const double* gradient);
  /// Adds a cost to knot K that is not the knot's own (what follows the chain): `hessian` (ndx, ndx)
  /// symmetric (its lower triangle is read), `gradient` (ndx). It counts in backward() but not in
  /// expected_change().
  void set_terminal(const double* hessian, const double* gradient);
  void clear_terminal();
  /// Arrival cost of knot 0: `hessian` (ndx, ndx) symmetric (its lower triangle is read), `gradient` (ndx).
  void set_arrival(const double* hessian, const double* gradient);

  /// Costs to go V_K ... V_0 and the policies of all steps.
  Status backward();
  /// Minimiser of V_0 + arrival, then the linear steps to knot K. After backward().
  Status solve();
  /// The linear steps from `dx_0` (ndx) to knot K, whatever led there. After backward(); expected_change() is
  /// then without the arrival cost.
  Status solve_from(const double* dx_0);
  /// Costs to arrive Lambda_0 ... Lambda_K.
  Status forward();
  /// Minimiser of Lambda_K + cost of knot K, then back to knot 0. After forward(), with arrival_factors.
  Status solve_from_arrival();

  /// Solution of the last solve: (ndx) of knot k.
  const double* dx(int k) const;
  /// Solution of the last solve: (nu) of step k.
  const double* du(int k) const;
  /// Change of the modelled cost along the last solution.
  ExpectedChange expected_change() const;

  /// Policy of step k (after backward()) at any deviation dx (ndx), its constant part scaled by alpha: the
  /// control du (nu) and the velocity deviation dv_next (nv) the linear model predicts (c scaled by alpha
  /// too). Either output may be null.
  void control(int k, const double* dx, double alpha, double* dv_next, double* du) const;
  /// The policy du = K dx + k: gain (nu, ndx), feedforward (nu).
  void policy(int k, double* gain, double* feedforward) const;
  /// Covariance (nu, nu) of du_k given dx_k and all later data: Quu^-1. After backward().
  void control_covariance(int k, double* covariance) const;

  /// Cost to go of knot k, its own cost included: hessian (ndx, ndx), gradient (ndx). After backward().
  /// Throws std::logic_error unless Storage::values was asked for or k is 0.
  void value(int k, double* hessian, double* gradient) const;
  /// Cost to arrive at knot k without or with its own cost. After forward(). Throws std::logic_error unless
  /// Storage::values was asked for or k is steps().
  void arrival(int k, bool with_cost, double* hessian, double* gradient) const;
  /// Posterior covariance (ndx, ndx) of dx_k: (Lambda_k + V_k)^-1. After backward() and forward(), with
  /// Storage::values. Cov(dx_k, du_k) = Cov(dx_k) K', Cov(du_k) = Quu^-1 + K Cov(dx_k) K' (K: policy()).
  Status covariance(int k, double* covariance) const;

  /// Memory held, in bytes.
  std::size_t memory() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace sweeps
}  // namespace prime_ros
