// SPDX-License-Identifier: Apache-2.0
//
// Plain arithmetic of one link of the chain, on rows in the internal order [v, q, theta, 1].
#pragma once

#include "layout.hpp"

namespace prime_ros {
namespace sweeps {

/// Inverse transition q = Jq^-1 (q+ - dt Jv v+ - fq) of a step.
Outcome invert_transition(const Layout& s, const StepData& step, ArrivalFactors& factors);

/// Row x_next of knot k + 1 from row x of knot k; the velocity of x_next is already in place.
void advance(const Layout& s, const StepData& step, const double* x, double* x_next);

/// Adds lx'dx and dx'L dx of a knot at the row x.
void add_knot_change(const Layout& s, const CostData& cost, const double* x, ExpectedChange& change);

/// Adds lu'du and du'diag(luu) du of a step.
void add_control_change(const Layout& s, const StepData& step, const double* du, ExpectedChange& change);

/// Adds p'dx and dx'P dx of the arrival form at the row x.
void add_prior_change(const Layout& s, const double* prior, const double* x, ExpectedChange& change);

}  // namespace sweeps
}  // namespace prime_ros
