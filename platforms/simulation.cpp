#include "platforms/simulation.hpp"

#include <fmt/format.h>

#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>

#include "planner/mixing.hpp"
#include "platforms/lossless.hpp"
#include "tlm/random.hpp"

namespace tributary {

namespace {

/// A direction between a device that needs `from` header bytes to forward and one that needs `to`; 0: whole packets.
link_direction_parameters cut_through(link_direction_parameters line, std::uint32_t from, std::uint32_t to) {
  line.cut_through_from = from;
  line.cut_through_to = to;
  return line;
}

}  // namespace

/// A site's modules, as one SystemC scope.
struct simulation::site_modules : sc_core::sc_module {
  gpu_cluster cluster;
  fpga_aggregator aggregator;
  memory_controller memory;
  std::unique_ptr<memory_controller> on_chip_memory;  ///< null: all slots lie in `memory`
  long_haul_link access;                              ///< direction 0: cluster to router, 1: aggregator to cluster
  long_haul_link ports;                               ///< direction 0: router to aggregator
  sc_core::sc_signal<bool, sc_core::SC_MANY_WRITERS>
      cluster_interrupt;  ///< raised by the module, lowered by the driver
  sc_core::sc_signal<bool, sc_core::SC_MANY_WRITERS> aggregator_interrupt;

