// The FPGA aggregator at a site's edge: merges the streams of a group's other members into one for the cluster.
//
// per_stream  every stream's chunk waits complete in a slot of its own; when the last one is in, all are read and added
// in_place    one slot a chunk: the first stream is written, the next ones read, added and written back, the last one
// is
//             added on its way out (k = 2: passes straight through)
// none        streams go on to the cluster unmerged
//
// A slot is reserved when a chunk's first packet arrives and freed when the merged chunk has been read out. Bursts that
// find no slot, or whose writes lag by more than the ingress buffer holds, stay with the link (END_REQ withheld); the
// time is counted by cause. Merged chunks leave through an egress buffer of `egress_chunks`.
//
// Repair (TIMEOUT_PS not zero): every packet of a stream is accounted for. Gaps are asked for from their source by
// nacks, again with doubled waits until they are filled; what arrives twice is dropped. A burst that finds no slot is
// then dropped and asked for later, for the repair that would free one might be behind it; what is asked for has its
// slot kept; and the last slots are kept for the oldest unfinished chunk, so that it can always complete. With parity
// packets a chunk is complete as soon as as many packets are in as it has (any erasure code of maximum distance, e.g.
// Reed-Solomon).
//
// Output: to the cluster; or, in a transit reduction, as a partial sum to the aggregator next up the tree (the own
// cluster's stream is then one of those merged), or from the root to everybody.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "modules/fpga_aggregator/memory_port.hpp"
#include "tlm/chunk_events.hpp"
#include "tlm/element_format.hpp"
#include "tlm/model.hpp"
#include "tlm/network_outlet.hpp"
#include "tlm/rate_meter.hpp"
#include "tlm/register_maps.hpp"
#include "tlm/timed_queue.hpp"

namespace tributary {

struct aggregator_parameters {
  unsigned id = 0;                       ///< site number
  std::uint64_t memory_bytes = 0;        ///< external memory usable for slots; the driver programs no more
  std::uint64_t on_chip_bytes = 0;       ///< and on-chip memory, zero: the port is not there
  std::uint32_t slot_table_entries = 0;  ///< chunks in progress at most; 0: no limit
  unsigned tag_bits = 32;                ///< chunk numbers are told apart modulo 2^tag_bits
  std::uint32_t datapath_bytes = 64;     ///< width of one lane, bytes a clock
  unsigned lanes = 1;
  std::uint64_t clock_hz = 250'000'000;
  picoseconds adder_latency = 0;  ///< through the adder tree, after the last operand is read
  std::uint64_t ingress_buffer_bytes = 32 << 20;
  unsigned egress_chunks = 2;
  picoseconds rate_window = 1'000'000'000;  ///< of the rate probe
  bool split_into_packets = false;          ///< packet fidelity: merged chunks leave packet by packet
  wire_format format;
  value_format values = value_format::synthetic;
  sc_core::sc_time register_access_time;

