// SPDX-License-Identifier: Apache-2.0
//
// What both recursions use: condensing a step, costs, products. Included once per instruction set.
#pragma once

#include "tiles.hpp"

namespace prime_ros {
namespace sweeps {
namespace {

inline void condense(const Layout& s, const StepData& step) {
  Tile t;
  for (int i = 0; i < s.n; i += kRowTile) {
    for (int j = strip_of(i); j < s.n; j += kStrip) {
      clear(t);
      add_product<1>(t, step.B + i, s.square, step.B + j, s.square, 0, s.nu);
      store(t, step.S + i * s.square + j, s.square);
    }
  }
  mirror(step.S, s.square, s.n);
  for (int i = 0; i < s.nv; ++i) step.A[i * s.columns + s.one] = step.c[i];
  for (int k = 0; k < s.nu; ++k) {
    const double scaled = step.inverse_root[k] * step.lu[k];
    for (int i = 0; i < s.nv; ++i) step.A[i * s.columns + s.one] -= scaled * step.B[k * s.square + i];
  }
}

inline void add_cost(const Layout& s, const CostData& cost, double* form) {
  for (int i = 0; i < s.one; ++i) {
    form[i * s.columns + i] += cost.diagonal[i];
    form[i * s.columns + s.one] += cost.gradient[i];
  }
  for (int i = 0; i < 2 * kBase; ++i) {
    const int row = i < kBase ? i : s.n + i - kBase;
    for (int j = i; j < 2 * kBase; ++j) {
      const int column = j < kBase ? j : s.n + j - kBase;
      form[row * s.columns + column] += cost.base[i * 2 * kBase + j];
    }
  }
  form[s.one * s.columns + s.one] = 0;  // the constant is not tracked
}

/// form -= X'X (rows y only) and += Z'Z, over the upper tiles; rows v start from zero. X is zero over v.
inline void complete(const Layout& s, const double* X, const double* Z, int ldz, double* form) {
  Tile t;
  for (int i = 0; i < s.rows; i += kRowTile) {
    for (int j = strip_of(i); j < s.columns; j += kStrip) {
      double* C = form + i * s.columns + j;
      if (i < s.n) {
        clear(t);
      } else {
        load(t, C, s.columns);
        add_product<-1>(t, X + i, s.columns, X + j, s.columns, 0, s.n);
      }
      add_product<1>(t, Z + i, ldz, Z + j, ldz, 0, s.n);
      store(t, C, s.columns);
    }
  }
}

/// y = M x for an (n, size) row-major M.
PRIME_ROS_INLINE void multiply(const Layout& s, const double* M, int ld, const double* x, int size,
                               double* y) {
  for (int i = 0; i < s.n; ++i) y[i] = dot(M + i * ld, x, size);
}

/// y = M'x for an (n, square) row-major M.
PRIME_ROS_INLINE void multiply_transposed(const Layout& s, const double* M, int ld, const double* x,
                                          double* y) {
  fill(y, 0, s.square);
  for (int i = 0; i < s.n; ++i) add_scaled(y, x[i], M + i * ld, s.square);
}

/// x = R^-1 b over the first n entries, in place.
inline void solve_upper(const double* R, int ld, const double* inverse_pivot, int n, double* x) {
  for (int i = n - 1; i >= 0; --i) {
    double total = x[i];
    for (int j = i + 1; j < n; ++j) total -= R[i * ld + j] * x[j];
    x[i] = total * inverse_pivot[i];
  }
}

/// The control that the multiplier mu of dv+ asks for, and B (du - du at mu = 0) subtracted from `dv` if any.
PRIME_ROS_INLINE void control_from_multiplier(const Layout& s, const StepData& step, const double* mu,
                                              double scale, double* dv, double* du) {
  for (int k = 0; k < s.nu; ++k) {
    const double* b = step.B + k * s.square;
    const double t = dot(b, mu, s.square);
    if (dv) add_scaled(dv, -t, b, s.square);
    du[k] = -step.inverse_root[k] * (scale * step.inverse_root[k] * step.lu[k] + t);
  }
}

}  // namespace
}  // namespace sweeps
}  // namespace prime_ros
