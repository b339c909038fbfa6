#include "modules/long_haul_link/long_haul_link.hpp"

#include <algorithm>
#include <utility>

#include "tlm/random.hpp"

namespace tributary {

long_haul_link::long_haul_link(const sc_core::sc_module_name& name,
                               const std::array<link_direction_parameters, 2>& directions, burst_pool& pool)
    : model(name),
      in{network_target_socket("in_0", *this, 0), network_target_socket("in_1", *this, 1)},
      out{network_initiator_socket("out_0", *this, 0), network_initiator_socket("out_1", *this, 1)},
      pool_(pool) {
  for (unsigned d = 0; d < 2; ++d) {
    direction_state& direction = directions_[d];
    direction.parameters = directions[d];
    if (direction.parameters.label.empty()) direction.parameters.label = this->name();
    const link_direction_parameters& with = direction.parameters;
    direction.impaired = with.loss.any() || with.jitter != 0 || !with.outages.empty();
    direction.loss_good = threshold_of(with.loss.in_good);
    direction.loss_bad = threshold_of(with.loss.in_bad);
    direction.to_bad = threshold_of(with.loss.to_bad);
    direction.to_good = threshold_of(with.loss.to_good);
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
  const link_direction_parameters& line = direction.parameters;
  const std::uint64_t wire_bytes = taken.wire_bytes();
  const picoseconds propagation = line.propagation + line.fec_latency;
  const picoseconds first_packet = transfer_time(content.first_packet_wire_bytes, line.rate);
  const picoseconds last_packet =
      transfer_time(line.cut_through_from != 0 ? std::min(line.cut_through_from, content.last_packet_wire_bytes)
                                               : content.last_packet_wire_bytes,
                    line.rate);
  const picoseconds whole = transfer_time(wire_bytes, line.rate);

  // What the tail would do on an idle direction counts as serialization, the rest as queueing.
  const picoseconds alone = std::max(taken.arrival_tail + last_packet, taken.arrival_head + whole);
  const picoseconds tail = std::max(taken.tail + last_packet, start + whole);
  taken.spent.serialization += alone - taken.arrival_tail;
  taken.spent.queueing += tail - alone;
  taken.spent.propagation += propagation;
  if (taken.story != nullptr) {
    const char* where = line.label.c_str();
    taken.note("sending", where, alone, path_part::serialization);
    taken.note("waiting for the line", where, tail, path_part::queueing);
    taken.note("propagation", where, tail + propagation, path_part::propagation);
  }
  const picoseconds head =
      line.cut_through_to == 0
          ? first_packet
          : std::min(first_packet,
                     transfer_time(std::min(line.cut_through_to, content.first_packet_wire_bytes), line.rate));
  taken.head = taken.arrival_head = start + head + propagation;
  taken.tail = taken.arrival_tail = tail + propagation;

  direction.sending_until = start + whole;
  link_direction_counters& counters = direction.counters;
  ++counters.bursts_in;
  counters.packets += taken.packets();
  counters.payload_bytes_in += taken.payload_bytes();
  counters.wire_bytes_in += wire_bytes;
  counters.busy += whole;
  direction.accepts->set(counters.bursts_in);
  direction.busy->set_at(start, 1);
  direction.bytes_sent->set_at(start, counters.wire_bytes_in);
  direction.bytes_in_flight->set_at(start, counters.wire_bytes_in - counters.wire_bytes_out - counters.lost_wire_bytes);
  direction.busy->set_at(direction.sending_until, 0);

  if (tap) tap(direction_number, start, content);

  if (direction.impaired) {
    lose_packets(direction, taken, start, tail);
    if (taken.packets() == 0) {
      pool_.release(taken);
      return;
    }
    delay_by_jitter(direction, taken, start, tail);
  }
  direction.in_flight.push(&taken);
  if (line.reorders) {  // ordered by head; what has begun at the far end stays in front
    const std::size_t first = direction.blocked ? 1 : 0;
    for (std::size_t i = direction.in_flight.size() - 1; i > first; --i) {
      if (direction.in_flight[i - 1]->head <= direction.in_flight[i]->head) break;
      std::swap(direction.in_flight[i - 1], direction.in_flight[i]);
    }
  }
  if (direction.in_flight.front() == &taken) arm(direction);
}

bool long_haul_link::lost(direction_state& direction, const burst_content& content, std::uint32_t packet) const {
  const link_direction_parameters& line = direction.parameters;
  if (line.loss.to_bad > 0) {
    // The chain runs over packets in the order they are sent.
    const std::uint64_t change = mixed(line.seed, direction.chain_draws++);
    if (change < (direction.bad ? direction.to_good : direction.to_bad)) direction.bad = !direction.bad;
    const std::uint64_t draw = mixed(line.seed, direction.chain_draws++);
    return draw < (direction.bad ? direction.loss_bad : direction.loss_good);
  }
  if (direction.loss_good == 0) return false;
  // A packet's fate depends on which packet it is, not on what was sent before: both fidelities lose the same ones.
  const std::uint64_t stream =
      mixed(mixed(line.seed, content.round), std::uint64_t{content.attempt} << 32 | std::uint64_t{content.epoch} << 16 |
                                                 static_cast<std::uint64_t>(content.kind));
  const std::uint64_t chunk =
      mixed(stream, std::uint64_t{content.source} << 48 | std::uint64_t{content.group} << 32 | content.chunk);
  return mixed(chunk, packet) < direction.loss_good;
}

/// Draws for every packet that is still there; times are those of sending.
void long_haul_link::lose_packets(direction_state& direction, burst& taken, picoseconds start, picoseconds tail) const {
  const link_direction_parameters& line = direction.parameters;
  while (direction.next_outage < line.outages.size() && line.outages[direction.next_outage].to <= start) {
    ++direction.next_outage;
  }
  const bool down = direction.next_outage < line.outages.size() && line.outages[direction.next_outage].from < tail;
  if (!down && !line.loss.any()) return;
  const burst_content& content = taken.content();
  const std::uint32_t first = content.first_packet();
  const std::uint64_t before = taken.wire_bytes();
  const std::uint32_t payload_before = taken.payload_bytes();
  const std::uint32_t packets_before = taken.packets();
  for (std::uint32_t i = 0; i < content.packets; ++i) {
    if (taken.has_lost(i)) continue;
    bool gone = lost(direction, content, first + i);
    if (down) {
      // Packets are spread evenly over the time the burst takes.
      const picoseconds from = start + multiply_divide_down(tail - start, i, content.packets);
      const picoseconds to = start + multiply_divide_down(tail - start, i + 1, content.packets);
      for (std::size_t o = direction.next_outage; o < line.outages.size() && line.outages[o].from < to; ++o) {
        if (line.outages[o].to <= from) continue;
        ++direction.counters.outage_packets;
        gone = true;
        break;
      }
    }
    if (gone) taken.lose(i);
  }
  std::uint32_t leading = 0;
  while (leading < content.packets && taken.has_lost(leading)) ++leading;
  taken.head += multiply_divide_down(tail - start, leading, content.packets);
  taken.arrival_head = taken.head;
  direction.counters.lost_packets += packets_before - taken.packets();
  direction.counters.lost_payload_bytes += payload_before - taken.payload_bytes();
  direction.counters.lost_wire_bytes += before - taken.wire_bytes();
}

void long_haul_link::delay_by_jitter(direction_state& direction, burst& taken, picoseconds start, picoseconds tail) {
  const link_direction_parameters& line = direction.parameters;
  if (line.jitter == 0) return;
  const auto extra = [&line](std::uint64_t interval) { return mixed(~line.seed, interval) % (line.jitter + 1); };
  const picoseconds propagation = taken.tail - tail;
  picoseconds head = taken.head + extra(start / line.jitter_interval);
  if (!line.reorders) head = std::max(head, direction.last_arrival);
  // The last packet in is the latest of those of all intervals the burst was sent in.
  const std::uint64_t last = tail / line.jitter_interval;
  picoseconds whole = std::max(head, taken.tail + extra(last));
  for (std::uint64_t interval = start / line.jitter_interval; interval < last; ++interval) {
    whole = std::max(whole, (interval + 1) * line.jitter_interval + propagation + extra(interval));
  }
  const picoseconds waited = whole - taken.tail;
  taken.spent.propagation += waited;
  taken.note("jitter", line.label.c_str(), whole, path_part::propagation);
  taken.head = taken.arrival_head = head;
  taken.tail = taken.arrival_tail = whole;
  direction.last_arrival = std::max(direction.last_arrival, whole);
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
  const std::uint64_t payload_bytes = arriving.payload_bytes();
  const std::uint64_t wire_bytes = arriving.wire_bytes();
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
  const std::uint64_t payload_bytes = outgoing.payload_bytes();
  const std::uint64_t wire_bytes = outgoing.wire_bytes();
  direction.blocked = false;
  direction.stall->set(0);
  direction.counters.blocked += now() - direction.blocked_since;
  direction.far_end_ready = now() + t.value();
  finish_delivery(direction, payload_bytes, wire_bytes);
  if (burst* waiting = std::exchange(direction.waiting_in, nullptr); waiting != nullptr) {
    const picoseconds start = std::max(now(), direction.sending_until);
    tlm::tlm_phase end = tlm::END_REQ;
    sc_core::sc_time ready = until(start + transfer_time(waiting->wire_bytes(), direction.parameters.rate));
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
  direction.bytes_in_flight->set(direction.counters.wire_bytes_in - direction.counters.wire_bytes_out -
                                 direction.counters.lost_wire_bytes);
  if (!direction.in_flight.empty()) arm(direction);
}

std::uint64_t long_haul_link::wire_bytes_under_way(unsigned d) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < directions_[d].in_flight.size(); ++i) bytes += directions_[d].in_flight[i]->wire_bytes();
  return bytes;
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
