// Finding the schedule that reaches agreement soonest on a given platform.
#pragma once

#include <optional>

#include "planner/cost_model.hpp"

namespace tributary::planner {

struct rated_schedule {
  schedule rounds;
  double seconds = 0;  ///< fluid time of one pass through the rounds
};

/// The fastest pair of orthogonal partitions into groups of `size` for size^2 sites, exact in two rounds: every pair is
/// tried (for nine sites, 280 partitions). Ties go to the lexicographically first pair. Empty when sites != size^2 or
/// there are more than nine sites.
[[nodiscard]] std::optional<rated_schedule> best_orthogonal_pair(const platform_model& model, unsigned size, double w);

/// Rotating groups of `size` for any platform: the best orthogonal pair where one can be searched, else groups taken
/// from rows and columns of a grid filled in site order, with a smaller last group where it does not divide.
[[nodiscard]] schedule rotating_groups(const platform_model& model, unsigned size, double w);

}  // namespace tributary::planner
