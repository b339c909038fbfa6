#include "platforms/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "platforms/version.hpp"

namespace tributary {

using json = nlohmann::ordered_json;

namespace {

const char* policy_name(buffering policy) {
  switch (policy) {
    case buffering::per_stream: return "per_stream";
    case buffering::in_place: return "in_place";
    case buffering::none: return "none";
  }
  return "";
}

const char* outcome_name(schedule_executor::outcome outcome) {
  switch (outcome) {
    case schedule_executor::outcome::finished: return "finished";
    case schedule_executor::outcome::timed_out: return "timed_out";
    case schedule_executor::outcome::refused: return "refused";
    case schedule_executor::outcome::running: return "running";
  }
  return "";
}

json group_names(const platform_spec& spec, const planner::partition& groups) {
  json list = json::array();
  for (const planner::group& group : groups) {
    json names = json::array();
    for (const unsigned s : group) names.push_back(spec.sites[s].name);
    list.push_back(names);
  }
  return list;
}

}  // namespace

json results_json(const platform_spec& spec, const run_result& result) {
  json top;
  top["schema_version"] = 1;
  top["name"] = spec.name;
  top["schedule"] = result.schedule_name;
  top["seed"] = spec.seed;
  top["fidelity"] = spec.packet_fidelity ? "packet" : "burst";
  top["outcome"] = outcome_name(result.outcome);
  top["simulated_s"] = seconds(result.simulated);
  top["events"] = result.events;
  top["packet_hops"] = result.packet_hops;
  json rounds = json::array();
  for (const round_result& round : result.rounds) {
    json each;
    each["index"] = round.index;
    each["groups"] = group_names(spec, round.groups);
    each["start_s"] = seconds(round.opened);
    each["duration_s"] = seconds(round.closed - round.opened);
    const round_breakdown& parts = round.breakdown;
    each["breakdown"] = {{"compute_s", seconds(parts.compute)},
                         {"serialization_s", seconds(parts.serialization)},
                         {"propagation_s", seconds(parts.propagation)},
                         {"skew_wait_s", seconds(parts.skew_wait)},
                         {"memory_stall_s", seconds(parts.memory_stall)},
                         {"queueing_s", seconds(parts.queueing)},
                         {"control_s", seconds(parts.control)}};
    each["predicted_s"] = seconds(round.predicted);
    each["restarts"] = round.restarts;
    json path = json::array();
    for (const path_span& span : round.critical_path) {
      path.push_back({{"what", span.what},
                      {"where", span.where},
                      {"start_s", seconds(span.from)},
                      {"duration_s", seconds(span.to - span.from)},
                      {"part", fmt::format("{}_s", to_string(span.part))}});
    }
    each["critical_path"] = path;
    each["last_site"] = spec.sites[round.last_site].name;
    json rates = json::array();
    for (std::size_t g = 0; g < round.rates.size(); ++g) {
      rates.push_back({{"payload_bits_per_s", round.rates[g]}, {"limit", round.limits[g]}});
    }
    each["paces"] = rates;
    json sites;
    for (std::size_t s = 0; s < spec.sites.size(); ++s) {
      sites[spec.sites[s].name] = {{"done_s", seconds(round.site_done[s])},
                                   {"sent_bytes", round.site_sent[s]},
                                   {"received_bytes", round.site_received[s]},
                                   {"memory_high_water_bytes", round.site_high_water[s]}};
    }
    each["sites"] = sites;
    rounds.push_back(each);
  }
  top["rounds"] = rounds;
  json sites;
  for (std::size_t s = 0; s < result.sites.size(); ++s) {
    const site_result& site = result.sites[s];
    json stalls;
    for (std::size_t c = 0; c < stall_names.size(); ++c) {
      stalls[stall_names[c]] = seconds(site.aggregator.stalled[c]);
    }
    const double span = std::max(1e-12, seconds(result.simulated));
    json memory;
    memory["bandwidth_bytes_per_s"] = static_cast<double>(site.memory.read_bytes + site.memory.written_bytes) / span;
    memory["read_bytes"] = site.memory.read_bytes;
    memory["written_bytes"] = site.memory.written_bytes;
    json aggregator;
    aggregator["memory_capacity_bytes"] = site.memory_capacity_bytes;
    aggregator["memory_high_water_bytes"] = site.aggregator.high_water_bytes;
    aggregator["merged_chunks"] = site.aggregator.merged_chunks;
    aggregator["credits_sent"] = site.aggregator.credits_sent;
    aggregator["duplicate_bursts"] = site.aggregator.duplicate_bursts;
    aggregator["late_bursts"] = site.aggregator.late_bursts;
    aggregator["stall_s"] = stalls;
    if (site.memory.commands.activates != 0) {
      const dram_counters& commands = site.memory.commands;
      memory["row_hit_ratio"] = static_cast<double>(commands.row_hits) /
                                static_cast<double>(std::max<std::uint64_t>(1, commands.reads + commands.writes));
      memory["activates"] = commands.activates;
      memory["refreshes"] = commands.refreshes;
    }
    if (site.on_chip_bytes != 0) {
      memory["on_chip_bytes"] = site.on_chip_bytes;
      aggregator["spilled_chunks"] = site.aggregator.spilled_chunks;
    }
    aggregator["memory"] = memory;
    json each;
    each["idle_fraction"] = site.idle_fraction;
    each["aggregator"] = aggregator;
    if (spec.values == value_format::int32) each["saturated"] = site.saturated;
    if (spec.values != value_format::synthetic) {
      each["elements_compared"] = site.elements_compared;
      each["mismatches"] = site.mismatches;
    }
    sites[spec.sites[s].name] = each;
  }
  top["sites"] = sites;
  json links;
  for (const link_result& link : result.links) {
    links[link.name] = {{"payload_bytes", link.payload_bytes},
                        {"wire_bytes", link.wire_bytes},
                        {"packets", link.packets},
                        {"utilization", link.utilization},
                        {"drops", link.drops}};
  }
  top["links"] = links;
  const repair_result& repair = result.repair;
  top["repair"] = {{"lost_packets", repair.lost_packets},
                   {"dropped_packets", repair.dropped_packets},
                   {"overrun_packets", repair.overrun_packets},
                   {"nacks", repair.nacks},
                   {"timeouts", repair.timeouts},
                   {"repair_packets", repair.repair_packets},
                   {"duplicate_packets", repair.duplicate_packets},
                   {"recovered_packets", repair.recovered_packets},
                   {"ecn_marked_packets", repair.ecn_marked_packets}};
  json events = json::array();
  for (const network_event& each : result.network_events) {
    events.push_back({{"at_s", seconds(each.at)}, {"what", each.what}});
  }
  top["network_events"] = events;
  top["warnings"] = result.warnings;
  json consensus;
  consensus["sigma"] = result.sigma;
  consensus["epsilon"] = spec.epsilon;
  consensus["time_to_epsilon_s"] = result.time_to_epsilon_s > 0 ? json(result.time_to_epsilon_s) : json(nullptr);
  top["consensus"] = consensus;
  json checks;
  for (const check_result& check : result.checks) checks[check.name] = check.pass;
  top["checks"] = checks;
  json failures = json::array();
  for (const check_result& check : result.checks) {
    if (!check.pass) failures.push_back(check.name + ": " + check.detail);
  }
  top["failures"] = failures;
  if (!result.complaint.empty()) {
    top["complaint"] = result.complaint;
    top["waits"] = result.diagnosis;
  }
  return top;
}

namespace {

std::string time_text(picoseconds t) { return fmt::format("{} ps", t); }
std::string size_text(std::uint64_t b) { return fmt::format("{} B", b); }
std::string rate_text(bits_per_s r) { return fmt::format("{} bps", r); }

json device_json(const memory_device_spec& device) {
  json to = {{"capacity", size_text(device.capacity_bytes)},
             {"latency", time_text(device.latency)},
             {"level", device.level == memory_level::rate   ? "rate"
                       : device.level == memory_level::bulk ? "bulk"
                                                            : "burst"},
             {"four_phase", device.four_phase}};
  if (device.level == memory_level::rate) {
    to["channels"] = device.channels;
    to["channel_rate"] = rate_text(device.channel_rate);
    to["efficiency"] = device.efficiency;
    to["interleave"] = size_text(device.interleave_bytes);
  }
  if (!device.dram.present()) return to;
  const dram_timing& t = device.dram.timing;
  const dram_geometry& g = device.dram.geometry;
  const dram_policy& p = device.dram.policy;
  to["dram"] = {{"clock", time_text(t.clock)},
                {"burst_length", t.burst_cycles * 2},
                {"bus_bits", g.bus_bits},
                {"channels", g.channels},
                {"ranks", g.ranks},
                {"bank_groups", g.bank_groups},
                {"banks", g.banks},
                {"rows", g.rows},
                {"columns", g.columns},
                {"mapping", p.mapping},
                {"page", p.page == page_policy::open ? "open" : "closed"},
                {"refresh", p.refresh == refresh_policy::all_bank   ? "all_bank"
                            : p.refresh == refresh_policy::per_bank ? "per_bank"
                                                                    : "none"},
                {"transaction_queue", p.transaction_queue},
                {"bank_queue", p.bank_queue},
                {"drain_high", p.drain_high},
                {"drain_low", p.drain_low},
                {"age_limit", p.age_limit},
                {"port_columns", p.port_columns},
                {"separate_row_bus", p.separate_row_bus},
                {"timing",
                 {{"CL", t.read_latency},
                  {"CWL", t.write_latency},
                  {"tRCD", t.rcd},
                  {"tRP", t.rp},
                  {"tRAS", t.ras},
                  {"tCCD_S", t.ccd_s},
                  {"tCCD_L", t.ccd_l},
                  {"tRRD_S", t.rrd_s},
                  {"tRRD_L", t.rrd_l},
                  {"tFAW", t.faw},
                  {"tWTR_S", t.wtr_s},
                  {"tWTR_L", t.wtr_l},
                  {"tWR", t.wr},
                  {"tRTP", t.rtp},
                  {"tRFC", t.rfc},
                  {"tRFCpb", t.rfc_pb},
                  {"tREFI", t.refi},
                  {"tRTRS", t.rtrs}}}};
  return to;
}

}  // namespace

json resolved_configuration(const platform_spec& spec) {
  const auto time = time_text;
  const auto size = size_text;
  const auto rate = rate_text;
  json top;
  top["name"] = spec.name;
  top["workload"] = {{"update", size(spec.update_bytes)},
                     {"chunk", size(spec.chunk_bytes)},
                     {"values", spec.values == value_format::fp32    ? "fp32"
                                : spec.values == value_format::bf16  ? "bf16"
                                : spec.values == value_format::int32 ? "int32"
                                                                     : "synthetic"},
                     {"scale_bits", spec.scale_bits}};
  top["wire"] = {{"mtu", size(spec.format.mtu_bytes)},
                 {"headers", size(spec.format.header_bytes)},
                 {"framing", size(spec.format.framing_bytes)}};
  json routers = json::array();
  for (const router_spec& router : spec.routers) {
    const router_parameters& p = router.parameters;
    json each = {{"name", router.name},
                 {"forwarding_latency", time(p.forwarding_latency)},
                 {"forwarding", router.cut_through_header != 0 ? "cut_through" : "store"},
                 {"queue", size(p.queue_bytes)},
                 {"discipline", p.discipline == queue_discipline::fifo ? "fifo" : "drr"},
                 {"quantum", size(p.quantum_bytes)},
                 {"when_full", p.when_full == full_queue::drop_tail ? "drop_tail" : "back_pressure"}};
    if (router.cut_through_header != 0) each["header"] = size(router.cut_through_header);
    if (p.shared_bytes != 0) each["shared_buffer"] = size(p.shared_bytes);
    if (p.ecn_bytes != 0) each["ecn"] = size(p.ecn_bytes);
    if (p.replication_rate != 0) each["replication"] = rate(p.replication_rate);
    routers.push_back(each);
  }
  top["routers"] = routers;
  json sites = json::array();
  for (const site_spec& site : spec.sites) {
    json each;
    each["name"] = site.name;
    each["router"] = spec.routers[site.router].name;
    each["weight"] = site.weight;
    each["access"] = {
        {"up", rate(site.access_up)}, {"down", rate(site.access_down)}, {"latency", time(site.access_latency)}};
    each["cluster"] = {
        {"compute", time(site.cluster.compute_time)}, {"straggler_sigma", site.cluster.straggler_sigma},
        {"reduce", time(site.cluster.reduce_time)},   {"released_early_share", site.cluster.released_early_share},
        {"apply", time(site.cluster.apply_time)},     {"consume", rate(site.cluster.consume_rate)}};
    const aggregator_spec& aggregator = site.aggregator;
    each["aggregator"] = {
        {"memory", size(aggregator.memory_bytes)},
        {"ports", rate(aggregator.ports)},
        {"datapath", size(aggregator.datapath_bytes)},
        {"lanes", aggregator.lanes},
        {"clock", fmt::format("{} Hz", aggregator.clock_hz)},
        {"adder_cycles", aggregator.adder_cycles},
        {"ingress_buffer", size(aggregator.ingress_buffer_bytes)},
        {"egress_chunks", aggregator.egress_chunks},
        {"placement", aggregator.placement == slot_placement::on_chip         ? "on_chip"
                      : aggregator.placement == slot_placement::on_chip_first ? "on_chip_first"
                                                                              : "external"},
        {"slot_table", {{"entries", aggregator.slot_table_entries}, {"tag_bits", aggregator.tag_bits}}},
        {"resources",
         {{"dsp", aggregator.resources.dsp},
          {"block_ram", aggregator.resources.block_ram},
          {"ultra_ram", aggregator.resources.ultra_ram}}},
        {"device", device_json(aggregator.device)}};
    if (aggregator.on_chip_bytes != 0) {
      each["aggregator"]["on_chip_device"] = device_json(aggregator.on_chip);
      each["aggregator"]["on_chip_memory"] = size(aggregator.on_chip_bytes);
    }
    sites.push_back(each);
  }
  top["sites"] = sites;
  json links = json::array();
  for (const link_spec& link : spec.links) {
    json each = {{"between", {spec.routers[link.a].name, spec.routers[link.b].name}},
                 {"rate", rate(link.rate_ab)},
                 {"rate_back", rate(link.rate_ba)},
                 {"latency", time(link.latency_ab)},
                 {"latency_back", time(link.latency_ba)}};
    if (link.fec_latency != 0) each["fec_latency"] = time(link.fec_latency);
    if (link.jitter != 0) {
      each["jitter"] = time(link.jitter);
      each["jitter_interval"] = time(link.jitter_interval);
      each["reorders"] = link.reorders ? "true" : "false";
    }
    if (link.loss.to_bad > 0) {
      each["loss"] = {{"to_bad", link.loss.to_bad},
                      {"to_good", link.loss.to_good},
                      {"in_good", link.loss.in_good},
                      {"in_bad", link.loss.in_bad}};
    } else if (link.loss.in_good > 0) {
      each["loss"] = link.loss.in_good;
    }
    for (const outage& down : link.outages) {
      json entry = {{"from", time(down.from)}};
      if (down.to != std::numeric_limits<picoseconds>::max()) entry["to"] = time(down.to);
      each["outages"].push_back(entry);
    }
    links.push_back(each);
  }
  top["links"] = links;
  json network;
  network["buffering"] = policy_name(spec.policy);
  network["flow"] = spec.flow == planner::flow_control::credit ? "credit" : "paced";
  network["trees"] = spec.trees == planner::tree_kind::shortest       ? "shortest"
                     : spec.trees == planner::tree_kind::fewest_links ? "fewest_links"
                                                                      : "least_congestion";
  network["multicast"] = spec.multicast ? "true" : "false";
  network["collective"] = spec.collective == collective_choice::hub       ? "hub"
                          : spec.collective == collective_choice::ring    ? "ring"
                          : spec.collective == collective_choice::transit ? "transit"
                                                                          : "exchange";
  network["detection"] = time(spec.detection_time);
  network["join_latency"] = time(spec.join_latency);
  network["joined_before"] = spec.joined_before ? "true" : "false";
  json repair;
  repair["when"] = spec.repair.when == repair_spec::use::always  ? "always"
                   : spec.repair.when == repair_spec::use::never ? "never"
                                                                 : "automatic";
  if (spec.repair.timeout) repair["timeout"] = time(*spec.repair.timeout);
  repair["timeout_max"] = time(spec.repair.timeout_max);
  if (spec.repair.nack_delay) repair["nack_delay"] = time(*spec.repair.nack_delay);
  repair["parity"] = spec.repair.parity_packets;
  network["repair"] = repair;
  network["offsets"] = spec.send_offsets ? "optimised" : "none";
  network["register_access"] = time(spec.register_access_time);
  if (spec.pace) network["pace"] = time(*spec.pace);
  top["network"] = network;
  for (const failure_spec& failure : spec.failures) {
    json each = {{"site", spec.sites[failure.site].name}, {"at", time(failure.at)}};
    if (failure.back) each["back"] = time(*failure.back);
    top["failures"].push_back(each);
  }
  json schedule;
  switch (spec.schedule.type) {
    case schedule_spec::kind::all_to_all: schedule["type"] = "all_to_all"; break;
    case schedule_spec::kind::rotating:
      schedule["type"] = "rotating";
      schedule["group"] = spec.schedule.group_size;
      break;
    case schedule_spec::kind::explicit_rounds: {
      schedule["type"] = "explicit";
      schedule["name"] = spec.schedule.name;
      json rounds = json::array();
      for (const planner::partition& round : spec.schedule.rounds) rounds.push_back(group_names(spec, round));
      schedule["rounds"] = rounds;
      if (!spec.schedule.blend.empty()) schedule["blend"] = spec.schedule.blend;
      break;
    }
  }
  top["schedule"] = schedule;
  json run;
  if (spec.rounds != 0) run["rounds"] = spec.rounds;
  run["seed"] = spec.seed;
  run["fidelity"] = spec.packet_fidelity ? "packet" : "burst";
  constexpr const char* levels[] = {"none", "round", "chunk", "packet"};
  run["trace"] = levels[static_cast<std::size_t>(spec.trace)];
  if (!spec.traced_signals.empty()) run["signals"] = spec.traced_signals;
  run["whole_run_waveform"] = spec.whole_run_waveform ? "true" : "false";
  run["timeline"] = spec.timeline ? "true" : "false";
  if (!spec.captured_links.empty()) run["capture"] = spec.captured_links;
  if (spec.round_timeout) run["round_timeout"] = time(*spec.round_timeout);
  run["site_timeout"] = time(spec.site_timeout);
  run["epsilon"] = spec.epsilon;
  top["run"] = run;
  return top;
}

json manifest_json(const platform_spec& spec, const run_result& result, const std::vector<std::string>& command,
                   const std::string& started, const std::vector<std::string>& files) {
  json top;
  top["program"] = "tributary";
  top["version"] = version;
  top["started"] = started;
  top["wall_s"] = result.wall_s;
  top["command"] = command;
  top["seed"] = spec.seed;
  top["files"] = files;
  top["configuration"] = resolved_configuration(spec);
  return top;
}

std::string describe_groups(const platform_spec& spec, const planner::partition& groups) {
  if (groups.size() == 1 && groups.front().size() == spec.sites.size()) {
    return fmt::format("all {} sites", spec.sites.size());
  }
  std::string text;
  for (const planner::group& group : groups) {
    std::string names;
    for (const unsigned s : group) names += (names.empty() ? "" : " ") + spec.sites[s].name;
    text += (text.empty() ? "{" : " {") + names + "}";
  }
  return text;
}

std::string render_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string out = " ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      out += c + 1 == row.size() ? "  " + row[c] : fmt::format(" {:>{}}", row[c], widths[c] + (c == 0 ? 0 : 1));
    }
    text += out + "\n";
  };
  std::size_t total = 1;
  for (const std::size_t width : widths) total += width + 2;
  for (const auto& row : rows) {
    line(row);
    if (&row == &rows.front()) text += " " + std::string(total, '-') + "\n";
  }
  return text;
}