  /// Operand bytes a second the adders take: width x clock x lanes, in bits.
  [[nodiscard]] bits_per_s datapath_rate() const { return std::uint64_t{datapath_bytes} * 8 * clock_hz * lanes; }
};

enum class stall_cause : std::uint8_t { memory_full, memory_bandwidth, datapath, egress, slot_table };
inline constexpr std::array<const char*, 5> stall_names{"memory_full", "memory_bandwidth", "datapath", "egress",
                                                        "slot_table"};

/// Where slots lie.
enum class slot_placement : std::uint8_t { external, on_chip, on_chip_first };

struct aggregator_counters {
  std::uint64_t payload_bytes_in = 0;
  std::uint64_t payload_bytes_out = 0;
  std::uint64_t merged_chunks = 0;
  std::uint64_t duplicate_bursts = 0;
  std::uint64_t late_bursts = 0;
  std::uint64_t memory_errors = 0;
  std::uint64_t high_water_bytes = 0;  ///< since the start of the run
  std::uint64_t contributor_errors = 0;
  std::uint64_t credits_sent = 0;
  std::uint64_t saturations = 0;  ///< int32 sums held at the ends of their range
  std::uint64_t nacks_sent = 0;
  std::uint64_t timeouts = 0;           ///< streams gone silent, repairs that did not come in time
  std::uint64_t duplicate_packets = 0;  ///< repair: arrived before, dropped
  std::uint64_t overrun_packets = 0;    ///< repair: no memory for them, dropped
  std::uint64_t recovered_packets = 0;  ///< made from parity
  std::uint64_t failure_packets = 0;    ///< arrived while the site was down
  std::uint64_t spilled_chunks = 0;     ///< slots taken in external memory because on-chip memory was full
  /// Time the ingress (memory_full, memory_bandwidth, slot_table) or a complete chunk (datapath, egress) stood still.
  std::array<picoseconds, stall_names.size()> stalled{};
};

class fpga_aggregator : public model, private network_receiver, private memory_port::host {
 public:
  network_target_socket in;
  network_outlet egress;  ///< to the cluster; its socket is `egress.socket`
  network_outlet uplink;  ///< back into the network: credits, nacks, partial sums
  memory_port memory;
  std::unique_ptr<memory_port> on_chip;  ///< null without on-chip memory
  register_block control;
  sc_core::sc_out<bool> interrupt;  ///< high from done or error until CONTROL = clear

  fpga_aggregator(const sc_core::sc_module_name& name, const aggregator_parameters& parameters, burst_pool& pool);

  chunk_listener* listener = nullptr;  ///< hears of arrivals and merges

  [[nodiscard]] const aggregator_parameters& parameters() const { return parameters_; }
  [[nodiscard]] aggregator_counters counters() const;  ///< stalls under way included
  [[nodiscard]] std::uint64_t occupancy_bytes() const { return slots_used_ * slot_bytes_; }
  [[nodiscard]] std::string waits_for() const override;

  /// The site loses power, or has it again. While it is down what arrives is lost; a round in progress is dropped.
  void set_power(bool on);

 private:
  enum class state : std::uint8_t { idle, armed, merging, stalled, done };
  static constexpr std::uint32_t no_slot = 0xffffffff;

  /// One stream's share of a chunk in progress.
  struct stream_part {
    std::uint32_t slot = no_slot;
    std::uint32_t arrived_bytes = 0;  ///< accepted; without repair in order, so also the next offset expected
    std::uint32_t stored_bytes = 0;   ///< safely written (per_stream) or completely in (in_place)
    packet_set received;              ///< repair: packets accepted, parity behind the data
    bool open = false;                ///< repair, in place: has its place in the ingress buffer
    chunk_values values;              ///< operand buffer, real values only
    std::shared_ptr<const chunk_values> parity_values;  ///< what the parity packets stand for, real values only
  };
  struct chunk_record {
    std::uint32_t chunk = 0;
    std::uint32_t bytes = 0;
    site_set complete = 0;          ///< sources whose stream is complete
    site_set contributors = 0;      ///< sites summed in them
    std::uint32_t slot = no_slot;   ///< in_place accumulator
    unsigned added = 0;             ///< in_place: streams already in the accumulator
    bool operating = false;         ///< in_place: an operation is under way
    std::vector<unsigned> pending;  ///< in_place: streams complete, not yet added
    unsigned outstanding_reads = 0;
    picoseconds ready_at = 0;      ///< all operands there
    picoseconds memory_until = 0;  ///< latest completion of the operation's accesses
    picoseconds datapath_until = 0;
    std::uint64_t staged_bytes = 0;  ///< in_place: bytes of the operation held in the ingress buffer
    chunk_values sum;
    std::vector<stream_part> streams;
    // story of the stream that completed the chunk
    journey spent;
    std::unique_ptr<trail> story;
    picoseconds departed = 0;
    picoseconds send_start = 0;
    unsigned last_source = 0;
  };
  enum class work : std::uint8_t { stored, stream_in, added, merged, merge_again };
  struct work_item {
    work what = work::merge_again;
    std::uint32_t record = 0;
    burst* arrived = nullptr;
    std::uint32_t bytes = 0;       ///< of the chunk that are in with it
    std::uint32_t generation = 0;  ///< of the round: what is left of one that was dropped does nothing
  };
  /// An access under way, by cookie.
  struct access_state {
    enum class purpose : std::uint8_t { store, read_operand, accumulate_read, accumulate_write } what = purpose::store;
    std::uint32_t record = 0;
    unsigned stream = 0;
    burst* arrived = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t generation = 0;
  };
  /// What a stream misses, as far as it is known.
  struct gap {
    unsigned stream = 0;
    std::uint32_t chunk = 0;
    unsigned tries = 0;
    std::uint32_t generation = 0;
  };
  struct stream_state {
    unsigned source = 0;
    std::uint32_t next_chunk = 0;  ///< chunks below it have begun to arrive, or should have
    std::uint32_t complete = 0;    ///< chunks
    picoseconds heard = 0;         ///< last arrival
    unsigned silences = 0;         ///< time-outs since
    std::vector<bool> asked;       ///< chunk -> a gap is being watched
  };
  enum class verdict : std::uint8_t { take, hold, drop };

