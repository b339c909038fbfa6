// Schedules: which groups of sites exchange updates in which round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tributary::planner {

using group = std::vector<unsigned>;   ///< sites, ascending
using partition = std::vector<group>;  ///< groups of one round; sites in none of them wait

struct schedule {
  std::string name;
  std::vector<partition> rounds;  ///< repeated
  /// Per round how far each site moves towards its group's average, x' = x + blend (average - x); empty: 1 everywhere.
  /// The cluster does it when it applies the merged stream; what travels is the same.
  std::vector<double> blend{};
};

/// Sorts groups and members so that equal partitions compare equal.
void normalise(partition& round);

/// True when no site appears twice and all are below `sites`.
[[nodiscard]] bool is_partition(const partition& round, unsigned sites);

/// True when every group of `a` shares exactly one site with every group of `b`: then two rounds of averaging are
/// exact.
[[nodiscard]] bool orthogonal(const partition& a, const partition& b);

[[nodiscard]] schedule all_to_all(unsigned sites);

/// Every partition of `sites` into groups of `size` (sites divisible by size): for 9 and 3 there are 280.
[[nodiscard]] std::vector<partition> all_partitions(unsigned sites, unsigned size);

}  // namespace tributary::planner
