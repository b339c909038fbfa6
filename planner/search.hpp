// Finding the schedule that reaches agreement soonest on a given platform.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/constructions.hpp"
#include "planner/cost_model.hpp"

namespace tributary::planner {

struct rated_schedule {
  schedule rounds;
  double seconds = 0;  ///< fluid time of one pass through the rounds
};

/// The fastest pair of orthogonal partitions into groups of `size` for size^2 sites, exact in two rounds: every pair is
/// tried (for nine sites, 280 partitions). Among equally fast pairs the one that needs least memory at its rate wins,
/// then the lexicographically first. Empty when sites != size^2 or there are more than nine sites.
[[nodiscard]] std::optional<rated_schedule> best_orthogonal_pair(const platform_model& model, unsigned size, double w);

/// The labelling of sites that makes a construction quickest: swaps of two sites until none helps, from `restarts`
/// random beginnings (fewer for long schedules of many sites) drawn from `seed`, and once from the sites' own order.
/// Groups are costed apart (shared links between groups count only in the result's seconds).
[[nodiscard]] rated_schedule best_labelling(const platform_model& model, const construction& of, double w,
                                            std::uint64_t seed, unsigned restarts);

/// Rotating groups of `size` for any platform: the best orthogonal pair where all can be tried, else the best labelling
/// of the grid rotation.
[[nodiscard]] schedule rotating_groups(const platform_model& model, unsigned size, double w);

struct rated_construction {
  schedule rounds;
  unsigned exact_after = 0;
  std::vector<double> round_s;  ///< fluid time of each round
  double pass_s = 0;
  unsigned rounds_to_epsilon = 0;  ///< 0: not within the rounds looked at
  double to_epsilon_s = 0;         ///< infinite when not reached
  exchange_figures exchanged;
};

/// What to optimise.
enum class objective : std::uint8_t { time_to_epsilon, exchange_rate, staleness };

struct search_options {
  objective goal = objective::time_to_epsilon;
  unsigned largest_group = 8;
  double epsilon = 1e-6;
  std::uint64_t seed = 1;
  unsigned restarts = 8;
};

/// Every construction that fits the platform, each with its best labelling, best first.
[[nodiscard]] std::vector<rated_construction> search_schedules(const platform_model& model, double w,
                                                               const search_options& options);

}  // namespace tributary::planner
