#include "modules/memory_controller/memory_controller.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tlm/memory_extensions.hpp"

namespace tributary {

memory_controller::memory_controller(const sc_core::sc_module_name& name, const memory_parameters& parameters)
    : model(name),
      socket("socket"),
      parameters_(parameters),
      channel_free_(parameters.channels, 0),
      completing_("completing") {
  socket.bind(static_cast<tlm::tlm_fw_transport_if<>&>(*this));
  command_probe_ = &add_probe({"command",
                               probe_kind::state,
                               trace_level::packet,
                               "",
                               "access under way, the last one taken",
                               {"idle", "read", "write"}});
  address_probe_ = &add_probe({"address", probe_kind::set, trace_level::packet, "", "its first byte", {}});
  bytes_probe_ = &add_probe({"bytes",
                             probe_kind::quantity,
                             trace_level::packet,
                             "bytes",
                             "bytes read and written since the start of the run",
                             {}});
  spawn_method("respond", completing_.due(), [this] { respond_due(); });
}

tlm::tlm_response_status memory_controller::check(const tlm::tlm_generic_payload& access) const {
  if (access.get_command() == tlm::TLM_IGNORE_COMMAND) return tlm::TLM_OK_RESPONSE;
  if (!access.is_read() && !access.is_write()) return tlm::TLM_COMMAND_ERROR_RESPONSE;
  const std::uint64_t length = access.get_data_length();
  if (access.get_address() > parameters_.capacity_bytes || length > parameters_.capacity_bytes - access.get_address()) {
    return tlm::TLM_ADDRESS_ERROR_RESPONSE;
  }
  if (access.get_byte_enable_ptr() != nullptr) return tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE;
  if (length == 0 || access.get_streaming_width() < length) return tlm::TLM_BURST_ERROR_RESPONSE;
  return tlm::TLM_OK_RESPONSE;
}

/// `from_stripes` bytes on every channel, and `rest` more that begin `rest_first` into a stripe.
picoseconds memory_controller::serve_channel_by_channel(picoseconds when, std::uint64_t from_stripes,
                                                        std::uint64_t rest_first, std::uint64_t rest) {
  const std::uint64_t unit = parameters_.interleave_bytes;
  const std::uint64_t stripe = unit * parameters_.channels;
  const picoseconds stripes_time = transfer_time(from_stripes, parameters_.channel_rate);
  picoseconds complete = when;
  for (picoseconds& free : channel_free_) free = std::max(free, all_free_from_);
  for (unsigned c = 0; c < parameters_.channels; ++c) {
    picoseconds service = stripes_time;
    if (rest != 0) {
      // [rest_first, rest_first + rest) may wrap round the stripe once.
      const std::uint64_t low = c * unit;
      const auto overlap = [&](std::uint64_t first, std::uint64_t last) {
        const std::uint64_t from = std::max(low, first);
        const std::uint64_t to = std::min(low + unit, last);
        return to > from ? to - from : 0;
      };
      const std::uint64_t end = rest_first + rest;
      const std::uint64_t bytes = overlap(rest_first, end) + (end > stripe ? overlap(0, end - stripe) : 0);
      service = transfer_time(from_stripes + bytes, parameters_.channel_rate);
    }
    if (service == 0) continue;
    channel_free_[c] = std::max(channel_free_[c], when) + service;
    counters_.busy += service;
    complete = std::max(complete, channel_free_[c]);
  }
  latest_free_ = *std::max_element(channel_free_.begin(), channel_free_.end());
  return complete;
}

/// Books the access on its channels from `when` on and does it. Returns when it is complete.
picoseconds memory_controller::serve(tlm::tlm_generic_payload& access, picoseconds when) {
  const tlm::tlm_response_status status = check(access);
  access.set_response_status(status);
  if (status != tlm::TLM_OK_RESPONSE) {
    ++counters_.errors;
    return when;
  }
  if (access.get_command() == tlm::TLM_IGNORE_COMMAND) return when;

  // Each channel's bytes: full stripes go to all channels alike, the rest to those it touches.
  const std::uint64_t length = access.get_data_length();
  const std::uint64_t unit = parameters_.interleave_bytes;
  const std::uint64_t stripe = unit * parameters_.channels;
  const std::uint64_t whole_stripes = length / stripe;
  const std::uint64_t rest = length % stripe;
  const std::uint64_t rest_first = (access.get_address() + whole_stripes * stripe) % stripe;
  const picoseconds stripes_time = transfer_time(whole_stripes * unit, parameters_.channel_rate);
  picoseconds complete = when;
  if (rest == 0 && latest_free_ <= std::max(all_free_from_, when)) {
    // All channels alike, or all idle: one figure stands for all of them afterwards.
    all_free_from_ = latest_free_ = complete = std::max(latest_free_, when) + stripes_time;
    counters_.busy += stripes_time * parameters_.channels;
  } else {
    complete = serve_channel_by_channel(when, whole_stripes * unit, rest_first, rest);
  }
  if (access.is_read()) {
    ++counters_.reads;
    counters_.read_bytes += length;
  } else {
    ++counters_.writes;
    counters_.written_bytes += length;
  }
  command_probe_->hold(access.is_read() ? 1 : 2, std::max(complete, latest_free_), 0);
  address_probe_->set(access.get_address());
  bytes_probe_->set_at(when, counters_.read_bytes + counters_.written_bytes);
  if (access.get_extension<timing_only>() == nullptr) move_data(access);
  return complete + parameters_.latency;
}

void memory_controller::move_data(tlm::tlm_generic_payload& access) {
  std::uint64_t address = access.get_address();
  unsigned char* data = access.get_data_ptr();
  std::uint64_t left = access.get_data_length();
  while (left != 0) {
    const std::uint64_t within = address % page_bytes;
    const std::uint64_t part = std::min(left, page_bytes - within);
    auto found = pages_.find(address / page_bytes);
    if (access.is_write()) {
      if (found == pages_.end()) found = pages_.emplace(address / page_bytes, std::make_unique<page>()).first;
      std::memcpy(found->second->data() + within, data, part);
    } else if (found != pages_.end()) {
      std::memcpy(data, found->second->data() + within, part);
    } else {
      std::memset(data, 0, part);
    }
    address += part;
    data += part;
    left -= part;
  }
}

void memory_controller::b_transport(tlm::tlm_generic_payload& access, sc_core::sc_time& t) {
  access.set_dmi_allowed(false);
  const picoseconds begin = now() + t.value();
  t += as_time(serve(access, begin) - begin);
}

bool memory_controller::get_direct_mem_ptr(tlm::tlm_generic_payload& /*access*/, tlm::tlm_dmi& dmi) {
  dmi.allow_none();
  return false;
}

unsigned memory_controller::transport_dbg(tlm::tlm_generic_payload& access) {
  if (!access.is_read() && !access.is_write()) return 0;
  if (access.get_address() >= parameters_.capacity_bytes) return 0;
  const std::uint64_t length =
      std::min<std::uint64_t>(access.get_data_length(), parameters_.capacity_bytes - access.get_address());
  access.set_data_length(static_cast<unsigned>(length));
  move_data(access);
  access.set_response_status(tlm::TLM_OK_RESPONSE);
  return static_cast<unsigned>(length);
}

tlm::tlm_sync_enum memory_controller::nb_transport_fw(tlm::tlm_generic_payload& access, tlm::tlm_phase& phase,
                                                      sc_core::sc_time& t) {
  if (phase == tlm::END_RESP) {
    response_ended();
    return tlm::TLM_COMPLETED;
  }
  const picoseconds begin = now() + t.value();
  access.set_dmi_allowed(false);
  if (!parameters_.four_phase) {
    t = as_time(serve(access, begin) - now());
    return tlm::TLM_COMPLETED;
  }
  access.acquire();
  if (outstanding_ == parameters_.queue_depth) {
    request_withheld_ = &access;
    return tlm::TLM_ACCEPTED;
  }
  accept(access, begin);
  phase = tlm::END_REQ;
  return tlm::TLM_UPDATED;
}

void memory_controller::accept(tlm::tlm_generic_payload& access, picoseconds when) {
  ++outstanding_;
  completing_.push(serve(access, when), &access);
}

void memory_controller::respond_due() {
  tlm::tlm_generic_payload* access = nullptr;
  while (completing_.pop_due(access)) {
    if (access != nullptr) responses_.push(access);  // null: woken for a response that waits
  }
  begin_response();
}

void memory_controller::begin_response() {
  while (response_in_progress_ == nullptr && !responses_.empty()) {
    response_in_progress_ = responses_.front();
    responses_.pop();
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time t = sc_core::SC_ZERO_TIME;
    const tlm::tlm_sync_enum answer = socket->nb_transport_bw(*response_in_progress_, phase, t);
    if (answer == tlm::TLM_ACCEPTED) return;  // END_RESP comes by nb_transport_fw
    response_ended();
  }
}

void memory_controller::response_ended() {
  if (response_in_progress_ == nullptr) return;
  std::exchange(response_in_progress_, nullptr)->release();
  --outstanding_;
  if (tlm::tlm_generic_payload* waiting = std::exchange(request_withheld_, nullptr); waiting != nullptr) {
    tlm::tlm_phase phase = tlm::END_REQ;
    sc_core::sc_time t = sc_core::SC_ZERO_TIME;
    accept(*waiting, now());
    socket->nb_transport_bw(*waiting, phase, t);
  }
  if (!responses_.empty()) completing_.push(now(), nullptr);  // next response in a fresh activation
}

}  // namespace tributary
