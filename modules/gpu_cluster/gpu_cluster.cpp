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

site_set gpu_cluster::others() const { return control[reg::members] & ~site_bit(parameters_.id); }

std::uint32_t gpu_cluster::size_of(std::uint32_t chunk) const {
  const std::uint64_t chunk_bytes = control[reg::chunk_bytes];
  return static_cast<std::uint32_t>(std::min(chunk_bytes, control[reg::update_bytes] - chunk * chunk_bytes));
}

void gpu_cluster::registers_written(unsigned index, std::uint64_t value) {
  if (index != reg::control) return;
  if (value == command_start) {
    start();
  } else if (value == command_clear && (control[reg::status] & status_busy) == 0) {
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

void gpu_cluster::start() {
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
  allowed_.fill(static_cast<std::uint32_t>(control[reg::credit_window]));
  waits_for_credit_ = false;
  round_ = {};
  round_.started = now();
  recount_credit();
  sent_probe_->set(0);
  received_probe_->set(0);

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
  enter(state::compute);
  round_.released = release_of(0);
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
      enter(state::exchange);
      round_.released = now();
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

void gpu_cluster::send_next() {
  if (next_chunk_ == chunks_ || withheld_) return;
  const bool new_chunk = next_offset_ == 0;
  picoseconds due = new_chunk && next_chunk_ > 0 ? chunk_departed_ + control[reg::pace_ps] : chunk_departed_;
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
  const std::uint32_t bytes =
      parameters_.split_into_packets ? std::min(size - next_offset_, parameters_.format.payload_per_packet()) : size;
  emit(next_chunk_, next_offset_, bytes);
}

void gpu_cluster::emit(std::uint32_t chunk, std::uint32_t offset, std::uint32_t bytes) {
  burst_content content;
  content.kind = burst_kind::data;
  content.group = static_cast<std::uint16_t>(control[reg::group]);
  content.source = static_cast<std::uint16_t>(parameters_.id);
  content.round = static_cast<std::uint32_t>(control[reg::round]);
  content.chunk = chunk;
  content.offset_bytes = offset;
  content.payload_bytes = bytes;
  content.chunk_bytes = size_of(chunk);
  content.send_start = round_.released;
  content.contributors = site_bit(parameters_.id);
  if (!values_.synthetic()) {
    content.values = std::make_shared<const chunk_values>(
        values_.slice(content.round, parameters_.id, (chunk * control[reg::chunk_bytes] + offset) / 4, bytes / 4));
  }
  burst& outgoing = pool_.make(std::move(content), parameters_.format);
  outgoing.starts_at(now());
  outgoing.departed = now();
  // Any of the last chunks may end the round, so these tell where they have been.
  if (chunk + 4 >= chunks_ && offset + bytes == size_of(chunk)) outgoing.story = std::make_unique<trail>();
  sc_core::sc_time after = sc_core::SC_ZERO_TIME;
  withheld_ = true;
  withheld_since_ = now();
  if (!out.begin(outgoing, after)) {
    request_probe_->set(1);
    return;
  }
  withheld_ = false;
  line_ready_ = now() + after.value();
  after_send(bytes);
}

tlm::tlm_sync_enum gpu_cluster::sent(unsigned /*port*/, burst& outgoing, tlm::tlm_phase& /*phase*/,
                                     sc_core::sc_time& t) {
  withheld_ = false;
  round_.send_blocked += now() - withheld_since_;
  request_probe_->set(0);
  line_ready_ = now() + t.value();
  after_send(outgoing.content().payload_bytes);
  return tlm::TLM_ACCEPTED;
}

void gpu_cluster::after_send(std::uint64_t bytes) {
  round_.payload_bytes_sent += bytes;
  next_offset_ += static_cast<std::uint32_t>(bytes);
  if (next_offset_ >= size_of(next_chunk_)) {
    next_offset_ = 0;
    if (listener != nullptr) listener->departed(parameters_.id, next_chunk_, chunk_departed_, line_ready_);
    ++next_chunk_;
    control.add(reg::sent_chunks, 1);
    sent_probe_->set(round_.payload_bytes_sent);
  }
  if (next_chunk_ < chunks_) {
    const picoseconds paced = next_offset_ == 0 ? chunk_departed_ + control[reg::pace_ps] : now();
    send_.notify(until(std::max({paced, line_ready_, release_of(next_chunk_)})));
    return;
  }
  round_.sent = now();
  enter(state::wait);
  check_finished();
}

tlm::tlm_sync_enum gpu_cluster::receive(unsigned /*port*/, burst& incoming, tlm::tlm_phase& phase,
                                        sc_core::sc_time& t) {
  consumer_free_ = std::max(consumer_free_, incoming.head) +
                   transfer_time(incoming.content().payload_bytes, parameters_.consume_rate);
  consuming_.push(std::max(incoming.tail, consumer_free_), &incoming);
  phase = tlm::END_REQ;
  t = until(std::max(consumer_free_, incoming.head));
  return tlm::TLM_UPDATED;
}

void gpu_cluster::consume_due() {
  burst* arrived = nullptr;
  while (consuming_.pop_due(arrived)) {
    consume(*arrived);
    pool_.release(*arrived);
    check_finished();
  }
}

void gpu_cluster::consume(burst& arrived) {
  const burst_content& content = arrived.content();
  if (content.kind == burst_kind::credit) return take_credit(content);
  round_.payload_bytes_received += content.payload_bytes;
  received_probe_->set(round_.payload_bytes_received);
  if (content.round != control[reg::round] || content.chunk >= chunks_ || (content.contributors & ~others()) != 0) {
    ++coverage_errors_;
    return;
  }
  if (!values_.synthetic()) verify(content);
  chunk_progress& chunk = progress_[content.chunk];
  chunk.contributed_bytes +=
      std::uint64_t{content.payload_bytes} * static_cast<unsigned>(__builtin_popcountll(content.contributors));
  chunk.contributors |= content.contributors;
  const std::uint64_t expected =
      std::uint64_t{size_of(content.chunk)} * static_cast<unsigned>(__builtin_popcountll(others()));
  if (chunk.contributed_bytes > expected) ++coverage_errors_;
  if (chunk.contributed_bytes != expected) return;
  if (chunk.contributors != others()) ++coverage_errors_;
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
  if (content.round != control[reg::round] || (others() & site_bit(content.source)) == 0)
    return;  // of an earlier round
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

void gpu_cluster::verify(const burst_content& content) {
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
  elements_compared_ += count;
  for (std::size_t i = 0; i < count; ++i) {
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
      const site_set missing = others() & ~progress_[c].contributors;
      if (missing == 0) continue;
      text += "; chunk " + std::to_string(c) + " lacks sites";
      for (site_set left = missing; left != 0; left &= left - 1) text += " " + std::to_string(__builtin_ctzll(left));
      break;
    }
  }
  return text;
}

}  // namespace tributary
