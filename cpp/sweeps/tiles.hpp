// SPDX-License-Identifier: Apache-2.0
//
// Register tiles: a block of C, 6 rows by 2 vectors, stays in registers while a product is accumulated into
// it. Included once per instruction set, with PRIME_ROS_VECTOR_BYTES set; everything has internal linkage.
#pragma once

#include "layout.hpp"

#ifndef PRIME_ROS_VECTOR_BYTES
#error "define PRIME_ROS_VECTOR_BYTES (16 or 32) before including the kernels"
#endif
#ifdef __clang__
#define PRIME_ROS_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PRIME_ROS_UNROLL _Pragma("GCC unroll 8")
#endif
#define PRIME_ROS_INLINE inline __attribute__((always_inline))

namespace prime_ros {
namespace sweeps {
namespace {

typedef double Vector __attribute__((vector_size(PRIME_ROS_VECTOR_BYTES)));
typedef double UnalignedVector
    __attribute__((vector_size(PRIME_ROS_VECTOR_BYTES), aligned(sizeof(double)), may_alias));

constexpr int kLanes = PRIME_ROS_VECTOR_BYTES / sizeof(double);
constexpr int kStrip = 2 * kLanes;  // columns of a tile
static_assert(kColumnTile % kStrip == 0, "padded rows must hold whole strips");

PRIME_ROS_INLINE Vector load(const double* p) {
  return *reinterpret_cast<const UnalignedVector*>(p);
}
PRIME_ROS_INLINE void store(double* p, Vector x) {
  *reinterpret_cast<UnalignedVector*>(p) = x;
}
PRIME_ROS_INLINE int strip_of(int column) {
  return column / kStrip * kStrip;
}
/// Start of a vector that must not pass `end`: the last one overlaps its neighbour.
PRIME_ROS_INLINE int clamp_vector(int start, int end) {
  return start < end - kLanes ? start : end - kLanes;
}

PRIME_ROS_INLINE double sum(Vector x) {
  double total = 0;
  PRIME_ROS_UNROLL
  for (int i = 0; i < kLanes; ++i) total += x[i];
  return total;
}

/// a'b over `size` entries, a multiple of the strip.
PRIME_ROS_INLINE double dot(const double* a, const double* b, int size) {
  Vector s0{}, s1{};
  for (int i = 0; i < size; i += kStrip) {
    s0 += load(a + i) * load(b + i);
    s1 += load(a + i + kLanes) * load(b + i + kLanes);
  }
  return sum(s0 + s1);
}

/// y += scale * x over `size` entries, a multiple of the vector.
PRIME_ROS_INLINE void add_scaled(double* y, double scale, const double* x, int size) {
  for (int i = 0; i < size; i += kLanes) store(y + i, load(y + i) + scale * load(x + i));
}

PRIME_ROS_INLINE void fill(double* p, double value, int size) {
  for (int i = 0; i < size; ++i) p[i] = value;
}

PRIME_ROS_INLINE void copy(const double* from, double* to, int size) {
  for (int i = 0; i < size; ++i) to[i] = from[i];
}

struct Tile {
  Vector a[kRowTile][2];
};

PRIME_ROS_INLINE void clear(Tile& t) {
  PRIME_ROS_UNROLL
  for (int r = 0; r < kRowTile; ++r) t.a[r][0] = t.a[r][1] = Vector{};
}

PRIME_ROS_INLINE void load(Tile& t, const double* C, int ld) {
  PRIME_ROS_UNROLL
  for (int r = 0; r < kRowTile; ++r) {
    t.a[r][0] = load(C + r * ld);
    t.a[r][1] = load(C + r * ld + kLanes);
  }
}

PRIME_ROS_INLINE void store(const Tile& t, double* C, int ld) {
  PRIME_ROS_UNROLL
  for (int r = 0; r < kRowTile; ++r) {
    store(C + r * ld, t.a[r][0]);
    store(C + r * ld + kLanes, t.a[r][1]);
  }
}

/// Tile += Sign * sum over k in [begin, end) of A[k][0:6]' B[k][0:strip].
template <int Sign>
PRIME_ROS_INLINE void add_product(Tile& t, const double* A, int lda, const double* B, int ldb, int begin,
                                  int end) {
  A += begin * lda;
  B += begin * ldb;
  for (int k = begin; k < end; ++k, A += lda, B += ldb) {
    const Vector b0 = load(B), b1 = load(B + kLanes);
    PRIME_ROS_UNROLL
    for (int r = 0; r < kRowTile; ++r) {
      if (Sign > 0) {
        t.a[r][0] += A[r] * b0;
        t.a[r][1] += A[r] * b1;
      } else {
        t.a[r][0] -= A[r] * b0;
        t.a[r][1] -= A[r] * b1;
      }
    }
  }
}

/// p[0], p[ld], ... as one vector: a piece of a column, so that a transpose writes whole vectors.
PRIME_ROS_INLINE Vector load_column(const double* p, int ld) {
  Vector x{};
  PRIME_ROS_UNROLL
  for (int i = 0; i < kLanes; ++i) x[i] = p[i * ld];
  return x;
}

/// Fills the strictly lower triangle of an (n, n) matrix from the upper one.
PRIME_ROS_INLINE void mirror(double* M, int ld, int n) {
  for (int i = 1; i < n; ++i) {
    int j = 0;
    for (; j + kLanes <= i; j += kLanes) store(M + i * ld + j, load_column(M + j * ld + i, ld));
    for (; j < i; ++j) M[i * ld + j] = M[j * ld + i];
  }
}

/// to = from' for (n, n) matrices.
PRIME_ROS_INLINE void transpose(const double* from, int ld_from, double* to, int ld_to, int n) {
  for (int j = 0; j < n; j += kLanes) {
    const int column = clamp_vector(j, n);
    const double* p = from + column * ld_from;
    for (int i = 0; i < n; ++i) store(to + i * ld_to + column, load_column(p + i, ld_from));
  }
}

/// x[0:8] = x[0:8] M for an (8, 8) row-major matrix M.
PRIME_ROS_INLINE void multiply_base(double* x, const double* M) {
  Vector y[kBaseStride / kLanes] = {};
  PRIME_ROS_UNROLL
  for (int k = 0; k < kBaseStride; ++k) {
    PRIME_ROS_UNROLL
    for (int c = 0; c < kBaseStride / kLanes; ++c) y[c] += x[k] * load(M + k * kBaseStride + c * kLanes);
  }
  PRIME_ROS_UNROLL
  for (int c = 0; c < kBaseStride / kLanes; ++c) store(x + c * kLanes, y[c]);
}

}  // namespace
}  // namespace sweeps
}  // namespace prime_ros
