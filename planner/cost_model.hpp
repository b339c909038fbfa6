// What a round costs: the rate each group may use, why, and how long the round takes.
//
// Two views of the same model. The fluid one is the closed formulas (below, checked by hand in tests): it is what
// searches and maps use. The planned one is what a run is paced by: whole chunks, whole picoseconds, headers, store and
// forward, memory and adder latencies included, so that no aggregator ever overflows at the planned pace.
//
// Fluid formulas, for group G, receiver j, r payload bytes/s of every source, L_ij latency, D_j = max_i L_ij, k = |G|,
// w wire/payload:
//   access        w r <= C_up of every member (multicast), (k-1) w r without it; w r <= C_down of every receiver
//                 (aggregation), (k-1) w r without it
//   ports         (k-1) w r <= C_ports
//   datapath      (k-1) r <= width x clock x lanes
//   capacity      paced:  per_stream  sum_i r (D_j - L_ij) <= B_j     a chunk of stream i waits D_j - L_ij for the last
//                         in_place    r (D_j - min_i L_ij) <= B_j      one slot a chunk, from the first to the last
//                 credit: per_stream  r <= (B_j/(k-1)) / max_i(L_ij + L_ji)   space is held from the credit's departure
//                         in_place    r <= B_j / max_i(L_ij + L_ji)
//   bandwidth     per_stream 2 (k-1) r; in_place 2 (k-2) r for k >= 3, nothing for k = 2
//   shared links  sum over concurrent streams on a link direction of w r <= C, max-min fair between groups
//   time          M / r + max_ij L_ij; with send offsets M / r + the latest arrival (planner/send_offsets.hpp)
#pragma once

#include <string>
#include <vector>

#include "planner/platform_model.hpp"
#include "planner/schedule.hpp"

namespace tributary::planner {

enum class rate_limit : std::uint8_t {
  access_up,
  access_down,
  aggregator_ports,
  datapath,
  consume,
  memory_bandwidth,
  memory_capacity,
  shared_link
};
[[nodiscard]] const char* to_string(rate_limit limit);

// ---- fluid ------------------------------------------------------------------------------------------------------

struct fluid_rate {
  double bytes_per_s = 0;  ///< payload, per source
  rate_limit limit = rate_limit::access_up;
  unsigned site = 0;  ///< where it binds (shared_link: the edge)
};

/// Wire bytes over payload bytes of whole chunks; 1 when `headers` is false.
[[nodiscard]] double wire_overhead(const platform_model& model, bool headers);

/// Rate of one group alone on the network (shared links not counted). Without `capacity`, as if memory were endless.
[[nodiscard]] fluid_rate fluid_group_rate(const platform_model& model,
                                          const std::vector<std::vector<picoseconds>>& latency, const group& members,
                                          double w, bool capacity = true);

/// What a group takes alone on the network: its rate, and the latest arrival of a chunk that leaves at time 0 or at its
/// source's send offset.
struct fluid_group {
  fluid_rate rate;
  double latest_s = 0;
};
[[nodiscard]] fluid_group fluid_group_cost(const platform_model& model,
                                           const std::vector<std::vector<picoseconds>>& latency, const group& members,
                                           double w);

struct fluid_round {
  std::vector<fluid_rate> rates;  ///< per group; singletons have rate 0
  double seconds = 0;             ///< slowest group: M / r + max L
};

/// All groups of a round together, shared links included. A sequence of rounds with one group each is what sequential
/// groups cost.
[[nodiscard]] fluid_round fluid_round_cost(const platform_model& model, const partition& round, double w);

/// Transit reduction: every site's aggregator adds what comes from below in a tree to its own cluster's chunk and
/// passes one stream on; the root multicasts the result down the same tree. Sources start so that chunks meet, so that
/// memory holds chunks in assembly only; every tree link carries one update each way.
struct transit_cost {
  unsigned root = 0;       ///< site
  double bytes_per_s = 0;  ///< payload
  rate_limit limit = rate_limit::access_up;
  double height_s = 0;  ///< longest path to the root
  double seconds = 0;   ///< M / r + up + down
};
/// The best root over all sites; shortest-path trees.
[[nodiscard]] transit_cost fluid_transit_cost(const platform_model& model, double w);

/// Memory the receiver needs to take `rate` from every other member (paced formulas), bytes.
[[nodiscard]] double fluid_memory_need(const platform_model& model,
                                       const std::vector<std::vector<picoseconds>>& latency, const group& members,
                                       unsigned receiver, double rate);

// ---- planned ----------------------------------------------------------------------------------------------------

struct group_plan {
  group members;
  picoseconds pace = 0;              ///< from one chunk's departure to the next, all sources alike
  std::vector<picoseconds> offsets;  ///< per member, from the release to its first chunk; empty: none
  // Credit flow control, per member as receiver (empty when paced): its window in chunks a stream (in_place: chunks),
  // and the longest time from a chunk's departure at a source to the credit for its slot back there.
  std::vector<std::uint64_t> windows;
  std::vector<picoseconds> credit_cycles;
  picoseconds unbuffered_pace = 0;  ///< the pace if aggregator memory were endless
  rate_limit limit = rate_limit::access_up;
  unsigned limit_at = 0;              ///< site, or edge for shared_link
  std::vector<multicast_tree> trees;  ///< per member, rooted at its device
  picoseconds predicted = 0;          ///< from the release of the round to the last member's apply
  picoseconds longest_latency = 0;
};

struct round_plan {
  std::vector<group_plan> groups;  ///< groups of two or more
  picoseconds predicted = 0;       ///< release to the last apply, singletons' compute included
};

/// Plans a round. Throws std::invalid_argument when a group cannot run at any pace (memory below one chunk a stream).
[[nodiscard]] round_plan plan_round(const platform_model& model, const partition& round);

/// When chunk `c` departs after the first, at the plan's pace and window.
[[nodiscard]] picoseconds departure(const group_plan& plan, std::uint64_t c);

/// Payload bits a second of each source once the round is under way.
[[nodiscard]] double sustained_rate(const group_plan& plan, std::uint64_t chunk_bytes);

/// Slots receiver `j` holds at most when every other member sends a chunk each `pace`.
[[nodiscard]] std::uint64_t slots_needed(const platform_model& model, const group_plan& plan, unsigned receiver,
                                         picoseconds pace);

}  // namespace tributary::planner