  site_modules(const sc_core::sc_module_name& name, const cluster_parameters& cluster_with,
               const aggregator_parameters& aggregator_with, const memory_parameters& memory_with,
               const site_spec& site, const router_spec& router, burst_pool& pool)
      : sc_core::sc_module(name),
        cluster("cluster", cluster_with, pool),
        aggregator("aggregator", aggregator_with, pool),
        memory("memory", memory_with),
        access("access",
               {{cut_through({site.access_up, site.access_latency, site.name + " access up"}, 0,
                             router.cut_through_header),
                 {site.access_down, site.access_latency, site.name + " access down"}}},
               pool),
        ports("ports",
              {{cut_through({site.aggregator.ports, site.access_latency, site.name + " ports"},
                            router.cut_through_header, 0),
                cut_through({site.aggregator.ports, site.access_latency, site.name + " ports back"}, 0,
                            router.cut_through_header)}},
              pool) {
    if (site.aggregator.on_chip_bytes != 0) {
      on_chip_memory = std::make_unique<memory_controller>("on_chip_memory", site.aggregator.on_chip.parameters());
    }
    cluster.interrupt(cluster_interrupt);
    aggregator.interrupt(aggregator_interrupt);
  }
};

bool run_result::passed() const {
  return std::all_of(checks.begin(), checks.end(), [](const check_result& each) { return each.pass; });
}

simulation::simulation(const platform_spec& spec, run_options options)
    : spec_(spec), options_(std::move(options)), model_(model_of(spec_)), schedule_(schedule_of(spec_, model_)) {
  feedback_ =
      spec_.flow == planner::flow_control::credit || spec_.repairs() || spec_.collective == collective_choice::transit;
  plan();
  build();
  plan_failures();
}

simulation::~simulation() = default;

gpu_cluster& simulation::cluster(unsigned site) { return sites_[site]->cluster; }
fpga_aggregator& simulation::aggregator(unsigned site) { return sites_[site]->aggregator; }

planned_round simulation::plan_on(const planner::platform_model& model, const planner::partition& groups) const {
  planned_round plan;
  plan.groups = groups;
  if (spec_.collective == collective_choice::exchange) {
    plan.exchange = planner::plan_round(model, groups);
    plan.predicted = plan.exchange.predicted;
    if (spec_.pace) {
      for (planner::group_plan& group : plan.exchange.groups) group.pace = *spec_.pace;
    }
    return plan;
  }
  for (const planner::group& members : groups) {
    if (members.size() < 2) {
      for (const unsigned s : members) {
        plan.predicted = std::max(plan.predicted, model.sites[s].compute_time + model.sites[s].apply_time);
      }
      continue;
    }
    const planner::collective_kind kind = spec_.collective == collective_choice::hub ? planner::collective_kind::hub
                                          : spec_.collective == collective_choice::ring
                                              ? planner::collective_kind::ring
                                              : planner::collective_kind::transit;
    plan.collectives.push_back(planner::plan_collective(model, members, kind));
    if (spec_.pace) plan.collectives.back().pace = *spec_.pace;
    plan.predicted = std::max(plan.predicted, plan.collectives.back().predicted);
  }
  return plan;
}

void simulation::plan() {
  unsigned base = 0;
  for (const planner::partition& round : schedule_.rounds) {
    try {
      plans_.push_back(plan_on(model_, round));
    } catch (const std::invalid_argument& error) {
      throw config_error(fmt::format("{}: {}", spec_.name, error.what()));
    }
    group_base_.push_back(spec_.joined_before ? base : 0);
    base += static_cast<unsigned>(round.size());
  }
  if (base >= unicast_group) throw config_error(fmt::format("{}: more groups than routers number", spec_.name));
  for (const planned_round& round : plans_) {
    std::vector<planner::stream_routes> streams = planner::routes_of(round.exchange, spec_.multicast);
    for (const planner::collective_plan& collective : round.collectives) {
      for (const planner::unicast_path& path : collective.paths) streams.push_back({{path.edges}});
      streams.push_back({collective.down.paths});
    }
    const std::optional<std::string> warning = deadlock_warning(spec_, model_.network, streams);
    if (warning && (warnings_.empty() || warnings_.back() != *warning)) warnings_.push_back(*warning);
  }
  rounds_ = spec_.rounds == 0 ? static_cast<unsigned>(schedule_.rounds.size()) : spec_.rounds;
}

// ---- failures ---------------------------------------------------------------------------------------------------

namespace {

/// When the driver gives a failed site up: after the time-out, or when it reports back having lost its round.
picoseconds given_up_at(const platform_spec& spec, const failure_spec& failure) {
  const picoseconds silent = failure.at + spec.site_timeout;
  return failure.back ? std::min(silent, *failure.back) : silent;
}

bool known_down(const platform_spec& spec, const link_spec& link, picoseconds when) {
  return std::any_of(link.outages.begin(), link.outages.end(), [&](const outage& each) {
    if (each.to - each.from <= spec.detection_time) return false;  // over before it was noticed
    const picoseconds up = each.to > std::numeric_limits<picoseconds>::max() - spec.detection_time
                               ? each.to
                               : each.to + spec.detection_time;
    return each.from + spec.detection_time <= when && when < up;
  });
}

}  // namespace

bool simulation::site_known_up(unsigned site, picoseconds round_start, picoseconds when) const {
  return std::none_of(spec_.failures.begin(), spec_.failures.end(), [&](const failure_spec& each) {
    if (each.site != site) return false;
    const picoseconds given_up = given_up_at(spec_, each);
    // Down when the round began, or found out since: what it had of the round is gone even if it is back.
    const bool down_at_start = given_up <= round_start && (!each.back || round_start < *each.back);
    return down_at_start || (given_up > round_start && given_up <= when);
  });
}

/// Power goes and comes on the timetable.
void simulation::plan_failures() {
  for (const failure_spec& each : spec_.failures) {
    sc_core::sc_spawn(
        [this, each] {
          site_modules& site = *sites_[each.site];
          const auto power = [&site](bool on) {
            site.cluster.set_power(on);
            site.aggregator.set_power(on);
          };
          wait(sc_core::sc_time::from_value(each.at));
          power(false);
          note_event(fmt::format("site {} is down", spec_.sites[each.site].name));
          if (!each.back) return;
          wait(sc_core::sc_time::from_value(*each.back - each.at));
          power(true);
          note_event(fmt::format("site {} is up again", spec_.sites[each.site].name));
        },
        sc_core::sc_gen_unique_name("failure"));
  }
}

void simulation::note_event(const std::string& what) {
  const picoseconds now = sc_core::sc_time_stamp().value();
  if (!network_events_.empty() && network_events_.back().what == what && network_events_.back().at == now) return;
  network_events_.push_back({now, what});
}

/// Groups whose members still reach each other are planned on what is left of the network, the others as if nothing had
/// happened: their streams wait for the network to heal.
planned_round simulation::plan_around(const planner::partition& groups, const std::vector<bool>& down) {
  planner::platform_model left = model_;
  for (unsigned l = 0; l < down.size(); ++l) left.network.set_down(l, down[l]);
  const std::vector<unsigned> part = left.network.parts();
  planner::partition whole;
  planner::partition torn;
  std::string trouble;
  for (const planner::group& members : groups) {
    std::map<unsigned, std::string> parts;
    for (const unsigned s : members) {
      std::string& names = parts[part[spec_.sites[s].router]];
      names += (names.empty() ? "" : " ") + spec_.sites[s].name;
    }
    if (parts.size() < 2) {
      whole.push_back(members);
      continue;
    }
    torn.push_back(members);
    std::string all;
    for (const auto& [device, names] : parts) all += (all.empty() ? "{" : " | {") + names + "}";
    trouble += (trouble.empty() ? "partition: " : "; partition: ") + all;
  }
  if (!trouble.empty()) note_event(trouble);
  planned_round plan = plan_on(left, whole);
  if (!torn.empty()) {
    planned_round waiting = plan_on(model_, torn);
    for (planner::group_plan& each : waiting.exchange.groups) plan.exchange.groups.push_back(std::move(each));
    plan.predicted = std::max(plan.predicted, waiting.predicted);
  }
  plan.groups = groups;
  plan.trouble = std::move(trouble);
  return plan;
}

round_program simulation::program_now(unsigned index) {
  const picoseconds now = sc_core::sc_time_stamp().value();
  const std::size_t in_schedule = index % plans_.size();
  const bool begins = index != current_index_;
  if (begins) {
    current_index_ = index;
    current_start_ = now;
  }
  std::vector<bool> up(sites_.size());
  bool changed = false;
  for (unsigned s = 0; s < sites_.size(); ++s) {
    up[s] = site_known_up(s, current_start_, now);
    changed = changed || !up[s];
  }
  std::vector<bool> down;
  for (const link_spec& link : spec_.links) {
    down.push_back(known_down(spec_, link, now));
    if (down.back()) note_event(fmt::format("link {} is known to be down", link.name));
    changed = changed || down.back();
  }
  if (!changed) {
    current_ = plans_[in_schedule];
  } else {
    planner::partition groups;
    for (const planner::group& members : schedule_.rounds[in_schedule]) {
      planner::group left;
      for (const unsigned s : members) {
        if (up[s]) left.push_back(s);
      }
      if (!left.empty()) groups.push_back(std::move(left));
    }
    for (unsigned s = 0; s < sites_.size(); ++s) {
      if (!up[s]) note_event(fmt::format("round {} goes on without site {}", index, spec_.sites[s].name));
    }
    current_ = plan_around(groups, down);
  }
  round_program program = program_of(current_, in_schedule);
  for (unsigned s = 0; s < sites_.size(); ++s) program.sites[s].alive = up[s];
  return program;
}

// ---- building ---------------------------------------------------------------------------------------------------

void simulation::connect(network_initiator_socket& from, network_target_socket& to) {
  if (!options_.protocol_checkers) {
    from.bind(to);
    return;
  }
  network_checkers_.push_back(
      std::make_unique<network_checker>(fmt::format("network_checker_{}", network_checkers_.size()).c_str()));
  from.bind(network_checkers_.back()->in);
  network_checkers_.back()->out.bind(to);
}

void simulation::connect(memory_port& from, memory_controller& to) {
  if (!options_.protocol_checkers) {
    from.socket.bind(to.socket);
    return;
  }
  memory_checkers_.push_back(
      std::make_unique<memory_checker>(fmt::format("memory_checker_{}", memory_checkers_.size()).c_str()));
  from.socket.bind(memory_checkers_.back()->in);
  memory_checkers_.back()->out.bind(to.socket);
  if (to.parameters().level == memory_level::burst) {
    command_checkers_.push_back(std::make_unique<dram_command_checker>(to.parameters().device));
    to.watch(*command_checkers_.back());
  }
}

void simulation::build() {
  const sc_core::sc_time access_time = sc_core::sc_time::from_value(spec_.register_access_time);

  // Ports of a router: its links in order, then its sites in order.
  std::vector<unsigned> ports(spec_.routers.size(), 0);
  for (const link_spec& link : spec_.links) {
    link_port_a_.push_back(ports[link.a]++);
    link_port_b_.push_back(ports[link.b]++);
  }
  // A site has one port for its cluster and its aggregator's input, and one more where the aggregator sends.
  for (const site_spec& site : spec_.sites) {
    site_port_.push_back(ports[site.router]);
    ports[site.router] += feedback_ ? 2 : 1;
  }

  for (std::size_t s = 0; s < spec_.sites.size(); ++s) {
    const site_spec& site = spec_.sites[s];
    cluster_parameters cluster;
    cluster.id = static_cast<unsigned>(s);
    cluster.compute_time = site.cluster.compute_time;
    cluster.straggler_sigma = site.cluster.straggler_sigma;
    cluster.reduce_time = site.cluster.reduce_time;
    cluster.released_early_share = site.cluster.released_early_share;
    cluster.apply_time = site.cluster.apply_time;
    cluster.consume_rate = site.cluster.consume_rate;
    cluster.split_into_packets = spec_.packet_fidelity;
    cluster.format = spec_.format;
    cluster.values = spec_.values;
    cluster.scale_bits = spec_.scale_bits;
    cluster.seed = spec_.seed;
    cluster.register_access_time = access_time;

    aggregator_parameters aggregator;
    aggregator.id = static_cast<unsigned>(s);
    aggregator.memory_bytes = site.aggregator.memory_bytes - site.aggregator.on_chip_bytes;
    aggregator.on_chip_bytes = site.aggregator.on_chip_bytes;
    aggregator.slot_table_entries = site.aggregator.slot_table_entries;
    aggregator.tag_bits = site.aggregator.tag_bits;
    aggregator.datapath_bytes = site.aggregator.datapath_bytes;
    aggregator.lanes = site.aggregator.lanes;
    aggregator.clock_hz = site.aggregator.clock_hz;
    aggregator.adder_latency = site.aggregator.adder_latency();
    aggregator.ingress_buffer_bytes = site.aggregator.ingress_buffer_bytes;
    aggregator.egress_chunks = site.aggregator.egress_chunks;
    aggregator.split_into_packets = spec_.packet_fidelity;
    aggregator.rate_window = std::max<picoseconds>(1, plans_.front().predicted / 200);
    aggregator.format = spec_.format;
    aggregator.values = spec_.values;
    aggregator.register_access_time = access_time;

    sites_.push_back(std::make_unique<site_modules>(site.identifier.c_str(), cluster, aggregator,
                                                    site.aggregator.device.parameters(), site,
                                                    spec_.routers[site.router], pool_));
  }

  for (std::size_t r = 0; r < spec_.routers.size(); ++r) {
    if (ports[r] > 64) throw config_error(fmt::format("router '{}' has more than 64 ports", spec_.routers[r].name));
    router_parameters router = spec_.routers[r].parameters;
    router.id = static_cast<unsigned>(r);
    router.ports = ports[r];
    router.register_access_time = access_time;
    routers_.push_back(std::make_unique<multicast_router>(spec_.routers[r].identifier.c_str(), router, pool_));
  }

  for (std::size_t l = 0; l < spec_.links.size(); ++l) {
    const link_spec& link = spec_.links[l];
    std::array<link_direction_parameters, 2> directions{
        {{link.rate_ab, link.latency_ab, direction_label(link, true)},
         {link.rate_ba, link.latency_ba, direction_label(link, false)}}};
    const std::array<std::uint32_t, 2> header{spec_.routers[link.a].cut_through_header,
                                              spec_.routers[link.b].cut_through_header};
    for (unsigned d = 0; d < 2; ++d) {
      link_direction_parameters& line = directions[d];
      line.fec_latency = link.fec_latency;
      line.jitter = link.jitter;
      line.jitter_interval = link.jitter_interval;
      line.reorders = link.reorders;
      line.loss = link.loss;
      line.outages = link.outages;
      line.seed = mixed(spec_.seed, 2 * l + d);
      line = cut_through(line, header[d], header[1 - d]);
    }
    links_.push_back(std::make_unique<long_haul_link>(link.identifier.c_str(), directions, pool_));
    multicast_router& a = *routers_[link.a];
    multicast_router& b = *routers_[link.b];
    connect(*a.out[link_port_a_[l]], links_[l]->in[0]);
    connect(links_[l]->out[0], *b.in[link_port_b_[l]]);
    connect(*b.out[link_port_b_[l]], links_[l]->in[1]);
    connect(links_[l]->out[1], *a.in[link_port_a_[l]]);
  }

  executor_parameters executor;
  executor.sites = static_cast<unsigned>(sites_.size());
  executor.routers = static_cast<unsigned>(routers_.size());
  executor.update_bytes = spec_.update_bytes;
  executor.chunk_bytes = spec_.chunk_bytes;
  executor.policy = spec_.policy;
  executor.rounds = rounds_;
  executor.program = [this](unsigned index) { return program_now(index); };
  executor.join_latency = spec_.join_latency;
  if (spec_.joined_before) {
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      for (const route_program& route : program_of(plans_[r], r).routes) executor.joined_before.push_back(route);
    }
  }
  for (const link_spec& link : spec_.links) {
    for (const outage& each : link.outages) {
      if (each.to - each.from <= spec_.detection_time) continue;
      executor.changes.push_back(each.from + spec_.detection_time);
      if (each.to < std::numeric_limits<picoseconds>::max() - spec_.detection_time) {
        executor.changes.push_back(each.to + spec_.detection_time);
      }
    }
  }
  for (const failure_spec& each : spec_.failures) executor.changes.push_back(given_up_at(spec_, each));
  std::sort(executor.changes.begin(), executor.changes.end());
  executor_ = std::make_unique<schedule_executor>("executor", executor);
  executor_->on_open = [this](const round_times& times) { open_round(times); };
  executor_->on_close = [this](const round_times& times) { close_round(times); };

