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
    groups_.clear();
    unicast_.clear();
    control.set(router_register::entries, 0);
    return;
  }
  auto group = static_cast<std::size_t>(control[router_register::group]);
  const auto source = static_cast<std::size_t>(control[router_register::source]);
  egress_table& table = group >= unicast_group ? unicast_ : groups_;
  if (group >= unicast_group) group -= unicast_group;
  if (table.size() <= group) table.resize(group + 1);
  if (table[group].size() <= source) table[group].resize(source + 1, 0);
  std::uint64_t& entry = table[group][source];
  const std::uint64_t ports = control[router_register::ports];
  control.set(router_register::entries, control[router_register::entries] + (ports != 0) - (entry != 0));
  entry = ports;
}

std::uint64_t multicast_router::ports_for(const burst_content& content) const {
  const egress_table& table = content.group >= unicast_group ? unicast_ : groups_;
  const std::size_t group = content.group >= unicast_group ? content.group - unicast_group : content.group;
  if (group >= table.size() || content.source >= table[group].size()) return 0;
  return table[group][content.source];
}

bool multicast_router::fits(std::uint64_t egress, std::uint64_t wire_bytes) const {
  if (parameters_.when_full == full_queue::drop_tail) return true;
  if (parameters_.shared_bytes != 0 && queued_bytes_ != 0 &&
      queued_bytes_ + wire_bytes * static_cast<unsigned>(__builtin_popcountll(egress)) > parameters_.shared_bytes) {
    return false;
  }
  for (; egress != 0; egress &= egress - 1) {
    const port_state& port = ports_[static_cast<unsigned>(__builtin_ctzll(egress))];
    if (port.queued_bytes != 0 && port.queued_bytes + wire_bytes > parameters_.queue_bytes) return false;
  }
  return true;
}

