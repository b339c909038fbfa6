// The driver: walks the schedule, programs the register blocks of routers, aggregators and clusters as software would,
// starts a round, waits for every interrupt, and goes on. A round that does not end in time is reported, not waited
// for.
//
// What it knows of the network may change while a round is under way (a link found down, a site found dead). It then
// asks for the round's program again: changed routes and paces are written at once; a group whose members changed is
// started again with its new members and the next epoch, so that every survivor sums the same sites.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <systemc>
#include <tuple>
#include <vector>

#include "tlm/burst.hpp"
#include "tlm/model.hpp"
#include "tlm/register_maps.hpp"

namespace tributary {

/// What one site is told for a round.
struct site_program {
  std::uint16_t group = 0;
  site_set members = 0;
  picoseconds pace = 0;
  picoseconds send_offset = 0;
  std::uint64_t slot_base = 0;
  std::uint64_t slot_count = 0;
  std::uint64_t on_chip_slots = 0;    ///< of slot_count
  std::uint64_t sender_window = 0;    ///< credit flow control: chunks it may send before the first credit; 0: paced
  std::uint64_t receiver_window = 0;  ///< and how far its aggregator lets senders be ahead
  bool alive = true;                  ///< false: known to be down; neither programmed nor waited for
  // Repair; zero time-out: none.
  picoseconds timeout = 0;
  picoseconds timeout_max = 0;
  picoseconds nack_delay = 0;
  std::uint64_t parity_packets = 0;
  // What is exchanged how; the default is all to all by multicast.
  bool unicast = false;
  collective role = collective::exchange;
  unsigned peer = 0;
  unsigned ring_place = 0;
  bool pass_through = false;  ///< the aggregator merges nothing
  site_set sources = 0;       ///< 0: the other members
  site_set covers = 0;        ///< 0: sources
  merged_output output = merged_output::cluster;
  unsigned parent = 0;
};

/// One multicast table entry.
struct route_program {
  unsigned router = 0;
  std::uint16_t group = 0;
  std::uint16_t source = 0;
  std::uint64_t ports = 0;
};

struct round_program {
  std::vector<site_program> sites;
  std::vector<route_program> routes;
  picoseconds timeout = 0;  ///< from the start, or restart, of the clusters
  std::string trouble;      ///< why it may not end ("partition: ..."); goes into the complaint if it does not
};

struct executor_parameters {
  unsigned sites = 0;
  unsigned routers = 0;
  std::uint64_t update_bytes = 0;
  std::uint64_t chunk_bytes = 0;
  buffering policy = buffering::per_stream;
  /// The round's program as far as the driver knows the network now. Asked when a round begins and after each change.
  std::function<round_program(unsigned index)> program;
  std::vector<picoseconds> changes;  ///< when it learns something new, ascending, absolute
  unsigned rounds = 1;
  /// From a router's new (group, source) entries to traffic flowing by them, paid when groups change.
  picoseconds join_latency = 0;
  /// Entries of all rounds, joined before the first one; the rounds' own then cost nothing.
  std::vector<route_program> joined_before;
};

/// Times of one round, absolute.
struct round_times {
  unsigned index = 0;
  picoseconds opened = 0;   ///< programming began
  picoseconds started = 0;  ///< clusters released
  picoseconds closed = 0;   ///< all interrupts in
  unsigned restarts = 0;    ///< of groups that lost a member
};

class schedule_executor : public model {
 public:
  using control_socket = tlm_utils::simple_initiator_socket<schedule_executor, 64>;
  std::vector<std::unique_ptr<control_socket>> clusters;
  std::vector<std::unique_ptr<control_socket>> aggregators;
  std::vector<std::unique_ptr<control_socket>> routers;
  sc_core::sc_vector<sc_core::sc_in<bool>> cluster_interrupts;
  sc_core::sc_vector<sc_core::sc_in<bool>> aggregator_interrupts;

  /// Called when a round's programming begins (open the waveform) and when it is over (close it, collect).
  std::function<void(const round_times&)> on_open;
  std::function<void(const round_times&)> on_close;

  schedule_executor(const sc_core::sc_module_name& name, executor_parameters parameters);

  enum class outcome : std::uint8_t { running, finished, timed_out, refused };
  [[nodiscard]] outcome result() const { return result_; }
  /// What went wrong when the result is timed_out or refused.
  [[nodiscard]] const std::string& complaint() const { return complaint_; }
  [[nodiscard]] const std::vector<round_times>& rounds() const { return rounds_; }
  [[nodiscard]] std::string waits_for() const override;

 private:
  enum class state : std::uint8_t { idle, program, run, collect };

  void execute();
  bool run_round(unsigned index);
  bool program_routes(const std::vector<route_program>& routes, bool keep_others, sc_core::sc_time& t, bool& changed);
  bool program_site(unsigned s, const site_program& site, unsigned index, unsigned epoch, sc_core::sc_time& t);
  bool start_sites(const round_program& round, const std::vector<bool>& which, unsigned command);
  bool adapt(round_program& round, round_times& times);
  [[nodiscard]] static tlm::tlm_response_status access(control_socket& socket, tlm::tlm_command command, unsigned index,
                                                       std::uint64_t& value, sc_core::sc_time& t);
  bool write(control_socket& socket, unsigned index, std::uint64_t value, sc_core::sc_time& t, const char* what);
  [[nodiscard]] std::uint64_t read(control_socket& socket, unsigned index, sc_core::sc_time& t);
  [[nodiscard]] bool all_done(const round_program& round) const;
  bool refused(const std::string& what);
  void enter(state next);

  using route_key = std::tuple<unsigned, std::uint16_t, std::uint16_t>;  ///< router, group, source

  executor_parameters parameters_;
  std::map<route_key, std::uint64_t> installed_;  ///< what the routers' tables hold
  std::size_t next_change_ = 0;
  site_set expected_ = 0;  ///< sites the round waits for
  std::vector<round_times> rounds_;
  outcome result_ = outcome::running;
  std::string complaint_;
  sc_core::sc_event_or_list interrupts_;
  probe* state_probe_;
  probe* round_probe_;
};

}  // namespace tributary
