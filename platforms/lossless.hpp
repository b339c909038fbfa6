// Will back-pressure hold? What `tributary run` and `validate` say before anything is simulated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/channel_dependencies.hpp"
#include "platforms/spec.hpp"

namespace tributary {

/// Chunks of each stream that the queue before a link direction is asked to hold: one that arrives while one of every
/// other stream waits, and one that came late. A rule of thumb, not a bound: docs/network.md.
inline constexpr unsigned chunks_a_stream = 2;

/// A warning when link directions may wait for each other in a circle: their dependencies make one, and every queue of
/// it is lossless and smaller than `chunks_a_stream` asks for.
[[nodiscard]] std::optional<std::string> deadlock_warning(const platform_spec& spec, const planner::topology& network,
                                                          const std::vector<planner::stream_routes>& streams);

}  // namespace tributary