tlm::tlm_sync_enum multicast_router::receive(unsigned p, burst& incoming, tlm::tlm_phase& phase,
                                             sc_core::sc_time& /*t*/) {
  const std::uint64_t egress = ports_for(incoming.content());
  if (!fits(egress, incoming.wire_bytes())) {
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
  if (parameters_.replication_rate != 0 && (egress & (egress - 1)) != 0) {
    const picoseconds begin = std::max(replication_free_, taken.head);
    replication_free_ = begin + transfer_time(taken.wire_bytes() * static_cast<unsigned>(__builtin_popcountll(egress)),
                                              parameters_.replication_rate);
    // The last copy of the first packet comes out as the engine reaches it; the tail not before the engine is through.
    taken.hold_until(begin, name());
    if (taken.tail < replication_free_) {
      taken.spent.queueing += replication_free_ - taken.tail;
      taken.tail = taken.arrival_tail = replication_free_;
      taken.note("replication", name(), taken.tail, path_part::queueing);
    }
  }
  while (egress != 0) {
    const auto port = static_cast<unsigned>(__builtin_ctzll(egress));
    egress &= egress - 1;
    enqueue(port, egress == 0 ? taken : pool_.copy(taken));
  }
}

/// Drops the packets of `copy` that the port's queue, or the shared buffer, has no room for. False: nothing is left.
bool multicast_router::drop_overflow(port_state& port, burst& copy) {
  std::uint64_t room = parameters_.queue_bytes - std::min(parameters_.queue_bytes, port.queued_bytes);
  if (parameters_.shared_bytes != 0) {
    room = std::min(room, parameters_.shared_bytes - std::min(parameters_.shared_bytes, queued_bytes_));
  }
  const std::uint32_t packets_before = copy.packets();
  const std::uint64_t before = copy.wire_bytes();
  for (std::uint32_t i = copy.content().packets; i-- > 0 && copy.wire_bytes() > room;) copy.lose(i);
  port.counters.dropped_packets += packets_before - copy.packets();
  port.counters.dropped_wire_bytes += before - copy.wire_bytes();
  return copy.packets() != 0;
}

void multicast_router::enqueue(unsigned p, burst& copy) {
  port_state& port = ports_[p];
  const bool idle = !port.withheld && port.queued_bytes == 0 && port.busy_until <= copy.head;
  if (idle) {
    send(p, copy, copy.head);
    return;
  }
  if (parameters_.when_full == full_queue::drop_tail && !drop_overflow(port, copy)) {
    pool_.release(copy);
    return;
  }
  const std::uint64_t wire_bytes = copy.wire_bytes();
  if (copy.content().priority != 0) {
    port.control.push(&copy);
  } else {
    const std::size_t stream =
        parameters_.discipline == queue_discipline::deficit_round_robin ? copy.content().source : 0;
    if (port.streams.size() <= stream) port.streams.resize(stream + 1);
    if (port.streams[stream].bursts.empty()) {
      port.streams[stream].deficit = 0;
      port.active.push(static_cast<std::uint32_t>(stream));
    }
    port.streams[stream].bursts.push(&copy);
  }
  port.queued_bytes += wire_bytes;
  queued_bytes_ += wire_bytes;
  if (parameters_.ecn_bytes != 0 && port.queued_bytes > parameters_.ecn_bytes) {
    copy.ecn_marked = true;
    port.counters.ecn_marked_packets += copy.packets();
  }
  port.counters.queue_high_water_bytes = std::max(port.counters.queue_high_water_bytes, port.queued_bytes);
  port.queue->set(port.queued_bytes);
  schedule(p);
}

ring<burst*>& multicast_router::next_queue(port_state& port) const {
  if (!port.control.empty()) return port.control;
  for (;;) {
    const std::uint32_t turn = port.active.front();
    stream_queue& stream = port.streams[turn];
    const std::uint64_t size = stream.bursts.front()->wire_bytes();
    if (stream.deficit >= size || port.active.size() == 1) return stream.bursts;
    stream.deficit += parameters_.quantum_bytes;
    if (stream.deficit >= size) return stream.bursts;
    port.active.pop();
    port.active.push(turn);
  }
}

burst& multicast_router::take_next(port_state& port) const {
  ring<burst*>& queue = next_queue(port);
  burst& next = *queue.front();
  queue.pop();
  if (&queue == &port.control) return next;
  stream_queue& stream = port.streams[port.active.front()];
  stream.deficit -= std::min<std::uint64_t>(stream.deficit, next.wire_bytes());
  if (stream.bursts.empty()) {
    port.active.pop();
  } else if (stream.deficit < stream.bursts.front()->wire_bytes()) {
    const std::uint32_t turn = port.active.front();
    port.active.pop();
    port.active.push(turn);
  }
  return next;
}

void multicast_router::send(unsigned p, burst& next, picoseconds when) {
  port_state& port = ports_[p];
  ++port.counters.bursts;
  port.counters.wire_bytes += next.wire_bytes();
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
  port.scheduled = true;
  // What waits may not be wholly here yet: its head comes one forwarding latency after its arrival.
  send_queue_.push(std::max({now(), port.busy_until, next_burst(port).head}), p);
}

void multicast_router::send_due() {
  unsigned p = 0;
  while (send_queue_.pop_due(p)) {
    port_state& port = ports_[p];
    port.scheduled = false;
    if (port.withheld || port.queued_bytes == 0) continue;
    burst& next = take_next(port);
    port.queued_bytes -= next.wire_bytes();
    queued_bytes_ -= next.wire_bytes();
    port.queue->set(port.queued_bytes);
    send(p, next, std::max(now(), next.head));
    schedule(p);
    if (blocked_inputs_ != 0) retry_blocked();
  }
}

void multicast_router::retry_blocked() {
  for (unsigned p = 0; p < ports_.size(); ++p) {
    burst* waiting = ports_[p].blocked_in;
    if (waiting == nullptr) continue;
    const std::uint64_t egress = ports_for(waiting->content());
    if (!fits(egress, waiting->wire_bytes())) continue;
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
