#include "modules/schedule_executor/schedule_executor.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tributary {

namespace {

std::vector<std::unique_ptr<schedule_executor::control_socket>> make_sockets(const char* prefix, unsigned count) {
  std::vector<std::unique_ptr<schedule_executor::control_socket>> sockets;
  for (unsigned i = 0; i < count; ++i) {
    sockets.push_back(std::make_unique<schedule_executor::control_socket>((prefix + std::to_string(i)).c_str()));
  }
  return sockets;
}

}  // namespace

schedule_executor::schedule_executor(const sc_core::sc_module_name& name, executor_parameters parameters)
    : model(name),
      clusters(make_sockets("cluster_", parameters.sites)),
      aggregators(make_sockets("aggregator_", parameters.sites)),
      routers(make_sockets("router_", parameters.routers)),
      cluster_interrupts("cluster_interrupt", parameters.sites),
      aggregator_interrupts("aggregator_interrupt", parameters.sites),
      parameters_(std::move(parameters)) {
  state_probe_ = &add_probe({"state",
                             probe_kind::state,
                             trace_level::round,
                             "",
                             "what the schedule executor does",
                             {"idle", "program", "run", "collect"}});
  round_probe_ = &add_probe({"round", probe_kind::count, trace_level::round, "", "round number", {}});
  sc_core::sc_spawn([this] { execute(); }, "execute");
}

void schedule_executor::enter(state next) { state_probe_->set(static_cast<std::uint64_t>(next)); }

bool schedule_executor::refused(const std::string& what) {
  result_ = outcome::refused;
  complaint_ = what;
  return false;
}

tlm::tlm_response_status schedule_executor::access(control_socket& socket, tlm::tlm_command command, unsigned index,
                                                   std::uint64_t& value, sc_core::sc_time& t) {
  tlm::tlm_generic_payload access;
  access.set_command(command);
  access.set_address(register_offset(index));
  access.set_data_ptr(reinterpret_cast<unsigned char*>(&value));
  access.set_data_length(8);
  access.set_streaming_width(8);
  access.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  socket->b_transport(access, t);
  return access.get_response_status();
}

bool schedule_executor::write(control_socket& socket, unsigned index, std::uint64_t value, sc_core::sc_time& t,
                              const char* what) {
  if (access(socket, tlm::TLM_WRITE_COMMAND, index, value, t) == tlm::TLM_OK_RESPONSE) return true;
  return refused(std::string("writing register ") + std::to_string(index) + " of " + what + " failed");
}

std::uint64_t schedule_executor::read(control_socket& socket, unsigned index, sc_core::sc_time& t) {
  std::uint64_t value = 0;
  (void)access(socket, tlm::TLM_READ_COMMAND, index, value, t);
  return value;
}

bool schedule_executor::program(const round_program& round, unsigned index) {
  sc_core::sc_time t = sc_core::SC_ZERO_TIME;
  bool ok = true;
  const auto set = [&](control_socket& socket, const char* what, unsigned reg, std::uint64_t value) {
    ok = ok && write(socket, reg, value, t, what);
  };
  for (auto& router : routers) set(*router, "a router", router_register::control, command_clear);
  for (const route_program& route : round.routes) {
    control_socket& router = *routers[route.router];
    set(router, "a router", router_register::group, route.group);
    set(router, "a router", router_register::source, route.source);
    set(router, "a router", router_register::ports, route.ports);
    set(router, "a router", router_register::control, command_start);
  }
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    const site_program& site = round.sites[s];
    control_socket& aggregator = *aggregators[s];
    const auto tell_aggregator = [&](unsigned reg, std::uint64_t value) {
      set(aggregator, "an aggregator", reg, value);
    };
    namespace ar = aggregator_register;
    tell_aggregator(ar::control, command_clear);
    tell_aggregator(ar::round, index);
    tell_aggregator(ar::group, site.group);
    tell_aggregator(ar::members, site.members);
    tell_aggregator(ar::update_bytes, parameters_.update_bytes);
    tell_aggregator(ar::chunk_bytes, parameters_.chunk_bytes);
    tell_aggregator(ar::slot_base, site.slot_base);
    tell_aggregator(ar::slot_count, site.slot_count);
    tell_aggregator(ar::on_chip_slots, site.on_chip_slots);
    tell_aggregator(ar::policy, static_cast<std::uint64_t>(parameters_.policy));
    tell_aggregator(ar::credit_window, site.receiver_window);
    tell_aggregator(ar::credit_initial, site.sender_window);
    tell_aggregator(ar::credit_batch, std::max<std::uint64_t>(1, site.receiver_window / 128));
    control_socket& cluster = *clusters[s];
    const auto tell_cluster = [&](unsigned reg, std::uint64_t value) { set(cluster, "a cluster", reg, value); };
    namespace cr = cluster_register;
    tell_cluster(cr::control, command_clear);
    tell_cluster(cr::round, index);
    tell_cluster(cr::group, site.group);
    tell_cluster(cr::members, site.members);
    tell_cluster(cr::update_bytes, parameters_.update_bytes);
    tell_cluster(cr::chunk_bytes, parameters_.chunk_bytes);
    tell_cluster(cr::pace_ps, site.pace);
    tell_cluster(cr::offset_ps, site.send_offset);
    tell_cluster(cr::credit_window, site.sender_window);
  }
  if (ok) wait(t);
  return ok;
}

