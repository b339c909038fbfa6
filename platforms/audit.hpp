// The checks that run in every simulation, as a function of plain numbers: what a run must satisfy whatever it models.
#pragma once

#include <string>
#include <vector>

#include "modules/fpga_aggregator/fpga_aggregator.hpp"
#include "modules/long_haul_link/long_haul_link.hpp"

namespace tributary {

struct check_result {
  std::string name;
  bool pass = true;
  std::string detail;  ///< why it failed
};

/// One site at the end of a run.
struct site_audit {
  std::string name;
  std::uint64_t memory_capacity_bytes = 0;
  aggregator_counters aggregator;
  std::uint64_t coverage_errors = 0;  ///< counted by the cluster
  std::uint64_t mismatches = 0;
  double largest_difference = 0;
};

struct link_audit {
  std::string name;
  link_direction_counters counters;
  std::uint64_t wire_bytes_under_way = 0;
};

/// One site in one round.
struct transfer_audit {
  unsigned round = 0;
  std::string site;
  std::uint64_t sent = 0;
  std::uint64_t expected_sent = 0;
  std::uint64_t received = 0;
  std::uint64_t expected_received = 0;
};

struct round_audit {
  unsigned index = 0;
  picoseconds opened = 0;
  picoseconds closed = 0;
  picoseconds parts = 0;  ///< sum of the breakdown
};

struct run_audit {
  std::vector<site_audit> sites;
  std::vector<link_audit> links;
  std::vector<transfer_audit> transfers;
  std::vector<round_audit> rounds;
  unsigned rounds_due = 0;
  bool finished = false;  ///< the executor came to its end
  std::uint64_t unrouted_bursts = 0;
  std::uint64_t live_bursts = 0;  ///< still somewhere after the last round
  bool real_values = false;
  bool protocol_checked = false;
  bool as_planned = true;  ///< nothing happened that no plan covers: outages, failures, overflowing router queues
  bool repairs = false;    ///< lost packets are sent again: some may be late, twice, or under way when the run ends
  std::vector<std::string> protocol_violations;
};

/// coverage          each merged chunk held its whole group exactly once; without repair nothing came late or twice
/// conservation      bytes into every link came out, were lost or are under way; every site sent and received what its
///                   round asks
/// occupancy         slots never exceed the configured memory
/// no_overflow       no burst ever waited for a free slot: the pace was right
/// memory_accesses   no memory access was answered with an error
/// time_adds_up      rounds follow each other and their parts sum to their length
/// all_rounds_ended  none is missing
/// reduction         (real values) every element equals the direct reduction
/// protocol          (with checkers) no violation of the network or base protocol
[[nodiscard]] std::vector<check_result> audit(const run_audit& run);

}  // namespace tributary