  for (std::size_t s = 0; s < sites_.size(); ++s) {
    site_modules& site = *sites_[s];
    multicast_router& router = *routers_[spec_.sites[s].router];
    const unsigned port = site_port_[s];
    connect(site.cluster.out, site.access.in[0]);
    connect(site.access.out[0], *router.in[port]);
    connect(*router.out[port], site.ports.in[0]);
    connect(site.ports.out[0], site.aggregator.in);
    connect(site.aggregator.egress.socket, site.access.in[1]);
    if (feedback_) {
      connect(site.aggregator.uplink.socket, site.ports.in[1]);
      connect(site.ports.out[1], *router.in[port + 1]);
    }
    connect(site.access.out[1], site.cluster.in);
    connect(site.aggregator.memory, site.memory);
    if (site.on_chip_memory != nullptr) connect(*site.aggregator.on_chip, *site.on_chip_memory);
    executor_->clusters[s]->bind(site.cluster.control.socket);
    executor_->aggregators[s]->bind(site.aggregator.control.socket);
    executor_->cluster_interrupts[s].bind(site.cluster_interrupt);
    executor_->aggregator_interrupts[s].bind(site.aggregator_interrupt);
  }
  for (std::size_t r = 0; r < routers_.size(); ++r) executor_->routers[r]->bind(routers_[r]->control.socket);
}

/// A path as router table entries: a link port at every router on it, the local port at its end.
void simulation::add_unicast(round_program& program, unsigned from, unsigned to,
                             const std::vector<planner::edge_id>& path) const {
  const auto source = static_cast<std::uint16_t>(from);
  const auto number = static_cast<std::uint16_t>(unicast_group + to);
  for (const planner::edge_id e : path) {
    const link_spec& link = spec_.links[e / 2];
    const bool forward = e % 2 == 0;
    program.routes.push_back({forward ? link.a : link.b, number, source,
                              std::uint64_t{1} << (forward ? link_port_a_[e / 2] : link_port_b_[e / 2])});
  }
  program.routes.push_back({spec_.sites[to].router, number, source, std::uint64_t{1} << site_port_[to]});
}

/// A tree as router table entries: link ports on tree edges, the local port at each destination.
void simulation::add_tree(round_program& program, const planner::multicast_tree& tree, const planner::group& members,
                          unsigned source, std::uint16_t number) const {
  std::vector<std::uint64_t> egress(routers_.size(), 0);
  for (const planner::edge_id e : tree.edges) {
    const unsigned link = e / 2;
    const bool forward = e % 2 == 0;
    egress[forward ? spec_.links[link].a : spec_.links[link].b] |=
        std::uint64_t{1} << (forward ? link_port_a_[link] : link_port_b_[link]);
  }
  for (const unsigned s : members) {
    if (s != source) egress[spec_.sites[s].router] |= std::uint64_t{1} << site_port_[s];
  }
  for (unsigned r = 0; r < routers_.size(); ++r) {
    if (egress[r] != 0) program.routes.push_back({r, number, static_cast<std::uint16_t>(source), egress[r]});
  }
}

