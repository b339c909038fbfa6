#include "modules/gpu_cluster/gpu_cluster.hpp"

#include <algorithm>
#include <boost/random/lognormal_distribution.hpp>
#include <boost/random/mersenne_twister.hpp>
#include <limits>
#include <utility>

namespace tributary {

namespace reg = cluster_register;

gpu_cluster::gpu_cluster(const sc_core::sc_module_name& name, const cluster_parameters& parameters, burst_pool& pool)
    : model(name),
      in("in", *this),
      out("out", *this),
      control("control", cluster_registers, parameters.register_access_time,
              [this](unsigned index, std::uint64_t value) { registers_written(index, value); }),
      interrupt("interrupt"),
      parameters_(parameters),
      pool_(pool),
      values_(parameters.values, parameters.seed, parameters.scale_bits),
      step_("step"),
      send_("send"),
      consuming_("consuming") {
  control.set(reg::id, parameters.id);
  state_probe_ = &add_probe({"state",
                             probe_kind::state,
                             trace_level::round,
                             "",
                             "what the cluster does",
                             {"idle", "compute", "exchange", "wait", "apply", "done"}});
  sent_probe_ =
      &add_probe({"sent", probe_kind::quantity, trace_level::chunk, "bytes", "payload bytes sent in this round", {}});
  received_probe_ = &add_probe({"received",
                                probe_kind::quantity,
                                trace_level::chunk,
                                "bytes",
                                "merged payload bytes consumed in this round",
                                {}});
  request_probe_ = &add_probe({"send_stall",
                               probe_kind::flag,
                               trace_level::chunk,
                               "",
                               "a chunk is due and the access link does not take it",
                               {}});
  credit_probe_ = &add_probe({"credits",
                              probe_kind::quantity,
                              trace_level::packet,
                              "chunks",
                              "chunks it may still send (credit flow control)",
                              {}});
  spawn_method("step_method", step_, [this] { step(); });
  spawn_method("send_method", send_, [this] { send_next(); });
  spawn_method("consume_method", consuming_.due(), [this] { consume_due(); });
}

site_set gpu_cluster::expected() const {
  return role() == collective::exchange || role() == collective::hub ? others() : control[reg::members];
}

site_set gpu_cluster::others() const { return control[reg::members] & ~site_bit(parameters_.id); }

std::uint32_t gpu_cluster::size_of(std::uint32_t chunk) const {
  const std::uint64_t chunk_bytes = control[reg::chunk_bytes];
  return static_cast<std::uint32_t>(std::min(chunk_bytes, control[reg::update_bytes] - chunk * chunk_bytes));
}

void gpu_cluster::registers_written(unsigned index, std::uint64_t value) {
  if (index != reg::control) return;
  if (value == command_start || value == command_resume) {
    start(value == command_start);
  } else if (value == command_clear) {
    abandon_round();
    control.set(reg::status, status_idle);
    control.set(reg::error, error_none);
    interrupt.write(false);
    enter(state::idle);
  }
}

void gpu_cluster::refuse(register_error why) {
  control.set(reg::error, why);
  control.set(reg::status, control[reg::status] | status_error);
}

void gpu_cluster::abandon_round() {
  step_.cancel();
  send_.cancel();
  while (!queue_.empty()) queue_.pop();
  repairing_.clear();
  sending_dropped_ = withheld_;
  if ((control[reg::status] & status_busy) == 0) return;
  chunks_ = next_chunk_ = next_offset_ = 0;
  next_target_ = 0;
  progress_.clear();
}

void gpu_cluster::set_power(bool on) {
  if (on == powered_) return;
  powered_ = on;
  if (on) return;
  abandon_round();
  control.set(reg::status, status_idle);
  interrupt.write(false);
  enter(state::idle);
}

/// `computes`: false goes on with the update that is computed or being computed.
void gpu_cluster::start(bool computes) {
  if ((control[reg::status] & status_busy) != 0) return refuse(error_busy);
  if (control[reg::chunk_bytes] == 0 || control[reg::update_bytes] == 0) return refuse(error_chunk);
  if ((control[reg::members] & site_bit(parameters_.id)) == 0) return refuse(error_members);

  control.set(reg::status, status_busy);
  control.set(reg::sent_chunks, 0);
  control.set(reg::received_chunks, 0);
  const std::uint64_t chunk_bytes = control[reg::chunk_bytes];
  chunks_ =
      others() == 0 ? 0 : static_cast<std::uint32_t>((control[reg::update_bytes] + chunk_bytes - 1) / chunk_bytes);
  progress_.assign(chunks_, {});
  next_chunk_ = next_offset_ = chunks_received_ = 0;
  next_target_ = 0;
  repairs_ = 0;
  allowed_.fill(static_cast<std::uint32_t>(control[reg::credit_window]));
  waits_for_credit_ = false;
  targets_.clear();
  switch (role()) {
    case collective::exchange:
      if (control[reg::unicast] == 0) {
        targets_.push_back(static_cast<std::uint16_t>(control[reg::group]));
      } else {
        for (site_set left = others(); left != 0; left &= left - 1) {
          targets_.push_back(static_cast<std::uint16_t>(unicast_group + static_cast<unsigned>(__builtin_ctzll(left))));
        }
      }
      break;
    case collective::hub: break;
    case collective::leaf:
    case collective::ring: targets_.push_back(static_cast<std::uint16_t>(unicast_group + control[reg::peer])); break;
    case collective::transit: targets_.push_back(static_cast<std::uint16_t>(unicast_group + parameters_.id)); break;
  }
  const picoseconds started = computes ? now() : round_.started;
  round_ = {};
  round_.started = started;
  recount_credit();
  sent_probe_->set(0);
  received_probe_->set(0);

  if (computes) {
    picoseconds compute = parameters_.compute_time;
    if (parameters_.straggler_sigma > 0) {
      // One generator a (site, round): a round's draw does not depend on what happened before it.
      boost::random::mt19937_64 generator(parameters_.seed * 0x9e3779b97f4a7c15ULL +
                                          (control[reg::round] << 8 | parameters_.id));
      boost::random::lognormal_distribution<double> factor(0.0, parameters_.straggler_sigma);
      compute = static_cast<picoseconds>(static_cast<double>(compute) * factor(generator));
    }
    computing_ += compute;
    compute_ends_ = now() + compute + parameters_.reduce_time;
  }
  skip_chunks_of_others();
  enter(state::compute);
  round_.released = std::max(now(), release_of(0));
  step_.notify(until(round_.released));
}

picoseconds gpu_cluster::release_of(std::uint32_t chunk) const {
  if (parameters_.released_early_share <= 0 || chunks_ == 0) return compute_ends_;
  // The backward pass frees chunk after chunk at an even rate over the last part of the compute time.
  const auto window =
      static_cast<picoseconds>(static_cast<double>(parameters_.compute_time) * parameters_.released_early_share);
  const picoseconds span = std::min(window, compute_ends_ - round_.started);
  return compute_ends_ - multiply_divide_down(span, chunks_ - 1 - chunk, chunks_);
}

void gpu_cluster::step() {
  switch (state_) {
    case state::compute:
      if (chunks_ == 0) {  // nobody to exchange with
        if (now() < compute_ends_) {
          step_.notify(until(compute_ends_));
          return;
        }
        round_.sent = round_.received = now();
        enter(state::apply);
        step_.notify(as_time(parameters_.apply_time));
        return;
      }
      round_.released = now();
      enter(next_chunk_ == chunks_ ? state::wait : state::exchange);
      if (role() != collective::exchange) {
        for (std::uint32_t chunk = 0; chunk < chunks_; ++chunk) pass_on_held(chunk);
      }
      if (next_chunk_ == chunks_) {  // nothing of its own to send
        round_.sent = now();
        check_finished();
        return;
      }
      chunk_departed_ = now() + control[reg::offset_ps];
      send_.notify(as_time(control[reg::offset_ps]));
      return;
    case state::apply:
      round_.done = now();
      enter(state::done);
      control.set(reg::status, status_done);
      interrupt.write(true);
      return;
    default: return;
  }
}

/// In a ring only the chunks whose way begins here; a hub sends none of its own.
bool gpu_cluster::own(std::uint32_t chunk) const {
  if (role() == collective::hub) return false;
  if (role() != collective::ring) return true;
  const auto sites = static_cast<std::uint64_t>(__builtin_popcountll(control[reg::members]));
  return (chunk % sites + 1) % sites == control[reg::ring_place];
}

void gpu_cluster::skip_chunks_of_others() {
  while (next_chunk_ < chunks_ && !own(next_chunk_)) ++next_chunk_;
}

/// Bytes of what is left to send that one burst carries.
std::uint32_t gpu_cluster::part_of(std::uint32_t left) const {
  return parameters_.split_into_packets ? std::min(left, parameters_.format.payload_per_packet()) : left;
}

void gpu_cluster::queue(const parcel& next) {
  queue_.push(next);
  if (!withheld_) send_.notify(until(std::max(now(), line_ready_)));
}

void gpu_cluster::send_queued() {
  parcel& front = queue_.front();
  parcel next = front;
  next.bytes = part_of(front.bytes);
  front.offset += next.bytes;
  front.bytes -= next.bytes;
  if (front.bytes == 0) {
    if (next.attempt != 0) {
      const auto served = repairing_.find({front.group - unicast_group, front.chunk});
      if (served != repairing_.end() && --served->second == 0) repairing_.erase(served);
    }
    queue_.pop();
  }
  sending_queued_ = true;
  emit(next);
}

void gpu_cluster::send_next() {
  if (withheld_) return;
  if (!queue_.empty()) {
    if (line_ready_ > now()) {
      send_.notify(until(line_ready_));
    } else {
      send_queued();
    }
    return;
  }
  if (next_chunk_ == chunks_ || state_ != state::exchange) return;
  const bool new_chunk = next_offset_ == 0 && next_target_ == 0;
  picoseconds due =
      new_chunk && control[reg::sent_chunks] != 0 ? chunk_departed_ + control[reg::pace_ps] : chunk_departed_;
  due = std::max({due, release_of(next_chunk_), line_ready_});
  if (due > now()) {
    send_.notify(until(due));
    return;
  }
  if (new_chunk && control[reg::credit_window] != 0 && next_chunk_ >= allowed_by_all_) {
    if (!waits_for_credit_) credit_wait_since_ = now();
    waits_for_credit_ = true;
    return;
  }
  if (new_chunk) chunk_departed_ = now();
  const std::uint32_t size = size_of(next_chunk_);
  parcel next;
  next.chunk = next_chunk_;
  next.group = targets_[next_target_];
  next.contributors = site_bit(parameters_.id);
  next.offset = next_offset_;
  if (next_offset_ < size) {
    next.bytes = part_of(size - next_offset_);
  } else {  // parity packets lie behind the chunk's own, all full
    const std::uint32_t each = parameters_.format.payload_per_packet();
    const std::uint32_t begin = parameters_.format.packets(size) * each;
    next.kind = burst_kind::parity;
    next.offset = begin + (next_offset_ - size);
    next.bytes = part_of(static_cast<std::uint32_t>(control[reg::parity_packets]) * each - (next_offset_ - size));
  }
  sending_queued_ = false;
  emit(next);
}

/// A slice of the own update, or of the sum so far that is passed on; null without real values.
std::shared_ptr<const chunk_values> gpu_cluster::values_of(const parcel& next) {
  if (values_.synthetic()) return nullptr;
  const std::uint64_t first = next.chunk * control[reg::chunk_bytes];
  const auto round = static_cast<std::uint32_t>(control[reg::round]);
  if (next.kind == burst_kind::parity) {  // stands for the whole chunk
    return std::make_shared<const chunk_values>(
        values_.slice(round, parameters_.id, first / 4, size_of(next.chunk) / 4));
  }
  if (next.contributors == site_bit(parameters_.id)) {
    return std::make_shared<const chunk_values>(
        values_.slice(round, parameters_.id, (first + next.offset) / 4, next.bytes / 4));
  }
  const chunk_values& sum = progress_[next.chunk].sum;
  return std::make_shared<const chunk_values>(sum.begin() + next.offset / 4,
                                              sum.begin() + (next.offset + next.bytes) / 4);
}

void gpu_cluster::emit(const parcel& next) {
  burst_content content;
  content.kind = next.kind;
  content.group = next.group;
  content.source = static_cast<std::uint16_t>(parameters_.id);
  content.round = static_cast<std::uint32_t>(control[reg::round]);
  content.epoch = static_cast<std::uint16_t>(control[reg::epoch]);
  content.attempt = next.attempt;
  content.chunk = next.chunk;
  content.offset_bytes = next.offset;
  content.payload_bytes = next.bytes;
  content.chunk_bytes = size_of(next.chunk);
  content.sent_chunks = next_chunk_;
  content.send_start = round_.released;
  content.contributors = next.contributors;
  content.values = values_of(next);
  burst& outgoing = pool_.make(std::move(content), parameters_.format);
  outgoing.starts_at(now());
  outgoing.departed = now();
  // Any of the last chunks may end the round, so these tell where they have been.
  if (next.chunk + 4 >= chunks_ && next.offset + next.bytes == size_of(next.chunk)) {
    outgoing.story = std::make_unique<trail>();
  }
  sc_core::sc_time after = sc_core::SC_ZERO_TIME;
  withheld_ = true;
  withheld_since_ = now();
  sending_ = next;
  if (!out.begin(outgoing, after)) {
    request_probe_->set(1);
    return;
  }
  withheld_ = false;
  line_ready_ = now() + after.value();
  after_send(next);
}

tlm::tlm_sync_enum gpu_cluster::sent(unsigned /*port*/, burst& /*outgoing*/, tlm::tlm_phase& /*phase*/,
                                     sc_core::sc_time& t) {
  withheld_ = false;
  round_.send_blocked += now() - withheld_since_;
  request_probe_->set(0);
  line_ready_ = now() + t.value();
  if (std::exchange(sending_dropped_, false)) {
    send_.notify(until(line_ready_));
  } else {
    after_send(sending_);
  }
  return tlm::TLM_ACCEPTED;
}

void gpu_cluster::after_send(const parcel& sent_now) {
  if (sent_now.attempt != 0) {
    counters_.repair_packets += parameters_.format.packets(sent_now.bytes);
    counters_.repair_payload_bytes += sent_now.bytes;
  } else if (sent_now.kind != burst_kind::parity) {
    round_.payload_bytes_sent += sent_now.bytes;
  }
  if (!sending_queued_) after_own(sent_now);
  if (!queue_.empty()) {
    send_.notify(until(line_ready_));
  } else if (state_ == state::exchange && next_chunk_ < chunks_) {
    const bool new_chunk = next_offset_ == 0 && next_target_ == 0;
    const picoseconds paced = new_chunk ? chunk_departed_ + control[reg::pace_ps] : now();
    send_.notify(until(std::max({paced, line_ready_, release_of(next_chunk_)})));
  }
  check_finished();
}

void gpu_cluster::after_own(const parcel& sent_now) {
  if (++next_target_ < targets_.size()) return;
  next_target_ = 0;
  const std::uint32_t size = size_of(next_chunk_);
  const std::uint32_t end =
      size + static_cast<std::uint32_t>(control[reg::parity_packets]) * parameters_.format.payload_per_packet();
  next_offset_ += sent_now.bytes;
  if (next_offset_ < end) return;
  next_offset_ = 0;
  if (listener != nullptr) listener->departed(parameters_.id, next_chunk_, chunk_departed_, line_ready_);
  ++next_chunk_;
  skip_chunks_of_others();
  control.add(reg::sent_chunks, 1);
  sent_probe_->set(round_.payload_bytes_sent);
  if (next_chunk_ < chunks_) return;
  round_.sent = now();
  enter(state::wait);
}

/// A receiver misses something: what of it has been sent goes to it alone.
void gpu_cluster::take_nack(const burst_content& content) {
  if (content.round != control[reg::round] || content.epoch != control[reg::epoch] ||
      (others() & site_bit(content.source)) == 0) {
    ++counters_.stale_bursts;
    return;
  }
  ++counters_.nacks_received;
  if (content.missing == nullptr || content.chunk >= next_chunk_) return;  // still to come
  unsigned& parcels = repairing_[{content.source, content.chunk}];
  if (parcels != 0) return;  // it waits here already
  parcel next;
  next.group = static_cast<std::uint16_t>(unicast_group + content.source);
  next.contributors = site_bit(parameters_.id);
  next.chunk = content.chunk;
  for (const byte_range& range : *content.missing) {
    next.attempt = ++repairs_ == 0 ? ++repairs_ : repairs_;
    next.offset = range.offset;
    next.bytes = range.bytes;
    ++parcels;
    queue(next);
  }
}

tlm::tlm_sync_enum gpu_cluster::receive(unsigned /*port*/, burst& incoming, tlm::tlm_phase& phase,
                                        sc_core::sc_time& t) {
  consumer_free_ =
      std::max(consumer_free_, incoming.head) + transfer_time(incoming.payload_bytes(), parameters_.consume_rate);
  consuming_.push(std::max(incoming.tail, consumer_free_), &incoming);
  phase = tlm::END_REQ;
  t = until(std::max(consumer_free_, incoming.head));
  return tlm::TLM_UPDATED;
}

void gpu_cluster::consume_due() {
  burst* arrived = nullptr;
  while (consuming_.pop_due(arrived)) {
    if (powered_) consume(*arrived);
    pool_.release(*arrived);
    check_finished();
  }
}

void gpu_cluster::consume(burst& arrived) {
  const burst_content& content = arrived.content();
  if (content.kind == burst_kind::credit) return take_credit(content);
  if (content.kind == burst_kind::nack) return take_nack(content);
  if (content.kind == burst_kind::parity) return;
  if (content.epoch != control[reg::epoch] || content.round < control[reg::round] ||
      (control[reg::status] & (status_busy | status_done)) == 0) {
    ++counters_.stale_bursts;
    return;
  }
  const std::uint32_t bytes = arrived.payload_bytes();
  round_.payload_bytes_received += bytes;
  received_probe_->set(round_.payload_bytes_received);
  if (content.round != control[reg::round] || content.chunk >= chunks_ ||
      (content.contributors & ~control[reg::members]) != 0) {
    ++coverage_errors_;
    return;
  }
  if (!values_.synthetic()) verify(arrived);
  const bool partial = role() == collective::hub || (role() == collective::ring && content.kind == burst_kind::data);
  chunk_progress& chunk = progress_[content.chunk];
  if (!values_.synthetic() && (partial || role() == collective::ring)) {
    // A sum that came around is kept to be passed on; a partial one is added to what is here.
    chunk.sum.resize(size_of(content.chunk) / 4, 0);
    chunk_values part(chunk.sum.begin() + content.offset_bytes / 4,
                      chunk.sum.begin() + (content.offset_bytes + content.payload_bytes) / 4);
    if (!partial) std::fill(part.begin(), part.end(), 0);
    (void)add_values(values_.format(), part, content.values->data(), content.values->size());
    std::copy(part.begin(), part.end(), chunk.sum.begin() + content.offset_bytes / 4);
  }
  chunk.contributed_bytes += std::uint64_t{bytes} * static_cast<unsigned>(__builtin_popcountll(content.contributors));
  chunk.contributors |= content.contributors;
  const site_set wanted = partial && role() == collective::ring ? content.contributors : expected();
  const std::uint64_t enough =
      std::uint64_t{size_of(content.chunk)} * static_cast<unsigned>(__builtin_popcountll(wanted));
  if (chunk.contributed_bytes > enough) ++coverage_errors_;
  if (chunk.contributed_bytes != enough) return;
  if (chunk.contributors != wanted) ++coverage_errors_;
  if (partial) {
    if (state_ != state::compute) pass_on_held(content.chunk);
    if (role() == collective::hub || own_sum(content.chunk)) count_received(arrived);
    return;
  }
  if (role() == collective::ring) pass_on_held(content.chunk);
  count_received(arrived);
}

/// The place in the ring where the chunk's sum becomes complete.
bool gpu_cluster::own_sum(std::uint32_t chunk) const {
  const auto sites = static_cast<std::uint64_t>(__builtin_popcountll(control[reg::members]));
  return role() == collective::ring && chunk % sites == control[reg::ring_place];
}

/// Hub and ring: sends on a chunk that is complete here, with the own values in it. While the own update is being
/// computed it waits.
void gpu_cluster::pass_on_held(std::uint32_t chunk) {
  if (role() != collective::hub && role() != collective::ring) return;
  chunk_progress& held = progress_[chunk];
  const site_set self = site_bit(parameters_.id);
  const site_set members = control[reg::members];
  const std::uint32_t size = size_of(chunk);
  const auto count = [size](site_set of) {
    return std::uint64_t{size} * static_cast<unsigned>(__builtin_popcountll(of));
  };
  if (held.contributors == 0 || held.contributed_bytes != count(held.contributors)) return;
  const bool hub = role() == collective::hub;
  if (hub && held.contributors != others()) return;
  const bool finished = (held.contributors & self) != 0;  // the sum came around, or was passed on before
  if (!finished && !values_.synthetic()) {
    const chunk_values words = values_.slice(static_cast<std::uint32_t>(control[reg::round]), parameters_.id,
                                             chunk * control[reg::chunk_bytes] / 4, size / 4);
    (void)add_values(values_.format(), held.sum, words.data(), words.size());
  }
  parcel next;
  next.chunk = chunk;
  next.bytes = size;
  next.contributors = held.contributors | self;
  next.kind = next.contributors == members ? burst_kind::aggregate : burst_kind::data;
  if (hub) {
    held.contributors = next.contributors;  // once only
    held.contributed_bytes = count(members);
    if (control[reg::unicast] == 0) {
      next.group = static_cast<std::uint16_t>(control[reg::group]);
      queue(next);
      return;
    }
    for (site_set left = others(); left != 0; left &= left - 1) {
      next.group = static_cast<std::uint16_t>(unicast_group + static_cast<unsigned>(__builtin_ctzll(left)));
      queue(next);
    }
    return;
  }
  const auto sites = static_cast<std::uint64_t>(__builtin_popcountll(members));
  next.group = static_cast<std::uint16_t>(unicast_group + control[reg::peer]);
  if (finished && (control[reg::ring_place] + 1) % sites == chunk % sites) return;  // all around
  if (!finished && next.kind == burst_kind::data) {
    // The finished sum will come through here once more.
    held.contributors = 0;
    held.contributed_bytes = 0;
  }
  queue(next);
}

void gpu_cluster::count_received(burst& arrived) {
  const burst_content& content = arrived.content();
  ++chunks_received_;
  control.set(reg::received_chunks, chunks_received_);
  round_.received = now();
  round_.last_send_start = content.send_start;
  round_.last_departed = arrived.departed;
  round_.last_tail = arrived.tail;
  round_.last_source = content.source;
  round_.last_spent = arrived.spent;
  arrived.note("taken in by the cluster", name(), now(), path_part::serialization);
  round_.last_story = std::move(arrived.story);
}

void gpu_cluster::take_credit(const burst_content& content) {
  if (content.round != control[reg::round] || content.epoch != control[reg::epoch] ||
      (others() & site_bit(content.source)) == 0) {
    return;  // of an earlier round
  }
  std::uint32_t& allowed = allowed_[content.source];
  allowed = std::max(allowed, content.chunk);
  recount_credit();
  if (waits_for_credit_ && next_chunk_ < allowed_by_all_) {
    waits_for_credit_ = false;
    round_.credit_wait += now() - credit_wait_since_;
    send_.notify(sc_core::SC_ZERO_TIME);
  }
}

void gpu_cluster::recount_credit() {
  allowed_by_all_ = chunks_;
  for (site_set left = others(); left != 0; left &= left - 1) {
    allowed_by_all_ = std::min(allowed_by_all_, allowed_[static_cast<unsigned>(__builtin_ctzll(left))]);
  }
  credit_probe_->set(allowed_by_all_ > next_chunk_ ? allowed_by_all_ - next_chunk_ : 0);
}

/// Compares the packets that are there with a direct reduction.
void gpu_cluster::verify(const burst& arrived) {
  const burst_content& content = arrived.content();
  const std::size_t count = content.payload_bytes / 4;
  if (content.values == nullptr || content.values->size() != count) {
    control.add(reg::mismatches, count);
    return;
  }
  const std::uint64_t first = (content.chunk * control[reg::chunk_bytes] + content.offset_bytes) / 4;
  const value_format format = values_.format();
  chunk_values sum(count * sum_words_per_word(format), 0);
  std::vector<std::int64_t> exact(format == value_format::int32 ? count : 0, 0);
  for (site_set left = content.contributors; left != 0; left &= left - 1) {
    const auto site = static_cast<unsigned>(__builtin_ctzll(left));
    const chunk_values words = values_.slice(content.round, site, first, count);
    (void)add_values(format, sum, words.data(), count);
    for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += static_cast<std::int32_t>(words[i]);
  }
  const chunk_values direct = narrowed(format, sum);
  elements_compared_ += arrived.payload_bytes() / 4;
  for (std::size_t i = 0; i < count; ++i) {
    if (arrived.has_lost(static_cast<std::uint32_t>(i * 4 / content.packet_payload))) continue;
    // A sum outside the range was held somewhere on its way, which depends on the order: counted, not compared.
    if (!exact.empty() &&
        (exact[i] > std::numeric_limits<std::int32_t>::max() || exact[i] < std::numeric_limits<std::int32_t>::min())) {
      control.add(reg::saturated, 1);
      continue;
    }
    if ((*content.values)[i] == direct[i]) continue;
    const double difference = element_difference(format, (*content.values)[i], direct[i]);
    if (difference == 0) continue;  // +0 and -0
    control.add(reg::mismatches, 1);
    largest_difference_ = std::max(largest_difference_, difference);
  }
}

void gpu_cluster::check_finished() {
  if (state_ != state::wait || chunks_received_ < chunks_) return;
  const bool passes_on = role() == collective::hub || role() == collective::ring;
  if (passes_on && (!queue_.empty() || withheld_)) return;
  enter(state::apply);
  step_.notify(as_time(parameters_.apply_time));
}

void gpu_cluster::enter(state next) {
  state_ = next;
  state_probe_->set(static_cast<std::uint64_t>(next));
}

std::string gpu_cluster::waits_for() const {
  if (state_ != state::exchange && state_ != state::wait) return {};
  std::string text = "sent " + std::to_string(next_chunk_) + " of " + std::to_string(chunks_) + " chunks, received " +
                     std::to_string(chunks_received_);
  if (waits_for_credit_) text += "; it waits for credit beyond chunk " + std::to_string(allowed_by_all_);
  if (withheld_) text += "; the access link does not take the next chunk";
  if (chunks_received_ < chunks_) {
    for (std::uint32_t c = 0; c < chunks_; ++c) {
      const site_set missing = expected() & ~progress_[c].contributors;
      if (missing == 0) continue;
      text += "; chunk " + std::to_string(c) + " lacks sites";
      for (site_set left = missing; left != 0; left &= left - 1) text += " " + std::to_string(__builtin_ctzll(left));
      break;
    }
  }
  return text;
}

}  // namespace tributary
