// SPDX-License-Identifier: Apache-2.0
//
// Sweeps over a chain of any length in bounded memory.
//
// The chain is cut into segments that share one Sweep. Of every segment only the cost to go of its end is
// kept; its steps are linearised and condensed again when the linear steps, a rollout or the arrival costs
// come by. A chain of one segment is linearised once and costs what a Sweep costs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "sweep.hpp"

namespace prime_ros {
namespace sweeps {

/// Knots of a chain: steps first ... last - 1 lead from knot `first` to knot `last`.
struct Segment {
  int first, last;
};

class SegmentedSweep {
 public:
  /// Stores in `sweep`, whose knot 0 is knot `segment.first` of the chain: the steps of the segment, the
  /// costs of the knots first ... last - 1 and, at the end of the chain only, that of knot `last`.
  using Linearise = std::function<void(Sweep& sweep, Segment segment)>;
  using Visit = std::function<bool(const Sweep& sweep, Segment segment)>;

  /// @param steps  K of the whole chain;  @param longest  largest number of steps of a segment.
  SegmentedSweep(Dimensions dimensions, int steps, int longest, Storage storage);

  int steps() const { return segments_.back().last; }
  /// Frees the Sweep; the solution stays, the policies are lost.
  void release();

  /// Arrival cost of knot 0, as Sweep::set_arrival.
  void set_arrival(const double* hessian, const double* gradient);
  /// Costs to go of all segments and the minimiser of the chain.
  Status solve(Linearise linearise);
  /// After solve(): the costs to arrive, then `visit` of every segment in order of time while its sweep holds
  /// costs to go and to arrive; stops when `visit` returns false. Needs Storage::values.
  Status visit_covariances(const Visit& visit);

  /// Solution at knot k (ndx) and of step k (nu).
  const double* dx(int k) const { return dx_.data() + static_cast<std::size_t>(k) * dimensions_.ndx(); }
  const double* du(int k) const { return du_.data() + static_cast<std::size_t>(k) * dimensions_.nu; }
  ExpectedChange expected_change() const { return change_; }
  /// Policy of step k, as Sweep::control; cheap if k is in the segment of the last call.
  void control(int k, const double* dx, double alpha, double* dv_next, double* du);

 private:
  struct Quadratic {
    std::vector<double> hessian, gradient;
  };
  Status load(int index);
  void keep_solution(Segment segment);
  int index_of(int k) const;

  Dimensions dimensions_;
  Storage storage_;
  std::vector<Segment> segments_;
  std::vector<Quadratic>
      to_go_;  ///< of the last knot of every segment, without its own cost: of what follows
  Quadratic arrival_;
  std::unique_ptr<Sweep> sweep_;
  int loaded_ = -1;
  Linearise linearise_;
  std::vector<double> dx_, du_;
  ExpectedChange change_{};
};

}  // namespace sweeps
}  // namespace prime_ros
