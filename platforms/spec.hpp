// A platform as the user describes it, checked and complete: every reference resolved, every quantity in base units.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "modules/fpga_aggregator/fpga_aggregator.hpp"
#include "modules/long_haul_link/long_haul_link.hpp"
#include "modules/memory_controller/memory_controller.hpp"
#include "modules/multicast_router/multicast_router.hpp"
#include "planner/platform_model.hpp"
#include "planner/schedule.hpp"
#include "platforms/config_reader.hpp"
#include "tlm/element_format.hpp"
#include "tlm/probe.hpp"
#include "tlm/register_maps.hpp"

namespace tributary {

struct memory_device_spec {
  std::string preset;
  std::uint64_t capacity_bytes = 0;
  picoseconds latency = 0;
  memory_level level = memory_level::rate;
  bool four_phase = false;
  // rate level
  unsigned channels = 1;
  bits_per_s channel_rate = 0;  ///< peak of one channel
  double efficiency = 1;        ///< sustained share of the peak
  std::uint64_t interleave_bytes = 256;
  // bulk and burst level
  dram_device dram;

  [[nodiscard]] bits_per_s peak_rate() const;
  /// Of accesses of `access_bytes`, as many read as written: by the device's bulk timing, or peak x efficiency.
  [[nodiscard]] bits_per_s sustained_rate(std::uint64_t access_bytes) const;
  [[nodiscard]] picoseconds access_latency() const;  ///< of an idle device: its own and what the controller adds
  [[nodiscard]] memory_parameters parameters() const;
};

/// What an FPGA has, for the resource estimate; zero where it is not known.
struct fpga_resources {
  unsigned dsp = 0;
  unsigned block_ram = 0;  ///< of 36 Kb
  unsigned ultra_ram = 0;  ///< of 288 Kb
};

struct aggregator_spec {
  std::string preset;
  std::uint64_t memory_bytes = 0;  ///< usable for slots, on-chip part included
  slot_placement placement = slot_placement::external;
  memory_device_spec device;             ///< external; on-chip when placement is on_chip
  memory_device_spec on_chip;            ///< on_chip_first: its slots are used before the device's
  std::uint64_t on_chip_bytes = 0;       ///< usable for slots
  std::uint32_t slot_table_entries = 0;  ///< chunks in progress at most; 0: no limit
  unsigned tag_bits = 32;                ///< of the chunk number in the slot table
  std::uint32_t datapath_bytes = 64;
  unsigned lanes = 8;
  std::uint64_t clock_hz = 250'000'000;
  unsigned adder_cycles = 16;
  bits_per_s ports = 0;
  std::uint64_t ingress_buffer_bytes = 32 << 20;
  unsigned egress_chunks = 2;
  fpga_resources resources;

