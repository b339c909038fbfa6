// What the registers of aggregator, cluster and router hold. The blocks themselves are made from tlm/registers.yaml:
// offsets by name in namespaces aggregator_register, cluster_register and router_register, and their tables.
#pragma once

#include "tlm/register_tables.hpp"  // generated
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

/// Credits to site s travel as group credit_group + s; data groups of a round are numbered below it.
inline constexpr unsigned credit_group = 64;

/// Values of the aggregator's POLICY register.
enum class buffering : std::uint8_t { per_stream = 0, in_place = 1, none = 2 };

}  // namespace tributary