void simulation::program_exchange(round_program& program, const planner::group_plan& group,
                                  std::uint16_t number) const {
  site_set members = 0;
  for (const unsigned s : group.members) members |= site_bit(s);
  picoseconds round_trip = 0;
  picoseconds jitter = 0;
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    for (const picoseconds latency : group.trees[m].latency) round_trip = std::max(round_trip, 2 * latency);
    for (const std::vector<planner::edge_id>& path : group.trees[m].paths) {
      picoseconds sum = 0;
      for (const planner::edge_id e : path) sum += model_.network.jitter(e);
      jitter = std::max(jitter, sum);
    }
  }
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    const unsigned source = group.members[m];
    site_program& site = program.sites[source];
    site.group = number;
    site.members = members;
    site.pace = group.pace;
    site.send_offset = group.offsets.empty() ? 0 : group.offsets[m];
    site.unicast = !spec_.multicast;
    if (!group.windows.empty()) {
      site.receiver_window = group.windows[m];
      site.sender_window = *std::min_element(group.windows.begin(), group.windows.end());
    }
    if (spec_.repairs()) {
      // There and back, what paces and jitter add, and some: an early time-out only sends twice.
      site.timeout = spec_.repair.timeout.value_or(round_trip + 2 * jitter + 8 * group.pace + ps_per_s / 100);
      site.timeout_max = std::max(site.timeout, spec_.repair.timeout_max);
      site.nack_delay = spec_.repair.nack_delay.value_or(model_.repair_delay != 0 ? jitter : 0);
      site.parity_packets = spec_.repair.parity_packets;
    }
    const planner::multicast_tree& tree = group.trees[m];
    if (spec_.multicast) add_tree(program, tree, group.members, source, number);
    if (spec_.multicast && !feedback_) continue;
    for (std::size_t d = 0; d < tree.destinations.size(); ++d) {
      add_unicast(program, source, group.members[d < m ? d : d + 1], tree.paths[d]);
    }
  }
}

void simulation::program_collective(round_program& program, const planner::collective_plan& plan,
                                    std::uint16_t number) const {
  site_set members = 0;
  for (const unsigned s : plan.members) members |= site_bit(s);
  for (std::size_t m = 0; m < plan.members.size(); ++m) {
    const unsigned s = plan.members[m];
    site_program& site = program.sites[s];
    site.group = number;
    site.members = members;
    site.pace = plan.pace;
    site.send_offset = plan.offsets[m];
    switch (plan.kind) {
      case planner::collective_kind::hub:
        site.role = s == plan.root ? collective::hub : collective::leaf;
        site.peer = plan.root;
        site.unicast = true;
        site.pass_through = true;
        break;
      case planner::collective_kind::ring: {
        const auto place = std::find(plan.order.begin(), plan.order.end(), s) - plan.order.begin();
        site.role = collective::ring;
        site.ring_place = static_cast<unsigned>(place);
        site.peer = plan.order[(static_cast<std::size_t>(place) + 1) % plan.order.size()];
        site.pass_through = true;
        break;
      }
      case planner::collective_kind::transit:
        site.role = collective::transit;
        site.parent = plan.parent[m];
        site.output = s == plan.root ? merged_output::group : merged_output::upstream;
        site.sources |= site_bit(s);
        site.covers |= site_bit(s);
        add_unicast(program, s, s, {});
        // Its values are in the sums of every site up to the root.
        for (unsigned below = s; below != plan.root;) {
          const auto at = std::find(plan.members.begin(), plan.members.end(), below) - plan.members.begin();
          const unsigned above = plan.parent[static_cast<std::size_t>(at)];
          program.sites[above].covers |= site_bit(s);
          if (below == s) program.sites[above].sources |= site_bit(s);
          below = above;
        }
        break;
    }
  }
  for (const planner::unicast_path& path : plan.paths) add_unicast(program, path.from, path.to, path.edges);
  if (plan.kind == planner::collective_kind::transit) add_tree(program, plan.down, plan.members, plan.root, number);
}

round_program simulation::program_of(const planned_round& plan, std::size_t in_schedule) const {
  round_program program;
  program.sites.resize(sites_.size());
  const planner::partition& scheduled = schedule_.rounds[in_schedule];
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    site_program& site = program.sites[s];
    site.group = unicast_group - 1;  // singletons share a group nobody sends in
    site.members = site_bit(static_cast<unsigned>(s));
    const aggregator_spec& aggregator = spec_.sites[s].aggregator;
    const std::uint64_t slot_bytes = spec_.slot_bytes();
    site.on_chip_slots = aggregator.on_chip_bytes / slot_bytes;
    site.slot_count = std::min<std::uint64_t>(
        site.on_chip_slots + (aggregator.memory_bytes - aggregator.on_chip_bytes) / slot_bytes, 0xffffffff);
  }
  // A group keeps its number when it, or another one, loses members.
  const auto number_of = [&](const planner::group& members) {
    const auto found = std::find_if(scheduled.begin(), scheduled.end(), [&members](const planner::group& each) {
      return std::find(each.begin(), each.end(), members.front()) != each.end();
    });
    return static_cast<std::uint16_t>(group_base_[in_schedule] + static_cast<unsigned>(found - scheduled.begin()));
  };
  for (const planner::group_plan& group : plan.exchange.groups) {
    program_exchange(program, group, number_of(group.members));
  }
  for (const planner::collective_plan& each : plan.collectives) {
    program_collective(program, each, number_of(each.members));
  }
  program.timeout = spec_.round_timeout.value_or(10 * plan.predicted + ps_per_s);
  program.trouble = plan.trouble;
  return program;
}

/// Payload bytes a member hands to the network, repairs not counted.
std::uint64_t simulation::expected_sent(const planner::group& members, const planned_round& plan, unsigned site) const {
  if (members.size() < 2) return 0;
  const std::uint64_t others = members.size() - 1;
  switch (spec_.collective) {
    case collective_choice::exchange: return spec_.update_bytes * (spec_.multicast ? 1 : others);
    case collective_choice::transit: return spec_.update_bytes;
    case collective_choice::hub:
    case collective_choice::ring: break;
  }
  for (const planner::collective_plan& each : plan.collectives) {
    if (each.members != members) continue;
    if (spec_.collective == collective_choice::hub) return spec_.update_bytes * (site == each.root ? others : 1);
    // Ring: once for every chunk it does not finish, once for every one the next place does not finish.
    const auto n = static_cast<std::uint64_t>(each.order.size());
    const auto place =
        static_cast<std::uint64_t>(std::find(each.order.begin(), each.order.end(), site) - each.order.begin());
    std::uint64_t sum = 0;
    for (std::uint64_t c = 0; c < model_.chunks(); ++c) {
      const std::uint64_t size = std::min(spec_.chunk_bytes, spec_.update_bytes - c * spec_.chunk_bytes);
      sum += size * ((c % n != place ? 1 : 0) + (c % n != (place + 1) % n ? 1 : 0));
    }
    return sum;
  }
  return 0;
}

