// What an aggregator would take of its FPGA: adders, on-chip memory for buffers, slot table and free list, and the
// share of the memory's bandwidth. An estimate from the configuration; the assumptions are in docs/resources.md.
#pragma once

#include <string>
#include <vector>

#include "platforms/spec.hpp"

namespace tributary {

struct resource_estimate {
  unsigned streams = 0;      ///< most in any round
  std::uint64_t adders = 0;  ///< elements added each clock
  std::uint64_t dsp = 0;
  std::uint64_t ultra_ram_bits = 0;  ///< ingress and egress buffer, on-chip slots
  std::uint64_t ultra_ram = 0;       ///< blocks of 288 Kb
  std::uint64_t slot_table_bits = 0;
  std::uint64_t free_list_bits = 0;
  std::uint64_t block_ram = 0;  ///< blocks of 36 Kb, for slot table and free list
  double memory_bytes_per_s = 0;
  double memory_share = 0;  ///< of the sustained rate of the device
};

/// For one site over all rounds of the schedule.
[[nodiscard]] resource_estimate estimate_resources(const platform_spec& spec, unsigned site);

/// A table over all sites, equal ones in one row, with shares of the device where its totals are known.
[[nodiscard]] std::string describe_resources(const platform_spec& spec);

}  // namespace tributary
