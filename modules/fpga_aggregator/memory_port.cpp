#include "modules/fpga_aggregator/memory_port.hpp"

namespace tributary {

/// Carries the cookie; lives as long as its payload.
class memory_port::cookie_extension : public tlm::tlm_extension<memory_port::cookie_extension> {
 public:
  std::uint64_t cookie = 0;
  [[nodiscard]] tlm::tlm_extension_base* clone() const override {
    auto* copy = new cookie_extension;
    copy->cookie = cookie;
    return copy;
  }
  void copy_from(const tlm::tlm_extension_base& other) override {
    cookie = static_cast<const cookie_extension&>(other).cookie;
  }
};

memory_port::memory_port(const char* socket_name, host& owner) : socket(socket_name), owner_(owner) {
  socket.bind(static_cast<tlm::tlm_bw_transport_if<>&>(*this));
}

void memory_port::free(tlm::tlm_generic_payload* finished) {
  finished->clear_extension(&timing_only_);
  free_.push_back(finished);
}

void memory_port::access(tlm::tlm_command command, std::uint64_t address, std::uint32_t length, void* data,
                         std::uint64_t cookie) {
  if (free_.empty()) {
    payloads_.push_back(std::make_unique<tlm::tlm_generic_payload>(static_cast<tlm::tlm_mm_interface*>(this)));
    payloads_.back()->set_extension(new cookie_extension);  // deleted with the payload
    free_.push_back(payloads_.back().get());
  }
  tlm::tlm_generic_payload& request = *free_.back();
  free_.pop_back();
  request.acquire();
  if (data == nullptr) {
    if (scratch_.size() < length) scratch_.resize(length);
    request.set_extension(&timing_only_);
  }
  request.set_command(command);
  request.set_address(address);
  request.set_data_ptr(data == nullptr ? scratch_.data() : static_cast<unsigned char*>(data));
  request.set_data_length(length);
  request.set_streaming_width(length);
  request.set_byte_enable_ptr(nullptr);
  request.set_dmi_allowed(false);
  request.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  request.get_extension<cookie_extension>()->cookie = cookie;
  requests_.push(&request);
  ++outstanding_;
  if (request_ == nullptr) send_next();
}

void memory_port::send_next() {
  while (!requests_.empty() && request_ == nullptr) {
    tlm::tlm_generic_payload& request = *requests_.front();
    requests_.pop();
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time t = sc_core::SC_ZERO_TIME;
    request_ = &request;
    const tlm::tlm_sync_enum answer = socket->nb_transport_fw(request, phase, t);
    const picoseconds when = (sc_core::sc_time_stamp() + t).value();
    if (answer == tlm::TLM_ACCEPTED) return;
    request_ = nullptr;
    if (answer == tlm::TLM_COMPLETED) {
      finish(request, when);
    } else if (phase == tlm::BEGIN_RESP) {
      tlm::tlm_phase end = tlm::END_RESP;
      sc_core::sc_time at = t;
      socket->nb_transport_fw(request, end, at);
      finish(request, when);
    }
  }
}

tlm::tlm_sync_enum memory_port::nb_transport_bw(tlm::tlm_generic_payload& access, tlm::tlm_phase& phase,
                                                sc_core::sc_time& t) {
  if (phase == tlm::END_REQ) {
    if (request_ == &access) request_ = nullptr;
    send_next();
    return tlm::TLM_ACCEPTED;
  }
  if (phase != tlm::BEGIN_RESP) return tlm::TLM_ACCEPTED;
  const picoseconds when = (sc_core::sc_time_stamp() + t).value();
  if (request_ == &access) request_ = nullptr;  // BEGIN_RESP without END_REQ implies it
  phase = tlm::END_RESP;
  finish(access, when);
  send_next();
  return tlm::TLM_COMPLETED;
}

void memory_port::finish(tlm::tlm_generic_payload& access, picoseconds when) {
  const std::uint64_t cookie = access.get_extension<cookie_extension>()->cookie;
  const bool ok = access.is_response_ok();
  --outstanding_;
  access.release();
  owner_.memory_done(cookie, when, ok);
}

void memory_port::invalidate_direct_mem_ptr(sc_dt::uint64 /*first*/, sc_dt::uint64 /*last*/) {}

}  // namespace tributary