std::uint64_t simulation::expected_received(const planner::group& members, const planned_round& plan,
                                            unsigned site) const {
  if (members.size() < 2) return 0;
  if (spec_.collective == collective_choice::exchange) {
    return spec_.update_bytes * (spec_.policy == buffering::none ? members.size() - 1 : 1);
  }
  for (const planner::collective_plan& each : plan.collectives) {
    if (each.members != members || spec_.collective == collective_choice::transit) continue;
    if (spec_.collective == collective_choice::hub) {
      return spec_.update_bytes * (site == each.root ? members.size() - 1 : 1);
    }
    // What the place before it sends.
    const auto at = std::find(each.order.begin(), each.order.end(), site) - each.order.begin();
    const std::size_t n = each.order.size();
    return expected_sent(members, plan, each.order[(static_cast<std::size_t>(at) + n - 1) % n]);
  }
  return spec_.update_bytes;
}

std::vector<wave_group> simulation::wave_groups() {
  std::vector<wave_group> groups;
  const auto add_all = [](wave_group& group, const std::vector<std::string>& scope, model& module) {
    for (probe& each : module.probes()) group.signals.push_back({scope, &each, {}});
  };
  wave_group control{"schedule", true, {}};
  add_all(control, {"executor"}, *executor_);
  groups.push_back(std::move(control));
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    const std::string& id = spec_.sites[s].identifier;
    wave_group group{spec_.sites[s].name, true, {}};
    add_all(group, {id, "cluster"}, sites_[s]->cluster);
    add_all(group, {id, "aggregator"}, sites_[s]->aggregator);
    add_all(group, {id, "memory"}, sites_[s]->memory);
    if (sites_[s]->on_chip_memory != nullptr) add_all(group, {id, "on_chip_memory"}, *sites_[s]->on_chip_memory);
    for (std::size_t l = 0; l < links_.size(); ++l) {
      // A link is shown with the site it leaves: direction 0 at end a, direction 1 at end b.
      for (probe& each : links_[l]->probes()) {
        const bool forward = each.info().name.find("_forward") != std::string::npos;
        const unsigned end = forward ? spec_.links[l].a : spec_.links[l].b;
        const unsigned far = forward ? spec_.links[l].b : spec_.links[l].a;
        if (end != spec_.sites[s].router) continue;
        const std::string what = each.info().name.substr(0, each.info().name.rfind('_'));
        group.signals.push_back({{"backbone", spec_.links[l].identifier},
                                 &each,
                                 fmt::format("link to {} {}", spec_.routers[far].name, what)});
      }
    }
    groups.push_back(std::move(group));
  }
  wave_group access{"access links", false, {}};
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    add_all(access, {spec_.sites[s].identifier, "access"}, sites_[s]->access);
    add_all(access, {spec_.sites[s].identifier, "ports"}, sites_[s]->ports);
  }
  groups.push_back(std::move(access));
  wave_group routers{"routers", false, {}};
  for (std::size_t r = 0; r < routers_.size(); ++r) {
    add_all(routers, {"routers", spec_.routers[r].identifier}, *routers_[r]);
  }
  wave_group backbone{"other backbone links", false, {}};
  std::set<const probe*> shown;
  for (const wave_group& group : groups) {
    for (const traced_signal& signal : group.signals) shown.insert(signal.source);
  }
  for (std::size_t l = 0; l < links_.size(); ++l) {
    for (probe& each : links_[l]->probes()) {
      if (shown.count(&each) == 0) backbone.signals.push_back({{"backbone", spec_.links[l].identifier}, &each, {}});
    }
  }
  groups.push_back(std::move(backbone));
  groups.push_back(std::move(routers));
  return groups;
}

bool simulation::traced(const traced_signal& signal) const {
  if (spec_.traced_signals.empty()) return true;
  const std::string name = full_name(signal);
  return std::any_of(spec_.traced_signals.begin(), spec_.traced_signals.end(),
                     [&name](const std::string& glob) { return fnmatch(glob.c_str(), name.c_str(), 0) == 0; });
}

std::vector<traced_signal> simulation::signals() {
  std::vector<traced_signal> all;
  std::set<const probe*> seen;
  for (const wave_group& group : wave_groups()) {
    for (const traced_signal& signal : group.signals) {
      if (seen.insert(signal.source).second && traced(signal)) all.push_back(signal);
    }
  }
  return all;
}

/// The modules and links the critical path went through, in its order.
wave_group simulation::critical_group(const round_result& result, const std::vector<wave_group>& groups) const {
  wave_group critical{fmt::format("critical path of round {}", result.index), true, {}};
  std::set<const probe*> added;
  const auto add = [&](const std::string& module, const std::vector<std::string>& names) {
    for (const wave_group& group : groups) {
      for (const traced_signal& signal : group.signals) {
        std::string scope;
        for (const std::string& each : signal.scope) scope += (scope.empty() ? "" : ".") + each;
        const std::string& name = signal.source->info().name;
        if (scope != module || std::find(names.begin(), names.end(), name) == names.end()) continue;
        if (!added.insert(signal.source).second) continue;
        std::string label = scope + " " + name;
        std::replace(label.begin(), label.end(), '.', ' ');  // a viewer shows what follows the last dot
        critical.signals.push_back({signal.scope, signal.source, label});
      }
    }
  };
  add("executor", {"state"});
  const unsigned source = sites_[result.last_site]->cluster.last_round().last_source;
  add(spec_.sites[source].identifier + ".cluster", {"state", "sent"});
  for (const path_span& span : result.critical_path) {
    for (std::size_t l = 0; l < links_.size(); ++l) {
      for (const bool forward : {true, false}) {
        if (span.where != direction_label(spec_.links[l], forward)) continue;
        const std::string suffix = forward ? "forward" : "backward";
        add("backbone." + spec_.links[l].identifier, {"busy_" + suffix, "stall_" + suffix});
      }
    }
  }
  const std::string& last = spec_.sites[result.last_site].identifier;
  add(last + ".aggregator", {"state", "occupancy", "rate", "memory_stall"});
  add(last + ".cluster", {"received", "state"});
  return critical;
}

