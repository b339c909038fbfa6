// The GPU cluster of a site: computes, shares its update chunk by chunk, takes in the merged stream, applies it.
//
// A round, started through the register block: compute -> exchange (send and receive) -> wait (all sent, receiving) ->
// apply -> done. Chunks leave at the programmed pace, never before the backward pass has released them. Received
// bytes are consumed at a finite rate. With real values every element is compared with a direct reduction.
//
// What receivers ask for again (nacks) goes to them alone, before new chunks. COLLECTIVE chooses what else it does: as
// a hub it adds the others' updates and returns the sum; in a ring it adds its own part to what comes from the place
// before it and hands it on (chunk c is summed up at place c mod n, which then sends the sum around).
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "modules/gpu_cluster/update_values.hpp"
#include "tlm/chunk_events.hpp"
#include "tlm/model.hpp"
#include "tlm/network.hpp"
#include "tlm/register_maps.hpp"
#include "tlm/ring.hpp"
#include "tlm/timed_queue.hpp"

namespace tributary {

struct cluster_parameters {
  unsigned id = 0;                  ///< site number
  picoseconds compute_time = 0;     ///< local steps of one round, straggling not included
  double straggler_sigma = 0;       ///< sigma of the log-normal factor (median 1) on compute_time; 0: none
  picoseconds reduce_time = 0;      ///< reduction inside the cluster before the update is released
  double released_early_share = 0;  ///< share of compute_time over which chunks are released one by one; 0: all at end
  picoseconds apply_time = 0;       ///< after the last merged byte is in
  bits_per_s consume_rate = 0;      ///< host link into the GPUs, payload bits a second; > 0
  bool split_into_packets = false;  ///< packet fidelity: each packet a transaction
  wire_format format;
  value_format values = value_format::synthetic;
  unsigned scale_bits = 24;  ///< of int32: the value 1 is 2^scale_bits
  std::uint64_t seed = 0;
  sc_core::sc_time register_access_time;
};

/// What happened in a round at this site; times are absolute.
struct cluster_round {
  picoseconds started = 0;       ///< CONTROL = start written
  picoseconds released = 0;      ///< the update's first chunk could leave
  picoseconds sent = 0;          ///< last chunk handed to the access link
  picoseconds received = 0;      ///< last merged byte consumed
  picoseconds done = 0;          ///< applied
  picoseconds credit_wait = 0;   ///< time a due chunk waited for credit
  picoseconds send_blocked = 0;  ///< time a due chunk waited for the access link to take it
  // The last chunk's story: left its (slowest) source at departed, which was free to send at send_start.
  picoseconds last_send_start = 0;
  picoseconds last_departed = 0;
  picoseconds last_tail = 0;
  unsigned last_source = 0;
  journey last_spent;
  std::unique_ptr<trail> last_story;  ///< from last_departed to received; null if that chunk kept none
  std::uint64_t payload_bytes_sent = 0;
  std::uint64_t payload_bytes_received = 0;
};

/// Over all rounds.
struct cluster_counters {
  std::uint64_t nacks_received = 0;
  std::uint64_t repair_packets = 0;
  std::uint64_t repair_payload_bytes = 0;
  std::uint64_t stale_bursts = 0;  ///< of a round, or a try of it, that was given up
};

class gpu_cluster : public model, private network_receiver, private network_sender {
 public:
  network_target_socket in;
  network_initiator_socket out;
  register_block control;
  sc_core::sc_out<bool> interrupt;  ///< high from done until CONTROL = clear

  gpu_cluster(const sc_core::sc_module_name& name, const cluster_parameters& parameters, burst_pool& pool);

  [[nodiscard]] const cluster_round& last_round() const { return round_; }
  chunk_listener* listener = nullptr;  ///< hears of departures
  [[nodiscard]] const cluster_counters& counters() const { return counters_; }

  /// The site loses power, or has it again. While it is down what arrives is lost; a round in progress is dropped.
  void set_power(bool on);

  /// Merged chunks, over all rounds, that did not hold each other member exactly once.
  [[nodiscard]] std::uint64_t coverage_errors() const { return coverage_errors_; }
  [[nodiscard]] std::uint64_t elements_compared() const { return elements_compared_; }
  /// Largest difference between a received and a directly reduced element, in the value format's own unit.
  [[nodiscard]] double largest_difference() const { return largest_difference_; }
  [[nodiscard]] picoseconds busy_computing() const { return computing_; }
  [[nodiscard]] std::string waits_for() const override;

