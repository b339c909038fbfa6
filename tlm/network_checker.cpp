#include "tlm/network_checker.hpp"

namespace tributary {

network_checker::network_checker(const sc_core::sc_module_name& name)
    : sc_core::sc_module(name), in("in", *this), out("out", *this) {}

void network_checker::violation(const std::string& what) {
  violations_.push_back(std::string(this->name()) + " at " + sc_core::sc_time_stamp().to_string() + ": " + what);
}

void network_checker::check_begin(const burst& incoming, const sc_core::sc_time& t) {
  const picoseconds head = (sc_core::sc_time_stamp() + t).value();
  if (waiting_ != nullptr) violation("BEGIN_REQ while the previous burst still waits for END_REQ");
  if (head < ready_) violation("BEGIN_REQ before the receiver is ready");
  if (head < last_head_) violation("a head earlier than the one before it");
  if (incoming.head != head) violation("burst.head is not the time of BEGIN_REQ");
  if (incoming.tail < incoming.head) violation("tail before head");
  const burst_content& content = incoming.content();
  if (content.packets == 0) violation("a burst without packets");
  if (content.wire_bytes <= content.payload_bytes) violation("wire bytes do not exceed payload bytes");
  if (std::uint64_t{content.offset_bytes} + content.payload_bytes > content.chunk_bytes &&
      (content.kind == burst_kind::data || content.kind == burst_kind::aggregate)) {
    violation("payload reaches past the end of its chunk");
  }
  last_head_ = head;
  ++begun_;
  wire_bytes_ += content.wire_bytes;
}

tlm::tlm_sync_enum network_checker::receive(unsigned /*port*/, burst& incoming, tlm::tlm_phase& phase,
                                            sc_core::sc_time& t) {
  if (phase != tlm::BEGIN_REQ) violation("only BEGIN_REQ goes forward");
  check_begin(incoming, t);
  waiting_ = &incoming;
  waiting_tail_ = incoming.tail;
  const picoseconds begin = (sc_core::sc_time_stamp() + t).value();
  const tlm::tlm_sync_enum answer = out->nb_transport_fw(incoming, phase, t);
  if (answer == tlm::TLM_ACCEPTED) {
    if (waiting_ != &incoming) violation("END_REQ came by nb_transport_bw inside a call answered TLM_ACCEPTED");
    return answer;
  }
  if (answer == tlm::TLM_COMPLETED || phase != tlm::END_REQ) violation("a burst is answered by END_REQ alone");
  ready_ = (sc_core::sc_time_stamp() + t).value();
  if (ready_ < begin) violation("END_REQ earlier than BEGIN_REQ");
  waiting_ = nullptr;
  ++ended_;
  return answer;
}

tlm::tlm_sync_enum network_checker::sent(unsigned /*port*/, burst& outgoing, tlm::tlm_phase& phase,
                                         sc_core::sc_time& t) {
  if (phase != tlm::END_REQ) violation("only END_REQ comes back");
  if (waiting_ != &outgoing) {
    violation("END_REQ for a burst that does not wait for it");
  } else if (outgoing.tail != waiting_tail_) {
    violation("the burst was changed between BEGIN_REQ and END_REQ");
  }
  waiting_ = nullptr;
  ready_ = (sc_core::sc_time_stamp() + t).value();
  ++ended_;
  return in->nb_transport_bw(outgoing, phase, t);
}

}  // namespace tributary
