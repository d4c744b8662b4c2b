// SPDX-License-Identifier: Apache-2.0
//
// Partial Cholesky factorisation of a panel, in place. Included once per instruction set.
#pragma once

#include "tiles.hpp"

namespace prime_ros {
namespace sweeps {
namespace {

// A pivot this small beside its diagonal entry is rounding error: the row carries no information.
constexpr double kZeroPivot = 16 * 2.220446049250313e-16;
// A negative pivot beyond this fraction of the largest diagonal entry is not rounding error.
constexpr double kNegativePivot = 1e-9;
constexpr double kLargest = 1.7976931348623157e308;

enum class Pivoting { kSemidefinite, kDefinite };

struct Panel {
  double* data;
  int ld;
  int columns;
};

struct DiagonalBlock {
  double c[kRowTile][kRowTile];  // rows of R
  double inverse[kRowTile];      // 1 / diag(R), 0 for a zero pivot
};

/// Decides on pivot `d` whose diagonal entry was `diagonal`: its inverse root, or the reason to stop.
PRIME_ROS_INLINE Outcome inverse_root(double d, double diagonal, double scale, Pivoting pivoting,
                                      double* inverse) {
  *inverse = 0;
  if (!(d <= kLargest && d >= -kLargest)) return Outcome::kNotFinite;
  if (d > kZeroPivot * diagonal) {
    *inverse = 1 / __builtin_sqrt(d);
    return Outcome::kOk;
  }
  if (d < -kNegativePivot * scale) return Outcome::kIndefinite;
  return pivoting == Pivoting::kDefinite ? Outcome::kSingular : Outcome::kOk;
}

/// Factors the updated block at `C`; rows from `pivots` on are padding and count as zero pivots.
PRIME_ROS_INLINE Outcome factor_block(const double* C, int ld, const double* diagonal, int pivots,
                                      double scale, Pivoting pivoting, DiagonalBlock& block) {
  PRIME_ROS_UNROLL
  for (int r = 0; r < kRowTile; ++r) {
    PRIME_ROS_UNROLL
    for (int s = r; s < kRowTile; ++s) block.c[r][s] = C[r * ld + s];
  }
  Outcome outcome = Outcome::kOk;
  PRIME_ROS_UNROLL
  for (int r = 0; r < kRowTile; ++r) {
    block.inverse[r] = 0;
    if (r < pivots) {
      const Outcome state = inverse_root(block.c[r][r], diagonal[r], scale, pivoting, &block.inverse[r]);
      if (outcome == Outcome::kOk) outcome = state;
    }
    PRIME_ROS_UNROLL
    for (int s = r; s < kRowTile; ++s) block.c[r][s] *= block.inverse[r];
    PRIME_ROS_UNROLL
    for (int p = r + 1; p < kRowTile; ++p) {
      PRIME_ROS_UNROLL
      for (int s = p; s < kRowTile; ++s) block.c[p][s] -= block.c[r][p] * block.c[r][s];
    }
  }
  return outcome;
}

/// Tile = R^-T tile for the diagonal block R.
PRIME_ROS_INLINE void solve_block(Tile& t, const DiagonalBlock& block) {
  PRIME_ROS_UNROLL
  for (int r = 0; r < kRowTile; ++r) {
    PRIME_ROS_UNROLL
    for (int s = 0; s < r; ++s) {
      t.a[r][0] -= block.c[s][r] * t.a[s][0];
      t.a[r][1] -= block.c[s][r] * t.a[s][1];
    }
    t.a[r][0] *= block.inverse[r];
    t.a[r][1] *= block.inverse[r];
  }
}

/// Rows [row, row + 6) of `x`, strips from `begin` on: subtracts the rows of R above, then solves the block.
PRIME_ROS_INLINE void eliminate(const Panel& m, const Panel& x, int row, int begin,
                                const DiagonalBlock& block) {
  Tile t;
  for (int j = begin; j < x.columns; j += kStrip) {
    load(t, x.data + row * x.ld + j, x.ld);
    add_product<-1>(t, m.data + row, m.ld, x.data + j, x.ld, 0, row);
    solve_block(t, block);
    store(t, x.data + row * x.ld + j, x.ld);
  }
}

/// The leading (n, n) block of `m`, upper, becomes R with R'R = block; the further columns of `m` and all of
/// `rhs` are multiplied by R^-T. Rows from `pivots` on are padding. `inverse_pivot` (n) receives 1 / diag(R).
inline Outcome partial_cholesky(Panel m, Panel rhs, int n, int pivots, Pivoting pivoting,
                                double* inverse_pivot) {
  double scale = 0;
  for (int i = 0; i < pivots; ++i) scale = m.data[i * m.ld + i] > scale ? m.data[i * m.ld + i] : scale;
  for (int row = 0; row < n; row += kRowTile) {
    double* C = m.data + row * m.ld;
    double diagonal[kRowTile];
    for (int r = 0; r < kRowTile; ++r) diagonal[r] = C[r * m.ld + row + r];
    const int begin = strip_of(row), end = strip_of(row + kRowTile - 1) + kStrip;
    Tile t;
    for (int j = begin; j < end; j += kStrip) {
      load(t, C + j, m.ld);
      add_product<-1>(t, m.data + row, m.ld, m.data + j, m.ld, 0, row);
      store(t, C + j, m.ld);
    }
    DiagonalBlock block;
    const Outcome outcome = factor_block(C + row, m.ld, diagonal, pivots - row, scale, pivoting, block);
    if (outcome != Outcome::kOk) return outcome;
    copy(block.inverse, inverse_pivot + row, kRowTile);
    for (int j = begin; j < end; j += kStrip) {
      load(t, C + j, m.ld);
      solve_block(t, block);
      store(t, C + j, m.ld);
    }
    eliminate(m, m, row, end, block);
    eliminate(m, rhs, row, 0, block);
  }
  return Outcome::kOk;
}

}  // namespace
}  // namespace sweeps
}  // namespace prime_ros
