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
      credits("credits", [](burst_kind, bool) {}),
      memory("memory", *this),
      control("control", aggregator_registers, parameters.register_access_time,
              [this](unsigned index, std::uint64_t value) { registers_written(index, value); }),
      interrupt("interrupt"),
      parameters_(parameters),
      pool_(pool),
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
  const site_set others = members & ~site_bit(parameters_.id);
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

  others_ = others;
  streams_ = streams;
  stream_of_site_.fill(0);
  unsigned next = 0;
  for (site_set left = others_; left != 0; left &= left - 1) {
    stream_of_site_[static_cast<unsigned>(__builtin_ctzll(left))] = static_cast<std::uint8_t>(next++);
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

void fpga_aggregator::abandon_round() {
  if ((control[reg::status] & status_busy) == 0) return;
  others_ = 0;  // whatever still arrives is late
  chunks_ = 0;
}

// ---- ingress ----------------------------------------------------------------------------------------------------

tlm::tlm_sync_enum fpga_aggregator::receive(unsigned /*port*/, burst& incoming, tlm::tlm_phase& phase,
                                            sc_core::sc_time& /*t*/) {
  if (incoming.content().kind == burst_kind::credit) {  // for this site's cluster
    egress.push(incoming);
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }
  if (!admissible(incoming, blocked_cause_)) {
    blocked_ = &incoming;
    blocked_since_ = now();
    stall_probe_->set(blocked_cause_ == stall_cause::egress ? 0 : 1);
    show_state();
    return tlm::TLM_ACCEPTED;
  }
  take(incoming);
  phase = tlm::END_REQ;
  return tlm::TLM_UPDATED;
}

/// Of this round, this group, and one of its senders.
bool fpga_aggregator::belongs(const burst_content& content) const {
  return content.round == control[reg::round] && content.group == control[reg::group] && content.chunk < chunks_ &&
         (content.contributors & ~others_) == 0 && content.kind == burst_kind::data;
}

/// The slot table has an entry for a chunk that is not in it: one is free, and its tag tells it from all others.
bool fpga_aggregator::entry_free(std::uint32_t chunk) const {
  if (parameters_.slot_table_entries != 0 && open_records_ >= parameters_.slot_table_entries) return false;
  return parameters_.tag_bits >= 32 || chunk - first_open_ < std::uint32_t{1} << parameters_.tag_bits;
}

bool fpga_aggregator::admissible(const burst& incoming, stall_cause& cause) {
  const burst_content& content = incoming.content();
  if (!belongs(content)) return true;  // will be dropped
  if (policy() == buffering::none) {
    cause = stall_cause::egress;
    return egress_chunks_used_ < parameters_.egress_chunks * streams_;
  }
  if (staged_bytes_ != 0 && staged_bytes_ + content.payload_bytes > parameters_.ingress_buffer_bytes) {
    cause = stall_cause::memory_bandwidth;
    return false;
  }
  const std::uint32_t record = record_of_chunk_[content.chunk];
  if (record == finished_record) return true;  // duplicate
  if (record == no_record && !entry_free(content.chunk)) {
    cause = stall_cause::slot_table;
    return false;
  }
  cause = stall_cause::memory_full;
  if (policy() == buffering::per_stream) {
    const unsigned stream = stream_of_site_[content.source];
    return (record != no_record && records_[record].streams[stream].slot != no_slot) || slot_free();
  }
  return streams_ == 1 || record != no_record || slot_free();
}

void fpga_aggregator::drop(burst& dropped, std::uint64_t& counter, unsigned register_index) {
  ++counter;
  control.add(register_index, 1);
  pool_.release(dropped);
}

void fpga_aggregator::take(burst& taken) {
  const burst_content& content = taken.content();
  if (!belongs(content)) {
    return drop(taken, counters_.late_bursts, reg::late_bursts);
  }
  if (record_of_chunk_[content.chunk] == finished_record) {
    return drop(taken, counters_.duplicate_bursts, reg::duplicate_bursts);
  }
  const std::uint32_t index = record_of(content.chunk, content.chunk_bytes);
  chunk_record& record = records_[index];
  const unsigned stream = stream_of_site_[content.source];
  stream_part& part = record.streams[stream];
  if (content.offset_bytes < part.arrived_bytes) {
    return drop(taken, counters_.duplicate_bursts, reg::duplicate_bursts);
  }
  part.arrived_bytes = content.offset_bytes + content.payload_bytes;
  counters_.payload_bytes_in += content.payload_bytes;
  received_this_round_ += content.payload_bytes;
  rate_.add(now(), content.payload_bytes, *rate_probe_);
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
      void* data = nullptr;
      if (real() && content.values != nullptr) {
        if (part.values.size() < record.bytes / 4) part.values.resize(record.bytes / 4);
        std::copy(content.values->begin(), content.values->end(), part.values.begin() + content.offset_bytes / 4);
        data = part.values.data() + content.offset_bytes / 4;
      }
      access(tlm::TLM_WRITE_COMMAND, part.slot, content.offset_bytes, content.payload_bytes, data,
             {access_state::purpose::store, index, stream, &taken});
      return;
    }
    case buffering::in_place:
      if (record.slot == no_slot && streams_ > 1) record.slot = take_slot();
      staged_bytes_ += content.payload_bytes;
      work_.push(std::max(taken.tail, now()), {work::stream_in, index, &taken});
      return;
    case buffering::none:
      part.stored_bytes += content.payload_bytes;
      if (part.stored_bytes == record.bytes) {
        record.complete |= site_bit(content.source);
        if (record.complete == others_) {
          close_record(index);
          ++merged_this_round_;
        }
      }
      counters_.payload_bytes_out += content.payload_bytes;
      ++egress_chunks_used_;
      egress.push(taken);
      return;
  }
}