void simulation::open_traces() {
  if (options_.folder.empty()) return;
  if (!spec_.captured_links.empty()) {
    std::vector<std::string> interfaces;
    const auto captured = [this](const std::string& name) {
      return std::any_of(spec_.captured_links.begin(), spec_.captured_links.end(),
                         [&name](const std::string& glob) { return fnmatch(glob.c_str(), name.c_str(), 0) == 0; });
    };
    for (std::size_t l = 0; l < links_.size(); ++l) {
      const link_spec& link = spec_.links[l];
      if (!captured(link.name)) continue;
      const auto first = static_cast<unsigned>(interfaces.size());
      interfaces.push_back(direction_label(link, true));
      interfaces.push_back(direction_label(link, false));
      links_[l]->tap = [this, first](unsigned direction, picoseconds start, const burst_content& sent) {
        if (capture_ != nullptr) capture_->packet(first + direction, start, sent);
      };
    }
    if (interfaces.empty()) throw config_error(fmt::format("{}: run.capture matches no link", spec_.name));
    capture_ = std::make_unique<pcapng_writer>(options_.folder + "/packets.pcapng", interfaces);
  }
  if (spec_.trace == trace_level::none) return;
  if (spec_.whole_run_waveform) {
    whole_run_ = std::make_unique<vcd_writer>(options_.folder + "/run.vcd", spec_.name + " whole run", signals(),
                                              spec_.trace, 0);
  }
  if (!spec_.timeline) return;
  picoseconds expected = 0;
  for (unsigned r = 0; r < rounds_; ++r) expected += plans_[r % plans_.size()].predicted;
  std::vector<std::string> names;
  for (const site_spec& site : spec_.sites) names.push_back(site.name);
  timeline_ = std::make_unique<timeline_writer>(options_.folder + "/timeline.json", names, expected / 2000);
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    const auto follow = [&](model& module, const char* probe_name, const std::string& track) {
      for (probe& each : module.probes()) {
        if (each.info().name == probe_name && each.info().level <= spec_.trace)
          timeline_->follow(each, names[s], track);
      }
    };
    follow(sites_[s]->cluster, "state", "cluster");
    follow(sites_[s]->aggregator, "state", "aggregator");
    follow(sites_[s]->aggregator, "memory_stall", "memory stalls");
    follow(sites_[s]->aggregator, "occupancy", "occupancy");
    if (spec_.trace >= trace_level::chunk) {
      sites_[s]->cluster.listener = timeline_.get();
      sites_[s]->aggregator.listener = timeline_.get();
    }
  }
  for (std::size_t l = 0; l < links_.size(); ++l) {
    const link_spec& link = spec_.links[l];
    for (probe& each : links_[l]->probes()) {
      if (each.info().name.rfind("busy_", 0) != 0 || each.info().level > spec_.trace) continue;
      const bool forward = each.info().name == "busy_forward";
      timeline_->follow(each, "backbone", direction_label(link, forward));
    }
  }
}

void simulation::close_traces() {
  const picoseconds now = sc_core::sc_time_stamp().value();
  if (timeline_ != nullptr) timeline_->close(now);
  if (whole_run_ != nullptr) whole_run_->close(now);
  if (capture_ != nullptr) capture_->close();
}

void simulation::open_round(const round_times& times) {
  if (timeline_ != nullptr) timeline_->begin_round(static_cast<std::uint32_t>(model_.chunks()));
  before_round_.clear();
  for (const auto& site : sites_) before_round_.push_back(site->aggregator.counters());
  if (!options_.folder.empty() && spec_.trace != trace_level::none) {
    vcd_ = std::make_unique<vcd_writer>(fmt::format("{}/round_{:03}.vcd", options_.folder, times.index),
                                        fmt::format("{} round {}", spec_.name, times.index), signals(), spec_.trace,
                                        times.opened);
  }
}

std::string simulation::direction_label(const link_spec& link, bool forward) const {
  const std::size_t number = link.name.find('#');
  return spec_.routers[forward ? link.a : link.b].name + " > " + spec_.routers[forward ? link.b : link.a].name +
         (number == std::string::npos ? "" : " " + link.name.substr(number));
}

const char* to_string(path_part part) {
  switch (part) {
    case path_part::compute: return "compute";
    case path_part::serialization: return "serialization";
    case path_part::propagation: return "propagation";
    case path_part::skew_wait: return "skew_wait";
    case path_part::memory: return "memory_stall";
    case path_part::queueing: return "queueing";
    case path_part::control: return "control";
  }
  return "";
}

round_breakdown sum_of(const std::vector<path_span>& path) {
  round_breakdown sum;
  for (const path_span& span : path) {
    const picoseconds length = span.to - span.from;
    switch (span.part) {
      case path_part::compute: sum.compute += length; break;
      case path_part::serialization: sum.serialization += length; break;
      case path_part::propagation: sum.propagation += length; break;
      case path_part::skew_wait: sum.skew_wait += length; break;
      case path_part::memory: sum.memory_stall += length; break;
      case path_part::queueing: sum.queueing += length; break;
      case path_part::control: sum.control += length; break;
    }
  }
  return sum;
}

/// programmed -> source free to send -> chunk departs -> its journey -> taken in -> applied -> interrupts collected
std::vector<path_span> simulation::critical_path(const round_times& times, const planned_round& plan,
                                                 unsigned last_site) const {
  const cluster_round& last = sites_[last_site]->cluster.last_round();
  const std::string& here = spec_.sites[last_site].name;
  std::vector<path_span> path;
  auto add = [&path, at = times.opened](const std::string& what, const std::string& where, picoseconds to,
                                        path_part part) mutable {
    if (to <= at) return;
    path.push_back({what, where, at, to, part});
    at = to;
  };
  add("programming registers", "executor", times.started, path_part::control);
  if (last.payload_bytes_received == 0) {  // a site that exchanged with nobody ended the round
    add("compute and apply", here, last.done, path_part::compute);
    add("collecting interrupts", "executor", times.closed, path_part::control);
    return path;
  }
  const std::string& source = spec_.sites[last.last_source].name;
  add("compute", source, last.last_send_start, path_part::compute);
  picoseconds at_free_pace = last.last_departed;
  for (const planner::group_plan& group : plan.exchange.groups) {
    if (std::find(group.members.begin(), group.members.end(), last_site) == group.members.end()) continue;
    if (group.windows.empty()) {
      picoseconds offset = 0;
      for (std::size_t m = 0; m < group.offsets.size(); ++m) {
        if (group.members[m] == last.last_source) offset = group.offsets[m];
      }
      at_free_pace = last.last_send_start + multiply_divide_down(last.last_departed - last.last_send_start - offset,
                                                                 std::min(group.unbuffered_pace, group.pace),
                                                                 std::max<picoseconds>(1, group.pace));
    } else {  // what the source waited for credit is the memory's doing
      const picoseconds waited = sites_[last.last_source]->cluster.last_round().credit_wait;
      at_free_pace = last.last_departed - std::min(waited, last.last_departed - last.last_send_start);
    }
  }
  add("sending the chunks before it", source, at_free_pace, path_part::serialization);
  add("held to the pace memory allows", source, last.last_departed, path_part::skew_wait);
  if (last.last_story != nullptr) {
    for (const trail_span& span : *last.last_story) add(span.what, span.where, span.to, span.part);
  } else {
    const journey& spent = last.last_spent;
    picoseconds at = last.last_departed;
    add("on the lines", source + " to " + here, at += spent.serialization, path_part::serialization);
    add("propagation", source + " to " + here, at += spent.propagation, path_part::propagation);
    add("waiting on the way", source + " to " + here, at += spent.queueing, path_part::queueing);
    add("aggregator memory", here, at + spent.memory, path_part::memory);
    add("taken in by the cluster", here, last.received, path_part::serialization);
  }
  add("apply", here, last.done, path_part::compute);
  add("collecting interrupts", "executor", times.closed, path_part::control);
  return path;
}

