// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/python.hpp>

namespace prime_ros {
namespace python {

/// Releases Python's global lock while C++ works.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() { PyEval_RestoreThread(state_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace python
}  // namespace prime_ros
