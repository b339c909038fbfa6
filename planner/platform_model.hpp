// What the planner knows of a platform: the numbers of its parts, without any simulation.
#pragma once

#include <string>
#include <vector>

#include "planner/topology.hpp"
#include "tlm/wire_format.hpp"

namespace tributary::planner {

enum class buffering_policy : std::uint8_t { per_stream, in_place, none };
enum class flow_control : std::uint8_t { paced, credit };

struct site_model {
  std::string name;
  unsigned device = 0;              ///< the router its cluster and aggregator hang on
  bits_per_s access_up = 0;         ///< cluster to router
  bits_per_s access_down = 0;       ///< aggregator to cluster
  bits_per_s aggregator_ports = 0;  ///< router to aggregator
  picoseconds access_latency = 0;   ///< of each of the three, one way

  std::uint64_t memory_bytes = 0;
  bits_per_s memory_rate = 0;  ///< sustained, reads and writes together
  picoseconds memory_latency = 0;
  bits_per_s datapath_rate = 0;  ///< operand bits a second: width x clock x lanes
  picoseconds adder_latency = 0;

  picoseconds compute_time = 0;  ///< until the update is released
  picoseconds apply_time = 0;
  bits_per_s consume_rate = 0;
  double weight = 1;  ///< share of the data, for weighted averages
};

struct platform_model {
  topology network;
  std::vector<site_model> sites;
  wire_format format;
  picoseconds forwarding_latency = 0;  ///< of every router
  std::uint64_t update_bytes = 0;
  std::uint64_t chunk_bytes = 0;
  buffering_policy buffering = buffering_policy::per_stream;
  flow_control flow = flow_control::paced;
  tree_kind trees = tree_kind::shortest;
  bool send_offsets = false;             ///< paced: sources begin when the linear programme of send_offsets.hpp says
  bool multicast = true;                 ///< False: a source sends each receiver a copy of its own, in site order
  std::uint32_t cut_through_header = 0;  ///< header bytes on which every router forwards; 0: it stores packets first
  bool repair = false;                   ///< packets may be lost: memory must hold what waits for one repair
  picoseconds repair_delay = 0;          ///< from noticing a gap to asking
  std::uint32_t parity_packets = 0;      ///< behind each chunk

  [[nodiscard]] std::uint64_t chunks() const { return (update_bytes + chunk_bytes - 1) / chunk_bytes; }
  /// Propagation from site i's router to site j's along the shortest path.
  [[nodiscard]] std::vector<std::vector<picoseconds>> latencies() const;
};

}  // namespace tributary::planner