void simulation::close_round(const round_times& times) {
  const planned_round& plan = current_;
  round_result result;
  result.index = times.index;
  result.groups = plan.groups;
  result.restarts = times.restarts;
  result.opened = times.opened;
  result.started = times.started;
  result.closed = times.closed;
  result.predicted = plan.predicted + (times.started - times.opened);
  plans_run_.push_back(plan);
  for (const planner::collective_plan& each : plan.collectives) {
    const bool link = each.limit == planner::rate_limit::shared_link;
    const std::string at = link ? spec_.links[each.limit_at / 2].name : spec_.sites[each.limit_at].name;
    result.limits.push_back(spec_.pace ? "pace given" : fmt::format("{} ({})", planner::to_string(each.limit), at));
    const double chunks_a_pace =
        each.kind == planner::collective_kind::ring ? static_cast<double>(each.members.size()) : 1;
    result.rates.push_back(static_cast<double>(spec_.chunk_bytes) * 8e12 * chunks_a_pace /
                           static_cast<double>(each.pace));
  }
  for (const planner::group_plan& group : plan.exchange.groups) {
    const bool link = group.limit == planner::rate_limit::shared_link;
    const std::string at = link ? spec_.links[group.limit_at / 2].name : spec_.sites[group.limit_at].name;
    result.limits.push_back(spec_.pace ? "pace given" : fmt::format("{} ({})", planner::to_string(group.limit), at));
    result.rates.push_back(planner::sustained_rate(group, spec_.chunk_bytes));
  }
  picoseconds latest = 0;
  active_.resize(sites_.size(), 0);
  for (unsigned s = 0; s < sites_.size(); ++s) {
    const cluster_round& cluster = sites_[s]->cluster.last_round();
    const aggregator_counters now = sites_[s]->aggregator.counters();
    result.site_done.push_back(cluster.done);
    result.site_sent.push_back(cluster.payload_bytes_sent);
    result.site_received.push_back(cluster.payload_bytes_received);
    std::uint64_t high_water = 0;
    tlm::tlm_generic_payload access;
    access.set_read();
    access.set_address(register_offset(aggregator_register::high_water_bytes));
    access.set_data_ptr(reinterpret_cast<unsigned char*>(&high_water));
    access.set_data_length(8);
    access.set_streaming_width(8);
    (*executor_->aggregators[s])->transport_dbg(access);
    result.site_high_water.push_back(high_water);
    result.memory_high_water_bytes = std::max(result.memory_high_water_bytes, high_water);
    for (const stall_cause cause : {stall_cause::memory_full, stall_cause::memory_bandwidth}) {
      const auto c = static_cast<std::size_t>(cause);
      result.stalled += now.stalled[c] - before_round_[s].stalled[c];
    }
    if (cluster.done < times.started) continue;  // it was down
    active_[s] += cluster.done - times.started;
    if (cluster.done > latest) {
      latest = cluster.done;
      result.last_site = s;
    }
  }
  result.critical_path = critical_path(times, plan, result.last_site);
  result.breakdown = sum_of(result.critical_path);
  if (vcd_ != nullptr) {
    vcd_->close(times.closed);
    vcd_.reset();
    if (times.index == 0) {
      std::vector<wave_group> groups = wave_groups();
      for (wave_group& group : groups) {
        group.signals.erase(std::remove_if(group.signals.begin(), group.signals.end(),
                                           [this](const traced_signal& signal) { return !traced(signal); }),
                            group.signals.end());
      }
      groups.insert(groups.begin() + 1, critical_group(result, groups));
      // Markers A, B, C, ... where the parts of the critical path begin.
      std::vector<wave_marker> markers;
      for (const path_span& span : result.critical_path) {
        if (span.to - span.from > (times.closed - times.opened) / 100) markers.push_back({span.from, span.what});
      }
      write_gtkw(options_.folder, "round_000.vcd", groups, markers, spec_.trace, times.opened, times.closed);
    }
  }
  if (timeline_ != nullptr) {
    std::vector<timeline_span> path;
    for (const path_span& span : result.critical_path) {
      path.push_back({span.what, to_string(span.part), span.where, span.from, span.to});
    }
    timeline_->end_round(times.index, times.opened, times.closed, path);
  }
  results_.push_back(std::move(result));
  if (options_.on_round) options_.on_round(results_.back());
}

void simulation::collect(run_result& result) {
  result.schedule_name = schedule_.name;
  result.simulated = sc_core::sc_time_stamp().value();
  result.rounds = results_;
  result.complaint = executor_->complaint();
  result.outcome = executor_->result();
  result.warnings = warnings_;
  result.network_events = network_events_;
  const double span = std::max(1e-12, seconds(result.simulated));
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    site_modules& site = *sites_[s];
    site_result each;
    each.aggregator = site.aggregator.counters();
    each.memory = site.memory.counters();
    if (site.on_chip_memory != nullptr) {
      const memory_counters on_chip = site.on_chip_memory->counters();
      each.memory.read_bytes += on_chip.read_bytes;
      each.memory.written_bytes += on_chip.written_bytes;
      each.on_chip_bytes = on_chip.read_bytes + on_chip.written_bytes;
    }
    each.saturated = site.cluster.control[cluster_register::saturated];
    each.memory_capacity_bytes = spec_.sites[s].aggregator.memory_bytes;
    each.mismatches = site.cluster.control[cluster_register::mismatches];
    each.elements_compared = site.cluster.elements_compared();
    each.idle_fraction = 1 - std::min(1.0, seconds(site.cluster.busy_computing()) / span);
    result.sites.push_back(each);
  }
  const auto add_link = [&](const std::string& name, const long_haul_link& link, unsigned direction, bool backbone) {
    const link_direction_counters& counters = link.counters(direction);
    result.links.push_back({name, counters.payload_bytes_in, counters.wire_bytes_in, counters.packets,
                            seconds(counters.busy) / span, counters.lost_packets, backbone});
    result.repair.lost_packets += counters.lost_packets;
    result.events += counters.bursts_in;
    result.packet_hops += counters.packets;
  };
  for (std::size_t l = 0; l < links_.size(); ++l) {
    const link_spec& link = spec_.links[l];
    add_link(link.name + ":" + spec_.routers[link.a].name + ">" + spec_.routers[link.b].name, *links_[l], 0, true);
    add_link(link.name + ":" + spec_.routers[link.b].name + ">" + spec_.routers[link.a].name, *links_[l], 1, true);
  }
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    add_link(spec_.sites[s].name + ".access:up", sites_[s]->access, 0, false);
    add_link(spec_.sites[s].name + ".access:down", sites_[s]->access, 1, false);
    add_link(spec_.sites[s].name + ".ports:in", sites_[s]->ports, 0, false);
    if (feedback_) add_link(spec_.sites[s].name + ".ports:out", sites_[s]->ports, 1, false);
  }
  for (const auto& site : sites_) {
    const aggregator_counters counters = site->aggregator.counters();
    result.repair.overrun_packets += counters.overrun_packets;
    result.repair.nacks += counters.nacks_sent;
    result.repair.timeouts += counters.timeouts;
    result.repair.duplicate_packets += counters.duplicate_packets;
    result.repair.recovered_packets += counters.recovered_packets;
    result.repair.repair_packets += site->cluster.counters().repair_packets;
  }
  for (const auto& router : routers_) {
    for (unsigned p = 0; p < router->parameters().ports; ++p) {
      result.repair.dropped_packets += router->counters(p).dropped_packets;
      result.repair.ecn_marked_packets += router->counters(p).ecn_marked_packets;
    }
  }
  std::vector<double> weights;
  for (const site_spec& site : spec_.sites) weights.push_back(site.weight);
  if (!results_.empty()) {
    // What was exchanged, which is what was scheduled unless sites were down.
    planner::schedule exchanged{schedule_.name, {}, {}};
    for (const round_result& round : results_) {
      exchanged.rounds.push_back(round.groups);
      if (!schedule_.blend.empty()) exchanged.blend.push_back(schedule_.blend[round.index % schedule_.blend.size()]);
    }
    result.sigma = planner::disagreement(exchanged, weights, static_cast<unsigned>(results_.size()));
    for (std::size_t t = 0; t < result.sigma.size(); ++t) {
      if (result.sigma[t] > spec_.epsilon) continue;
      result.time_to_epsilon_s = seconds(results_[t].closed);
      break;
    }
  }
}

