// Simulations in processes of their own: SystemC elaborates once a process.
#pragma once

#include <string>
#include <vector>

#include "platforms/spec.hpp"

namespace tributary {

/// What a link direction carried.
struct transferred {
  std::string name;
  std::uint64_t payload_bytes = 0;
  double utilization = 0;
  bool backbone = false;
};

struct child_outcome {
  bool finished = false;  ///< all rounds ended
  bool passed = false;    ///< and every check passed
  double simulated_s = 0;
  double slowest_round_s = 0;
  std::uint64_t memory_high_water_bytes = 0;
  std::vector<transferred> links;
  std::string complaint;  ///< why it did not finish
};

/// Runs the spec without traces in a forked child and waits for it.
[[nodiscard]] child_outcome simulate_in_child(const platform_spec& spec);

}  // namespace tributary
