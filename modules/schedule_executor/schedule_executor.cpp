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

/// Makes the routers' tables hold `routes`, and nothing else unless `keep_others`; writes what differs only.
bool schedule_executor::program_routes(const std::vector<route_program>& routes, bool keep_others, sc_core::sc_time& t,
                                       bool& changed) {
  std::map<route_key, std::uint64_t> wanted;
  for (const route_program& route : routes) {
    wanted[{route.router, route.group, route.source}] |= route.ports;
  }
  std::map<route_key, std::uint64_t> writes;
  for (const auto& [key, ports] : wanted) {
    const auto found = installed_.find(key);
    if (found == installed_.end() || found->second != ports) writes[key] = ports;
  }
  if (!keep_others) {
    for (const auto& [key, ports] : installed_) {
      if (wanted.count(key) == 0) writes[key] = 0;
    }
  }
  bool ok = true;
  for (const auto& [key, ports] : writes) {
    const auto& [number, group, source] = key;
    control_socket& router = *routers[number];
    const auto set = [&](unsigned reg, std::uint64_t value) { ok = ok && write(router, reg, value, t, "a router"); };
    set(router_register::group, group);
    set(router_register::source, source);
    set(router_register::ports, ports);
    set(router_register::control, command_start);
    if (ports == 0) {
      installed_.erase(key);
    } else {
      installed_[key] = ports;
    }
  }
  changed = !writes.empty();
  return ok;
}

bool schedule_executor::program_site(unsigned s, const site_program& site, unsigned index, unsigned epoch,
                                     sc_core::sc_time& t) {
  bool ok = true;
  const auto tell_aggregator = [&](unsigned reg, std::uint64_t value) {
    ok = ok && write(*aggregators[s], reg, value, t, "an aggregator");
  };
  namespace ar = aggregator_register;
  tell_aggregator(ar::control, command_clear);
  tell_aggregator(ar::round, index);
  tell_aggregator(ar::epoch, epoch);
  tell_aggregator(ar::group, site.group);
  tell_aggregator(ar::members, site.pass_through ? site_bit(s) : site.members);
  tell_aggregator(ar::sources, site.sources);
  tell_aggregator(ar::covers, site.covers);
  tell_aggregator(ar::output, static_cast<std::uint64_t>(site.output));
  tell_aggregator(ar::parent, site.parent);
  tell_aggregator(ar::pass_through, site.pass_through ? 1 : 0);
  tell_aggregator(ar::update_bytes, parameters_.update_bytes);
  tell_aggregator(ar::chunk_bytes, parameters_.chunk_bytes);
  tell_aggregator(ar::slot_base, site.slot_base);
  tell_aggregator(ar::slot_count, site.slot_count);
  tell_aggregator(ar::on_chip_slots, site.on_chip_slots);
  tell_aggregator(ar::policy, static_cast<std::uint64_t>(parameters_.policy));
  tell_aggregator(ar::credit_window, site.receiver_window);
  tell_aggregator(ar::credit_initial, site.sender_window);
  tell_aggregator(ar::credit_batch, std::max<std::uint64_t>(1, site.receiver_window / 128));
  tell_aggregator(ar::timeout_ps, site.timeout);
  tell_aggregator(ar::timeout_max_ps, site.timeout_max);
  tell_aggregator(ar::nack_delay_ps, site.nack_delay);
  tell_aggregator(ar::parity_packets, site.parity_packets);
  const auto tell_cluster = [&](unsigned reg, std::uint64_t value) {
    ok = ok && write(*clusters[s], reg, value, t, "a cluster");
  };
  namespace cr = cluster_register;
  tell_cluster(cr::control, command_clear);
  tell_cluster(cr::round, index);
  tell_cluster(cr::epoch, epoch);
  tell_cluster(cr::group, site.group);
  tell_cluster(cr::members, site.members);
  tell_cluster(cr::update_bytes, parameters_.update_bytes);
  tell_cluster(cr::chunk_bytes, parameters_.chunk_bytes);
  tell_cluster(cr::pace_ps, site.pace);
  tell_cluster(cr::offset_ps, site.send_offset);
  tell_cluster(cr::credit_window, site.sender_window);
  tell_cluster(cr::unicast, site.unicast ? 1 : 0);
  tell_cluster(cr::collective, static_cast<std::uint64_t>(site.role));
  tell_cluster(cr::peer, site.peer);
  tell_cluster(cr::ring_place, site.ring_place);
  tell_cluster(cr::parity_packets, site.parity_packets);
  return ok;
}

