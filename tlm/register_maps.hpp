// The register blocks of the aggregator, the cluster and the router: the contract between modules and their driver.
#pragma once

#include "tlm/registers.hpp"

namespace tributary {

/// Values of every STATUS register.
enum register_status : std::uint64_t { status_idle = 0, status_busy = 1, status_done = 2, status_error = 4 };

/// Values written to every CONTROL register.
enum register_command : std::uint64_t { command_start = 1, command_clear = 2 };

/// Values of every ERROR register: why the last start was refused.
enum register_error : std::uint64_t {
  error_none = 0,
  error_busy = 1,     ///< started while busy
  error_chunk = 2,    ///< chunk of zero bytes, or an update of zero bytes
  error_slots = 3,    ///< slot region past the end of the memory, or no slot at all
  error_members = 4,  ///< the site itself is not a member, or an unknown policy
};

namespace aggregator_register {
enum index : unsigned {
  id,
  status,
  control,
  error,
  round,
  group,
  members,
  update_bytes,
  chunk_bytes,
  slot_base,
  slot_count,
  policy,
  credit_window,
  credit_initial,
  credit_batch,
  merged_chunks,
  duplicate_bursts,
  late_bursts,
  high_water_bytes,
  count
};
}
namespace cluster_register {
enum index : unsigned {
  id,
  status,
  control,
  error,
  round,
  group,
  members,
  update_bytes,
  chunk_bytes,
  pace_ps,
  offset_ps,
  credit_window,
  sent_chunks,
  received_chunks,
  mismatches,
  count
};
}
namespace router_register {
enum index : unsigned { id, status, control, group, source, ports, entries, count };
}

/// Credits to site s travel as group credit_group + s; data groups of a round are numbered below it.
inline constexpr unsigned credit_group = 64;

/// Values of the aggregator's POLICY register.
enum class buffering : std::uint8_t { per_stream = 0, in_place = 1, none = 2 };

extern const register_map aggregator_registers;
extern const register_map cluster_registers;
extern const register_map router_registers;

}  // namespace tributary