 private:
  enum class state : std::uint8_t { idle, compute, exchange, wait, apply, done };

  tlm::tlm_sync_enum receive(unsigned port, burst& incoming, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  tlm::tlm_sync_enum sent(unsigned port, burst& outgoing, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  void registers_written(unsigned index, std::uint64_t value);
  /// Something to send: part of a chunk to one group or site.
  struct parcel {
    burst_kind kind = burst_kind::data;
    std::uint32_t chunk = 0;
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint16_t group = 0;
    std::uint16_t attempt = 0;  ///< 0: no repair
    site_set contributors = 0;
  };

  void start(bool computes);
  void abandon_round();
  void refuse(register_error why);
  void step();
  void send_next();
  void send_queued();
  void emit(const parcel& next);
  void after_send(const parcel& sent_now);
  void after_own(const parcel& sent_now);
  void skip_chunks_of_others();
  [[nodiscard]] bool own(std::uint32_t chunk) const;
  void queue(const parcel& next);
  void take_nack(const burst_content& content);
  void pass_on_held(std::uint32_t chunk);
  [[nodiscard]] bool own_sum(std::uint32_t chunk) const;
  void count_received(burst& arrived);
  [[nodiscard]] std::uint32_t part_of(std::uint32_t left) const;
  [[nodiscard]] std::shared_ptr<const chunk_values> values_of(const parcel& next);
  void consume_due();
  void consume(burst& arrived);
  void verify(const burst& arrived);
  void take_credit(const burst_content& content);
  void recount_credit();
  void check_finished();
  void enter(state next);
  [[nodiscard]] picoseconds release_of(std::uint32_t chunk) const;
  [[nodiscard]] std::uint32_t size_of(std::uint32_t chunk) const;
  [[nodiscard]] site_set others() const;
  /// Sites whose values a received chunk holds when it is complete.
  [[nodiscard]] site_set expected() const;
  [[nodiscard]] collective role() const { return static_cast<collective>(control[cluster_register::collective]); }

  cluster_parameters parameters_;
  burst_pool& pool_;
  update_values values_;
  state state_ = state::idle;
  cluster_round round_;
  std::uint32_t chunks_ = 0;

  // sending
  std::vector<std::uint16_t> targets_;  ///< groups each own chunk goes to
  std::uint32_t next_chunk_ = 0;
  std::uint32_t next_offset_ = 0;  ///< past the chunk's end: parity
  std::size_t next_target_ = 0;
  parcel sending_;                ///< withheld by the access link
  bool sending_queued_ = false;   ///< it came from the queue
  bool sending_dropped_ = false;  ///< its round was given up
  ring<parcel> queue_;            ///< repairs and what is passed on: before own chunks
  std::map<std::pair<unsigned, std::uint32_t>, unsigned> repairing_;  ///< (receiver, chunk) -> parcels in queue_
  std::uint16_t repairs_ = 0;                                         ///< in this round: tells repairs apart
  bool powered_ = true;
  picoseconds chunk_departed_ = 0;
  picoseconds line_ready_ = 0;
  picoseconds withheld_since_ = 0;
  bool withheld_ = false;
  std::array<std::uint32_t, max_sites> allowed_{};  ///< chunks each receiver lets it have sent
  std::uint32_t allowed_by_all_ = 0;
  bool waits_for_credit_ = false;
  picoseconds credit_wait_since_ = 0;
  picoseconds compute_ends_ = 0;
  sc_core::sc_event step_;
  sc_core::sc_event send_;

  // receiving
  struct chunk_progress {
    std::uint64_t contributed_bytes = 0;  ///< payload bytes times contributors
    site_set contributors = 0;
    chunk_values sum;  ///< hub and ring, real values only
  };
  std::vector<chunk_progress> progress_;
  cluster_counters counters_;
  std::uint32_t chunks_received_ = 0;
  picoseconds consumer_free_ = 0;
  timed_queue<burst*> consuming_;
  std::uint64_t coverage_errors_ = 0;
  std::uint64_t elements_compared_ = 0;
  double largest_difference_ = 0;
  picoseconds computing_ = 0;

  probe* state_probe_;
  probe* sent_probe_;
  probe* received_probe_;
  probe* request_probe_;
  probe* credit_probe_;
};

}  // namespace tributary
