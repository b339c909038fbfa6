#include "tlm/registers.hpp"

#include <cstring>
#include <utility>

namespace tributary {

std::string to_markdown(const register_map& map) {
  std::string page = std::string("## ") + map.name +
                     "\n\n| offset | name | access | unit | meaning |\n| --- | --- | --- | --- | --- |\n";
  unsigned index = 0;
  for (const register_description& each : map.registers) {
    char offset[16];
    std::snprintf(offset, sizeof offset, "0x%02x", static_cast<unsigned>(register_offset(index++)));
    const char* access = each.access == register_access::read_only    ? "read"
                         : each.access == register_access::write_only ? "write"
                                                                      : "read, write";
    page += std::string("| ") + offset + " | " + each.name + " | " + access + " | " + each.unit + " | " +
            each.description + " |\n";
  }
  return page;
}

register_block::register_block(const char* socket_name, const register_map& map, const sc_core::sc_time& access_time,
                               std::function<void(unsigned, std::uint64_t)> written)
    : socket(socket_name),
      map_(map),
      access_time_(access_time),
      written_(std::move(written)),
      values_(map.registers.size(), 0) {
  socket.register_b_transport(this, &register_block::b_transport);
  socket.register_transport_dbg(this, &register_block::transport_dbg);
}

tlm::tlm_response_status register_block::check(const tlm::tlm_generic_payload& access) const {
  const std::uint64_t address = access.get_address();
  if (address % 8 != 0 || address / 8 >= values_.size()) return tlm::TLM_ADDRESS_ERROR_RESPONSE;
  if (access.get_byte_enable_ptr() != nullptr) return tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE;
  if (access.get_data_length() != 8 || access.get_streaming_width() < 8) return tlm::TLM_BURST_ERROR_RESPONSE;
  const register_description& target = map_.registers[address / 8];
  if (access.is_read() && target.access == register_access::write_only) return tlm::TLM_COMMAND_ERROR_RESPONSE;
  if (access.is_write()) {
    if (target.access == register_access::read_only) return tlm::TLM_COMMAND_ERROR_RESPONSE;
    std::uint64_t value = 0;
    std::memcpy(&value, access.get_data_ptr(), sizeof value);
    if (value > target.maximum) return tlm::TLM_GENERIC_ERROR_RESPONSE;
  } else if (!access.is_read()) {
    return tlm::TLM_COMMAND_ERROR_RESPONSE;
  }
  return tlm::TLM_OK_RESPONSE;
}

void register_block::b_transport(tlm::tlm_generic_payload& access, sc_core::sc_time& t) {
  t += access_time_;
  const tlm::tlm_response_status status = check(access);
  access.set_response_status(status);
  if (status != tlm::TLM_OK_RESPONSE) return;
  const auto index = static_cast<unsigned>(access.get_address() / 8);
  if (access.is_read()) {
    std::memcpy(access.get_data_ptr(), &values_[index], 8);
    return;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, access.get_data_ptr(), sizeof value);
  values_[index] = value;
  if (written_) written_(index, value);
}

unsigned register_block::transport_dbg(tlm::tlm_generic_payload& access) {
  if (!access.is_read() || access.get_data_length() != 8 || access.get_address() % 8 != 0 ||
      access.get_address() / 8 >= values_.size()) {
    return 0;
  }
  std::memcpy(access.get_data_ptr(), &values_[access.get_address() / 8], 8);
  return 8;
}

}  // namespace tributary
