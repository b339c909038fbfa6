// Base-protocol checker for the memory side: sits between an initiator and a target and records each breach of the
// TLM-2.0 base protocol rules (IEEE 1666-2011, 15.2) that an observer can see.
#pragma once

#include <string>
#include <systemc>
#include <tlm>
#include <unordered_map>
#include <vector>

namespace tributary {

class memory_checker : public sc_core::sc_module,
                       private tlm::tlm_fw_transport_if<>,
                       private tlm::tlm_bw_transport_if<> {
 public:
  tlm::tlm_target_socket<> in;
  tlm::tlm_initiator_socket<> out;

  explicit memory_checker(const sc_core::sc_module_name& name);

  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] std::uint64_t transactions() const { return transactions_; }
  [[nodiscard]] std::size_t outstanding() const { return phases_.size(); }

 private:
  struct observed {
    tlm::tlm_phase phase;
    tlm::tlm_command command;
    sc_dt::uint64 address;
    unsigned char* data;
    unsigned length;
  };

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& access, tlm::tlm_phase& phase,
                                     sc_core::sc_time& t) override;
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& access, tlm::tlm_phase& phase,
                                     sc_core::sc_time& t) override;
  void b_transport(tlm::tlm_generic_payload& access, sc_core::sc_time& t) override;
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& access, tlm::tlm_dmi& dmi) override;
  unsigned transport_dbg(tlm::tlm_generic_payload& access) override;
  void invalidate_direct_mem_ptr(sc_dt::uint64 first, sc_dt::uint64 last) override;

  void violation(const std::string& what);
  void check_request(tlm::tlm_generic_payload& access, bool non_blocking);
  void check_unchanged(const tlm::tlm_generic_payload& access, const observed& before);
  void backward_phase(tlm::tlm_generic_payload& access, const tlm::tlm_phase& phase);
  void completed(tlm::tlm_generic_payload& access);

  std::vector<std::string> violations_;
  std::unordered_map<const tlm::tlm_generic_payload*, observed> phases_;
  const tlm::tlm_generic_payload* request_ = nullptr;   ///< between BEGIN_REQ and END_REQ
  const tlm::tlm_generic_payload* response_ = nullptr;  ///< between BEGIN_RESP and END_RESP
  std::uint64_t transactions_ = 0;
};

}  // namespace tributary
