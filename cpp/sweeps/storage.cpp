// SPDX-License-Identifier: Apache-2.0
#include "storage.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <new>

namespace prime_ros {
namespace sweeps {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kHugePageBytes = std::size_t{1} << 21;
constexpr std::size_t kLine = kLineBytes / sizeof(double);

int round_up(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

double* take_base(Arena& arena) {
  return arena.take(kBaseStride * kBaseStride);
}

void set_identity(double* M) {
  for (int i = 0; i < kBaseStride; ++i) M[i * kBaseStride + i] = 1;
}

StepData take_step(const Layout& s, Arena& arena) {
  StepData step{};
  step.A = arena.take(s.n * s.columns);
  step.B = arena.take(s.nu * s.square);
  step.S = arena.take(s.n * s.square);
  step.policy = arena.take(s.n * (s.columns + s.square));
  step.inverse_root = arena.take(s.nu);
  step.lu = arena.take(s.nu);
  step.c = arena.take(s.square);
  step.fq = arena.take(s.square);
  step.Jq = take_base(arena);
  step.Jv = take_base(arena);
  step.dt = 1;
  return step;
}

CostData take_cost(const Layout& s, Arena& arena) {
  CostData cost{};
  cost.diagonal = arena.take(s.rows);
  cost.gradient = arena.take(s.rows);
  cost.base = arena.take(4 * kBase * kBase);
  return cost;
}

ArrivalFactors take_factors(const Layout& s, Arena& arena) {
  ArrivalFactors factors{};
  factors.RX = arena.take(s.n * s.columns);
  factors.Z = arena.take(s.n * s.columns);
  factors.T = arena.take(s.n * s.square);
  factors.inverse_pivot = arena.take(s.n);
  factors.Jq_inverse = take_base(arena);
  factors.Pv = take_base(arena);
  factors.f = arena.take(s.square);
  return factors;
}

Workspace take_workspace(const Layout& s, Arena& arena) {
  Workspace w{};
  w.panel = arena.take(s.n * s.columns);
  w.Q = arena.take(s.n * s.columns);
  w.base_rows = arena.take(2 * kBase * s.columns);
  w.row = arena.take(s.columns);
  for (double** matrix : {&w.E, &w.Et, &w.L, &w.Phi}) *matrix = arena.take(s.n * s.square);
  w.form = arena.take(s.rows * s.columns);
  w.inverse_pivot = arena.take(s.rows);
  return w;
}

}  // namespace

Layout make_layout(const Dimensions& dimensions) {
  Layout s{};
  s.nv = dimensions.nv;
  s.nt = dimensions.nt;
  s.nu = dimensions.nu;
  s.n = round_up(s.nv, kRowTile);
  s.rows = round_up(2 * s.n + s.nt + 1, kRowTile);
  s.one = s.rows - 1;
  s.columns = round_up(s.rows, kColumnTile);
  s.square = round_up(s.n, kColumnTile);
  return s;
}

double* Arena::take(std::size_t count) {
  double* piece = block_ ? block_ + used_ : nullptr;
  used_ += (count + kLine - 1) / kLine * kLine;
  return piece;
}

// The sweeps stream through megabytes: with pages of 4 KiB a good part of the time goes into page tables.
double* allocate(std::size_t bytes) {
  void* block = ::operator new(bytes, std::align_val_t(kHugePageBytes));
#ifdef __linux__
  if (bytes >= kHugePageBytes) madvise(block, bytes, MADV_HUGEPAGE);  // a hint: failure changes nothing
#endif
  return static_cast<double*>(block);
}

void Memory::Release::operator()(double* block) const {
  ::operator delete(block, std::align_val_t(kHugePageBytes));
}

Memory::Memory(const Layout& layout, int step_count, const Storage& storage)
    : steps(step_count), costs(step_count + 1), factors(storage.arrival_factors ? step_count : 1),
      values(storage.values ? step_count + 1 : 2), arrivals(storage.values ? step_count + 1 : 2) {
  lay_out(layout, Arena());
  block_.reset(allocate(bytes()));
  std::fill_n(block_.get(), size_, 0.0);
  lay_out(layout, Arena(block_.get()));
  for (StepData& step : steps) {
    set_identity(step.Jq);
    set_identity(step.Jv);
    std::fill_n(step.inverse_root, layout.nu, 1.0);
  }
}

void Memory::lay_out(const Layout& s, Arena arena) {
  const std::size_t form = s.rows * s.columns;
  for (StepData& step : steps) step = take_step(s, arena);
  for (CostData& cost : costs) cost = take_cost(s, arena);
  for (ArrivalFactors& each : factors) each = take_factors(s, arena);
  for (double*& value : values) value = arena.take(form);
  for (double*& arrival : arrivals) arrival = arena.take(form);
  prior = arena.take(form);
  terminal = arena.take(form);
  solution_dx = arena.take(costs.size() * (2 * s.nv + s.nt));
  solution_du = arena.take(steps.size() * s.nu);
  workspace = take_workspace(s, arena);
  size_ = arena.used();
}

}  // namespace sweeps
}  // namespace prime_ros
