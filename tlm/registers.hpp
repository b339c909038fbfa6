// Memory-mapped register blocks. A block is described once, as a table; the table drives the offsets used in code,
// the access checks and the documentation page (`tributary presets --registers`, docs/registers.md).
#pragma once

#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

namespace tributary {

enum class register_access : std::uint8_t { read_only, read_write, write_only };

/// One 64-bit register. Its number is its place in the table, its byte offset eight times that.
struct register_description {
  const char* name;
  register_access access;
  std::uint64_t maximum;  ///< largest value a write may carry
  const char* unit;
  const char* description;
};

struct register_map {
  const char* name;
  std::vector<register_description> registers;
};

[[nodiscard]] constexpr std::uint64_t register_offset(unsigned index) { return std::uint64_t{index} * 8; }

/// The map as a Markdown section: offset, name, access, unit, description.
[[nodiscard]] std::string to_markdown(const register_map& map);

/// A register block behind a base-protocol target socket. Accepts naturally aligned 8-byte reads and writes; answers
/// TLM_ADDRESS_ERROR_RESPONSE outside the block, TLM_COMMAND_ERROR_RESPONSE for reads of write-only and writes to
/// read-only registers, TLM_BURST_ERROR_RESPONSE for other lengths or streaming, TLM_BYTE_ENABLE_ERROR_RESPONSE for
/// byte enables and TLM_GENERIC_ERROR_RESPONSE for a value above the register's maximum.
class register_block {
 public:
  tlm_utils::simple_target_socket<register_block, 64> socket;

  /// `access_time` is what each b_transport adds to its annotated delay. `written` runs after an accepted write.
  register_block(const char* socket_name, const register_map& map, const sc_core::sc_time& access_time,
                 std::function<void(unsigned index, std::uint64_t value)> written);

  [[nodiscard]] std::uint64_t operator[](unsigned index) const { return values_[index]; }
  void set(unsigned index, std::uint64_t value) { values_[index] = value; }
  void add(unsigned index, std::uint64_t amount) { values_[index] += amount; }
  [[nodiscard]] const register_map& map() const { return map_; }

 private:
  void b_transport(tlm::tlm_generic_payload& access, sc_core::sc_time& t);
  unsigned transport_dbg(tlm::tlm_generic_payload& access);
  [[nodiscard]] tlm::tlm_response_status check(const tlm::tlm_generic_payload& access) const;

  const register_map& map_;
  sc_core::sc_time access_time_;
  std::function<void(unsigned, std::uint64_t)> written_;
  std::vector<std::uint64_t> values_;
};

}  // namespace tributary