  tlm::tlm_sync_enum receive(unsigned port, burst& incoming, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  void memory_done(std::uint64_t cookie, picoseconds when, bool ok) override;
  void registers_written(unsigned index, std::uint64_t value);
  void start();
  void refuse(register_error why);
  void abandon_round();

  [[nodiscard]] verdict judge(const burst& incoming, stall_cause& cause) const;
  [[nodiscard]] verdict judge_repairable(std::uint32_t chunk, unsigned stream) const;
  void take(burst& taken);
  [[nodiscard]] std::uint32_t accept_packets(burst& taken, const chunk_record& record, stream_part& part);
  void keep_values(const burst& taken, const chunk_record& record, stream_part& part) const;
  [[nodiscard]] std::uint32_t recover(const burst& taken, const chunk_record& record, stream_part& part);
  void part_complete(std::uint32_t record, burst& arrived);

  // repair
  [[nodiscard]] bool repairs() const { return control[aggregator_register::timeout_ps] != 0; }
  [[nodiscard]] std::uint32_t chunk_size(std::uint32_t chunk) const;
  [[nodiscard]] bool stream_has(unsigned stream, std::uint32_t chunk) const;
  [[nodiscard]] picoseconds wait_after(unsigned tries) const;
  void watch_gaps(const burst& arrived);
  void watch(unsigned stream, std::uint32_t chunk, picoseconds when);
  void check_gaps();
  void check_silence();
  [[nodiscard]] bool reserve(unsigned stream, std::uint32_t chunk);
  void ask_in_turn(const gap& wanted);
  void ask_postponed();
  void ask(unsigned stream, std::uint32_t chunk);
  void send_up(burst_content content);
  void drop(burst& dropped, std::uint64_t& counter, unsigned register_index);
  void retry_blocked();
  void overrun(burst& dropped);
  [[nodiscard]] std::uint32_t record_of(std::uint32_t chunk, std::uint32_t bytes);
  void close_record(std::uint32_t index);
  [[nodiscard]] std::uint32_t take_slot();
  void free_slot(std::uint32_t& slot);
  [[nodiscard]] bool belongs(const burst_content& content) const;
  [[nodiscard]] bool entry_free(std::uint32_t chunk) const;
  [[nodiscard]] bool slot_free() const { return !free_slots_.empty() || !free_on_chip_.empty(); }
  /// Bytes a sum takes in memory for `bytes` of a chunk.
  [[nodiscard]] std::uint32_t sum_bytes(std::uint32_t bytes) const {
    return policy() == buffering::in_place ? bytes * sum_words_per_word(parameters_.values) : bytes;
  }

  void add(chunk_values& sum, const chunk_values& operand);
  void do_work();
  void stored(std::uint32_t record, burst& arrived, std::uint32_t bytes);
  void stream_in(std::uint32_t record, burst& arrived, std::uint32_t bytes);
  void next_operation(std::uint32_t record);
  void note_last(chunk_record& record, burst& arrived);
  void ready(std::uint32_t record);
  void try_merge();
  void start_merge(std::uint32_t record);
  void merge_operands_read(std::uint32_t record);
  void merged(std::uint32_t record);
  void note_stall(bool stalled, stall_cause cause);
  void access(tlm::tlm_command command, std::uint32_t slot, std::uint32_t offset, std::uint32_t bytes, void* data,
              access_state details);

  void send_credits();
  void announce_credit();
  void send_merged(const chunk_record& record, const std::shared_ptr<chunk_values>& values,
                   std::unique_ptr<trail> story);
  void egress_taken(burst_kind kind, bool last_of_chunk);
  void uplink_taken(burst_kind kind, bool last_of_chunk);
  void chunk_gone(bool gone);
  void check_finished();
  void show_state();
  [[nodiscard]] bool real() const { return parameters_.values != value_format::synthetic; }
  [[nodiscard]] buffering policy() const { return static_cast<buffering>(control[aggregator_register::policy]); }

  aggregator_parameters parameters_;
  burst_pool& pool_;
  aggregator_counters counters_;

  // the round
  state state_ = state::idle;
  std::uint16_t messages_ = 0;    ///< credits and nacks sent
  std::uint32_t generation_ = 0;  ///< counts starts and drops
  bool powered_ = true;
  site_set others_ = 0;  ///< sources of the streams
  site_set covers_ = 0;  ///< sites a merged chunk holds
  std::vector<stream_state> stream_states_;
  timed_queue<gap> gaps_;
  std::map<std::pair<std::uint32_t, unsigned>, gap> postponed_;  ///< (chunk, stream): to ask for when memory is free
  timed_queue<std::uint32_t> silence_;                           ///< generation
  std::vector<std::vector<chunk_record>> dropped_records_;  ///< of dropped rounds: memory accesses may still use them
  unsigned streams_ = 0;
  std::array<std::uint8_t, max_sites> stream_of_site_{};
  std::uint32_t chunks_ = 0;
  std::uint64_t slot_bytes_ = 0;
  std::uint64_t slots_used_ = 0;
  std::uint32_t on_chip_slots_ = 0;  ///< slots 0 to this are on-chip
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> free_on_chip_;
  std::uint32_t merged_this_round_ = 0;
  std::uint64_t high_water_this_round_ = 0;
  static constexpr std::uint32_t no_record = 0xffffffff;
  static constexpr std::uint32_t finished_record = 0xfffffffe;
  std::vector<std::uint32_t> record_of_chunk_;
  std::vector<chunk_record> records_;
  std::vector<std::uint32_t> free_records_;
  std::uint32_t open_records_ = 0;  ///< slot table entries in use
  std::uint32_t first_open_ = 0;    ///< no chunk below it is unfinished

  // ingress
  burst* blocked_ = nullptr;
  picoseconds blocked_since_ = 0;
  stall_cause blocked_cause_ = stall_cause::memory_full;
  std::uint64_t staged_bytes_ = 0;

  // merge engine
  timed_queue<work_item> work_;
  ring<std::uint32_t> ready_;
  picoseconds datapath_free_ = 0;
  bool merge_wakeup_ = false;
  bool merge_stalled_ = false;
  stall_cause merge_stall_cause_ = stall_cause::datapath;
  picoseconds merge_stalled_since_ = 0;
  std::vector<access_state> accesses_;
  std::vector<std::uint32_t> free_accesses_;

  // egress
  unsigned egress_chunks_used_ = 0;

  // credits
  std::uint32_t credit_announced_ = 0;  ///< chunks the senders may have sent, as last told to them

  probe* state_probe_;
  probe* occupancy_probe_;
  probe* stall_probe_;
  probe* received_probe_;
  probe* merged_probe_;
  probe* contributors_probe_;
  probe* slots_probe_;
  probe* group_probe_;
  probe* rate_probe_;
  rate_meter rate_;
  std::uint64_t received_this_round_ = 0;
};

}  // namespace tributary