bool schedule_executor::all_done() const {
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    if (!cluster_interrupts[s].read() || !aggregator_interrupts[s].read()) return false;
  }
  return true;
}

bool schedule_executor::run_round(unsigned index) {
  const round_program& round = parameters_.schedule[index % parameters_.schedule.size()];
  round_times times;
  times.index = index;
  times.opened = now();
  round_probe_->set(index);
  if (on_open) on_open(times);
  enter(state::program);
  if (!program(round, index)) return false;
  wait(sc_core::SC_ZERO_TIME);  // interrupts lowered by the clear commands settle

  // Aggregators first, so that they are armed before any cluster can send; the starts themselves are broadcast.
  enter(state::run);
  times.started = now();
  sc_core::sc_time broadcast = sc_core::SC_ZERO_TIME;
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    if (!write(*aggregators[s], aggregator_register::control, command_start, broadcast, "an aggregator")) return false;
    sc_core::sc_time t = sc_core::SC_ZERO_TIME;
    if ((read(*aggregators[s], aggregator_register::status, t) & status_error) != 0) {
      return refused("the aggregator of site " + std::to_string(s) + " refused to start: error " +
                     std::to_string(read(*aggregators[s], aggregator_register::error, t)));
    }
  }
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    if (!write(*clusters[s], cluster_register::control, command_start, broadcast, "a cluster")) return false;
    sc_core::sc_time t = sc_core::SC_ZERO_TIME;
    if ((read(*clusters[s], cluster_register::status, t) & status_error) != 0) {
      return refused("the cluster of site " + std::to_string(s) + " refused to start: error " +
                     std::to_string(read(*clusters[s], cluster_register::error, t)));
    }
  }

  const picoseconds deadline = times.started + round.timeout;
  while (!all_done()) {
    if (now() >= deadline) {
      result_ = outcome::timed_out;
      complaint_ = "round " + std::to_string(index) + " was not over after " + as_time(round.timeout).to_string() +
                   " of simulated time";
      return false;
    }
    wait(until(deadline), interrupts_);
  }
  times.closed = now();
  enter(state::collect);
  rounds_.push_back(times);
  if (on_close) on_close(times);
  return true;
}

void schedule_executor::execute() {
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    interrupts_ |= cluster_interrupts[s].posedge_event();
    interrupts_ |= aggregator_interrupts[s].posedge_event();
  }
  bool ok = true;
  for (unsigned index = 0; ok && index < parameters_.rounds; ++index) ok = run_round(index);
  if (ok) result_ = outcome::finished;
  enter(state::idle);
  sc_core::sc_stop();
}

std::string schedule_executor::waits_for() const {
  if (result_ == outcome::finished) return {};
  std::string sites;
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    if (!cluster_interrupts[s].read()) sites += " " + std::to_string(s);
  }
  return sites.empty() ? std::string() : "waits for the clusters of sites" + sites;
}

}  // namespace tributary