void fpga_aggregator::retry_blocked() {
  while (blocked_ != nullptr) {
    stall_cause cause = blocked_cause_;
    const bool free = admissible(*blocked_, cause);
    if (!free && cause == blocked_cause_) return;
    counters_.stalled[static_cast<unsigned>(blocked_cause_)] += now() - blocked_since_;
    blocked_since_ = now();
    blocked_cause_ = cause;
    if (!free) return;
    burst& taken = *std::exchange(blocked_, nullptr);
    stall_probe_->set(0);
    end_request(in, taken);
    taken.hold_until(now(), name());
    take(taken);
    show_state();
  }
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
  record.complete = 0;
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
    part.values.clear();
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
  chunk_record& record = records_[done.record];
  switch (done.what) {
    case access_state::purpose::store:
      work_.push(std::max(when, done.arrived->tail), {work::stored, done.record, done.arrived});
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
             {access_state::purpose::accumulate_write, done.record, done.stream, nullptr});
      return;
    }
    case access_state::purpose::accumulate_write:
      record.memory_until = std::max(record.memory_until, when);
      work_.push(std::max(record.memory_until, record.datapath_until), {work::added, done.record, nullptr});
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
    switch (item.what) {
      case work::stored: stored(item.record, *item.arrived); break;
      case work::stream_in: stream_in(item.record, *item.arrived); break;
      case work::added: {
        chunk_record& record = records_[item.record];
        ++record.added;
        record.operating = false;
        staged_bytes_ -= std::exchange(record.staged_bytes, 0);
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

/// per_stream: a burst is written.
void fpga_aggregator::stored(std::uint32_t index, burst& arrived) {
  chunk_record& record = records_[index];
  const burst_content& content = arrived.content();
  staged_bytes_ -= content.payload_bytes;
  stream_part& part = record.streams[stream_of_site_[content.source]];
  part.stored_bytes += content.payload_bytes;
  if (part.stored_bytes == record.bytes) {
    record.complete |= site_bit(content.source);
    if (listener != nullptr) {
      listener->arrived(parameters_.id, content.source, content.chunk, arrived.head, arrived.tail);
    }
    if (record.complete == others_) {
      note_last(record, arrived);
      ready(index);
    }
  }
  pool_.release(arrived);
}

/// in_place: a burst is completely in the ingress buffer.
void fpga_aggregator::stream_in(std::uint32_t index, burst& arrived) {
  chunk_record& record = records_[index];
  const burst_content& content = arrived.content();
  const unsigned stream = stream_of_site_[content.source];
  stream_part& part = record.streams[stream];
  if (real() && content.values != nullptr) {
    if (part.values.size() < record.bytes / 4) part.values.resize(record.bytes / 4);
    std::copy(content.values->begin(), content.values->end(), part.values.begin() + content.offset_bytes / 4);
  }
  part.stored_bytes += content.payload_bytes;
  if (part.stored_bytes == record.bytes) {
    record.complete |= site_bit(content.source);
    if (listener != nullptr) {
      listener->arrived(parameters_.id, content.source, content.chunk, arrived.head, arrived.tail);
    }
    record.pending.push_back(stream);
    if (record.complete == others_) note_last(record, arrived);
    next_operation(index);
  }
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
           {access_state::purpose::accumulate_write, index, stream, nullptr});
    return;
  }
  record.datapath_until += parameters_.adder_latency;
  access(tlm::TLM_READ_COMMAND, record.slot, 0, sum_bytes(record.bytes), real() ? record.sum.data() : nullptr,
         {access_state::purpose::accumulate_read, index, stream, nullptr});
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
        work_.push(datapath_free_, {work::merge_again, 0, nullptr});
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
           {access_state::purpose::read_operand, index, 0, nullptr});
    return;
  }
  record.outstanding_reads = streams_;
  for (unsigned s = 0; s < streams_; ++s) {
    stream_part& part = records_[index].streams[s];
    access(tlm::TLM_READ_COMMAND, part.slot, 0, records_[index].bytes, real() ? part.values.data() : nullptr,
           {access_state::purpose::read_operand, index, s, nullptr});
  }
}

