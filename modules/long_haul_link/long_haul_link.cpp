#include "modules/long_haul_link/long_haul_link.hpp"

#include <algorithm>
#include <utility>

namespace tributary {

long_haul_link::long_haul_link(const sc_core::sc_module_name& name,
                               const std::array<link_direction_parameters, 2>& directions)
    : model(name),
      in{network_target_socket("in_0", *this, 0), network_target_socket("in_1", *this, 1)},
      out{network_initiator_socket("out_0", *this, 0), network_initiator_socket("out_1", *this, 1)} {
  for (unsigned d = 0; d < 2; ++d) {
    direction_state& direction = directions_[d];
    direction.parameters = directions[d];
    if (direction.parameters.label.empty()) direction.parameters.label = this->name();
    const std::string suffix = d == 0 ? "_forward" : "_backward";
    direction.busy = &add_probe({"busy" + suffix, probe_kind::flag, trace_level::chunk, "", "sending a burst", {}});
    direction.stall = &add_probe(
        {"stall" + suffix, probe_kind::flag, trace_level::chunk, "", "the far end does not take what has arrived", {}});
    direction.requests = &add_probe({"requests" + suffix,
                                     probe_kind::quantity,
                                     trace_level::packet,
                                     "bursts",
                                     "bursts begun at this end (BEGIN_REQ)",
                                     {}});
    direction.accepts = &add_probe({"accepts" + suffix,
                                    probe_kind::quantity,
                                    trace_level::packet,
                                    "bursts",
                                    "bursts taken at this end (END_REQ)",
                                    {}});
    direction.bytes_sent = &add_probe({"wire_bytes" + suffix,
                                       probe_kind::quantity,
                                       trace_level::packet,
                                       "bytes",
                                       "wire bytes sent since the start of the run",
                                       {}});
    direction.bytes_in_flight = &add_probe({"in_flight" + suffix,
                                            probe_kind::quantity,
                                            trace_level::packet,
                                            "bytes",
                                            "wire bytes between this end and the far one",
                                            {}});
    spawn_method(("deliver" + suffix).c_str(), direction.deliver, [this, d] { deliver(d); });
  }
}

tlm::tlm_sync_enum long_haul_link::receive(unsigned d, burst& incoming, tlm::tlm_phase& phase, sc_core::sc_time& t) {
  direction_state& direction = directions_[d];
  direction.requests->set(++direction.requested);
  if (direction.blocked) {
    direction.waiting_in = &incoming;
    return tlm::TLM_ACCEPTED;
  }
  transmit(d, incoming, now() + t.value());
  phase = tlm::END_REQ;
  t = until(direction.sending_until);
  return tlm::TLM_UPDATED;
}

void long_haul_link::transmit(unsigned direction_number, burst& taken, picoseconds start) {
  direction_state& direction = directions_[direction_number];
  const burst_content& content = taken.content();
  const bits_per_s rate = direction.parameters.rate;
  const picoseconds first_packet = transfer_time(content.first_packet_wire_bytes, rate);
  const picoseconds last_packet = transfer_time(content.last_packet_wire_bytes, rate);
  const picoseconds whole = transfer_time(content.wire_bytes, rate);

  // What the tail would do on an idle direction counts as serialization, the rest as queueing.
  const picoseconds alone = std::max(taken.arrival_tail + last_packet, taken.arrival_head + whole);
  const picoseconds tail = std::max(taken.tail + last_packet, start + whole);
  taken.spent.serialization += alone - taken.arrival_tail;
  taken.spent.queueing += tail - alone;
  taken.spent.propagation += direction.parameters.propagation;
  if (taken.story != nullptr) {
    const char* where = direction.parameters.label.c_str();
    taken.note("sending", where, alone, path_part::serialization);
    taken.note("waiting for the line", where, tail, path_part::queueing);
    taken.note("propagation", where, tail + direction.parameters.propagation, path_part::propagation);
  }
  taken.head = taken.arrival_head = start + first_packet + direction.parameters.propagation;
  taken.tail = taken.arrival_tail = tail + direction.parameters.propagation;

  direction.sending_until = start + whole;
  link_direction_counters& counters = direction.counters;
  ++counters.bursts_in;
  counters.packets += content.packets;
  counters.payload_bytes_in += content.payload_bytes;
  counters.wire_bytes_in += content.wire_bytes;
  counters.busy += whole;
  direction.accepts->set(counters.bursts_in);
  direction.busy->set_at(start, 1);
  direction.bytes_sent->set_at(start, counters.wire_bytes_in);
  direction.bytes_in_flight->set_at(start, counters.wire_bytes_in - counters.wire_bytes_out);
  direction.busy->set_at(direction.sending_until, 0);

  if (tap) tap(direction_number, start, content);

  direction.in_flight.push(&taken);
  if (direction.in_flight.size() == 1) arm(direction);
}

void long_haul_link::arm(direction_state& direction) {
  direction.deliver.notify(until(std::max(direction.in_flight.front()->head, direction.far_end_ready)));
}

void long_haul_link::deliver(unsigned d) {
  direction_state& direction = directions_[d];
  if (direction.in_flight.empty() || direction.blocked) return;
  burst& arriving = *direction.in_flight.front();
  if (arriving.head < now())
    arriving.hold_until(now(), direction.parameters.label.c_str());  // held back by the far end
  const std::uint64_t payload_bytes = arriving.content().payload_bytes;
  const std::uint64_t wire_bytes = arriving.content().wire_bytes;
  sc_core::sc_time t = sc_core::SC_ZERO_TIME;
  direction.blocked = true;  // a far end that answers by nb_transport_bw inside the call finds us waiting
  direction.blocked_since = now();
  if (!out[d].begin(arriving, t)) {
    direction.stall->set(1);
    return;
  }
  direction.blocked = false;
  direction.far_end_ready = now() + t.value();
  finish_delivery(direction, payload_bytes, wire_bytes);
}

tlm::tlm_sync_enum long_haul_link::sent(unsigned d, burst& outgoing, tlm::tlm_phase& /*phase*/, sc_core::sc_time& t) {
  direction_state& direction = directions_[d];
  const std::uint64_t payload_bytes = outgoing.content().payload_bytes;
  const std::uint64_t wire_bytes = outgoing.content().wire_bytes;
  direction.blocked = false;
  direction.stall->set(0);
  direction.counters.blocked += now() - direction.blocked_since;
  direction.far_end_ready = now() + t.value();
  finish_delivery(direction, payload_bytes, wire_bytes);
  if (burst* waiting = std::exchange(direction.waiting_in, nullptr); waiting != nullptr) {
    const picoseconds start = std::max(now(), direction.sending_until);
    tlm::tlm_phase end = tlm::END_REQ;
    sc_core::sc_time ready = until(start + transfer_time(waiting->content().wire_bytes, direction.parameters.rate));
    in[d]->nb_transport_bw(*waiting, end, ready);
    waiting->hold_until(start, direction.parameters.label.c_str());
    transmit(d, *waiting, start);
  }
  return tlm::TLM_ACCEPTED;
}

void long_haul_link::finish_delivery(direction_state& direction, std::uint64_t payload_bytes,
                                     std::uint64_t wire_bytes) {
  direction.in_flight.pop();
  direction.counters.payload_bytes_out += payload_bytes;
  direction.counters.wire_bytes_out += wire_bytes;
  direction.bytes_in_flight->set(direction.counters.wire_bytes_in - direction.counters.wire_bytes_out);
  if (!direction.in_flight.empty()) arm(direction);
}

std::string long_haul_link::waits_for() const {
  for (unsigned d = 0; d < 2; ++d) {
    const direction_state& direction = directions_[d];
    if (!direction.blocked) continue;
    const burst_content& content = direction.in_flight.front()->content();
    return "direction " + std::to_string(d) + " holds chunk " + std::to_string(content.chunk) + " of site " +
           std::to_string(content.source) + ": the far end does not take it";
  }
  return {};
}

}  // namespace tributary
