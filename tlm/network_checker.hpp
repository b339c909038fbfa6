// Protocol checker for the network side. Plug it between any two network sockets: it passes every call through
// unchanged and records each breach of the rules in tlm/network.hpp.
#pragma once

#include <string>
#include <systemc>
#include <vector>

#include "tlm/network.hpp"

namespace tributary {

class network_checker : public sc_core::sc_module, private network_receiver, private network_sender {
 public:
  network_target_socket in;
  network_initiator_socket out;

  explicit network_checker(const sc_core::sc_module_name& name);

  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] std::uint64_t begun() const { return begun_; }
  [[nodiscard]] std::uint64_t ended() const { return ended_; }
  [[nodiscard]] std::uint64_t wire_bytes() const { return wire_bytes_; }

 private:
  tlm::tlm_sync_enum receive(unsigned port, burst& incoming, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  tlm::tlm_sync_enum sent(unsigned port, burst& outgoing, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  void violation(const std::string& what);
  void check_begin(const burst& incoming, const sc_core::sc_time& t);

  std::vector<std::string> violations_;
  const burst* waiting_ = nullptr;  ///< begun, END_REQ outstanding
  picoseconds ready_ = 0;           ///< the receiver said it would be ready then
  picoseconds last_head_ = 0;
  picoseconds waiting_tail_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t wire_bytes_ = 0;
};

}  // namespace tributary