void fpga_aggregator::merge_operands_read(std::uint32_t index) {
  const chunk_record& record = records_[index];
  work_.push(std::max(record.memory_until, record.datapath_until) + parameters_.adder_latency,
             {work::merged, index, nullptr});
}

void fpga_aggregator::merged(std::uint32_t index) {
  chunk_record& record = records_[index];
  record.spent.memory += now() - record.ready_at;
  if (listener != nullptr) listener->merged(parameters_.id, record.chunk, record.ready_at, now());
  contributors_probe_->set(record.complete);
  if (record.story != nullptr) {
    burst::extend(*record.story, record.departed, "reading and adding", name(), now(), path_part::memory);
  }
  for (stream_part& part : record.streams) free_slot(part.slot);
  free_slot(record.slot);
  occupancy_probe_->set(occupancy_bytes());
  slots_probe_->set(slots_used_);

  burst_content content;
  content.kind = burst_kind::aggregate;
  content.group = static_cast<std::uint16_t>(control[reg::group]);
  content.source = static_cast<std::uint16_t>(record.last_source);
  content.round = static_cast<std::uint32_t>(control[reg::round]);
  content.chunk = record.chunk;
  content.chunk_bytes = record.bytes;
  content.contributors = record.complete;
  content.send_start = record.send_start;
  if (record.complete != others_) ++counters_.contributor_errors;
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
    if (offset + content.payload_bytes == record.bytes) outgoing.story = std::move(record.story);
    egress.push(outgoing);
  }
  counters_.payload_bytes_out += record.bytes;
  ++counters_.merged_chunks;
  ++merged_this_round_;
  control.set(reg::merged_chunks, merged_this_round_);
  send_credits();
  merged_probe_->set(merged_this_round_);
  close_record(index);
  try_merge();
  check_finished();
}

// ---- egress -----------------------------------------------------------------------------------------------------

/// Tells every sender how many chunks it may have sent: what is merged plus the window. Cumulative, so a later credit
/// makes an earlier one superfluous; none is sent once the whole update is allowed.
void fpga_aggregator::send_credits() {
  const auto window = static_cast<std::uint32_t>(control[reg::credit_window]);
  if (window == 0 || credit_announced_ >= chunks_) return;
  const std::uint32_t allowed = std::min(chunks_, merged_this_round_ + window);
  const auto batch = static_cast<std::uint32_t>(control[reg::credit_batch]);
  if (allowed < credit_announced_ + std::max(1U, batch) && allowed < chunks_) return;
  credit_announced_ = allowed;
  for (site_set left = others_; left != 0; left &= left - 1) {
    burst_content content;
    content.kind = burst_kind::credit;
    content.priority = 1;
    content.group = static_cast<std::uint16_t>(credit_group + static_cast<unsigned>(__builtin_ctzll(left)));
    content.source = static_cast<std::uint16_t>(parameters_.id);
    content.round = static_cast<std::uint32_t>(control[reg::round]);
    content.chunk = allowed;
    burst& outgoing = pool_.make(std::move(content), parameters_.format);
    outgoing.starts_at(now());
    outgoing.departed = now();
    credits.push(outgoing);
    ++counters_.credits_sent;
  }
}

void fpga_aggregator::egress_taken(burst_kind kind, bool last_of_chunk) {
  if (kind == burst_kind::credit) return;
  if (kind == burst_kind::data || last_of_chunk) {
    --egress_chunks_used_;
    if (blocked_ != nullptr || !ready_.empty()) work_.push(now(), {work::merge_again, 0, nullptr});
  }
  check_finished();
}

void fpga_aggregator::check_finished() {
  if ((control[reg::status] & status_busy) == 0 || merged_this_round_ < chunks_ || !egress.empty()) return;
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
