// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "prime_ros/contact_step.hpp"

namespace prime_ros {

/// One ContactStepData per OpenMP thread.
class WorkspacePool {
 public:
  explicit WorkspacePool(const ContactStep& step) {
    const int count = std::max({1, omp_get_max_threads(), omp_get_num_procs()});
    for (int i = 0; i < count; ++i) data_.push_back(std::make_unique<ContactStepData>(step));
  }

  /// Workspace of the calling thread.
  /// @throws std::out_of_range  with more threads than processors when the pool was made.
  ContactStepData& get() {
    const auto i = static_cast<size_t>(omp_get_thread_num());
    if (i >= data_.size())
      throw std::out_of_range("WorkspacePool: thread " + std::to_string(i) + " of a pool for " +
                              std::to_string(data_.size()) + "; use at most that many threads");
    return *data_[i];
  }

  bool fits(const ContactStep& step) const { return data_.front()->fits(step); }
  int size() const { return static_cast<int>(data_.size()); }

 private:
  std::vector<std::unique_ptr<ContactStepData>> data_;
};

}  // namespace prime_ros
