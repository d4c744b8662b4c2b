// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "prime_ros/measurement.hpp"
#include "prime_ros/window_step.hpp"
#include "sweeps/sweep.hpp"

namespace prime_ros {

/// How far a window got in one update.
struct WindowReport {
  double cost = 0.0;         ///< of the window at the iterate before the last step, arrival cost included
  double largest_gap = 0.0;  ///< infinity norm of all defects there
  int newton_worst = 0;      ///< most Newton iterations of one contact step
  int newton_failures = 0;   ///< contact steps that did not converge
  bool ok = false;           ///< false if the information was singular or not finite: the iterate stayed
};

/// Estimate of one knot of the window and of the step that leaves it, with standard deviations.
struct WindowEstimate {
  VectorXd state;       ///< (q, v, theta)
  VectorXd control;     ///< (disturbance, slack)
  VectorXd impulse;     ///< 3 nc [N s]
  MatrixXd covariance;  ///< of the tangent (q, v, theta)
  VectorXd control_std, impulse_std;
  bool ok = false;
};

/// Moving-horizon estimation: the last steps in full, everything before them as a quadratic arrival cost.
///
///   min 1/2 d'H d + g'd + sum_{k=0..K} measurement cost(x_k) + sum_{k<K} 1/2 |u_k|^2_weight,  d = x_0 (-)
///   x_ref
///
/// A window that is full makes room by minimising over its oldest knot: one step of the forward information
/// sweep, linearised at the smoothed iterate, so that no measurement counts twice and the cost stays convex.
/// Parameters may walk: their information decays by `walk` in every step that leaves the window.
class MovingHorizon {
 public:
  /// @param horizon  largest number of steps K;  @param walk  variance that every step adds to each
  /// parameter.
  /// @throws std::invalid_argument  if sizes do not fit.
  MovingHorizon(std::shared_ptr<ContactStep> step, int horizon, VectorXd walk);

  int steps() const { return steps_; }
  int horizon() const { return horizon_; }
  int nx() const { return nq_ + nv_ + ntheta_; }
  int nu() const { return nv_ + 3 * step_->ncontacts(); }

  /// Forgets everything and starts from a prior of (q, v, theta) at one knot. @param start  first iterate.
  void reset(const VectorXd& mean, const MatrixXd& information, const KnotMeasurement& y,
             const VectorXd& start);

  /// Adds the next knot. Its torque and control weight are those of the step that leads to it; where that has
  /// no measurement of some channel, the weight is zero. The first iterate of the knot is the prediction.
  void append(const KnotMeasurement& y);

  /// Replaces what the sensors say of the knot of an age (0: newest), but for torque and control weight: late
  /// measurements, and such that turned out to be wrong.
  void setMeasurement(int age, const KnotMeasurement& y);
  /// Largest number of steps from now on, at most that of the construction; the oldest knots make room.
  void setHorizon(int horizon);

  /// Gauss-Newton iterations over the window.
  WindowReport iterate(int iterations);
  /// Iterations over the newest knots alone, from the cost to arrive at them that the last iterate() found:
  /// where a foot lands, one iteration is not enough, but only there. @param steps  how many; fewer if the
  /// window has fewer.
  WindowReport refine(int steps, int iterations);

  /// State of the knot of an age (0: newest).
  const VectorXd& state(int age) const;
  /// Estimate of the knot of an age >= 1, and of the step that leaves it, at the iterate; its standard
  /// deviations are those of the last linearisation.
  WindowEstimate estimate(int age);
  /// Unweighted residual (q part, v part) of the knot of an age.
  VectorXd residual(int age);

 private:
  struct Knot {
    KnotMeasurement y;
    VectorXd x, u;
    VectorXd v_next;
    bool explained = false;  ///< whether u leads from x to v_next
    VectorXd velocity_gap, configuration_gap;
    std::unique_ptr<ContactStepData> data;
  };

  /// 1/2 d'H d + g'd with d = x (-) reference: what is known of a knot without its own measurement.
  struct Arrival {
    VectorXd reference, gradient;
    MatrixXd hessian;
  };

  /// A part of the window, from knot `first` to the newest, and its sweeps.
  struct Part {
    sweeps::Sweep sweep;
    int first = 0;
    bool forward = false, backward = false;  ///< which sweeps are those of this window
  };

  Knot& knot(int k) { return *knots_[static_cast<size_t>(k)]; }
  const Knot& knot(int k) const { return *knots_[static_cast<size_t>(k)]; }
  void checkSensors(const KnotMeasurement& y) const;
  void solveStep(int k, WindowReport& report);
  void lineariseStep(int k, WindowReport& report);
  void gaps(int k);
  double expandKnot(sweeps::Sweep& sweep, int local, int k);
  void storeStep(sweeps::Sweep& sweep, int local, int k);
  double setArrival(sweeps::Sweep& sweep, const Arrival& arrival, int k) const;
  bool linearise(Part& part, const Arrival& arrival, WindowReport& report);
  bool solve(Part& part);
  void explain(int k);
  WindowReport iterate(Part& part, const Arrival& arrival, int iterations);
  void marginalise();
  void widen();
  void forgetSweeps();
  VectorXd tangent(const VectorXd& from, const VectorXd& to) const;
  void retract(VectorXd& x, const Eigen::Ref<const VectorXd>& dx) const;

  std::shared_ptr<ContactStep> step_;
  int nq_, nv_, ntheta_, ndx_, horizon_, steps_ = -1;
  VectorXd walk_;
  std::vector<std::unique_ptr<Knot>> knots_;
  MeasurementCost cost_;
  StepLinearisation linearisation_;
  StepPosterior posterior_;
  Part window_, recent_;
  sweeps::Sweep oldest_;
  Arrival arrival_, recent_arrival_;
  std::vector<VectorXd> linearised_at_;  ///< states of the last linearisation of the whole window
};

}  // namespace prime_ros
