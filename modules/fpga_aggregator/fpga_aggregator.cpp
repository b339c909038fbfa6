#include "modules/fpga_aggregator/fpga_aggregator.hpp"

#include <algorithm>
#include <utility>

namespace tributary {

namespace reg = aggregator_register;

fpga_aggregator::fpga_aggregator(const sc_core::sc_module_name& name, const aggregator_parameters& parameters,
                                 burst_pool& pool)
    : model(name),
      in("in", *this),
      egress("egress", [this](burst_kind kind, bool last) { egress_taken(kind, last); }),
      uplink("uplink", [this](burst_kind kind, bool last) { uplink_taken(kind, last); }),
      memory("memory", *this),
      control("control", aggregator_registers, parameters.register_access_time,
              [this](unsigned index, std::uint64_t value) { registers_written(index, value); }),
      interrupt("interrupt"),
      parameters_(parameters),
      pool_(pool),
      gaps_("gaps"),
      silence_("silence"),
      work_("work"),
      rate_(parameters.rate_window) {
  if (parameters_.on_chip_bytes != 0) {
    on_chip = std::make_unique<memory_port>("on_chip", static_cast<memory_port::host&>(*this));
  }
  control.set(reg::id, parameters.id);
  state_probe_ = &add_probe({"state",
                             probe_kind::state,
                             trace_level::round,
                             "",
                             "what the aggregator does",
                             {"idle", "armed", "merging", "stalled", "done"}});
  occupancy_probe_ =
      &add_probe({"occupancy", probe_kind::quantity, trace_level::chunk, "bytes", "aggregator memory in slots", {}});
  stall_probe_ = &add_probe({"memory_stall",
                             probe_kind::flag,
                             trace_level::chunk,
                             "",
                             "a burst waits for memory (no free slot, or writes lag)",
                             {}});
  received_probe_ = &add_probe({"received",
                                probe_kind::quantity,
                                trace_level::chunk,
                                "bytes",
                                "payload bytes taken from the network in this round",
                                {}});
  contributors_probe_ = &add_probe(
      {"contributors", probe_kind::set, trace_level::packet, "", "sites summed in the chunk merged last", {}});
  slots_probe_ =
      &add_probe({"slots", probe_kind::quantity, trace_level::packet, "slots", "slot table entries in use", {}});
  group_probe_ = &add_probe({"group", probe_kind::count, trace_level::round, "", "group within the round", {}});
  rate_probe_ = &add_probe({"rate",
                            probe_kind::quantity,
                            trace_level::round,
                            "bits/s",
                            "payload rate from the network, over windows of 1/200 of a round",
                            {}});
  merged_probe_ =
      &add_probe({"merged", probe_kind::quantity, trace_level::chunk, "chunks", "chunks merged in this round", {}});
  spawn_method("work_method", work_.due(), [this] { do_work(); });
  spawn_method("gaps_method", gaps_.due(), [this] { check_gaps(); });
  spawn_method("silence_method", silence_.due(), [this] { check_silence(); });
}

// ---- driver side ------------------------------------------------------------------------------------------------

void fpga_aggregator::registers_written(unsigned index, std::uint64_t value) {
  if (index != reg::control) return;
  if (value == command_start) {
    start();
  } else if (value == command_clear) {
    abandon_round();
    control.set(reg::status, status_idle);
    control.set(reg::error, error_none);
    interrupt.write(false);
    state_ = state::idle;
    show_state();
  }
}

void fpga_aggregator::refuse(register_error why) {
  control.set(reg::error, why);
  control.set(reg::status, control[reg::status] | status_error);
  interrupt.write(true);
}

void fpga_aggregator::start() {
  if ((control[reg::status] & status_busy) != 0) return refuse(error_busy);
  const std::uint64_t chunk_bytes = control[reg::chunk_bytes];
  const std::uint64_t update_bytes = control[reg::update_bytes];
  const std::uint64_t slots = control[reg::slot_count];
  if (chunk_bytes == 0 || update_bytes == 0) return refuse(error_chunk);
  const site_set members = control[reg::members];
  if ((members & site_bit(parameters_.id)) == 0) return refuse(error_members);
  const site_set others = control[reg::sources] != 0 ? control[reg::sources] : members & ~site_bit(parameters_.id);
  const auto streams = static_cast<unsigned>(__builtin_popcountll(others));
  const bool needs_slots =
      streams > 0 && (policy() == buffering::per_stream || (policy() == buffering::in_place && streams > 1));
  const std::uint64_t base = control[reg::slot_base];
  const std::uint64_t on_chip_slots = control[reg::on_chip_slots];
  const std::uint64_t room = base > parameters_.memory_bytes ? 0 : parameters_.memory_bytes - base;
  const std::uint64_t slot_bytes =
      chunk_bytes * (policy() == buffering::in_place ? sum_words_per_word(parameters_.values) : 1);
  if (on_chip_slots > slots || on_chip_slots > parameters_.on_chip_bytes / slot_bytes) return refuse(error_slots);
  if (slots - on_chip_slots > room / slot_bytes) return refuse(error_slots);
  if (needs_slots && slots < (policy() == buffering::per_stream ? streams : 1)) return refuse(error_slots);

  ++generation_;
  postponed_.clear();
  others_ = others;
  covers_ = control[reg::covers] != 0 ? control[reg::covers] : others;
  streams_ = streams;
  stream_of_site_.fill(0);
  stream_states_.clear();
  for (site_set left = others_; left != 0; left &= left - 1) {
    const auto source = static_cast<unsigned>(__builtin_ctzll(left));
    stream_of_site_[source] = static_cast<std::uint8_t>(stream_states_.size());
    stream_states_.emplace_back();
    stream_states_.back().source = source;
    stream_states_.back().heard = now();
  }
  chunks_ = streams == 0 ? 0 : static_cast<std::uint32_t>((update_bytes + chunk_bytes - 1) / chunk_bytes);
  slot_bytes_ = slot_bytes;
  slots_used_ = 0;
  on_chip_slots_ = static_cast<std::uint32_t>(on_chip_slots);
  free_slots_.clear();
  free_on_chip_.clear();
  for (std::uint64_t s = slots; s-- > on_chip_slots;) free_slots_.push_back(static_cast<std::uint32_t>(s));
  for (std::uint32_t s = on_chip_slots_; s-- > 0;) free_on_chip_.push_back(s);
  open_records_ = first_open_ = 0;
  record_of_chunk_.assign(chunks_, no_record);
  merged_this_round_ = 0;
  credit_announced_ = static_cast<std::uint32_t>(control[reg::credit_initial]);
  high_water_this_round_ = received_this_round_ = 0;
  for (const unsigned counter :
       {reg::merged_chunks, reg::duplicate_bursts, reg::late_bursts, reg::high_water_bytes, reg::saturations}) {
    control.set(counter, 0);
  }
  if (repairs() && chunks_ != 0) {
    for (stream_state& stream : stream_states_) stream.asked.assign(chunks_, false);
    silence_.push(now() + control[reg::timeout_ps], generation_);
  }
  control.set(reg::status, status_busy);
  state_ = state::armed;
  occupancy_probe_->set(0);
  slots_probe_->set(0);
  group_probe_->set(control[reg::group]);
  rate_.start(now(), *rate_probe_);
  received_probe_->set(0);
  merged_probe_->set(0);
  show_state();
  send_credits();
  check_finished();
}

/// Drops the round in progress. Work and memory accesses under way find their generation gone and end.
void fpga_aggregator::abandon_round() {
  if ((control[reg::status] & status_busy) == 0) return;
  ++generation_;
  postponed_.clear();
  others_ = 0;  // whatever still arrives is late
  chunks_ = 0;
  stream_states_.clear();
  streams_ = 0;
  while (!ready_.empty()) ready_.pop();
  dropped_records_.push_back(std::move(records_));
  records_.clear();
  free_records_.clear();
  open_records_ = 0;
  staged_bytes_ = 0;
  slots_used_ = 0;
  note_stall(false, stall_cause::datapath);
  occupancy_probe_->set(0);
  slots_probe_->set(0);
  if (blocked_ != nullptr) {
    counters_.stalled[static_cast<unsigned>(blocked_cause_)] += now() - blocked_since_;
    stall_probe_->set(0);
    burst& held = *std::exchange(blocked_, nullptr);
    end_request(in, held);
    drop(held, counters_.late_bursts, reg::late_bursts);
  }
}

void fpga_aggregator::set_power(bool on) {
  if (on == powered_) return;
  powered_ = on;
  if (on) return;
  abandon_round();
  control.set(reg::status, status_idle);
  interrupt.write(false);
  state_ = state::idle;
  show_state();
}

// ---- ingress ----------------------------------------------------------------------------------------------------

tlm::tlm_sync_enum fpga_aggregator::receive(unsigned /*port*/, burst& incoming, tlm::tlm_phase& phase,
                                            sc_core::sc_time& /*t*/) {
  phase = tlm::END_REQ;
  const burst_kind kind = incoming.content().kind;
  if (!powered_) {
    counters_.failure_packets += incoming.packets();
    pool_.release(incoming);
    return tlm::TLM_UPDATED;
  }
  if (kind == burst_kind::credit || kind == burst_kind::nack || kind == burst_kind::aggregate ||
      (control[reg::pass_through] != 0 && incoming.content().group == unicast_group + parameters_.id)) {
    egress.push(incoming);  // for this site's cluster
    return tlm::TLM_UPDATED;
  }
  switch (judge(incoming, blocked_cause_)) {
    case verdict::take: take(incoming); break;
    case verdict::drop: overrun(incoming); break;
    case verdict::hold:
      blocked_ = &incoming;
      blocked_since_ = now();
      stall_probe_->set(blocked_cause_ == stall_cause::egress ? 0 : 1);
      show_state();
      return tlm::TLM_ACCEPTED;
  }
  return tlm::TLM_UPDATED;
}

/// Of this round, this group, and one of its senders.
bool fpga_aggregator::belongs(const burst_content& content) const {
  return content.round == control[reg::round] && content.epoch == control[reg::epoch] &&
         (content.group == control[reg::group] || content.group == unicast_group + parameters_.id) &&
         content.chunk < chunks_ && (others_ & site_bit(content.source)) != 0 &&
         (content.contributors & ~covers_) == 0 &&
         (content.kind == burst_kind::data || content.kind == burst_kind::parity);
}

/// The slot table has an entry for a chunk that is not in it: one is free, and its tag tells it from all others.
bool fpga_aggregator::entry_free(std::uint32_t chunk) const {
  if (parameters_.slot_table_entries != 0 && open_records_ >= parameters_.slot_table_entries) return false;
  return parameters_.tag_bits >= 32 || chunk - first_open_ < std::uint32_t{1} << parameters_.tag_bits;
}

fpga_aggregator::verdict fpga_aggregator::judge(const burst& incoming, stall_cause& cause) const {
  const burst_content& content = incoming.content();
  if (!belongs(content)) return verdict::take;  // will be dropped there
  if (policy() == buffering::none) {
    cause = stall_cause::egress;
    return egress_chunks_used_ < parameters_.egress_chunks * streams_ ? verdict::take : verdict::hold;
  }
  const std::uint32_t record = record_of_chunk_[content.chunk];
  if (record == finished_record) return verdict::take;  // duplicate
  const bool reserved = repairs() && policy() == buffering::in_place;
  if (!reserved && staged_bytes_ != 0 && staged_bytes_ + content.payload_bytes > parameters_.ingress_buffer_bytes) {
    cause = stall_cause::memory_bandwidth;
    return verdict::hold;
  }
  if (repairs()) return judge_repairable(content.chunk, stream_of_site_[content.source]);
  if (record == no_record && !entry_free(content.chunk)) {
    cause = stall_cause::slot_table;
    return verdict::hold;
  }
  cause = stall_cause::memory_full;
  bool room = streams_ == 1 || record != no_record || slot_free();
  if (policy() == buffering::per_stream) {
    const unsigned stream = stream_of_site_[content.source];
    room = (record != no_record && records_[record].streams[stream].slot != no_slot) || slot_free();
  }
  return room ? verdict::take : verdict::hold;
}

/// Is there room, with what the oldest unfinished chunk may still need kept for it?
fpga_aggregator::verdict fpga_aggregator::judge_repairable(std::uint32_t chunk, unsigned stream) const {
  const std::uint32_t record = record_of_chunk_[chunk];
  const bool oldest = chunk == first_open_;
  const std::uint32_t oldest_record = record_of_chunk_[first_open_];
  const bool oldest_open = oldest_record != no_record;
  if (record == no_record && parameters_.slot_table_entries != 0 &&
      open_records_ + (oldest || oldest_open ? 0 : 1) >= parameters_.slot_table_entries) {
    return verdict::drop;
  }
  if (record == no_record && parameters_.tag_bits < 32 &&
      chunk - first_open_ >= std::uint32_t{1} << parameters_.tag_bits) {
    return verdict::drop;
  }
  const std::size_t free = free_slots_.size() + free_on_chip_.size();
  if (policy() == buffering::per_stream) {
    if (record != no_record && records_[record].streams[stream].slot != no_slot) return verdict::take;
    std::size_t kept = 0;
    if (!oldest) {
      kept = streams_;
      if (oldest_open) {
        for (const stream_part& part : records_[oldest_record].streams) kept -= part.slot != no_slot ? 1 : 0;
      }
    }
    return free > kept ? verdict::take : verdict::drop;
  }
  if (record == no_record && streams_ > 1 && free <= (oldest || oldest_open ? 0U : 1U)) return verdict::drop;
  if (record != no_record && records_[record].streams[stream].open) return verdict::take;
  // A stream's part of a chunk takes its whole place in the ingress buffer at once; one place is kept for the oldest.
  const std::uint64_t needed = chunk_size(chunk) + (oldest ? 0 : control[reg::chunk_bytes]);
  return staged_bytes_ == 0 || staged_bytes_ + needed <= parameters_.ingress_buffer_bytes ? verdict::take
                                                                                          : verdict::drop;
}

void fpga_aggregator::drop(burst& dropped, std::uint64_t& counter, unsigned register_index) {
  ++counter;
  control.add(register_index, 1);
  pool_.release(dropped);
}

/// Repair: marks what has arrived before as lost in the burst. Returns the payload bytes that are new.
std::uint32_t fpga_aggregator::accept_packets(burst& taken, const chunk_record& record, stream_part& part) {
  const burst_content& content = taken.content();
  const std::uint32_t data_packets = parameters_.format.packets(record.bytes);
  if (part.received.empty()) part.received.resize(data_packets + control[reg::parity_packets]);
  const std::uint32_t first = content.first_packet();
  for (std::uint32_t i = 0; i < content.packets; ++i) {
    if (taken.has_lost(i)) continue;
    if (part.received.test_set(first + i)) {
      ++counters_.duplicate_packets;
      taken.lose(i);
    }
  }
  return taken.payload_bytes();
}

/// With as many packets in as the chunk has, parity stands in for the rest. Returns the bytes recovered.
std::uint32_t fpga_aggregator::recover(const burst& taken, const chunk_record& record, stream_part& part) {
  if (taken.content().kind == burst_kind::parity) part.parity_values = taken.content().values;
  if (control[reg::parity_packets] == 0 || part.arrived_bytes == record.bytes) return 0;
  const std::uint32_t data_packets = parameters_.format.packets(record.bytes);
  if (part.received.count() < data_packets) return 0;
  const std::uint32_t each = parameters_.format.payload_per_packet();
  for (std::uint32_t i = 0; i < data_packets; ++i) {
    if (part.received.test(i)) continue;
    ++counters_.recovered_packets;
    if (!real() || part.parity_values == nullptr) continue;
    const std::uint32_t begin = i * each;
    const std::uint32_t end = std::min(begin + each, record.bytes);
    if (part.values.size() < record.bytes / 4) part.values.resize(record.bytes / 4);
    std::copy(part.parity_values->begin() + begin / 4, part.parity_values->begin() + end / 4,
              part.values.begin() + begin / 4);
  }
  part.received.set();
  return record.bytes - std::exchange(part.arrived_bytes, record.bytes);
}

/// Copies the real values of the packets that are there into the operand buffer.
void fpga_aggregator::keep_values(const burst& taken, const chunk_record& record, stream_part& part) const {
  const burst_content& content = taken.content();
  if (!real() || content.values == nullptr || content.kind != burst_kind::data) return;
  if (part.values.size() < record.bytes / 4) part.values.resize(record.bytes / 4);
  const std::ptrdiff_t each = content.packet_payload / 4;
  const std::ptrdiff_t begin = content.offset_bytes / 4;
  const auto words = static_cast<std::ptrdiff_t>(content.values->size());
  for (std::uint32_t i = 0; i < content.packets; ++i) {
    if (taken.has_lost(i)) continue;
    std::copy(content.values->begin() + i * each, content.values->begin() + std::min(words, (i + 1) * each),
              part.values.begin() + begin + i * each);
  }
}

void fpga_aggregator::take(burst& taken) {
  const burst_content& content = taken.content();
  if (!belongs(content)) {
    return drop(taken, counters_.late_bursts, reg::late_bursts);
  }
  watch_gaps(taken);
  if (record_of_chunk_[content.chunk] == finished_record) {
    if (!repairs()) return drop(taken, counters_.duplicate_bursts, reg::duplicate_bursts);
    counters_.duplicate_packets += taken.packets();
    pool_.release(taken);
    return;
  }
  const std::uint32_t index = record_of(content.chunk, content.chunk_bytes);
  chunk_record& record = records_[index];
  const unsigned stream = stream_of_site_[content.source];
  stream_part& part = record.streams[stream];
  std::uint32_t bytes = content.payload_bytes;
  if (!repairs()) {
    if (content.offset_bytes < part.arrived_bytes) {
      return drop(taken, counters_.duplicate_bursts, reg::duplicate_bursts);
    }
    part.arrived_bytes = content.offset_bytes + content.payload_bytes;
  } else {
    bytes = accept_packets(taken, record, part);
    part.arrived_bytes += bytes;
    const std::uint32_t recovered = recover(taken, record, part);
    if (bytes + recovered == 0) {
      pool_.release(taken);
      return;
    }
    bytes += recovered;
  }
  record.contributors |= content.contributors;
  counters_.payload_bytes_in += bytes;
  received_this_round_ += bytes;
  rate_.add(now(), bytes, *rate_probe_);
  if (part.arrived_bytes == record.bytes) received_probe_->set(received_this_round_);
  if (state_ == state::armed) {
    state_ = state::merging;
    show_state();
  }
  switch (policy()) {
    case buffering::per_stream: {
      if (part.slot == no_slot) part.slot = take_slot();
      staged_bytes_ += content.payload_bytes;
      // The chunk's own slot also buffers the operand, so the values written are what is read back later.
      keep_values(taken, record, part);
      // What parity recovers is written as a whole chunk; what has gaps as the stretch it lies in.
      const bool whole = bytes > content.payload_bytes || content.kind == burst_kind::parity;
      const std::uint32_t offset = whole ? 0 : content.offset_bytes;
      void* data = real() && !part.values.empty() ? part.values.data() + offset / 4 : nullptr;
      access(tlm::TLM_WRITE_COMMAND, part.slot, offset,
             whole ? record.bytes : (data != nullptr ? content.payload_bytes : bytes), data,
             {access_state::purpose::store, index, stream, &taken, bytes, generation_});
      return;
    }
    case buffering::in_place:
      if (record.slot == no_slot && streams_ > 1) record.slot = take_slot();
      if (!repairs()) {
        staged_bytes_ += content.payload_bytes;
      } else if (!part.open) {
        part.open = true;
        staged_bytes_ += record.bytes;
      }
      work_.push(std::max(taken.tail, now()), {work::stream_in, index, &taken, bytes, generation_});
      return;
    case buffering::none:
      part.stored_bytes += bytes;
      if (part.stored_bytes == record.bytes) part_complete(index, taken);
      counters_.payload_bytes_out += bytes;
      ++egress_chunks_used_;
      egress.push(taken);
      return;
  }
}

void fpga_aggregator::retry_blocked() {
  while (blocked_ != nullptr) {
    stall_cause cause = blocked_cause_;
    const verdict now_is = judge(*blocked_, cause);
    if (now_is == verdict::hold && cause == blocked_cause_) return;
    counters_.stalled[static_cast<unsigned>(blocked_cause_)] += now() - blocked_since_;
    blocked_since_ = now();
    blocked_cause_ = cause;
    if (now_is == verdict::hold) return;
    burst& taken = *std::exchange(blocked_, nullptr);
    stall_probe_->set(0);
    end_request(in, taken);
    if (now_is == verdict::drop) {
      overrun(taken);
    } else {
      taken.hold_until(now(), name());
      take(taken);
    }
    show_state();
  }
}

/// Repair: there is no memory for it now.
void fpga_aggregator::overrun(burst& dropped) {
  counters_.overrun_packets += dropped.packets();
  watch_gaps(dropped);
  pool_.release(dropped);
}

std::uint32_t fpga_aggregator::record_of(std::uint32_t chunk, std::uint32_t bytes) {
  std::uint32_t& index = record_of_chunk_[chunk];
  if (index != no_record) return index;
  if (free_records_.empty()) {
    free_records_.push_back(static_cast<std::uint32_t>(records_.size()));
    records_.emplace_back();
  }
  index = free_records_.back();
  free_records_.pop_back();
  ++open_records_;
  chunk_record& record = records_[index];
  record.chunk = chunk;
  record.bytes = bytes;
  record.complete = record.contributors = 0;
  record.slot = no_slot;
  record.added = 0;
  record.operating = false;
  record.pending.clear();
  record.outstanding_reads = 0;
  record.sum.clear();
  record.streams.resize(streams_);
  for (stream_part& part : record.streams) {
    part.slot = no_slot;
    part.arrived_bytes = part.stored_bytes = 0;
    part.received.clear();
    part.open = false;
    part.values.clear();
    part.parity_values.reset();
  }
  return index;
}

void fpga_aggregator::close_record(std::uint32_t index) {
  record_of_chunk_[records_[index].chunk] = finished_record;
  free_records_.push_back(index);
  --open_records_;
  while (first_open_ < chunks_ && record_of_chunk_[first_open_] == finished_record) ++first_open_;
}

std::uint32_t fpga_aggregator::take_slot() {
  std::vector<std::uint32_t>& from = free_on_chip_.empty() ? free_slots_ : free_on_chip_;
  const std::uint32_t slot = from.back();
  from.pop_back();
  if (on_chip_slots_ != 0 && slot >= on_chip_slots_) ++counters_.spilled_chunks;
  ++slots_used_;
  const std::uint64_t bytes = occupancy_bytes();
  high_water_this_round_ = std::max(high_water_this_round_, bytes);
  counters_.high_water_bytes = std::max(counters_.high_water_bytes, bytes);
  control.set(reg::high_water_bytes, high_water_this_round_);
  occupancy_probe_->set(bytes);
  slots_probe_->set(slots_used_);
  return slot;
}

void fpga_aggregator::free_slot(std::uint32_t& slot) {
  if (slot == no_slot) return;
  (slot < on_chip_slots_ ? free_on_chip_ : free_slots_).push_back(slot);
  slot = no_slot;
  --slots_used_;
}

// ---- memory -----------------------------------------------------------------------------------------------------

void fpga_aggregator::access(tlm::tlm_command command, std::uint32_t slot, std::uint32_t offset, std::uint32_t bytes,
                             void* data, access_state details) {
  if (free_accesses_.empty()) {
    free_accesses_.push_back(static_cast<std::uint32_t>(accesses_.size()));
    accesses_.emplace_back();
  }
  const std::uint32_t cookie = free_accesses_.back();
  free_accesses_.pop_back();
  accesses_[cookie] = details;
  if (slot < on_chip_slots_) {
    on_chip->access(command, slot * slot_bytes_ + offset, bytes, data, cookie);
  } else {
    memory.access(command, control[reg::slot_base] + (slot - on_chip_slots_) * slot_bytes_ + offset, bytes, data,
                  cookie);
  }
}

void fpga_aggregator::memory_done(std::uint64_t cookie, picoseconds when, bool ok) {
  const access_state done = accesses_[cookie];
  free_accesses_.push_back(static_cast<std::uint32_t>(cookie));
  if (!ok) ++counters_.memory_errors;
  if (done.generation != generation_) {
    if (done.arrived != nullptr) pool_.release(*done.arrived);
    return;
  }
  chunk_record& record = records_[done.record];
  switch (done.what) {
    case access_state::purpose::store:
      work_.push(std::max(when, done.arrived->tail),
                 {work::stored, done.record, done.arrived, done.bytes, generation_});
      return;
    case access_state::purpose::read_operand:
      record.memory_until = std::max(record.memory_until, when);
      if (--record.outstanding_reads == 0) merge_operands_read(done.record);
      return;
    case access_state::purpose::accumulate_read: {
      record.memory_until = std::max(record.memory_until, when);
      void* data = nullptr;
      if (real()) {
        add(record.sum, record.streams[done.stream].values);
        data = record.sum.data();
      }
      access(tlm::TLM_WRITE_COMMAND, record.slot, 0, sum_bytes(record.bytes), data,
             {access_state::purpose::accumulate_write, done.record, done.stream, nullptr, 0, generation_});
      return;
    }
    case access_state::purpose::accumulate_write:
      record.memory_until = std::max(record.memory_until, when);
      work_.push(std::max(record.memory_until, record.datapath_until),
                 {work::added, done.record, nullptr, 0, generation_});
      return;
  }
}

void fpga_aggregator::add(chunk_values& sum, const chunk_values& operand) {
  const std::uint64_t saturated = add_values(parameters_.values, sum, operand.data(), operand.size());
  counters_.saturations += saturated;
  control.add(reg::saturations, saturated);
}

void fpga_aggregator::do_work() {
  work_item item;
  while (work_.pop_due(item)) {
    if (item.what != work::merge_again && item.generation != generation_) {
      if (item.arrived != nullptr) pool_.release(*item.arrived);
      continue;
    }
    switch (item.what) {
      case work::stored: stored(item.record, *item.arrived, item.bytes); break;
      case work::stream_in: stream_in(item.record, *item.arrived, item.bytes); break;
      case work::added: {
        chunk_record& record = records_[item.record];
        ++record.added;
        record.operating = false;
        staged_bytes_ -= std::exchange(record.staged_bytes, 0);
        if (!postponed_.empty()) ask_postponed();
        next_operation(item.record);
        break;
      }
      case work::merged: merged(item.record); break;
      case work::merge_again:
        merge_wakeup_ = false;
        try_merge();
        break;
    }
    if (blocked_ != nullptr) retry_blocked();
  }
}

/// The last stream's story becomes the chunk's; what passed since its tail was memory work.
void fpga_aggregator::note_last(chunk_record& record, burst& arrived) {
  record.spent = arrived.spent;
  record.spent.memory += now() - arrived.tail;
  arrived.note("writing to memory", name(), now(), path_part::memory);
  record.story = std::move(arrived.story);
  record.departed = arrived.departed;
  record.send_start = arrived.content().send_start;
  record.last_source = arrived.content().source;
}

/// All of a stream's chunk is in, with `arrived` as its last.
void fpga_aggregator::part_complete(std::uint32_t index, burst& arrived) {
  chunk_record& record = records_[index];
  const burst_content& content = arrived.content();
  const unsigned stream = stream_of_site_[content.source];
  record.complete |= site_bit(content.source);
  ++stream_states_[stream].complete;
  if (listener != nullptr && policy() != buffering::none) {
    listener->arrived(parameters_.id, content.source, content.chunk, arrived.head, arrived.tail);
  }
  const bool last = record.complete == others_;
  switch (policy()) {
    case buffering::per_stream:
      if (!last) return;
      note_last(record, arrived);
      ready(index);
      return;
    case buffering::in_place:
      record.pending.push_back(stream);
      if (last) note_last(record, arrived);
      next_operation(index);
      return;
    case buffering::none:
      if (!last) return;
      close_record(index);
      ++merged_this_round_;
      return;
  }
}

/// per_stream: a burst is written; `bytes` more of the chunk are there.
void fpga_aggregator::stored(std::uint32_t index, burst& arrived, std::uint32_t bytes) {
  chunk_record& record = records_[index];
  staged_bytes_ -= arrived.content().payload_bytes;
  stream_part& part = record.streams[stream_of_site_[arrived.content().source]];
  part.stored_bytes += bytes;
  if (part.stored_bytes == record.bytes) part_complete(index, arrived);
  pool_.release(arrived);
}

/// in_place: a burst is completely in the ingress buffer.
void fpga_aggregator::stream_in(std::uint32_t index, burst& arrived, std::uint32_t bytes) {
  chunk_record& record = records_[index];
  stream_part& part = record.streams[stream_of_site_[arrived.content().source]];
  keep_values(arrived, record, part);
  part.stored_bytes += bytes;
  if (part.stored_bytes == record.bytes) part_complete(index, arrived);
  pool_.release(arrived);
}

/// in_place: adds the next complete stream to the accumulator, or hands the last one to the merge engine.
void fpga_aggregator::next_operation(std::uint32_t index) {
  chunk_record& record = records_[index];
  if (record.operating || record.pending.empty()) return;
  if (record.added + 1 == streams_) {
    record.operating = true;
    ready(index);
    return;
  }
  const unsigned stream = record.pending.front();
  record.pending.erase(record.pending.begin());
  record.operating = true;
  record.staged_bytes = record.bytes;
  const picoseconds begin = std::max(now(), datapath_free_);
  datapath_free_ = begin + transfer_time(record.bytes, parameters_.datapath_rate());
  record.datapath_until = datapath_free_;
  record.memory_until = 0;
  if (record.added == 0) {
    void* data = nullptr;
    if (real()) {
      record.sum = widened(parameters_.values, record.streams[stream].values);
      data = record.sum.data();
    }
    access(tlm::TLM_WRITE_COMMAND, record.slot, 0, sum_bytes(record.bytes), data,
           {access_state::purpose::accumulate_write, index, stream, nullptr, 0, generation_});
    return;
  }
  record.datapath_until += parameters_.adder_latency;
  access(tlm::TLM_READ_COMMAND, record.slot, 0, sum_bytes(record.bytes), real() ? record.sum.data() : nullptr,
         {access_state::purpose::accumulate_read, index, stream, nullptr, 0, generation_});
}

// ---- merge engine -----------------------------------------------------------------------------------------------

void fpga_aggregator::ready(std::uint32_t index) {
  records_[index].ready_at = now();
  ready_.push(index);
  try_merge();
}

void fpga_aggregator::note_stall(bool stalled, stall_cause cause) {
  if (merge_stalled_) {
    counters_.stalled[static_cast<unsigned>(merge_stall_cause_)] += now() - merge_stalled_since_;
  }
  merge_stalled_ = stalled;
  merge_stall_cause_ = cause;
  merge_stalled_since_ = now();
}

void fpga_aggregator::try_merge() {
  while (!ready_.empty()) {
    if (egress_chunks_used_ >= parameters_.egress_chunks) return note_stall(true, stall_cause::egress);
    if (datapath_free_ > now()) {
      if (!merge_wakeup_) {
        merge_wakeup_ = true;
        work_.push(datapath_free_, {});
      }
      return note_stall(true, stall_cause::datapath);
    }
    const std::uint32_t next = ready_.front();
    ready_.pop();
    start_merge(next);
  }
  if (merge_stalled_) note_stall(false, stall_cause::datapath);
}

void fpga_aggregator::start_merge(std::uint32_t index) {
  chunk_record& record = records_[index];
  record.spent.queueing += now() - record.ready_at;
  if (record.story != nullptr) {
    burst::extend(*record.story, record.departed, "waiting for the adders", name(), now(), path_part::queueing);
  }
  ++egress_chunks_used_;
  const bool per_stream = policy() == buffering::per_stream;
  const unsigned operands = per_stream ? streams_ : 1;
  datapath_free_ = now() + transfer_time(std::uint64_t{record.bytes} * operands, parameters_.datapath_rate());
  record.ready_at = now();
  record.datapath_until = datapath_free_;
  record.memory_until = now();
  if (!per_stream && streams_ == 1) return merge_operands_read(index);
  if (!per_stream) {
    record.outstanding_reads = 1;
    access(tlm::TLM_READ_COMMAND, record.slot, 0, sum_bytes(record.bytes), real() ? record.sum.data() : nullptr,
           {access_state::purpose::read_operand, index, 0, nullptr, 0, generation_});
    return;
  }
  record.outstanding_reads = streams_;
  for (unsigned s = 0; s < streams_; ++s) {
    stream_part& part = records_[index].streams[s];
    access(tlm::TLM_READ_COMMAND, part.slot, 0, records_[index].bytes, real() ? part.values.data() : nullptr,
           {access_state::purpose::read_operand, index, s, nullptr, 0, generation_});
  }
}

void fpga_aggregator::merge_operands_read(std::uint32_t index) {
  const chunk_record& record = records_[index];
  work_.push(std::max(record.memory_until, record.datapath_until) + parameters_.adder_latency,
             {work::merged, index, nullptr, 0, generation_});
}

void fpga_aggregator::merged(std::uint32_t index) {
  chunk_record& record = records_[index];
  record.spent.memory += now() - record.ready_at;
  if (listener != nullptr) listener->merged(parameters_.id, record.chunk, record.ready_at, now());
  contributors_probe_->set(record.contributors);
  if (record.story != nullptr) {
    burst::extend(*record.story, record.departed, "reading and adding", name(), now(), path_part::memory);
  }
  for (stream_part& part : record.streams) free_slot(part.slot);
  free_slot(record.slot);
  occupancy_probe_->set(occupancy_bytes());
  slots_probe_->set(slots_used_);

  if (record.contributors != covers_) ++counters_.contributor_errors;
  std::shared_ptr<chunk_values> values;
  if (real()) {
    const bool per_stream = policy() == buffering::per_stream;
    chunk_values sum =
        per_stream || streams_ == 1 ? widened(parameters_.values, record.streams[0].values) : std::move(record.sum);
    if (per_stream) {
      for (unsigned s = 1; s < streams_; ++s) add(sum, record.streams[s].values);
    } else if (streams_ > 1) {
      add(sum, record.streams[record.pending.front()].values);
    }
    values = std::make_shared<chunk_values>(narrowed(parameters_.values, sum));
  }
  if (policy() == buffering::in_place) staged_bytes_ -= record.bytes;

  send_merged(record, values, std::move(record.story));
  counters_.payload_bytes_out += record.bytes;
  ++counters_.merged_chunks;
  ++merged_this_round_;
  control.set(reg::merged_chunks, merged_this_round_);
  send_credits();
  merged_probe_->set(merged_this_round_);
  close_record(index);
  if (!postponed_.empty()) ask_postponed();
  try_merge();
  check_finished();
}

// ---- egress -----------------------------------------------------------------------------------------------------

/// A merged chunk to where the round's OUTPUT says.
void fpga_aggregator::send_merged(const chunk_record& record, const std::shared_ptr<chunk_values>& values,
                                  std::unique_ptr<trail> story) {
  const auto output = static_cast<merged_output>(control[reg::output]);
  burst_content content;
  content.kind = output == merged_output::upstream ? burst_kind::data : burst_kind::aggregate;
  content.group = static_cast<std::uint16_t>(output == merged_output::upstream ? unicast_group + control[reg::parent]
                                                                               : control[reg::group]);
  content.source = static_cast<std::uint16_t>(output == merged_output::cluster ? record.last_source : parameters_.id);
  content.round = static_cast<std::uint32_t>(control[reg::round]);
  content.epoch = static_cast<std::uint16_t>(control[reg::epoch]);
  content.chunk = record.chunk;
  content.chunk_bytes = record.bytes;
  content.contributors = record.contributors;
  content.send_start = record.send_start;
  const std::uint32_t part = parameters_.split_into_packets ? parameters_.format.payload_per_packet() : record.bytes;
  for (std::uint32_t offset = 0; offset < record.bytes; offset += part) {
    content.offset_bytes = offset;
    content.payload_bytes = std::min(part, record.bytes - offset);
    if (values != nullptr) {
      content.values = std::make_shared<const chunk_values>(values->begin() + offset / 4,
                                                            values->begin() + (offset + content.payload_bytes) / 4);
    }
    burst& outgoing = pool_.make(content, parameters_.format);
    outgoing.starts_at(now());
    outgoing.departed = record.departed;
    outgoing.spent = record.spent;
    if (offset + content.payload_bytes == record.bytes) outgoing.story = std::move(story);
    if (output == merged_output::group) egress.push(pool_.copy(outgoing));
    (output == merged_output::cluster ? egress : uplink).push(outgoing);
  }
}

/// Sends something of this site's into the network.
void fpga_aggregator::send_up(burst_content content) {
  content.source = static_cast<std::uint16_t>(parameters_.id);
  content.round = static_cast<std::uint32_t>(control[reg::round]);
  content.epoch = static_cast<std::uint16_t>(control[reg::epoch]);
  content.priority = 1;
  content.attempt = ++messages_;  // a repeated one is drawn for anew where packets are lost
  burst& outgoing = pool_.make(std::move(content), parameters_.format);
  outgoing.starts_at(now());
  outgoing.departed = now();
  uplink.push(outgoing);
}

/// Tells every sender how many chunks it may have sent: what is merged plus the window. Cumulative, so a later credit
/// makes an earlier one superfluous; none is sent once the whole update is allowed.
void fpga_aggregator::send_credits() {
  const auto window = static_cast<std::uint32_t>(control[reg::credit_window]);
  if (window == 0 || credit_announced_ >= chunks_) return;
  const std::uint32_t allowed = std::min(chunks_, merged_this_round_ + window);
  const auto batch = static_cast<std::uint32_t>(control[reg::credit_batch]);
  if (allowed < credit_announced_ + std::max(1U, batch) && allowed < chunks_) return;
  credit_announced_ = allowed;
  announce_credit();
}

void fpga_aggregator::announce_credit() {
  for (const stream_state& stream : stream_states_) {
    burst_content content;
    content.kind = burst_kind::credit;
    content.group = static_cast<std::uint16_t>(unicast_group + stream.source);
    content.chunk = credit_announced_;
    send_up(std::move(content));
    ++counters_.credits_sent;
  }
}

void fpga_aggregator::egress_taken(burst_kind kind, bool last_of_chunk) {
  if (kind == burst_kind::credit || kind == burst_kind::nack) return;
  if (static_cast<merged_output>(control[reg::output]) == merged_output::cluster && control[reg::pass_through] == 0) {
    chunk_gone(kind == burst_kind::data || kind == burst_kind::parity || last_of_chunk);
  }
  check_finished();
}

void fpga_aggregator::uplink_taken(burst_kind kind, bool last_of_chunk) {
  if (!carries_update(kind)) return;
  chunk_gone(last_of_chunk);
  check_finished();
}

/// The egress buffer has room for one more.
void fpga_aggregator::chunk_gone(bool gone) {
  if (!gone || egress_chunks_used_ == 0) return;
  --egress_chunks_used_;
  if (blocked_ != nullptr || !ready_.empty()) work_.push(now(), {});
}

// ---- repair -----------------------------------------------------------------------------------------------------

std::uint32_t fpga_aggregator::chunk_size(std::uint32_t chunk) const {
  const std::uint64_t chunk_bytes = control[reg::chunk_bytes];
  return static_cast<std::uint32_t>(std::min(chunk_bytes, control[reg::update_bytes] - chunk * chunk_bytes));
}

bool fpga_aggregator::stream_has(unsigned stream, std::uint32_t chunk) const {
  const std::uint32_t record = record_of_chunk_[chunk];
  if (record == finished_record) return true;
  return record != no_record && records_[record].streams[stream].arrived_bytes == records_[record].bytes;
}

/// The wait doubles with every try, up to TIMEOUT_MAX_PS.
picoseconds fpga_aggregator::wait_after(unsigned tries) const {
  const picoseconds first = control[reg::timeout_ps];
  const picoseconds longest = std::max(first, control[reg::timeout_max_ps]);
  return tries >= 32 || first > longest >> tries ? longest : first << tries;
}

/// What an arrival says about the stream: what its source had sent before is missing if it is not here, and so are the
/// holes in a chunk whose end is here.
void fpga_aggregator::watch_gaps(const burst& arrived) {
  if (!repairs()) return;
  const burst_content& content = arrived.content();
  const unsigned stream = stream_of_site_[content.source];
  stream_state& of = stream_states_[stream];
  of.heard = now();
  of.silences = 0;
  const picoseconds delay = control[reg::nack_delay_ps];
  const std::uint32_t sent = std::min(content.sent_chunks, chunks_);
  for (; of.next_chunk < sent; ++of.next_chunk) watch(stream, of.next_chunk, now() + delay);
  if (content.attempt != 0) return;
  const std::uint32_t last =
      parameters_.format.packets(content.chunk_bytes) + static_cast<std::uint32_t>(control[reg::parity_packets]);
  const bool end_is_here = content.first_packet() + content.packets == last && !arrived.has_lost(content.packets - 1);
  if (end_is_here) {
    of.next_chunk = std::max(of.next_chunk, content.chunk + 1);
    watch(stream, content.chunk, std::max(now(), arrived.tail) + delay);
  }
}

void fpga_aggregator::watch(unsigned stream, std::uint32_t chunk, picoseconds when) {
  stream_state& of = stream_states_[stream];
  if (of.asked[chunk]) return;
  of.asked[chunk] = true;
  gaps_.push(when, {stream, chunk, 0, generation_});
}

void fpga_aggregator::check_gaps() {
  gap due;
  while (gaps_.pop_due(due)) {
    if (due.generation != generation_) continue;
    if (stream_has(due.stream, due.chunk)) {
      stream_states_[due.stream].asked[due.chunk] = false;
      continue;
    }
    if (due.tries > 0) ++counters_.timeouts;
    if (reserve(due.stream, due.chunk)) {
      ask_in_turn(due);
    } else {
      postponed_.emplace(std::make_pair(due.chunk, due.stream), due);
    }
  }
}

void fpga_aggregator::ask_in_turn(const gap& wanted) {
  ask(wanted.stream, wanted.chunk);
  gap next = wanted;
  ++next.tries;
  gaps_.push(now() + wait_after(wanted.tries), next);
}

/// Memory has become free: the oldest chunks first.
void fpga_aggregator::ask_postponed() {
  while (!postponed_.empty()) {
    const gap oldest = postponed_.begin()->second;
    const bool here = stream_has(oldest.stream, oldest.chunk);
    if (!here && !reserve(oldest.stream, oldest.chunk)) return;
    postponed_.erase(postponed_.begin());
    if (here) {
      stream_states_[oldest.stream].asked[oldest.chunk] = false;
    } else {
      ask_in_turn(oldest);
    }
  }
}

/// Takes the memory that a stream's part of a chunk needs, unless it has it. False: there is none.
bool fpga_aggregator::reserve(unsigned stream, std::uint32_t chunk) {
  if (policy() == buffering::none) return true;
  if (judge_repairable(chunk, stream) != verdict::take) return false;
  chunk_record& record = records_[record_of(chunk, chunk_size(chunk))];
  stream_part& part = record.streams[stream];
  if (policy() == buffering::per_stream) {
    if (part.slot == no_slot) part.slot = take_slot();
    return true;
  }
  if (record.slot == no_slot && streams_ > 1) record.slot = take_slot();
  if (!part.open) {
    part.open = true;
    staged_bytes_ += record.bytes;
  }
  return true;
}

/// Streams that are not complete and have been silent too long: the end of what was sent may be lost, or a credit. The
/// first chunk that has not begun is asked for; if it comes, it tells how much more was sent.
void fpga_aggregator::check_silence() {
  std::uint32_t generation = 0;
  while (silence_.pop_due(generation)) {
    if (generation != generation_) continue;
    picoseconds next = 0;
    bool credit = false;
    for (unsigned s = 0; s < streams_; ++s) {
      stream_state& of = stream_states_[s];
      if (of.complete == chunks_) continue;
      picoseconds due = of.heard + wait_after(of.silences);
      if (due <= now()) {
        ++counters_.timeouts;
        ++of.silences;
        while (of.next_chunk < chunks_ && stream_has(s, of.next_chunk)) ++of.next_chunk;  // came as repairs
        if (of.next_chunk < chunks_) watch(s, of.next_chunk, now());
        credit = true;
        of.heard = now();
        due = now() + wait_after(of.silences);
      }
      next = next == 0 ? due : std::min(next, due);
    }
    if (credit && control[reg::credit_window] != 0 && credit_announced_ != 0) announce_credit();
    if (next != 0) silence_.push(next, generation_);
  }
}

/// A nack for what the stream misses of the chunk.
void fpga_aggregator::ask(unsigned stream, std::uint32_t chunk) {
  const std::uint32_t size = chunk_size(chunk);
  const std::uint32_t packets = parameters_.format.packets(size);
  const std::uint32_t each = parameters_.format.payload_per_packet();
  auto missing = std::make_shared<std::vector<byte_range>>();
  const std::uint32_t record = record_of_chunk_[chunk];
  const packet_set* received = record == no_record ? nullptr : &records_[record].streams[stream].received;
  if (received == nullptr || received->empty()) {
    missing->push_back({0, size});
  } else {
    // With parity as many packets are enough as the chunk has.
    std::size_t wanted = packets - std::min<std::size_t>(packets, received->count());
    for (std::uint32_t i = 0; i < packets && wanted > 0; ++i) {
      if (received->test(i)) continue;
      --wanted;
      const std::uint32_t begin = i * each;
      const std::uint32_t bytes = std::min(each, size - begin);
      if (!missing->empty() && missing->back().offset + missing->back().bytes == begin) {
        missing->back().bytes += bytes;
      } else {
        missing->push_back({begin, bytes});
      }
    }
  }
  burst_content content;
  content.kind = burst_kind::nack;
  content.group = static_cast<std::uint16_t>(unicast_group + stream_states_[stream].source);
  content.chunk = chunk;
  content.payload_bytes = static_cast<std::uint32_t>(missing->size() * sizeof(byte_range));
  content.missing = std::move(missing);
  send_up(std::move(content));
  ++counters_.nacks_sent;
}

void fpga_aggregator::check_finished() {
  if ((control[reg::status] & status_busy) == 0 || merged_this_round_ < chunks_ || !egress.empty()) return;
  if (static_cast<merged_output>(control[reg::output]) != merged_output::cluster && egress_chunks_used_ != 0) return;
  control.set(reg::status, status_done);
  rate_.stop(now(), *rate_probe_);
  state_ = state::done;
  show_state();
  interrupt.write(true);
}

void fpga_aggregator::show_state() {
  const state shown = blocked_ != nullptr && state_ == state::merging ? state::stalled : state_;
  if (state_probe_->value() != static_cast<std::uint64_t>(shown)) {
    state_probe_->set(static_cast<std::uint64_t>(shown));
  }
}

aggregator_counters fpga_aggregator::counters() const {
  aggregator_counters so_far = counters_;
  if (blocked_ != nullptr) so_far.stalled[static_cast<unsigned>(blocked_cause_)] += now() - blocked_since_;
  if (merge_stalled_) so_far.stalled[static_cast<unsigned>(merge_stall_cause_)] += now() - merge_stalled_since_;
  return so_far;
}

std::string fpga_aggregator::waits_for() const {
  if ((control[reg::status] & status_busy) == 0 || streams_ == 0) return {};
  std::string text = "merged " + std::to_string(merged_this_round_) + " of " + std::to_string(chunks_) + " chunks";
  for (std::uint32_t c = 0; c < chunks_; ++c) {
    if (record_of_chunk_[c] == finished_record) continue;
    const site_set complete = record_of_chunk_[c] == no_record ? 0 : records_[record_of_chunk_[c]].complete;
    text += "; chunk " + std::to_string(c) + " lacks sites";
    for (site_set left = others_ & ~complete; left != 0; left &= left - 1) {
      text += " " + std::to_string(__builtin_ctzll(left));
    }
    break;
  }
  if (blocked_ != nullptr) {
    text += "; chunk " + std::to_string(blocked_->content().chunk) + " of site " +
            std::to_string(blocked_->content().source) +
            " is held at the input: " + stall_names[static_cast<unsigned>(blocked_cause_)] + " (" +
            std::to_string(occupancy_bytes()) + " of " + std::to_string(control[reg::slot_count] * slot_bytes_) +
            " bytes in use)";
  }
  return text;
}

}  // namespace tributary
