#include "platforms/planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "platforms/child.hpp"
#include "platforms/report.hpp"

namespace tributary {

namespace {

/// Planned seconds of the first `rounds` rounds of a schedule.
double planned_s(const planner::platform_model& model, const planner::schedule& schedule, unsigned rounds) {
  std::vector<double> each;
  for (const planner::partition& round : schedule.rounds)
    each.push_back(seconds(planner::plan_round(model, round).predicted));
  double total = 0;
  for (unsigned t = 0; t < rounds; ++t) total += each[t % each.size()];
  return total;
}

}  // namespace

std::vector<planned_schedule> plan_schedules(const platform_spec& spec, const plan_request& request) {
  const planner::platform_model model = model_of(spec);
  std::vector<planned_schedule> plans;
  for (planner::rated_construction& rated :
       planner::search_schedules(model, planner::wire_overhead(model, true), request.search)) {
    planned_schedule each;
    const unsigned rounds =
        rated.rounds_to_epsilon > 0 ? rated.rounds_to_epsilon : static_cast<unsigned>(rated.rounds.rounds.size());
    try {
      each.predicted_s = planned_s(model, rated.rounds, rounds);
    } catch (const std::invalid_argument& error) {
      each.remark = error.what();
    }
    if (plans.size() < request.verify && each.remark.empty()) {
      platform_spec checked = spec;
      checked.schedule.type = schedule_spec::kind::explicit_rounds;
      checked.schedule.name = rated.rounds.name;
      checked.schedule.rounds = rated.rounds.rounds;
      checked.schedule.blend = rated.rounds.blend;
      checked.rounds = rounds;
      const child_outcome outcome = simulate_in_child(checked);
      if (outcome.finished) each.simulated_s = outcome.simulated_s;
      if (!outcome.passed) each.remark = outcome.finished ? "a check failed" : outcome.complaint;
    }
    each.rated = std::move(rated);
    plans.push_back(std::move(each));
  }
  return plans;
}

std::string schedule_yaml(const platform_spec& spec, const planned_schedule& planned) {
  // JSON strings are YAML strings, whatever is in them.
  const auto quoted = [](const std::string& word) { return nlohmann::json(word).dump(); };
  std::string text =
      fmt::format("description: {}\nschedule:\n  name: {}\n  rounds:\n",
                  quoted(fmt::format("{} for {}, found by tributary plan", planned.rated.rounds.name, spec.name)),
                  quoted(planned.rated.rounds.name));
  const std::vector<double>& blend = planned.rated.rounds.blend;
  if (!blend.empty()) text.insert(text.rfind("  rounds:"), fmt::format("  blend: [{:.17g}]\n", fmt::join(blend, ", ")));
  for (std::size_t r = 0; r < planned.rated.rounds.rounds.size(); ++r) {
    std::string groups;
    for (const planner::group& members : planned.rated.rounds.rounds[r]) {
      std::string names;
      for (const unsigned site : members) {
        names += (names.empty() ? "" : ", ") + quoted(spec.sites[site].name);
      }
      groups += (groups.empty() ? "[" : ", [") + names + "]";
    }
    text += fmt::format("    - [{}]  # {} predicted\n", groups, format_seconds(planned.rated.round_s[r]));
  }
  return text;
}

std::string describe_plans(const platform_spec& spec, const std::vector<planned_schedule>& plans) {
  std::vector<std::vector<std::string>> rows{{"agreement after", "predicted", "simulated", "off", "rounds", "one pass",
                                              "pairs/s", "mean age", "worst age", "schedule"}};
  for (const planned_schedule& each : plans) {
    const planner::rated_construction& rated = each.rated;
    const auto time = [](double s) { return std::isfinite(s) ? format_seconds(s) : std::string("never"); };
    rows.push_back({time(rated.to_epsilon_s), each.predicted_s > 0 ? format_seconds(each.predicted_s) : "-",
                    each.simulated_s ? format_seconds(*each.simulated_s) : "-",
                    each.simulated_s ? fmt::format("{:+.2f} %", (*each.simulated_s / each.predicted_s - 1) * 100) : "-",
                    rated.rounds_to_epsilon > 0 ? std::to_string(rated.rounds_to_epsilon) : "-",
                    format_seconds(rated.pass_s), fmt::format("{:.4g}", rated.exchanged.pairs_per_s),
                    time(rated.exchanged.mean_age_s), time(rated.exchanged.worst_age_s),
                    rated.rounds.name + (each.remark.empty() ? "" : " (" + each.remark + ")")});
  }
  return fmt::format("\n{}: {} a site, {} of aggregator memory\n\n{}", spec.name,
                     format_bytes(static_cast<double>(spec.update_bytes)),
                     format_bytes(static_cast<double>(spec.sites.front().aggregator.memory_bytes)), render_table(rows));
}

double planned_pass_s(const platform_spec& spec, const planner::schedule& rounds, std::uint64_t memory) {
  planner::platform_model model = model_of(spec);
  for (planner::site_model& site : model.sites) site.memory_bytes = memory;
  try {
    return planned_s(model, rounds, static_cast<unsigned>(rounds.rounds.size()));
  } catch (const std::invalid_argument&) {
    return std::numeric_limits<double>::infinity();
  }
}

namespace {

/// Least number of chunks in [1, most] for which `good` holds, given that more never hurts.
template <typename Predicate>
std::optional<std::uint64_t> least_chunks(std::uint64_t most, const Predicate& good) {
  if (!good(most)) return std::nullopt;
  std::uint64_t low = 1;
  std::uint64_t high = most;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (good(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

std::optional<std::uint64_t> least_memory(const platform_spec& spec, const planner::schedule& rounds, double target_s,
                                          std::uint64_t most) {
  const auto chunks = least_chunks(most / spec.chunk_bytes, [&](std::uint64_t n) {
    return planned_pass_s(spec, rounds, n * spec.chunk_bytes) <= target_s;
  });
  if (!chunks) return std::nullopt;
  return *chunks * spec.chunk_bytes;
}

std::optional<crossover> memory_crossover(const platform_spec& spec, unsigned size, std::uint64_t most) {
  planner::platform_model model = model_of(spec);
  const double w = planner::wire_overhead(model, true);
  const planner::schedule everyone = planner::all_to_all(static_cast<unsigned>(spec.sites.size()));
  const auto both = [&](std::uint64_t memory) {
    for (planner::site_model& site : model.sites) site.memory_bytes = memory;
    const planner::schedule rotation = planner::rotating_groups(model, size, w);
    return crossover{memory, planned_pass_s(spec, everyone, memory), planned_pass_s(spec, rotation, memory)};
  };
  const auto chunks = least_chunks(most / spec.chunk_bytes, [&](std::uint64_t n) {
    const crossover at = both(n * spec.chunk_bytes);
    return std::isfinite(at.first_s) && at.first_s <= at.second_s;
  });
  if (!chunks) return std::nullopt;
  return both(*chunks * spec.chunk_bytes);
}

platform_spec with_value(const platform_spec& spec, sized what, std::uint64_t value) {
  platform_spec changed = spec;
  for (site_spec& site : changed.sites) {
    memory_device_spec& device = site.aggregator.device;
    switch (what) {
      case sized::memory_bandwidth:
        device.level = memory_level::rate;
        device.channels = 1;
        device.channel_rate = value;
        device.efficiency = 1;
        break;
      case sized::clock: site.aggregator.clock_hz = value; break;
      case sized::access_rate: site.access_up = site.access_down = value; break;
      case sized::link_rate: break;
    }
  }
  if (what == sized::link_rate) {
    for (link_spec& link : changed.links) link.rate_ab = link.rate_ba = value;
  }
  return changed;
}

std::optional<std::uint64_t> least_value(const platform_spec& spec, const planner::schedule& rounds, sized what,
                                         double target_s) {
  const auto takes = [&](std::uint64_t value) {
    const platform_spec changed = with_value(spec, what, value);
    try {
      return planned_s(model_of(changed), rounds, static_cast<unsigned>(rounds.rounds.size()));
    } catch (const std::invalid_argument&) {
      return std::numeric_limits<double>::infinity();
    }
  };
  std::uint64_t low = 1'000'000;
  std::uint64_t high = 1'000'000'000'000'000;
  if (takes(high) > target_s) return std::nullopt;
  while (high - low > high / 1000) {
    const std::uint64_t middle = low + (high - low) / 2;
    (takes(middle) <= target_s ? high : low) = middle;
  }
  return high;
}

}  // namespace tributary
