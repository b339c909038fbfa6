// From a spec to wired modules and back to numbers. One simulation a process (SystemC elaborates once).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "modules/fpga_aggregator/fpga_aggregator.hpp"
#include "modules/gpu_cluster/gpu_cluster.hpp"
#include "modules/long_haul_link/long_haul_link.hpp"
#include "modules/memory_controller/dram_command_checker.hpp"
#include "modules/memory_controller/memory_controller.hpp"
#include "modules/multicast_router/multicast_router.hpp"
#include "modules/schedule_executor/schedule_executor.hpp"
#include "planner/collective.hpp"
#include "planner/cost_model.hpp"
#include "platforms/audit.hpp"
#include "platforms/spec.hpp"
#include "tlm/memory_checker.hpp"
#include "tlm/network_checker.hpp"
#include "traces/gtkw_writer.hpp"
#include "traces/pcapng_writer.hpp"
#include "traces/timeline.hpp"

namespace tributary {

/// Sums of the critical path by part. They add up to the round's duration.
struct round_breakdown {
  picoseconds compute = 0;        ///< local steps, cluster reduction, apply
  picoseconds serialization = 0;  ///< putting the update on the wire at the pace memory does not limit, and per hop
  picoseconds propagation = 0;
  picoseconds skew_wait = 0;     ///< the slower pace that aggregator memory forces, to ride out the skew
  picoseconds memory_stall = 0;  ///< aggregator memory and adders after the last stream arrived
  picoseconds queueing = 0;      ///< waiting for lines, reducers, ports that others use
  picoseconds control = 0;       ///< programming registers, interrupts
  [[nodiscard]] picoseconds total() const {
    return compute + serialization + propagation + skew_wait + memory_stall + queueing + control;
  }
};

/// One stretch of the chain of events that set a round's length.
struct path_span {
  std::string what;
  std::string where;
  picoseconds from = 0;
  picoseconds to = 0;
  path_part part = path_part::control;
};

[[nodiscard]] const char* to_string(path_part part);
[[nodiscard]] round_breakdown sum_of(const std::vector<path_span>& path);

struct round_result {
  unsigned index = 0;
  planner::partition groups;
  picoseconds opened = 0;
  picoseconds started = 0;
  picoseconds closed = 0;
  std::vector<path_span> critical_path;       ///< gapless from opened to closed
  round_breakdown breakdown;                  ///< its sums
  picoseconds predicted = 0;                  ///< planner, programming included
  std::vector<std::string> limits;            ///< per group: what held the pace
  std::vector<double> rates;                  ///< per group: payload bits a second of each source
  unsigned restarts = 0;                      ///< of groups that lost members
  unsigned last_site = 0;                     ///< whose completion ended the round
  std::uint64_t memory_high_water_bytes = 0;  ///< largest over sites in this round
  picoseconds stalled = 0;                    ///< ingress stalls (memory full or slow) in this round, over all sites
  std::vector<picoseconds> site_done;         ///< per site, absolute
  std::vector<std::uint64_t> site_high_water;
  std::vector<std::uint64_t> site_sent;  ///< payload bytes
  std::vector<std::uint64_t> site_received;
};

struct site_result {
  double idle_fraction = 0;
  aggregator_counters aggregator;
  memory_counters memory;           ///< on-chip part included
  std::uint64_t on_chip_bytes = 0;  ///< read and written on-chip
  std::uint64_t saturated = 0;      ///< int32 values outside the range, or whose exact sum is
  std::uint64_t memory_capacity_bytes = 0;
  std::uint64_t mismatches = 0;
  std::uint64_t elements_compared = 0;
};

struct link_result {
  std::string name;
  std::uint64_t payload_bytes = 0;
  std::uint64_t wire_bytes = 0;
  std::uint64_t packets = 0;
  double utilization = 0;
  std::uint64_t drops = 0;  ///< packets lost on it
  bool backbone = false;
};

/// What went wrong, and what was done about it.
struct network_event {
  picoseconds at = 0;
  std::string what;
};

/// What lost packets cost, over the whole run.
struct repair_result {
  std::uint64_t lost_packets = 0;     ///< on links
  std::uint64_t dropped_packets = 0;  ///< of full router queues
  std::uint64_t overrun_packets = 0;  ///< no aggregator memory for them
  std::uint64_t nacks = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t repair_packets = 0;
  std::uint64_t duplicate_packets = 0;
  std::uint64_t recovered_packets = 0;  ///< from parity
  std::uint64_t ecn_marked_packets = 0;
};

struct run_result {
  schedule_executor::outcome outcome = schedule_executor::outcome::running;
  std::string complaint;               ///< timed_out, refused
  std::vector<std::string> diagnosis;  ///< who waits for whom
  std::vector<std::string> warnings;   ///< known before the run
  std::string schedule_name;
  picoseconds simulated = 0;
  std::uint64_t events = 0;  ///< bursts over links: packet-hops at packet fidelity
  std::uint64_t packet_hops = 0;
  double wall_s = 0;
  std::vector<round_result> rounds;
  std::vector<site_result> sites;
  std::vector<link_result> links;
  std::vector<network_event> network_events;
  repair_result repair;
  std::vector<double> sigma;
  double time_to_epsilon_s = 0;  ///< 0: not reached in this run
  std::vector<check_result> checks;
  [[nodiscard]] bool passed() const;
};

struct run_options {
  std::string folder;              ///< for waveforms; empty: none
  bool protocol_checkers = false;  ///< plug a checker into every network and memory connection
  std::function<void(const round_result&)> on_round;
  std::function<void(double fraction)> on_progress;
};

/// A round's plan: its groups exchange streams, or each is a collective.
struct planned_round {
  planner::partition groups;                          ///< with singletons
  planner::round_plan exchange;                       ///< of the groups of two or more
  std::vector<planner::collective_plan> collectives;  ///< the same groups, hub, ring or transit
  picoseconds predicted = 0;
  std::string trouble;  ///< why it may not end
};

/// Builds the platform, runs its schedule, collects the results.
class simulation {
 public:
  simulation(const platform_spec& spec, run_options options);
  ~simulation();
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;
  simulation(simulation&&) = delete;
  simulation& operator=(simulation&&) = delete;

