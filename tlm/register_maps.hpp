// What the registers of aggregator, cluster and router hold. The blocks themselves are made from tlm/registers.yaml:
// offsets by name in namespaces aggregator_register, cluster_register and router_register, and their tables.
#pragma once

#include "tlm/register_tables.hpp"  // generated
#include "tlm/registers.hpp"

namespace tributary {

/// Values of every STATUS register.
enum register_status : std::uint64_t { status_idle = 0, status_busy = 1, status_done = 2, status_error = 4 };

/// Values written to every CONTROL register.
/// resume (clusters): start without computing again, for a round restarted with fewer members.
enum register_command : std::uint64_t { command_start = 1, command_clear = 2, command_resume = 3 };

/// Values of every ERROR register: why the last start was refused.
enum register_error : std::uint64_t {
  error_none = 0,
  error_busy = 1,     ///< started while busy
  error_chunk = 2,    ///< chunk of zero bytes, or an update of zero bytes
  error_slots = 3,    ///< slot region past the end of the memory, or no slot at all
  error_members = 4,  ///< the site itself is not a member, or an unknown policy
};

/// What is meant for site s alone (credits, nacks, repairs, unicast copies) travels as group unicast_group + s; groups
/// of a round are numbered below it.
inline constexpr unsigned unicast_group = 0xff00;

/// Values of the aggregator's OUTPUT register: where merged chunks go.
enum class merged_output : std::uint8_t {
  cluster = 0,   ///< to the site's cluster
  upstream = 1,  ///< a partial sum, to the aggregator of site PARENT
  group = 2,     ///< the finished sum, to the whole group by its multicast tree, and to the site's cluster
};

/// Values of the cluster's COLLECTIVE register: what it does with what it receives.
enum class collective : std::uint8_t {
  exchange = 0,  ///< sends its update to the group, takes in those of the others, merged or not
  hub = 1,       ///< takes in the others' updates, adds, and sends the sum to each of them
  leaf = 2,      ///< sends its update to the hub, takes in the sum
  ring = 3,      ///< reduce-scatter and all-gather around a ring (Patarasuk and Yuan 2009)
  transit = 4,   ///< sends its update to its own aggregator, takes in the sum
};
/// Values of the aggregator's POLICY register.
enum class buffering : std::uint8_t { per_stream = 0, in_place = 1, none = 2 };

}  // namespace tributary
