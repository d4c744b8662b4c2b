// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <pinocchio/multibody/model.hpp>
#include <vector>

namespace prime_ros {

/// Matrix whose rows are contiguous: right-hand sides are solved row by row, all columns at once.
using RowMatrixXd = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Factorisation H = L'L of a symmetric positive definite matrix with the sparsity of a kinematic tree: H_ij
/// is zero unless one of the degrees of freedom i, j supports the other. L has no fill-in (Featherstone,
/// Rigid Body Dynamics Algorithms, section 6.5).
class TreeCholesky {
 public:
  explicit TreeCholesky(const pinocchio::Model& model) : factor_(model.nv, model.nv), ancestors_(model.nv) {
    factor_.setZero();
    for (pinocchio::JointIndex j = 1; j < static_cast<pinocchio::JointIndex>(model.njoints); ++j) {
      std::vector<int> above;
      for (auto s : model.supports[j])
        for (int k = 0; s > 0 && s != j && k < model.joints[s].nv(); ++k)
          above.push_back(model.joints[s].idx_v() + k);
      for (int k = 0; k < model.joints[j].nv(); ++k) {
        const int dof = model.joints[j].idx_v() + k;
        ancestors_[static_cast<size_t>(dof)] = above;
        above.push_back(dof);
      }
    }
  }

  /// Degrees of freedom that support dof, in increasing order and without dof itself.
  const std::vector<int>& ancestors(int dof) const { return ancestors_[static_cast<size_t>(dof)]; }

  /// Reads the lower triangle of H. Returns false, and leaves the factor unusable, unless H is positive
  /// definite.
  bool compute(const RowMatrixXd& H) {
    factor_ = H;
    for (int i = static_cast<int>(factor_.rows()) - 1; i >= 0; --i) {
      double* row = factor_.row(i).data();
      if (!(row[i] > 0.0)) return false;
      row[i] = std::sqrt(row[i]);
      const double inverse = 1.0 / row[i];
      const auto& above = ancestors(i);
      for (int a : above) row[a] *= inverse;
      for (size_t a = 0; a < above.size(); ++a) {
        double* target = factor_.row(above[a]).data();
        const double scale = row[above[a]];
        for (size_t b = 0; b <= a; ++b) target[above[b]] -= scale * row[above[b]];
      }
    }
    return true;
  }

  /// b <- H^-1 b.
  void solveInPlace(Eigen::VectorXd& b) const {
    const int n = static_cast<int>(factor_.rows());
    for (int i = n - 1; i >= 0; --i) {
      b[i] /= factor_(i, i);
      for (int a : ancestors(i)) b[a] -= factor_(i, a) * b[i];
    }
    for (int i = 0; i < n; ++i) {
      double sum = b[i];
      for (int a : ancestors(i)) sum -= factor_(i, a) * b[a];
      b[i] = sum / factor_(i, i);
    }
  }

  /// B <- H^-1 B.
  void solveInPlace(RowMatrixXd& B) const {
    const int n = static_cast<int>(factor_.rows());
    for (int i = n - 1; i >= 0; --i) {
      B.row(i) *= 1.0 / factor_(i, i);
      for (int a : ancestors(i)) B.row(a) -= factor_(i, a) * B.row(i);
    }
    for (int i = 0; i < n; ++i) {
      for (int a : ancestors(i)) B.row(i) -= factor_(i, a) * B.row(a);
      B.row(i) *= 1.0 / factor_(i, i);
    }
  }

 private:
  RowMatrixXd factor_;
  std::vector<std::vector<int>> ancestors_;
};

}  // namespace prime_ros
