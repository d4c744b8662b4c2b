// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "prime_ros/measurement.hpp"
#include "prime_ros/workspace_pool.hpp"
#include "sweeps/segmented.hpp"

namespace prime_ros {

/// Maximum a posteriori estimation over K steps:
///
///   min 1/2 |x_0 (-) prior|^2_P + sum_{k=0..K} measurement cost(x_k) + sum_{k<K} 1/2 |u_k|^2_weight
///   with x_{k+1} = f(x_k, u_k), the contact step; x = (q, v, theta), u = (disturbance, contact slack).
struct FullInformationProblem {
  std::shared_ptr<ContactStep> step;
  KnotSeries knots;            ///< K + 1 of them; `torque` and `control_weight` of the last are not used
  VectorXd prior;              ///< mean of (q, v, theta) at knot 0, size nq + nv + ntheta
  MatrixXd prior_information;  ///< inverse covariance in the tangent (q, v, theta), ndx x ndx
};

/// How far one iteration of GaussNewton got.
struct IterationReport {
  double cost = 0.0;         ///< after the iteration
  double largest_gap = 0.0;  ///< infinity norm of all defects x_{k+1} (-) f(x_k, u_k)
  double expected =
      0.0;  ///< decrease of the cost that the linear model expected of the full step, >= 0 if feasible
  double relative_change = 0.0;  ///< |change of the cost| / cost
  double step_length = 0.0;      ///< zero when no step was accepted
  double damping = 0.0;
  int newton_worst = 0;      ///< most Newton iterations of one contact step
  int newton_failures = 0;   ///< contact steps that met the cap or were not finite, at the accepted point
  int explain_worst = 0;     ///< most iterations in finding the controls of one knot, at the accepted point
  int explain_failures = 0;  ///< knots whose controls may not be the least improbable ones
  bool accepted = false;
};

/// Standard deviations and leverages at the solution, from the Gauss-Newton Hessian (Laplace approximation).
struct Posterior {
  MatrixXd position_std;        ///< base position in world axes, 3 x (K + 1) [m]
  MatrixXd configuration_std;   ///< tangent of q, nv x (K + 1)
  MatrixXd velocity_std;        ///< nv x (K + 1)
  MatrixXd control_std;         ///< (disturbance, slack), nu x K
  MatrixXd impulse_std;         ///< 3 nc x K [N s]
  MatrixXd impulse_covariance;  ///< of all impulses of a step, one column per step, 9 nc^2 x K [N^2 s^2]
  MatrixXd theta_covariance;    ///< ntheta x ntheta
  VectorXd theta_step;          ///< what another Gauss-Newton step would add to theta, size ntheta
  VectorXd
      configuration_leverage;  ///< trace of the hat matrix per measured channel, summed over knots, size nv
  VectorXd velocity_leverage;  ///< size nv
  VectorXd control_leverage;   ///< of the zero-mean prior of the controls, size nu
  MatrixXd arrival_hessian;    ///< of what came before the arrival knot, about its state; ndx x ndx
  VectorXd arrival_gradient;   ///< size ndx
  double expected = 0.0;       ///< decrease of the cost that another Gauss-Newton step promises
  bool ok = false;             ///< false if the information was singular: entries are then NaN
};

/// Gauss-Newton on structured sweeps, over trajectories that all obey the dynamics.
///
/// Each iteration linearises all steps (in parallel), solves the linear-quadratic problem exactly and moves
/// the states along its step. The controls are not moved with them but found anew, knot by knot, as the least
/// improbable ones that lead from state to state (ContactStep::invert): the disturbance has full rank, so
/// they exist for all states whose velocities are the differences of their configurations. No defect is left,
/// whatever the length of the step, and the cost alone decides on it. Only the first step, from measured
/// states that contradict each other, is taken as it is. When no length lowers the cost, the damping grows,
/// and the iteration reports that no step was accepted: the method never stalls silently.
class GaussNewton {
 public:
  /// @param threads  0: as many as OpenMP allows.
  /// @param segment  most steps whose linearisation is kept; a longer recording is linearised again where
  /// needed.
  /// @throws std::invalid_argument  if sizes do not fit, naming them.
  GaussNewton(FullInformationProblem problem, int threads, int segment);

  int steps() const { return problem_.knots.size() - 1; }
  int nx() const { return static_cast<int>(problem_.prior.size()); }
  int nu() const { return nv_ + 3 * problem_.step->ncontacts(); }

  /// @param states  nx x (K + 1);  @param controls  nu x K.
  void setTrajectory(const MatrixXd& states, const MatrixXd& controls);
  const MatrixXd& states() const { return current_.states; }
  const MatrixXd& controls() const { return current_.controls; }
  /// Contact impulses of every step, 3 nc x K [N s].
  const MatrixXd& impulses() const { return current_.impulses; }
  /// Largest defect of each step, size K.
  VectorXd gaps() const;

  /// Changes the smoothing; the trajectory stays.
  void setKappa(double kappa);

  /// Replaces the weights of the knots, of the sizes they have; the trajectory stays.
  void setWeights(const MatrixXd& configuration, const MatrixXd& velocity, const MatrixXd& control);

  /// Judges the current trajectory without changing it: cost, gap and Newton counts of the report.
  IterationReport evaluate();

  /// One iteration from the current trajectory, which changes only if a step is accepted.
  IterationReport iterate();
  /// @param arrival_knot  knot whose cost to arrive (its own measurement left out) is asked for as well; -1:
  /// none.
  Posterior posterior(int arrival_knot = -1);

  /// Unweighted measurement residuals (q part, v part) of every knot, 2 nv x (K + 1).
  MatrixXd residuals() const;

 private:
  struct Trajectory {
    MatrixXd states, controls, v_next, impulses;
    MatrixXd velocity_gap, configuration_gap;  ///< nv x K
    double cost = 0.0, gap_l1 = 0.0, gap_max = 0.0;
    int newton_worst = 0, newton_failures = 0, explain_worst = 0, explain_failures = 0;
    bool finite = false;
  };

  sweeps::SegmentedSweep::Linearise linearisation(double damping);
  void linearise(sweeps::Sweep& sweep, sweeps::Segment segment, double damping);
  KnotView knot(int k) const { return KnotView(problem_.knots, k); }
  void move(double alpha, Trajectory& trial) const;
  void explain(Trajectory& t);
  void evaluate(Trajectory& t);
  double evaluateStep(Trajectory& t, int k, ContactStepData& workspace) const;
  void summarise(Trajectory& t, const VectorXd& costs) const;
  void posteriorOfKnot(const sweeps::Sweep& sweep, int first, int k, MatrixXd& hat, Posterior& out);
  double arrivalCost(const Trajectory& t) const;
  void setArrival(sweeps::SegmentedSweep& sweep);
  bool search(const sweeps::ExpectedChange& model, IterationReport& report);
  VectorXd tangent(const Eigen::Ref<const VectorXd>& from, const Eigen::Ref<const VectorXd>& to) const;
  void retract(const Eigen::Ref<const VectorXd>& x, const Eigen::Ref<const VectorXd>& dx,
               Eigen::Ref<VectorXd> out) const;

  FullInformationProblem problem_;
  int nq_, nv_, ntheta_, ndx_, threads_;
  int segment_;
  WorkspacePool pool_;
  std::vector<MeasurementCost> costs_;  ///< one per thread
  sweeps::SegmentedSweep sweep_;
  Trajectory current_, trial_;
  double damping_ = 0.0;
  bool evaluated_ = false;
  enum class Start { kMeasured, kOtherSmoothing, kNone } start_ = Start::kMeasured;
};

}  // namespace prime_ros