/// Aggregators first, so that they are armed before any cluster can send; the starts themselves are broadcast.
bool schedule_executor::start_sites(const round_program& round, const std::vector<bool>& which, unsigned command) {
  const auto start = [&](control_socket& socket, unsigned how, unsigned s, const char* what, unsigned control,
                         unsigned status, unsigned error) {
    sc_core::sc_time broadcast = sc_core::SC_ZERO_TIME;
    if (!write(socket, control, how, broadcast, what)) return false;
    sc_core::sc_time t = sc_core::SC_ZERO_TIME;
    if ((read(socket, status, t) & status_error) == 0) return true;
    return refused(std::string(what) + " (site " + std::to_string(s) + ") refused to start: error " +
                   std::to_string(read(socket, error, t)));
  };
  namespace ar = aggregator_register;
  namespace cr = cluster_register;
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    if (!which[s] || !round.sites[s].alive) continue;
    if (!start(*aggregators[s], command_start, s, "an aggregator", ar::control, ar::status, ar::error)) return false;
  }
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    if (!which[s] || !round.sites[s].alive) continue;
    if (!start(*clusters[s], command, s, "a cluster", cr::control, cr::status, cr::error)) return false;
  }
  return true;
}

bool schedule_executor::all_done(const round_program& round) const {
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    if (!round.sites[s].alive) continue;
    if (!cluster_interrupts[s].read() || !aggregator_interrupts[s].read()) return false;
  }
  return true;
}

/// Something about the network is known now: writes what differs, starts groups that lost members again.
bool schedule_executor::adapt(round_program& round, round_times& times) {
  round_program next = parameters_.program(times.index);
  sc_core::sc_time t = sc_core::SC_ZERO_TIME;
  bool changed = false;
  if (!program_routes(next.routes, !parameters_.joined_before.empty(), t, changed)) return false;
  std::vector<bool> restart(parameters_.sites, false);
  bool any = false;
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    if (!next.sites[s].alive) continue;
    if (next.sites[s].members != round.sites[s].members) {
      restart[s] = any = true;
    } else if (next.sites[s].pace != round.sites[s].pace &&
               !write(*clusters[s], cluster_register::pace_ps, next.sites[s].pace, t, "a cluster")) {
      return false;
    }
  }
  if (any) {
    ++times.restarts;
    for (unsigned s = 0; s < parameters_.sites; ++s) {
      if (restart[s] && !program_site(s, next.sites[s], times.index, times.restarts, t)) return false;
    }
  }
  wait(t);
  if (any) {
    wait(sc_core::SC_ZERO_TIME);
    if (!start_sites(next, restart, command_resume)) return false;
  }
  round = std::move(next);
  return true;
}

bool schedule_executor::run_round(unsigned index) {
  round_times times;
  times.index = index;
  times.opened = now();
  round_probe_->set(index);
  if (on_open) on_open(times);
  enter(state::program);
  while (next_change_ < parameters_.changes.size() && parameters_.changes[next_change_] <= now()) ++next_change_;
  round_program round = parameters_.program(index);
  const bool joined_before = !parameters_.joined_before.empty();
  sc_core::sc_time t = sc_core::SC_ZERO_TIME;
  bool joins = false;
  if (!program_routes(round.routes, joined_before, t, joins)) return false;
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    if (round.sites[s].alive && !program_site(s, round.sites[s], index, 0, t)) return false;
  }
  if (joins) t += as_time(parameters_.join_latency);
  wait(t);
  wait(sc_core::SC_ZERO_TIME);  // interrupts lowered by the clear commands settle

  enter(state::run);
  times.started = now();
  if (!start_sites(round, std::vector<bool>(parameters_.sites, true), command_start)) return false;

  picoseconds deadline = times.started + round.timeout;
  while (!all_done(round)) {
    const bool change = next_change_ < parameters_.changes.size();
    if (change && parameters_.changes[next_change_] <= now()) {
      ++next_change_;
      const unsigned restarts = times.restarts;
      if (!adapt(round, times)) return false;
      if (times.restarts != restarts) deadline = now() + round.timeout;
      continue;
    }
    if (now() >= deadline) {
      result_ = outcome::timed_out;
      complaint_ = "round " + std::to_string(index) + " was not over after " +
                   as_time(now() - times.started).to_string() + " of simulated time";
      if (!round.trouble.empty()) complaint_ += "; " + round.trouble;
      return false;
    }
    expected_ = 0;
    for (unsigned s = 0; s < parameters_.sites; ++s) expected_ |= round.sites[s].alive ? site_bit(s) : 0;
    wait(until(change ? std::min(deadline, parameters_.changes[next_change_]) : deadline), interrupts_);
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
  if (!parameters_.joined_before.empty()) {
    sc_core::sc_time t = as_time(parameters_.join_latency);
    bool changed = false;
    ok = program_routes(parameters_.joined_before, true, t, changed);
    wait(t);
  }
  for (unsigned index = 0; ok && index < parameters_.rounds; ++index) ok = run_round(index);
  if (ok) result_ = outcome::finished;
  enter(state::idle);
  sc_core::sc_stop();
}

std::string schedule_executor::waits_for() const {
  if (result_ == outcome::finished) return {};
  std::string sites;
  for (unsigned s = 0; s < parameters_.sites; ++s) {
    if ((expected_ & site_bit(s)) != 0 && !cluster_interrupts[s].read()) sites += " " + std::to_string(s);
  }
  return sites.empty() ? std::string() : "waits for the clusters of sites" + sites;
}

}  // namespace tributary
