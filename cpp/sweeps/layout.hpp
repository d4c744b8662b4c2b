// SPDX-License-Identifier: Apache-2.0
//
// Data layout shared by the sweeps and their kernels. Plain data only: this header is compiled for several
// instruction sets, so it must not define functions that the linker could merge.
//
// A symmetric form over the tangent state is kept in the order [v, q, theta, 1], each of v and q padded to a
// multiple of the row tile, theta padded so that "1" is the last row. Padding is zero. The row and column of
// "1" hold the gradient. Of a form only the entries on and right of the diagonal are defined (row-major).
#pragma once

#include "sweep.hpp"

namespace prime_ros {
namespace sweeps {

constexpr int kRowTile = 6;     // rows of a register tile
constexpr int kColumnTile = 8;  // columns are padded to this: two of the widest vectors
constexpr int kBase = 6;        // floating base velocities
constexpr int kBaseStride = 8;  // base matrices are (8, 8): the identity extends the (6, 6) block

struct Layout {
  int nv, nt, nu;
  int n;        // nv padded to the row tile; v starts at 0, q at n, theta at 2 n
  int one;      // index of "1", the last row
  int rows;     // one + 1
  int columns;  // rows padded to the column tile: row stride of forms and of (n, rows) panels
  int square;   // n padded to the column tile: row stride of (n, n) matrices
};

/// Transition of one configuration: q = J q' + factor * P v + f, with J, P the identity beyond the base.
struct Transition {
  const double* J;  // (8, 8) row-major
  const double* P;  // (8, 8) row-major
  double factor;
  const double* f;  // (square)
};

/// One step: its linearisation and, after the backward sweep, its policy.
struct StepData {
  double dt;
  double* A;             // (n, columns): [Av Aq At d]
  double* B;             // (nu, square): diag(luu)^-1/2 B'
  double* S;             // (n, square): B diag(luu)^-1 B'
  double* inverse_root;  // (nu): luu^-1/2
  double* lu;            // (nu)
  double* c;             // (square)
  double* fq;            // (square)
  double* Jq;            // (8, 8) row-major
  double* Jv;            // (8, 8) row-major
  double* policy;        // (n, columns + square): [Z T], T = P^-T R, so that mu = T'Z dx
  Outcome model_state;   // of the numbers in A, B, c, fq, Jq, Jv
  Outcome cost_state;    // of luu, lu
  bool condensed;        // S and the column d of A belong to the numbers above
};

/// Cost of one knot.
struct CostData {
  double* diagonal;  // (rows)
  double* gradient;  // (rows)
  double* base;      // (12, 12) row-major over (v, q)
  Outcome state;
};

/// Factors of one arrival step; dx_k follows from dx_k+1 with them.
struct ArrivalFactors {
  double* RX;             // (n, columns): [R X], upper
  double* T;              // (n, square): R^-T Av'
  double* Z;              // (n, columns)
  double* inverse_pivot;  // (n): 1 / diag(R)
  double* Jq_inverse;     // (8, 8) row-major
  double* Pv;             // (8, 8) row-major: Jq^-1 Jv
  double* f;              // (square): -Jq^-1 fq
};

/// Scratch of one sweep.
struct Workspace {
  double* panel;          // (n, columns)
  double* Q;              // (n, columns): rows q of a form, mirrored
  double* base_rows;      // (12, columns)
  double* row;            // (columns)
  double* E;              // (n, square)
  double* Et;             // (n, square)
  double* L;              // (n, square)
  double* Phi;            // (n, square)
  double* form;           // (rows, columns)
  double* inverse_pivot;  // (rows)
};

/// Kernels compiled for one instruction set.
struct Kernels {
  const char* name;
  /// S and d of a step from its B, inverse_root, lu and c.
  void (*condense)(const Layout&, const StepData&);
  /// Adds the cost of a knot to a form.
  void (*add_cost)(const Layout&, const CostData&, double* form);
  /// `value` of knot k and the policy of step k from `next`, the cost to go of knot k + 1.
  Outcome (*backward_step)(const Layout&, const StepData&, const CostData&, const double* next, double* value,
                           const Workspace&);
  /// `next`, the cost to arrive at knot k + 1, from that at knot k (without its cost).
  Outcome (*forward_step)(const Layout&, const StepData&, const CostData&, const double* arrival,
                          double* next, const ArrivalFactors&, const Workspace&);
  /// dv+ (square) and du (nu) of the policy at x (columns); `buffer` is (2 square + nu).
  void (*evaluate_policy)(const Layout&, const StepData&, const double* x, double* dv_next, double* du,
                          double* buffer);
  /// x (columns) of knot k and du (nu) of step k from x_next (columns); `buffer` is (3 square + nu).
  void (*evaluate_arrival)(const Layout&, const StepData&, const ArrivalFactors&, const double* x_next,
                           double* x, double* du, double* buffer);
  /// Minimiser x (columns) of a positive definite form, which is destroyed.
  Outcome (*minimise)(const Layout&, double* form, double* x, double* inverse_pivot);
  /// Inverse (rows, columns), upper, of a positive definite form, which is destroyed; `root` is (rows,
  /// columns).
  Outcome (*invert)(const Layout&, double* form, double* root, double* inverse, double* inverse_pivot);
};

const Kernels& portable_kernels();
const Kernels& avx2_kernels();  // only where PRIME_ROS_HAVE_AVX2_KERNELS is defined
const Kernels& active_kernels();

}  // namespace sweeps
}  // namespace prime_ros
