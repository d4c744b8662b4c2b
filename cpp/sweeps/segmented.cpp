// SPDX-License-Identifier: Apache-2.0
#include "segmented.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace prime_ros {
namespace sweeps {
namespace {

std::vector<Segment> cut(int steps, int longest) {
  if (steps < 1 || longest < 1) throw std::invalid_argument("sweep: no steps");
  const int count = (steps + longest - 1) / longest;
  std::vector<Segment> segments;
  for (int i = 0; i < count; ++i) {
    const auto end = [&](int j) { return static_cast<int>(static_cast<long long>(steps) * j / count); };
    segments.push_back({end(i), end(i + 1)});
  }
  return segments;
}

}  // namespace

SegmentedSweep::SegmentedSweep(Dimensions dimensions, int steps, int longest, Storage storage)
    : dimensions_(dimensions), storage_(storage), segments_(cut(steps, longest)), to_go_(segments_.size()) {
  const auto ndx = static_cast<std::size_t>(dimensions.ndx());
  arrival_ = {std::vector<double>(ndx * ndx), std::vector<double>(ndx)};
  for (Quadratic& each : to_go_) each = arrival_;
  dx_.resize(ndx * (steps + 1));
  du_.resize(static_cast<std::size_t>(dimensions.nu) * steps);
}

void SegmentedSweep::release() {
  sweep_.reset();
  loaded_ = -1;
}

void SegmentedSweep::set_arrival(const double* hessian, const double* gradient) {
  std::copy_n(hessian, arrival_.hessian.size(), arrival_.hessian.data());
  std::copy_n(gradient, arrival_.gradient.size(), arrival_.gradient.data());
}

/// Linearises a segment, unless it is the one at hand, and sweeps it backward from what follows it.
Status SegmentedSweep::load(int index) {
  if (loaded_ == index) return {};
  if (!sweep_) {
    int longest = 0;
    for (const Segment& s : segments_) longest = std::max(longest, s.last - s.first);
    sweep_ = std::make_unique<Sweep>(dimensions_, longest, storage_);
  }
  loaded_ = -1;
  const Segment segment = segments_[index];
  sweep_->set_steps(segment.last - segment.first);
  sweep_->set_terminal(to_go_[index].hessian.data(), to_go_[index].gradient.data());
  linearise_(*sweep_, segment);
  Status status = sweep_->backward();
  if (!status) return {status.outcome, segment.first + status.knot};
  loaded_ = index;
  return {};
}

Status SegmentedSweep::solve(Linearise linearise) {
  linearise_ = std::move(linearise);
  loaded_ = -1;
  const int count = static_cast<int>(segments_.size());
  for (int i = count - 1; i >= 0; --i) {
    const Status status = load(i);
    if (!status) return status;
    if (i > 0) sweep_->value(0, to_go_[i - 1].hessian.data(), to_go_[i - 1].gradient.data());
  }
  change_ = {};
  for (int i = 0; i < count; ++i) {
    Status status = load(i);
    if (!status) return status;
    if (i == 0) sweep_->set_arrival(arrival_.hessian.data(), arrival_.gradient.data());
    status = i == 0 ? sweep_->solve() : sweep_->solve_from(dx(segments_[i].first));
    if (!status) return {status.outcome, segments_[i].first + status.knot};
    keep_solution(segments_[i]);
  }
  return {};
}

void SegmentedSweep::keep_solution(Segment segment) {
  const int ndx = dimensions_.ndx(), nu = dimensions_.nu, steps = segment.last - segment.first;
  for (int k = 0; k <= steps; ++k)
    std::copy_n(sweep_->dx(k), ndx, dx_.data() + static_cast<std::size_t>(segment.first + k) * ndx);
  for (int k = 0; k < steps; ++k)
    std::copy_n(sweep_->du(k), nu, du_.data() + static_cast<std::size_t>(segment.first + k) * nu);
  const ExpectedChange part = sweep_->expected_change();
  change_.linear += part.linear;
  change_.quadratic += part.quadratic;
}

Status SegmentedSweep::visit_covariances(const Visit& visit) {
  Quadratic arrival = arrival_;
  for (int i = 0; i < static_cast<int>(segments_.size()); ++i) {
    Status status = load(i);
    if (!status) return status;
    sweep_->set_arrival(arrival.hessian.data(), arrival.gradient.data());
    status = sweep_->forward();
    if (!status) return {status.outcome, segments_[i].first + status.knot};
    if (!visit(*sweep_, segments_[i])) return {};
    sweep_->arrival(sweep_->steps(), false, arrival.hessian.data(), arrival.gradient.data());
  }
  return {};
}

int SegmentedSweep::index_of(int k) const {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), k,
                                      [](int knot, const Segment& s) { return knot < s.last; });
  if (k < 0 || after == segments_.end())
    throw std::out_of_range("sweep: got step " + std::to_string(k) + ", expected 0 to " +
                            std::to_string(steps() - 1));
  return static_cast<int>(after - segments_.begin());
}

void SegmentedSweep::control(int k, const double* dx, double alpha, double* dv_next, double* du) {
  const int index = index_of(k);
  if (!load(index)) throw std::logic_error("sweep: a segment that was swept before cannot be swept again");
  sweep_->control(k - segments_[index].first, dx, alpha, dv_next, du);
}

}  // namespace sweeps
}  // namespace prime_ros
