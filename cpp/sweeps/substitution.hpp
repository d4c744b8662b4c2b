// SPDX-License-Identifier: Apache-2.0
//
// Change of variables q = J q' + p P v + f in a symmetric form over [v, q, theta, 1], where J and P are the
// identity beyond the floating base. Included once per instruction set.
#pragma once

#include "tiles.hpp"

namespace prime_ros {
namespace sweeps {
namespace {

/// Rows q of the form over the columns [q, theta, 1], the block (q, q) complete.
PRIME_ROS_INLINE void expand_rows(const Layout& s, const double* form, double* Q) {
  for (int i = 0; i < s.n; ++i) {
    const int begin = strip_of(s.n + i);
    copy(form + (s.n + i) * s.columns + begin, Q + i * s.columns + begin, s.columns - begin);
  }
  mirror(Q + s.n, s.columns, s.n);
}

/// shift = f' Q; adds its part (q, 1) to Q, which completes the gradient at f.
PRIME_ROS_INLINE void shift_origin(const Layout& s, const double* f, double* Q, double* shift) {
  for (int j = strip_of(s.n); j < s.columns; j += kStrip) {
    Vector h0{}, h1{};
    for (int i = 0; i < s.n; ++i) {
      h0 += f[i] * load(Q + i * s.columns + j);
      h1 += f[i] * load(Q + i * s.columns + j + kLanes);
    }
    store(shift + j, h0);
    store(shift + j + kLanes, h1);
  }
  for (int i = 0; i < s.n; ++i) Q[i * s.columns + s.one] += shift[s.n + i];
}

/// rows = M' (base rows of Q) for an (8, 8) row-major M.
PRIME_ROS_INLINE void multiply_base_rows(const Layout& s, const double* M, const double* Q, double* rows) {
  Tile t;
  for (int j = strip_of(s.n); j < s.columns; j += kStrip) {
    clear(t);
    add_product<1>(t, M, kBaseStride, Q + j, s.columns, 0, kBase);
    store(t, rows + j, s.columns);
  }
}

/// Row of the panel over [q', theta, 1]: m + p d, with m the row v of the form and d the row of P'Q. Also
/// e = p (m + p d / 2) P over q, half of what the change of variables adds to (v, v).
PRIME_ROS_INLINE void substitute_row(const Layout& s, const double* m, const double* d, const Transition& map,
                                     double* row, double* e) {
  const Vector p = Vector{} + map.factor, half = Vector{} + 0.5 * map.factor;
  for (int j = strip_of(s.n); j < s.columns; j += kLanes) store(row + j, load(m + j) + p * load(d + j));
  Vector mf{};
  for (int j = 0; j < s.square; j += kLanes) {
    const Vector mj = load(m + s.n + j);
    store(e + j, p * (mj + half * load(d + s.n + j)));
    mf += mj * load(map.f + j);
  }
  row[s.one] += sum(mf);
  multiply_base(row + s.n, map.J);
  multiply_base(e, map.P);
}

/// Rows q', theta and 1 of the result; `base_rows` is J'Q.
PRIME_ROS_INLINE void substitute_rest(const Layout& s, const double* form, const double* J,
                                      const double* base_rows, const double* shift, double* rest) {
  for (int i = s.n; i < s.rows; ++i) {
    const bool base = i < s.n + kBase;
    const double* from = base ? base_rows + (i - s.n) * s.columns : form + i * s.columns;
    double* to = rest + i * s.columns;
    const int begin = strip_of(base ? s.n : i);
    copy(from + begin, to + begin, s.columns - begin);
    if (base) {
      multiply_base(to + s.n, J);
    } else {
      to[s.one] += shift[i];
    }
  }
}

/// Writes the rows v of the result to `panel` (n, columns) and the others to the same rows of `rest` (rows,
/// columns), which must not overlap `form`.
inline void substitute(const Layout& s, const double* form, const Transition& map, double* panel,
                       double* rest, const Workspace& w) {
  double* PQ = w.base_rows;
  double* JQ = w.base_rows + kBase * s.columns;
  expand_rows(s, form, w.Q);
  shift_origin(s, map.f, w.Q, w.row);
  multiply_base_rows(s, map.P, w.Q, PQ);
  multiply_base_rows(s, map.J, w.Q, JQ);
  for (int i = 0; i < s.n; ++i) {
    const double* d = (i < kBase ? PQ : w.Q) + i * s.columns;
    substitute_row(s, form + i * s.columns, d, map, panel + i * s.columns, w.E + i * s.square);
  }
  transpose(w.E, s.square, w.Et, s.square, s.n);
  for (int i = 0; i < s.n; ++i) {
    const double *v = form + i * s.columns, *e = w.E + i * s.square, *et = w.Et + i * s.square;
    double* to = panel + i * s.columns;
    for (int k = strip_of(i); k < s.n; k += kLanes) {
      const int j = clamp_vector(k, s.n);
      store(to + j, load(v + j) + load(e + j) + load(et + j));
    }
  }
  substitute_rest(s, form, map.J, JQ, w.row, rest);
}

}  // namespace
}  // namespace sweeps
}  // namespace prime_ros