run_audit simulation::audit_input(const run_result& result) const {
  run_audit run;
  run.rounds_due = rounds_;
  run.finished = result.outcome == schedule_executor::outcome::finished;
  run.live_bursts = pool_.live_bursts();
  run.real_values = spec_.values != value_format::synthetic;
  run.protocol_checked = options_.protocol_checkers;
  run.repairs = spec_.repairs();
  run.as_planned =
      spec_.failures.empty() &&
      std::all_of(spec_.links.begin(), spec_.links.end(), [](const link_spec& each) { return each.outages.empty(); }) &&
      std::all_of(spec_.routers.begin(), spec_.routers.end(),
                  [](const router_spec& each) { return each.parameters.when_full == full_queue::back_pressure; });
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    const site_modules& site = *sites_[s];
    run.sites.push_back({spec_.sites[s].name, spec_.sites[s].aggregator.memory_bytes, site.aggregator.counters(),
                         site.cluster.coverage_errors(), site.cluster.control[cluster_register::mismatches],
                         site.cluster.largest_difference()});
    for (unsigned d = 0; d < 2; ++d)
      run.links.push_back(
          {spec_.sites[s].name + ".access", site.access.counters(d), site.access.wire_bytes_under_way(d)});
    for (unsigned d = 0; d < 2; ++d)
      run.links.push_back({spec_.sites[s].name + ".ports", site.ports.counters(d), site.ports.wire_bytes_under_way(d)});
  }
  for (std::size_t l = 0; l < links_.size(); ++l) {
    for (unsigned d = 0; d < 2; ++d)
      run.links.push_back({spec_.links[l].name, links_[l]->counters(d), links_[l]->wire_bytes_under_way(d)});
  }
  for (const auto& router : routers_) run.unrouted_bursts += router->unrouted_bursts();
  for (const round_result& round : results_) {
    run.rounds.push_back({round.index, round.opened, round.closed, round.breakdown.total()});
    const planned_round& plan = plans_run_[run.rounds.size() - 1];
    for (const planner::group& group : round.groups) {
      for (const unsigned s : group) {
        run.transfers.push_back({round.index, spec_.sites[s].name, round.site_sent[s], expected_sent(group, plan, s),
                                 round.site_received[s], expected_received(group, plan, s)});
      }
    }
  }
  for (const auto& each : network_checkers_) {
    run.protocol_violations.insert(run.protocol_violations.end(), each->violations().begin(), each->violations().end());
    if (each->begun() != each->ended()) {
      run.protocol_violations.push_back(
          fmt::format("{}: {} bursts begun, {} taken", each->name(), each->begun(), each->ended()));
    }
  }
  for (const auto& each : command_checkers_) {
    run.protocol_violations.insert(run.protocol_violations.end(), each->violations().begin(), each->violations().end());
  }
  for (const auto& each : memory_checkers_) {
    run.protocol_violations.insert(run.protocol_violations.end(), each->violations().begin(), each->violations().end());
    if (each->outstanding() != 0) {
      run.protocol_violations.push_back(
          fmt::format("{}: {} accesses never completed", each->name(), each->outstanding()));
    }
  }
  return run;
}

void simulation::diagnose(run_result& result) const {
  const auto ask = [&result](const std::string& who, const model& module) {
    const std::string waits = module.waits_for();
    if (!waits.empty()) result.diagnosis.push_back(who + ": " + waits);
  };
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    const std::string name = fmt::format("{} (site {})", spec_.sites[s].name, s);
    ask(name + " cluster", sites_[s]->cluster);
    ask(name + " aggregator", sites_[s]->aggregator);
    ask(name + " memory", sites_[s]->memory);
    ask(name + " access link", sites_[s]->access);
    ask(name + " ports link", sites_[s]->ports);
  }
  for (std::size_t r = 0; r < routers_.size(); ++r) ask("router " + spec_.routers[r].name, *routers_[r]);
  for (std::size_t l = 0; l < links_.size(); ++l) ask("link " + spec_.links[l].name, *links_[l]);
}

run_result simulation::run() {
  open_traces();
  const auto before = std::chrono::steady_clock::now();
  if (options_.on_progress) {
    picoseconds expected = 0;
    for (unsigned r = 0; r < rounds_; ++r) expected += plans_[r % plans_.size()].predicted;
    const picoseconds step = std::max<picoseconds>(1, expected / 200);
    while (executor_->result() == schedule_executor::outcome::running) {
      sc_core::sc_start(sc_core::sc_time::from_value(step));
      if (sc_core::sc_get_status() == sc_core::SC_STOPPED) break;
      options_.on_progress(
          std::min(1.0, seconds(sc_core::sc_time_stamp().value()) / std::max(1e-12, seconds(expected))));
    }
  } else {
    sc_core::sc_start();
  }
  run_result result;
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  vcd_.reset();  // a round that did not end leaves no half-written waveform
  close_traces();
  collect(result);
  result.checks = audit(audit_input(result));
  if (result.outcome != schedule_executor::outcome::finished) diagnose(result);
  return result;
}

}  // namespace tributary
