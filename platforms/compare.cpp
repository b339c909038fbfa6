#include "platforms/compare.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "platforms/report.hpp"

namespace tributary {

namespace {

constexpr const char* one_room = "one room";

const transferred* busiest(const child_outcome& outcome) {
  const transferred* most = nullptr;
  for (const transferred& link : outcome.links) {
    if (most == nullptr || link.utilization > most->utilization) most = &link;
  }
  return most;
}

std::uint64_t backbone_bytes(const child_outcome& outcome) {
  std::uint64_t sum = 0;
  for (const transferred& link : outcome.links) sum += link.backbone ? link.payload_bytes : 0;
  return sum;
}

std::uint64_t most_on_a_direction(const child_outcome& outcome) {
  std::uint64_t most = 0;
  for (const transferred& link : outcome.links) {
    if (link.backbone) most = std::max(most, link.payload_bytes);
  }
  return most;
}

double room_s(const std::vector<compared_strategy>& all) {
  for (const compared_strategy& each : all) {
    if (each.name == one_room && each.outcome.finished) return each.outcome.simulated_s;
  }
  return 0;
}

}  // namespace

std::vector<strategy> strategies_on(const platform_spec& spec) {
  std::vector<strategy> all;
  const buffering merging = spec.policy == buffering::none ? buffering::per_stream : spec.policy;
  const auto add = [&](const char* name, collective_choice how, bool multicast, buffering policy) {
    strategy each{name, spec, {}};
    each.spec.collective = how;
    each.spec.multicast = multicast;
    each.spec.policy = policy;
    if (how != collective_choice::exchange) {
      if (spec.lossy() || spec.repairs()) each.refused = "is modelled on a network that loses nothing";
      if (spec.values == value_format::bf16) each.refused = "would round bf16 sums on the way";
      each.spec.flow = planner::flow_control::paced;
    }
    all.push_back(std::move(each));
  };
  add("unicast mesh", collective_choice::exchange, false, buffering::none);
  add("ring", collective_choice::ring, true, merging);
  add("hub", collective_choice::hub, true, merging);
  add("multicast only", collective_choice::exchange, true, buffering::none);
  add("aggregation only", collective_choice::exchange, false, merging);
  add("multicast + aggregation", collective_choice::exchange, true, merging);
  add("transit reduction", collective_choice::transit, true, merging);
  add(one_room, collective_choice::exchange, true, merging);
  platform_spec& room = all.back().spec;
  room.routers.resize(1);
  room.links.clear();
  room.failures.clear();
  for (site_spec& site : room.sites) site.router = 0;
  return all;
}

std::vector<compared_strategy> compare_strategies(const platform_spec& spec) {
  std::vector<compared_strategy> all;
  for (const strategy& each : strategies_on(spec)) {
    compared_strategy result{each.name, {}};
    if (each.refused.empty()) {
      result.outcome = simulate_in_child(each.spec);
    } else {
      result.outcome.complaint = each.refused;
    }
    all.push_back(std::move(result));
  }
  return all;
}

std::string describe_comparison(const platform_spec& spec, const std::vector<compared_strategy>& all) {
  const double room = room_s(all);
  std::vector<std::vector<std::string>> rows{
      {"strategy", "time", "x one room", "backbone bytes", "most on one direction", "memory peak", "busiest link", ""}};
  for (const compared_strategy& each : all) {
    const child_outcome& outcome = each.outcome;
    if (!outcome.finished) {
      rows.push_back({each.name, "-", "-", "-", "-", "-", "-", outcome.complaint});
      continue;
    }
    const transferred* most = busiest(outcome);
    rows.push_back({each.name, format_seconds(outcome.simulated_s),
                    room > 0 ? fmt::format("{:.2f}", outcome.simulated_s / room) : "-",
                    format_bytes(static_cast<double>(backbone_bytes(outcome))),
                    format_bytes(static_cast<double>(most_on_a_direction(outcome))),
                    format_bytes(static_cast<double>(outcome.memory_high_water_bytes)),
                    most == nullptr ? "-" : fmt::format("{} {:.0f} %", most->name, most->utilization * 100),
                    outcome.passed ? "" : "a check FAILED"});
  }
  return fmt::format("\n{}: {} a site, {} of aggregator memory\n\n{}\n  bytes are payload, over the whole run\n",
                     spec.name, format_bytes(static_cast<double>(spec.update_bytes)),
                     format_bytes(static_cast<double>(spec.sites.front().aggregator.memory_bytes)), render_table(rows));
}

nlohmann::ordered_json comparison_json(const std::vector<compared_strategy>& all) {
  const double room = room_s(all);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const compared_strategy& each : all) {
    nlohmann::ordered_json entry;
    entry["strategy"] = each.name;
    entry["finished"] = each.outcome.finished;
    if (!each.outcome.finished) {
      entry["complaint"] = each.outcome.complaint;
      list.push_back(entry);
      continue;
    }
    entry["passed"] = each.outcome.passed;
    entry["time_s"] = each.outcome.simulated_s;
    if (room > 0) entry["times_one_room"] = each.outcome.simulated_s / room;
    entry["memory_high_water_bytes"] = each.outcome.memory_high_water_bytes;
    if (const transferred* most = busiest(each.outcome); most != nullptr) entry["busiest_link"] = most->name;
    for (const transferred& link : each.outcome.links) {
      entry["links"][link.name] = {{"payload_bytes", link.payload_bytes}, {"utilization", link.utilization}};
    }
    list.push_back(entry);
  }
  return list;
}

}  // namespace tributary
