#include "tlm/memory_checker.hpp"

namespace tributary {

memory_checker::memory_checker(const sc_core::sc_module_name& name) : sc_core::sc_module(name), in("in"), out("out") {
  in.bind(static_cast<tlm::tlm_fw_transport_if<>&>(*this));
  out.bind(static_cast<tlm::tlm_bw_transport_if<>&>(*this));
}

void memory_checker::violation(const std::string& what) {
  violations_.push_back(std::string(this->name()) + " at " + sc_core::sc_time_stamp().to_string() + ": " + what);
}

void memory_checker::check_request(tlm::tlm_generic_payload& access, bool non_blocking) {
  if (access.get_data_length() == 0) violation("data length 0");
  if (access.get_data_ptr() == nullptr && !access.is_write() && access.get_command() != tlm::TLM_IGNORE_COMMAND) {
    violation("no data pointer");
  }
  if (access.get_streaming_width() == 0) violation("streaming width 0");
  if (access.get_response_status() != tlm::TLM_INCOMPLETE_RESPONSE) {
    violation("a request starts with TLM_INCOMPLETE_RESPONSE");
  }
  if (access.is_dmi_allowed()) violation("the DMI hint is set by the target, not the initiator");
  if (non_blocking && (!access.has_mm() || access.get_ref_count() < 1)) {
    violation("nb_transport needs a memory manager and a reference");
  }
}

void memory_checker::check_unchanged(const tlm::tlm_generic_payload& access, const observed& before) {
  if (access.get_command() != before.command || access.get_data_ptr() != before.data ||
      access.get_data_length() != before.length) {
    violation("command, data pointer or length changed during the transaction");
  }
}

void memory_checker::completed(tlm::tlm_generic_payload& access) {
  if (access.get_response_status() == tlm::TLM_INCOMPLETE_RESPONSE) violation("completed with an incomplete response");
  if (request_ == &access) request_ = nullptr;
  if (response_ == &access) response_ = nullptr;
  phases_.erase(&access);
}

void memory_checker::backward_phase(tlm::tlm_generic_payload& access, const tlm::tlm_phase& phase) {
  const auto found = phases_.find(&access);
  if (found == phases_.end()) return violation("a phase for a transaction that is not in progress");
  check_unchanged(access, found->second);
  if (phase == tlm::END_REQ) {
    if (found->second.phase != tlm::BEGIN_REQ) violation("END_REQ does not follow BEGIN_REQ");
    if (request_ == &access) request_ = nullptr;
  } else if (phase == tlm::BEGIN_RESP) {
    if (found->second.phase != tlm::BEGIN_REQ && found->second.phase != tlm::END_REQ) {
      violation("BEGIN_RESP does not follow BEGIN_REQ or END_REQ");
    }
    if (response_ != nullptr && response_ != &access) violation("two responses at once");
    if (access.get_response_status() == tlm::TLM_INCOMPLETE_RESPONSE) violation("BEGIN_RESP without a response status");
    if (request_ == &access) request_ = nullptr;
    response_ = &access;
  } else {
    violation("this phase does not travel backward");
  }
  found->second.phase = phase;
}

tlm::tlm_sync_enum memory_checker::nb_transport_fw(tlm::tlm_generic_payload& access, tlm::tlm_phase& phase,
                                                   sc_core::sc_time& t) {
  if (phase == tlm::BEGIN_REQ) {
    check_request(access, true);
    if (request_ != nullptr) violation("BEGIN_REQ before END_REQ of the request before");
    if (phases_.count(&access) != 0) violation("BEGIN_REQ for a transaction already in progress");
    phases_[&access] = {phase, access.get_command(), access.get_address(), access.get_data_ptr(),
                        access.get_data_length()};
    request_ = &access;
    ++transactions_;
  } else if (phase == tlm::END_RESP) {
    const auto found = phases_.find(&access);
    if (found == phases_.end() || found->second.phase != tlm::BEGIN_RESP) {
      violation("END_RESP does not follow BEGIN_RESP");
    }
    if (found != phases_.end()) completed(access);
    return out->nb_transport_fw(access, phase, t);
  } else {
    violation("this phase does not travel forward");
  }
  const tlm::tlm_sync_enum answer = out->nb_transport_fw(access, phase, t);
  if (answer == tlm::TLM_COMPLETED) {
    completed(access);
  } else if (answer == tlm::TLM_UPDATED) {
    backward_phase(access, phase);
  }
  return answer;
}

tlm::tlm_sync_enum memory_checker::nb_transport_bw(tlm::tlm_generic_payload& access, tlm::tlm_phase& phase,
                                                   sc_core::sc_time& t) {
  backward_phase(access, phase);
  const tlm::tlm_phase sent = phase;
  const tlm::tlm_sync_enum answer = in->nb_transport_bw(access, phase, t);
  if (answer == tlm::TLM_COMPLETED || (answer == tlm::TLM_UPDATED && phase == tlm::END_RESP)) {
    if (sent != tlm::BEGIN_RESP) violation("the initiator completed a transaction before its response");
    completed(access);
  }
  return answer;
}

void memory_checker::b_transport(tlm::tlm_generic_payload& access, sc_core::sc_time& t) {
  check_request(access, false);
  ++transactions_;
  out->b_transport(access, t);
  if (access.get_response_status() == tlm::TLM_INCOMPLETE_RESPONSE)
    violation("b_transport left the response incomplete");
}

bool memory_checker::get_direct_mem_ptr(tlm::tlm_generic_payload& access, tlm::tlm_dmi& dmi) {
  return out->get_direct_mem_ptr(access, dmi);
}

unsigned memory_checker::transport_dbg(tlm::tlm_generic_payload& access) { return out->transport_dbg(access); }

void memory_checker::invalidate_direct_mem_ptr(sc_dt::uint64 first, sc_dt::uint64 last) {
  in->invalidate_direct_mem_ptr(first, last);
}

}  // namespace tributary
