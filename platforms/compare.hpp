// `tributary compare`: the same update over the same platform by every strategy, simulated.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "platforms/child.hpp"
#include "platforms/spec.hpp"

namespace tributary {

struct strategy {
  std::string name;
  platform_spec spec;
  std::string refused;  ///< why it cannot run on this platform; empty: it can
};

/// unicast mesh, ring, hub, multicast only, aggregation only, both, transit reduction, and both in one room: all sites
/// on one router without distance.
[[nodiscard]] std::vector<strategy> strategies_on(const platform_spec& spec);

struct compared_strategy {
  std::string name;
  child_outcome outcome;
};

/// Each in a process of its own.
[[nodiscard]] std::vector<compared_strategy> compare_strategies(const platform_spec& spec);

[[nodiscard]] std::string describe_comparison(const platform_spec& spec, const std::vector<compared_strategy>& all);
[[nodiscard]] nlohmann::ordered_json comparison_json(const std::vector<compared_strategy>& all);

}  // namespace tributary