  [[nodiscard]] const planner::schedule& schedule() const { return schedule_; }
  /// As planned before the run, on the whole network.
  [[nodiscard]] const std::vector<planned_round>& plans() const { return plans_; }
  [[nodiscard]] run_result run();

  /// Groups for a waveform viewer: the executor, each site, the backbone.
  [[nodiscard]] std::vector<wave_group> wave_groups();

  // For tests that break something on purpose.
  [[nodiscard]] gpu_cluster& cluster(unsigned site);
  [[nodiscard]] fpga_aggregator& aggregator(unsigned site);

 private:
  struct site_modules;
  void plan();
  void build();
  void connect(network_initiator_socket& from, network_target_socket& to);
  void connect(memory_port& from, memory_controller& to);
  [[nodiscard]] planned_round plan_on(const planner::platform_model& model, const planner::partition& groups) const;
  [[nodiscard]] planned_round plan_around(const planner::partition& groups, const std::vector<bool>& down);
  void plan_failures();
  [[nodiscard]] bool site_known_up(unsigned site, picoseconds round_start, picoseconds when) const;
  /// The executor's view: the round as far as the network is known now.
  [[nodiscard]] round_program program_now(unsigned index);
  [[nodiscard]] round_program program_of(const planned_round& plan, std::size_t in_schedule) const;
  void program_exchange(round_program& program, const planner::group_plan& group, std::uint16_t number) const;
  void program_collective(round_program& program, const planner::collective_plan& plan, std::uint16_t number) const;
  void add_tree(round_program& program, const planner::multicast_tree& tree, const planner::group& members,
                unsigned source, std::uint16_t number) const;
  void add_unicast(round_program& program, unsigned from, unsigned to, const std::vector<planner::edge_id>& path) const;
  void note_event(const std::string& what);
  [[nodiscard]] std::uint64_t expected_sent(const planner::group& members, const planned_round& plan,
                                            unsigned site) const;
  [[nodiscard]] std::uint64_t expected_received(const planner::group& members, const planned_round& plan,
                                                unsigned site) const;
  void open_round(const round_times& times);
  void close_round(const round_times& times);
  [[nodiscard]] std::vector<path_span> critical_path(const round_times& times, const planned_round& plan,
                                                     unsigned last_site) const;
  void collect(run_result& result);
  [[nodiscard]] run_audit audit_input(const run_result& result) const;
  void diagnose(run_result& result) const;
  [[nodiscard]] std::vector<traced_signal> signals();
  [[nodiscard]] std::string direction_label(const link_spec& link, bool forward) const;
  [[nodiscard]] bool traced(const traced_signal& signal) const;
  [[nodiscard]] wave_group critical_group(const round_result& result, const std::vector<wave_group>& groups) const;
  void open_traces();
  void close_traces();

  platform_spec spec_;
  run_options options_;
  planner::platform_model model_;
  planner::schedule schedule_;
  std::vector<planned_round> plans_;
  std::vector<unsigned> group_base_;  ///< per round of the schedule: number of its first group
  unsigned rounds_ = 0;
  bool feedback_ = false;  ///< aggregators send into the network
  // What the driver knows, of the round under way.
  unsigned current_index_ = ~0U;
  picoseconds current_start_ = 0;
  planned_round current_;
  std::vector<planned_round> plans_run_;  ///< per finished round
  std::vector<std::string> warnings_;
  std::vector<network_event> network_events_;
  burst_pool pool_;
  std::vector<std::unique_ptr<site_modules>> sites_;
  std::vector<std::unique_ptr<multicast_router>> routers_;
  std::vector<std::unique_ptr<long_haul_link>> links_;
  std::vector<std::unique_ptr<network_checker>> network_checkers_;
  std::vector<std::unique_ptr<memory_checker>> memory_checkers_;
  std::vector<std::unique_ptr<dram_command_checker>> command_checkers_;
  std::unique_ptr<schedule_executor> executor_;
  std::vector<unsigned> link_port_a_;
  std::vector<unsigned> link_port_b_;
  std::vector<unsigned> site_port_;
  std::unique_ptr<vcd_writer> vcd_;
  std::unique_ptr<vcd_writer> whole_run_;
  std::unique_ptr<timeline_writer> timeline_;
  std::unique_ptr<pcapng_writer> capture_;
  std::vector<round_result> results_;
  std::vector<aggregator_counters> before_round_;
  std::vector<picoseconds> active_;  ///< per site: time from round start to its done
};

}  // namespace tributary