  [[nodiscard]] bits_per_s datapath_rate() const { return std::uint64_t{datapath_bytes} * 8 * clock_hz * lanes; }
  [[nodiscard]] picoseconds adder_latency() const { return multiply_divide_up(adder_cycles, ps_per_s, clock_hz); }
};

struct cluster_spec {
  picoseconds compute_time = 0;
  double straggler_sigma = 0;
  picoseconds reduce_time = 0;
  double released_early_share = 0;
  picoseconds apply_time = 0;
  bits_per_s consume_rate = 0;
};

struct site_spec {
  std::string name;
  std::string identifier;  ///< name as a SystemC and VCD identifier, unique in the platform
  unsigned router = 0;
  bits_per_s access_up = 0;
  bits_per_s access_down = 0;
  picoseconds access_latency = 0;
  double weight = 1;
  cluster_spec cluster;
  aggregator_spec aggregator;
};

struct router_spec {
  std::string name;
  std::string identifier;
  router_parameters parameters;          ///< all but what the wiring gives
  std::uint32_t cut_through_header = 0;  ///< bytes of a packet it must have to forward it; 0: it stores packets
};

struct link_spec {
  std::string name;  ///< "seo-tyo", numbered when there are parallel ones
  std::string identifier;
  unsigned a = 0;  ///< routers
  unsigned b = 0;
  bits_per_s rate_ab = 0;
  bits_per_s rate_ba = 0;
  picoseconds latency_ab = 0;
  picoseconds latency_ba = 0;
  picoseconds fec_latency = 0;
  picoseconds jitter = 0;
  picoseconds jitter_interval = 0;
  bool reorders = false;
  loss_parameters loss;
  std::vector<outage> outages;  ///< both directions
};

/// A site that loses power, and when it is back.
struct failure_spec {
  unsigned site = 0;
  picoseconds at = 0;
  std::optional<picoseconds> back;
};

/// When what is lost is sent again.
struct repair_spec {
  enum class use : std::uint8_t { automatic, always, never } when = use::automatic;
  std::optional<picoseconds> timeout;  ///< default from the group's round trip
  picoseconds timeout_max = ps_per_s;
  std::optional<picoseconds> nack_delay;  ///< default the most that links reorder by
  unsigned parity_packets = 0;
};

/// How updates are reduced.
enum class collective_choice : std::uint8_t { exchange, hub, ring, transit };

struct schedule_spec {
  enum class kind : std::uint8_t { all_to_all, rotating, explicit_rounds } type = kind::all_to_all;
  unsigned group_size = 3;
  std::string name;
  std::vector<planner::partition> rounds;  ///< explicit only
  std::vector<double> blend;               ///< explicit only; empty or one a round
};

struct platform_spec {
  std::string name;
  std::string description;
  std::uint64_t update_bytes = 0;
  std::uint64_t chunk_bytes = 0;
  value_format values = value_format::synthetic;
  unsigned scale_bits = 24;  ///< of int32 values
  wire_format format;
  std::vector<site_spec> sites;
  std::vector<router_spec> routers;
  std::vector<link_spec> links;
  buffering policy = buffering::per_stream;
  planner::flow_control flow = planner::flow_control::paced;
  planner::tree_kind trees = planner::tree_kind::shortest;
  bool multicast = true;  ///< false: a copy for every receiver leaves the source
  collective_choice collective = collective_choice::exchange;
  repair_spec repair;
  picoseconds detection_time = 0;  ///< from a link's going down, or up, to its driver's knowing
  picoseconds join_latency = 0;    ///< of a group, when the schedule rotates
  bool joined_before = false;      ///< all groups are joined before the first round
  std::vector<failure_spec> failures;
  picoseconds site_timeout = 0;     ///< from a site's falling silent to its being given up
  bool send_offsets = false;        ///< sources begin when the planner's linear programme says
  std::optional<picoseconds> pace;  ///< overrides the planner's pace: overflow is then possible and reported
  picoseconds register_access_time = 0;
  schedule_spec schedule;
  unsigned rounds = 0;  ///< 0: one pass through the schedule
  std::uint64_t seed = 1;
  bool packet_fidelity = false;
  trace_level trace = trace_level::chunk;
  std::vector<std::string> traced_signals;   ///< globs over site.module.signal; empty: all
  bool whole_run_waveform = false;           ///< run.vcd beside the waveform of each round
  bool timeline = true;                      ///< timeline.json
  std::vector<std::string> captured_links;   ///< globs over link names: packets.pcapng (packet fidelity)
  std::optional<picoseconds> round_timeout;  ///< simulated; default from the prediction
  double epsilon = 1e-6;                     ///< agreement aimed at, for consensus figures

  /// Packets may be lost: on a link, in a router's queue, or with a link or site that goes down.
  [[nodiscard]] bool lossy() const;
  /// Lost packets are sent again.
  [[nodiscard]] bool repairs() const {
    return repair.when == repair_spec::use::always || (repair.when == repair_spec::use::automatic && lossy());
  }
  /// A slot holds a chunk, or in place its running sum, which bf16 keeps in fp32.
  [[nodiscard]] std::uint64_t slot_bytes() const {
    return chunk_bytes * (policy == buffering::in_place ? sum_words_per_word(values) : 1);
  }
};

struct load_options {
  std::vector<std::string> assignments;  ///< --set
  std::string schedule;                  ///< --schedule, empty: as configured
};

/// Loads and checks a platform file. Throws config_error.
[[nodiscard]] platform_spec load_platform(const std::string& path, const load_options& options);

/// The plan-side view of a spec.
[[nodiscard]] planner::platform_model model_of(const platform_spec& spec);

/// The rounds of the spec's schedule on its platform.
[[nodiscard]] planner::schedule schedule_of(const platform_spec& spec, const planner::platform_model& model);

/// Folder with platforms/, presets/, schedules/: $TRIBUTARY_CONFIGS, else beside the executable, else the source
/// tree's.
[[nodiscard]] std::string configs_folder();

/// A memory preset. Throws std::out_of_range when there is none of the name.
[[nodiscard]] memory_device_spec memory_preset(const std::string& name);

struct preset_entry {
  std::string kind;  ///< "memory" or "card"
  std::string name;
  std::string summary;
  std::string source;
};
[[nodiscard]] std::vector<preset_entry> list_presets();

}  // namespace tributary
