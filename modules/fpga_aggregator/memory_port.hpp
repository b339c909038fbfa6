// The aggregator's side of its memory: a base-protocol initiator that keeps the request exclusion rule, pools its
// payloads and reports each access with the time it is complete, whichever way the target answers.
#pragma once

#include <memory>
#include <tlm>
#include <vector>

#include "tlm/memory_extensions.hpp"
#include "tlm/quantities.hpp"
#include "tlm/ring.hpp"

namespace tributary {

class memory_port : private tlm::tlm_bw_transport_if<>, private tlm::tlm_mm_interface {
 public:
  /// Receives completions. `when` may lie ahead of now (early completion with an annotated time).
  class host {
   public:
    virtual void memory_done(std::uint64_t cookie, picoseconds when, bool ok) = 0;

   protected:
    ~host() = default;
  };

  tlm::tlm_initiator_socket<> socket;

  memory_port(const char* socket_name, host& owner);

  /// Issues an access. With `data` null it is made for its time alone. `cookie` comes back with the completion, which
  /// may happen inside this call.
  void access(tlm::tlm_command command, std::uint64_t address, std::uint32_t length, void* data, std::uint64_t cookie);

  [[nodiscard]] std::size_t outstanding() const { return outstanding_; }

 private:
  class cookie_extension;

  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& access, tlm::tlm_phase& phase,
                                     sc_core::sc_time& t) override;
  void invalidate_direct_mem_ptr(sc_dt::uint64 first, sc_dt::uint64 last) override;
  void free(tlm::tlm_generic_payload* finished) override;

  void send_next();
  void finish(tlm::tlm_generic_payload& access, picoseconds when);

  host& owner_;
  std::vector<std::unique_ptr<tlm::tlm_generic_payload>> payloads_;
  std::vector<tlm::tlm_generic_payload*> free_;
  ring<tlm::tlm_generic_payload*> requests_;
  const tlm::tlm_generic_payload* request_ = nullptr;  ///< sent, END_REQ outstanding
  std::size_t outstanding_ = 0;
  std::vector<unsigned char> scratch_;  ///< what timing-only accesses point at
  timing_only timing_only_;
};

}  // namespace tributary
