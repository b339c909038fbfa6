// The commands that plan without simulating, and confirm by simulating: `tributary plan` and `tributary size`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/search.hpp"
#include "platforms/spec.hpp"

namespace tributary {

struct plan_request {
  planner::search_options search;
  unsigned verify = 0;  ///< simulate this many of the best
};

struct planned_schedule {
  planner::rated_construction rated;
  double predicted_s = 0;             ///< of the rounds to epsilon, headers, pipeline and slots counted; 0: cannot run
  std::optional<double> simulated_s;  ///< the same rounds, simulated
  std::string remark;
};

/// Rates every construction on the platform, best first.
[[nodiscard]] std::vector<planned_schedule> plan_schedules(const platform_spec& spec, const plan_request& request);

/// Schedule file text for `run --schedule`.
[[nodiscard]] std::string schedule_yaml(const platform_spec& spec, const planned_schedule& planned);

[[nodiscard]] std::string describe_plans(const platform_spec& spec, const std::vector<planned_schedule>& plans);

/// Planned time (plan_round) of one pass of `rounds` with `memory` bytes at every aggregator; infinite when it cannot
/// run.
[[nodiscard]] double planned_pass_s(const platform_spec& spec, const planner::schedule& rounds, std::uint64_t memory);

/// Least aggregator memory, in whole chunks, at which one pass takes at most `target_s`; empty when none up to `most`
/// does.
[[nodiscard]] std::optional<std::uint64_t> least_memory(const platform_spec& spec, const planner::schedule& rounds,
                                                        double target_s, std::uint64_t most);

/// What else may be sized; the same for all sites, or all backbone links.
enum class sized : std::uint8_t {
  memory_bandwidth,  ///< bits a second the aggregator memory sustains, reads and writes together
  clock,             ///< of the aggregators, hertz
  access_rate,       ///< of the clusters' links, both ways
  link_rate,         ///< of the backbone links, both ways
};
/// The platform with `value` in its place (memory bandwidth: as a device of constant rate).
[[nodiscard]] platform_spec with_value(const platform_spec& spec, sized what, std::uint64_t value);
/// Least value, to three digits, at which one pass takes at most `target_s`; empty when none up to a million times a
/// gigabit or gigahertz does.
[[nodiscard]] std::optional<std::uint64_t> least_value(const platform_spec& spec, const planner::schedule& rounds,
                                                       sized what, double target_s);

struct crossover {
  std::uint64_t memory_bytes = 0;  ///< least at which the first schedule is no slower
  double first_s = 0;              ///< both at that memory
  double second_s = 0;
};

/// Where all-to-all catches up with the best rotating groups of `size`: bisection over memory, the rotation chosen anew
/// for each. Empty when it does not between one chunk a stream and `most`.
[[nodiscard]] std::optional<crossover> memory_crossover(const platform_spec& spec, unsigned size, std::uint64_t most);

}  // namespace tributary
