#include "modules/memory_controller/memory_controller.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "modules/memory_controller/bulk_timing.hpp"
#include "tlm/memory_extensions.hpp"

namespace tributary {

memory_controller::memory_controller(const sc_core::sc_module_name& name, const memory_parameters& parameters)
    : model(name), socket("socket"), parameters_(parameters), starting_("starting"), completing_("completing") {
  socket.bind(static_cast<tlm::tlm_fw_transport_if<>&>(*this));
  if (parameters_.level == memory_level::rate) {
    timing_ =
        std::make_unique<rate_timing>(parameters_.channels, parameters_.interleave_bytes, parameters_.channel_rate);
  } else if (parameters_.level == memory_level::bulk) {
    timing_ = std::make_unique<bulk_timing>(parameters_.device);
  } else {
    device_ = std::make_unique<dram_system>(parameters_.device, static_cast<dram_system::host&>(*this));
    parameters_.four_phase = true;
  }
  if (parameters_.level != memory_level::rate &&
      parameters_.capacity_bytes > parameters_.device.geometry.capacity_bytes()) {
    throw std::invalid_argument("the capacity is larger than the device's " +
                                std::to_string(parameters_.device.geometry.capacity_bytes()) + " bytes");
  }
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
  if (device_ == nullptr) return;
  for (unsigned c = 0; c < parameters_.device.geometry.channels; ++c) {
    const std::string channel = "channel_" + std::to_string(c) + "_";
    probe& command = add_probe({channel + "command",
                                probe_kind::state,
                                trace_level::packet,
                                "",
                                "command on the bus, a column command as long as its data take",
                                {"-", "ACT", "PRE", "RD", "WR", "RDA", "WRA", "REF", "REFpb"}});
    probe& bank =
        add_probe({channel + "bank", probe_kind::count, trace_level::packet, "", "bank of the last command", {}});
    probe& row = add_probe({channel + "row", probe_kind::count, trace_level::packet, "", "row of it", {}});
    channel_probes_.push_back({&command, &bank, &row});
  }
  device_->watch(*this);
  spawn_method("step_device", step_, [this] { step_device(); });
  spawn_method("start", starting_.due(), [this] {
    tlm::tlm_generic_payload* access = nullptr;
    while (starting_.pop_due(access)) submit(*access);
  });
}

void memory_controller::watch(dram_command_listener& listener) {
  if (device_ != nullptr) device_->watch(listener);
}

memory_counters memory_controller::counters() const {
  memory_counters so_far = counters_;
  if (timing_ != nullptr) so_far.busy = timing_->busy();
  if (device_ != nullptr) {
    so_far.commands = device_->counters();
    const dram_timing& t = parameters_.device.timing;
    so_far.busy = (so_far.commands.reads + so_far.commands.writes) * t.burst_cycles * t.clock;
  }
  return so_far;
}

std::string memory_controller::waits_for() const {
  if (outstanding_ == 0) return {};
  return std::to_string(outstanding_) + " accesses are under way" +
         (response_in_progress_ != nullptr ? ", the initiator holds a response" : "");
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

/// Counts the access and moves its data. False when it ends here: refused, or a command to do nothing.
bool memory_controller::begin(tlm::tlm_generic_payload& access, picoseconds when) {
  const tlm::tlm_response_status status = check(access);
  access.set_response_status(status);
  if (status != tlm::TLM_OK_RESPONSE) {
    ++counters_.errors;
    return false;
  }
  if (access.get_command() == tlm::TLM_IGNORE_COMMAND) return false;
  const std::uint64_t length = access.get_data_length();
  if (access.is_read()) {
    ++counters_.reads;
    counters_.read_bytes += length;
  } else {
    ++counters_.writes;
    counters_.written_bytes += length;
  }
  address_probe_->set(access.get_address());
  bytes_probe_->set_at(when, counters_.read_bytes + counters_.written_bytes);
  if (access.get_extension<timing_only>() == nullptr) move_data(access);
  return true;
}

/// Books the access from `when` on and does it. Returns when it is complete.
picoseconds memory_controller::serve(tlm::tlm_generic_payload& access, picoseconds when) {
  if (!begin(access, when)) return when;
  const picoseconds complete = timing_->book(access.get_address(), access.get_data_length(), access.is_write(), when);
  command_probe_->hold(access.is_read() ? 1 : 2, std::max(complete, timing_->free_from()), 0);
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
  const picoseconds from = now() + t.value();
  if (device_ == nullptr) {
    t += as_time(serve(access, from) - from);
    return;
  }
  if (sc_core::sc_get_current_process_handle().proc_kind() == sc_core::SC_METHOD_PROC_) {
    access.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);  // it would have to wait
    return;
  }
  sc_core::wait(t);
  t = sc_core::SC_ZERO_TIME;
  if (!begin(access, now())) return;
  blocking_call call;
  blocking_[&access] = &call;
  submit(access);
  sc_core::wait(call.done);
  blocking_.erase(&access);
  t = until(call.complete);
}

dram_cycle memory_controller::cycle_at(picoseconds when) const {
  const picoseconds clock = parameters_.device.timing.clock;
  return (when + clock - 1) / clock;
}

void memory_controller::submit(tlm::tlm_generic_payload& access) {
  if (free_cookies_.empty()) {
    free_cookies_.push_back(in_device_.size());
    in_device_.push_back(nullptr);
  }
  const std::uint64_t cookie = free_cookies_.back();
  free_cookies_.pop_back();
  in_device_[cookie] = &access;
  device_->submit(access.get_address(), access.get_data_length(), access.is_write(), cookie);
  step_.notify(until(cycle_at(now()) * parameters_.device.timing.clock));
}

void memory_controller::step_device() {
  const picoseconds clock = parameters_.device.timing.clock;
  device_->step(cycle_at(now()));
  const dram_cycle next = device_->next();
  if (next != dram_channel::never) step_.notify(until(next * clock));
}

void memory_controller::access_complete(std::uint64_t cookie, dram_cycle when) {
  tlm::tlm_generic_payload* access = in_device_[cookie];
  free_cookies_.push_back(cookie);
  const picoseconds complete = when * parameters_.device.timing.clock + parameters_.latency;
  command_probe_->hold(access->is_read() ? 1 : 2, std::max(complete, now()), 0);
  if (const auto waiting = blocking_.find(access); waiting != blocking_.end()) {
    waiting->second->complete = complete;
    waiting->second->done.notify();
    return;
  }
  completing_.push(complete, access);
}

void memory_controller::issued(unsigned channel, const dram_command& command) {
  const channel_probes& probes = channel_probes_[channel];
  if (!probes.command->attached()) return;
  const dram_timing& t = parameters_.device.timing;
  const dram_cycle until_cycle = command.cycle + (command.reads() || command.writes() ? t.burst_cycles : 1);
  probes.command->hold(1 + static_cast<std::uint64_t>(command.kind), until_cycle * t.clock, 0);
  probes.bank->set((command.rank * parameters_.device.geometry.bank_groups + command.bank_group) *
                       parameters_.device.geometry.banks +
                   command.bank);
  probes.row->set(command.row);
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
  const picoseconds from = now() + t.value();
  access.set_dmi_allowed(false);
  if (!parameters_.four_phase) {
    t = as_time(serve(access, from) - now());
    return tlm::TLM_COMPLETED;
  }
  access.acquire();
  if (outstanding_ == parameters_.queue_depth) {
    request_withheld_ = &access;
    return tlm::TLM_ACCEPTED;
  }
  accept(access, from);
  phase = tlm::END_REQ;
  return tlm::TLM_UPDATED;
}

void memory_controller::accept(tlm::tlm_generic_payload& access, picoseconds when) {
  ++outstanding_;
  if (device_ == nullptr) {
    completing_.push(serve(access, when), &access);
  } else if (!begin(access, when)) {
    completing_.push(when, &access);
  } else if (when > now()) {
    starting_.push(when, &access);
  } else {
    submit(access);
  }
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
