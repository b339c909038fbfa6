#include "modules/multicast_router/multicast_router.hpp"

#include <algorithm>
#include <utility>

namespace tributary {

multicast_router::multicast_router(const sc_core::sc_module_name& name, const router_parameters& parameters,
                                   burst_pool& pool)
    : model(name),
      control("control", router_registers, parameters.register_access_time,
              [this](unsigned index, std::uint64_t value) { registers_written(index, value); }),
      parameters_(parameters),
      pool_(pool),
      ports_(parameters.ports),
      send_queue_("send_queue") {
  network_receiver& receiver = *this;
  network_sender& sender = *this;
  for (unsigned p = 0; p < parameters.ports; ++p) {
    const std::string number = std::to_string(p);
    in.push_back(std::make_unique<network_target_socket>(("in_" + number).c_str(), receiver, p));
    out.push_back(std::make_unique<network_initiator_socket>(("out_" + number).c_str(), sender, p));
    ports_[p].queue = &add_probe({"queue_" + number,
                                  probe_kind::quantity,
                                  trace_level::packet,
                                  "bytes",
                                  "wire bytes waiting for this port",
                                  {}});
  }
  control.set(router_register::id, parameters.id);
  spawn_method("send", send_queue_.due(), [this] { send_due(); });
}

void multicast_router::registers_written(unsigned index, std::uint64_t value) {
  if (index != router_register::control) return;
  if (value == command_clear) {
    table_.clear();
    control.set(router_register::entries, 0);
    return;
  }
  const auto group = static_cast<std::size_t>(control[router_register::group]);
  const auto source = static_cast<std::size_t>(control[router_register::source]);
  if (table_.size() <= group) table_.resize(group + 1);
  if (table_[group].size() <= source) table_[group].resize(source + 1, 0);
  if (table_[group][source] == 0) control.add(router_register::entries, 1);
  table_[group][source] = control[router_register::ports];
}

std::uint64_t multicast_router::ports_for(const burst_content& content) const {
  if (content.group >= table_.size() || content.source >= table_[content.group].size()) return 0;
  return table_[content.group][content.source];
}

bool multicast_router::fits(std::uint64_t egress, std::uint64_t wire_bytes) const {
  for (; egress != 0; egress &= egress - 1) {
    const port_state& port = ports_[static_cast<unsigned>(__builtin_ctzll(egress))];
    if (port.queued_bytes != 0 && port.queued_bytes + wire_bytes > parameters_.queue_bytes) return false;
  }
  return true;
}

tlm::tlm_sync_enum multicast_router::receive(unsigned p, burst& incoming, tlm::tlm_phase& phase,
                                             sc_core::sc_time& /*t*/) {
  const std::uint64_t egress = ports_for(incoming.content());
  if (!fits(egress, incoming.content().wire_bytes)) {
    ports_[p].blocked_in = &incoming;
    ++blocked_inputs_;
    return tlm::TLM_ACCEPTED;
  }
  forward(incoming, egress);
  phase = tlm::END_REQ;
  return tlm::TLM_UPDATED;  // ready for the next one as soon as this head is in
}

void multicast_router::forward(burst& taken, std::uint64_t egress) {
  taken.delay(parameters_.forwarding_latency, name());
  if (egress == 0) {
    ++unrouted_bursts_;
    pool_.release(taken);
    return;
  }
  while (egress != 0) {
    const auto port = static_cast<unsigned>(__builtin_ctzll(egress));
    egress &= egress - 1;
    enqueue(port, egress == 0 ? taken : pool_.copy(taken));
  }
}

void multicast_router::enqueue(unsigned p, burst& copy) {
  port_state& port = ports_[p];
  const bool idle = !port.withheld && port.queued_bytes == 0 && port.busy_until <= copy.head;
  if (idle) {
    send(p, copy, copy.head);
    return;
  }
  port.queues[copy.content().priority == 0 ? 1 : 0].push(&copy);
  port.queued_bytes += copy.content().wire_bytes;
  port.counters.queue_high_water_bytes = std::max(port.counters.queue_high_water_bytes, port.queued_bytes);
  port.queue->set(port.queued_bytes);
  schedule(p);
}

void multicast_router::send(unsigned p, burst& next, picoseconds when) {
  port_state& port = ports_[p];
  ++port.counters.bursts;
  port.counters.wire_bytes += next.content().wire_bytes;
  next.leaves_after(when);
  sc_core::sc_time after = until(next.head);
  port.withheld = true;
  if (out[p]->begin(next, after)) {
    port.withheld = false;
    port.busy_until = now() + after.value();
  }
}

void multicast_router::schedule(unsigned p) {
  port_state& port = ports_[p];
  if (port.scheduled || port.withheld || port.queued_bytes == 0) return;
  const ring<burst*>& queue = port.queues[port.queues[0].empty() ? 1 : 0];
  port.scheduled = true;
  send_queue_.push(std::max({now(), port.busy_until, queue.front()->head}), p);
}

void multicast_router::send_due() {
  unsigned p = 0;
  while (send_queue_.pop_due(p)) {
    port_state& port = ports_[p];
    port.scheduled = false;
    if (port.withheld || port.queued_bytes == 0) continue;
    ring<burst*>& queue = port.queues[port.queues[0].empty() ? 1 : 0];
    burst& next = *queue.front();
    queue.pop();
    port.queued_bytes -= next.content().wire_bytes;
    port.queue->set(port.queued_bytes);
    send(p, next, now());
    schedule(p);
    if (blocked_inputs_ != 0) retry_blocked();
  }
}

void multicast_router::retry_blocked() {
  for (unsigned p = 0; p < ports_.size(); ++p) {
    burst* waiting = ports_[p].blocked_in;
    if (waiting == nullptr) continue;
    const std::uint64_t egress = ports_for(waiting->content());
    if (!fits(egress, waiting->content().wire_bytes)) continue;
    ports_[p].blocked_in = nullptr;
    --blocked_inputs_;
    end_request(*in[p], *waiting);
    waiting->hold_until(now(), name());
    forward(*waiting, egress);
  }
}

tlm::tlm_sync_enum multicast_router::sent(unsigned p, burst& /*outgoing*/, tlm::tlm_phase& /*phase*/,
                                          sc_core::sc_time& t) {
  ports_[p].withheld = false;
  ports_[p].busy_until = now() + t.value();
  schedule(p);
  return tlm::TLM_ACCEPTED;
}

std::string multicast_router::waits_for() const {
  for (unsigned p = 0; p < ports_.size(); ++p) {
    if (ports_[p].blocked_in != nullptr) {
      return "port " + std::to_string(p) + " holds chunk " + std::to_string(ports_[p].blocked_in->content().chunk) +
             " of site " + std::to_string(ports_[p].blocked_in->content().source) + ": an egress queue is full";
    }
  }
  return {};
}

}  // namespace tributary
