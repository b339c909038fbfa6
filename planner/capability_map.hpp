// Which schedule wins, for each capability of the network, aggregator memory and cluster link rate.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "planner/search.hpp"

namespace tributary::planner {

/// What the network offers.
enum class capability : std::uint8_t {
  none,         ///< a copy for each receiver, streams reach the cluster unmerged
  multicast,    ///< one copy leaves the source (egress relief)
  aggregation,  ///< streams are merged before the cluster (ingress relief)
  both,
};
inline constexpr std::array<const char*, 4> capability_names{"none", "multicast", "aggregation", "both"};

/// The platform with that capability: multicast or copies, aggregation as configured (per_stream when it is none) or
/// none.
[[nodiscard]] platform_model with_capability(const platform_model& model, capability offered);

struct map_request {
  std::vector<std::uint64_t> memories;  ///< bytes at every aggregator
  std::vector<bits_per_s> rates;        ///< of every cluster's link, both ways
  search_options search;
  bool transit = false;  ///< with `both`, transit reduction down and up a tree competes (time to agreement only)
};

struct map_cell {
  capability offered = capability::none;
  std::uint64_t memory_bytes = 0;
  bits_per_s rate = 0;
  std::string winner;
  double figure = 0;  ///< seconds to epsilon, ordered pairs a second, or mean age in seconds
};

/// Cells by capability, then memory, then rate.
[[nodiscard]] std::vector<map_cell> map_schedules(const platform_model& model, double w, const map_request& request);

}  // namespace tributary::planner