std::string describe_run(const platform_spec& spec, const run_result& result) {
  std::string text = fmt::format("\n{}: {}; {} a site, {} of aggregator memory, {}, {} fidelity\n\n", spec.name,
                                 result.schedule_name, format_bytes(static_cast<double>(spec.update_bytes)),
                                 format_bytes(static_cast<double>(spec.sites.front().aggregator.memory_bytes)),
                                 policy_name(spec.policy), spec.packet_fidelity ? "packet" : "burst");
  std::vector<std::vector<std::string>> rows{{"round", "time", "predicted", "compute", "serialisation", "propagation",
                                              "waiting", "control", "memory peak", "stalls", "groups"}};
  constexpr std::size_t most_rows = 24;
  picoseconds total = 0;
  for (const round_result& round : result.rounds) {
    const round_breakdown& parts = round.breakdown;
    const picoseconds duration = round.closed - round.opened;
    total += duration;
    if (rows.size() > most_rows) continue;
    const auto show = [](picoseconds t) { return format_seconds(seconds(t)); };
    rows.push_back({std::to_string(round.index), show(duration), show(round.predicted), show(parts.compute),
                    show(parts.serialization), show(parts.propagation),
                    show(parts.skew_wait + parts.queueing + parts.memory_stall), show(parts.control),
                    format_bytes(static_cast<double>(round.memory_high_water_bytes)), show(round.stalled),
                    describe_groups(spec, round.groups)});
  }
  text += render_table(rows);
  if (result.rounds.size() + 1 > rows.size()) {
    text += fmt::format("   ... and {} more rounds in results.json\n", result.rounds.size() + 1 - rows.size());
  }
  text += fmt::format("\n  {} rounds in {}", result.rounds.size(), format_seconds(seconds(total)));
  if (result.time_to_epsilon_s > 0) {
    text += fmt::format("; agreement (sigma <= {:g}) after {}", spec.epsilon, format_seconds(result.time_to_epsilon_s));
  } else if (!result.sigma.empty()) {
    text += fmt::format("; sigma is {:.4g} at the end", result.sigma.back());
  }
  text += fmt::format("  (simulated in {:.2f} s)\n", result.wall_s);
  if (!result.rounds.empty()) {
    std::string limits;
    for (std::size_t g = 0; g < result.rounds.front().limits.size(); ++g) {
      const std::string each =
          fmt::format("{} by {}", format_rate(result.rounds.front().rates[g]), result.rounds.front().limits[g]);
      if (limits.find(each) == std::string::npos) limits += (limits.empty() ? "" : "; ") + each;
    }
    if (!limits.empty()) text += fmt::format("  pace in round 0: {}\n", limits);
  }
  const repair_result& repair = result.repair;
  if (repair.lost_packets + repair.dropped_packets + repair.overrun_packets + repair.nacks != 0) {
    text += fmt::format(
        "  lost: {} packets on links, {} in full queues, {} for want of aggregator memory; {} nacks, {} "
        "packets sent again, {} made from parity\n",
        repair.lost_packets, repair.dropped_packets, repair.overrun_packets, repair.nacks, repair.repair_packets,
        repair.recovered_packets);
  }
  constexpr std::size_t most_events = 20;
  for (std::size_t e = 0; e < std::min(most_events, result.network_events.size()); ++e) {
    text += fmt::format("  at {:.6f} s: {}\n", seconds(result.network_events[e].at), result.network_events[e].what);
  }
  if (result.network_events.size() > most_events) {
    text += fmt::format("  and {} events more (results.json)\n", result.network_events.size() - most_events);
  }
  for (const std::string& warning : result.warnings) text += fmt::format("  warning: {}\n", warning);
  std::string failed;
  for (const check_result& check : result.checks) {
    if (!check.pass) failed += fmt::format("    {}: {}\n", check.name, check.detail);
  }
  if (failed.empty()) {
    text += fmt::format("  all {} checks passed\n", result.checks.size());
  } else {
    text += "  FAILED checks\n" + failed;
  }
  return text;
}

std::string describe_critical_path(const round_result& round) {
  std::vector<std::vector<std::string>> rows{{"after", "for", "what", "where"}};
  for (const path_span& span : round.critical_path) {
    rows.push_back({fmt::format("{:.6f} s", seconds(span.from - round.opened)),
                    format_seconds(seconds(span.to - span.from)), span.what, span.where});
  }
  return fmt::format("\n  what set the length of round {}\n\n{}", round.index, render_table(rows));
}

void write_whole_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".partial";
  {
    std::ofstream out(temporary, std::ios::binary);
    out << text;
    out.close();
    if (!out) {
      std::remove(temporary.c_str());
      throw std::runtime_error("cannot write " + path);
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    throw std::runtime_error("cannot write " + path);
  }
}

}  // namespace tributary
