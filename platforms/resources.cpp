#include "platforms/resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/cost_model.hpp"
#include "platforms/report.hpp"

namespace tributary {

namespace {

constexpr std::uint64_t ultra_ram_block_bits = 288ULL << 10;
constexpr std::uint64_t block_ram_block_bits = 36ULL << 10;

std::uint64_t blocks(std::uint64_t bits, std::uint64_t block) { return (bits + block - 1) / block; }

/// Bits that number `values` things.
std::uint64_t bits_for(std::uint64_t values) {
  std::uint64_t bits = 0;
  while (bits < 64 && (std::uint64_t{1} << bits) < values) ++bits;
  return std::max<std::uint64_t>(1, bits);
}

std::string of_total(std::uint64_t used, unsigned total) {
  if (total == 0) return fmt::format("{}", used);
  return fmt::format("{} of {} ({:.1f} %){}", used, total, 100.0 * static_cast<double>(used) / total,
                     used > total ? " TOO MANY" : "");
}

/// The platform's plan, the same for all sites: worked out once.
struct planned_rounds {
  planner::platform_model model;
  planner::schedule schedule;
  std::vector<planner::fluid_round> costs;

  explicit planned_rounds(const platform_spec& spec) : model(model_of(spec)), schedule(schedule_of(spec, model)) {
    const double w = planner::wire_overhead(model, true);
    for (const planner::partition& round : schedule.rounds) {
      costs.push_back(planner::fluid_round_cost(model, round, w));
    }
  }
};

resource_estimate estimate(const platform_spec& spec, const planned_rounds& plan, unsigned site) {
  const aggregator_spec& aggregator = spec.sites[site].aggregator;
  const bool per_stream = spec.policy == buffering::per_stream;
  const std::uint64_t wider = spec.slot_bytes() / spec.chunk_bytes;
  resource_estimate result;
  for (std::size_t r = 0; r < plan.costs.size(); ++r) {
    const planner::partition& round = plan.schedule.rounds[r];
    for (std::size_t g = 0; g < round.size(); ++g) {
      const planner::group& group = round[g];
      if (std::find(group.begin(), group.end(), site) == group.end() || group.size() < 2) continue;
      const auto streams = static_cast<unsigned>(group.size() - 1);
      result.streams = std::max(result.streams, streams);
      if (spec.policy == buffering::none) continue;
      const double accesses = per_stream ? 2.0 * streams : 2.0 * (streams - 1.0) * static_cast<double>(wider);
      result.memory_bytes_per_s = std::max(result.memory_bytes_per_s, accesses * plan.costs[r].rates[g].bytes_per_s);
    }
  }
  result.memory_share =
      result.memory_bytes_per_s * 8 / static_cast<double>(aggregator.device.sustained_rate(spec.chunk_bytes));

  // One adder for each element a lane takes in a clock.
  const unsigned element_bytes = spec.values == value_format::bf16 ? 2 : 4;
  result.adders = std::uint64_t{aggregator.lanes} * aggregator.datapath_bytes / element_bytes;
  result.dsp = result.adders * (spec.values == value_format::int32 ? 1 : 2);

  const std::uint64_t buffers =
      aggregator.ingress_buffer_bytes + std::uint64_t{aggregator.egress_chunks} * spec.chunk_bytes;
  const std::uint64_t on_chip =
      aggregator.placement == slot_placement::on_chip ? aggregator.memory_bytes : aggregator.on_chip_bytes;
  result.ultra_ram_bits = 8 * (buffers + on_chip);
  result.ultra_ram = blocks(result.ultra_ram_bits, ultra_ram_block_bits);

  const std::uint64_t slots = aggregator.memory_bytes / spec.slot_bytes();
  const std::uint64_t streams = std::max(1U, result.streams);
  const std::uint64_t chunks = per_stream ? std::max<std::uint64_t>(1, slots / streams) : slots;
  const std::uint64_t entries = aggregator.slot_table_entries != 0 ? aggregator.slot_table_entries : chunks;
  const std::uint64_t tag = std::min<std::uint64_t>(aggregator.tag_bits, bits_for(plan.model.chunks()));
  const std::uint64_t pointer = bits_for(slots);
  const std::uint64_t counter = bits_for(spec.chunk_bytes + 1);
  const std::uint64_t entry_bits =
      tag + streams * (counter + 1) + (per_stream ? streams * pointer : pointer) + bits_for(streams + 1);
  result.slot_table_bits = entries * entry_bits;
  result.free_list_bits = slots * pointer;
  result.block_ram =
      blocks(result.slot_table_bits, block_ram_block_bits) + blocks(result.free_list_bits, block_ram_block_bits);
  return result;
}

}  // namespace

resource_estimate estimate_resources(const platform_spec& spec, unsigned site) {
  return estimate(spec, planned_rounds(spec), site);
}

std::string describe_resources(const platform_spec& spec) {
  std::vector<std::vector<std::string>> rows{
      {"sites", "card", "streams", "DSP", "UltraRAM", "block RAM", "slot table", "memory bandwidth"}};
  const planned_rounds plan(spec);
  for (unsigned s = 0; s < spec.sites.size(); ++s) {
    const aggregator_spec& aggregator = spec.sites[s].aggregator;
    const resource_estimate e = estimate(spec, plan, s);
    std::vector<std::string> row{
        spec.sites[s].name,
        aggregator.preset.empty() ? "-" : aggregator.preset,
        fmt::format("{}", e.streams),
        of_total(e.dsp, aggregator.resources.dsp),
        of_total(e.ultra_ram, aggregator.resources.ultra_ram),
        of_total(e.block_ram, aggregator.resources.block_ram),
        format_bytes(static_cast<double>(e.slot_table_bits) / 8),
        fmt::format("{}/s ({:.1f} %)", format_bytes(e.memory_bytes_per_s), 100 * e.memory_share)};
    std::vector<std::string>& last = rows.back();
    if (rows.size() > 1 && std::equal(row.begin() + 1, row.end(), last.begin() + 1)) {
      last[0] += " " + row[0];
    } else {
      rows.push_back(std::move(row));
    }
  }
  return fmt::format("{}: an estimate; what it assumes is in docs/resources.md\n\n{}", spec.name, render_table(rows));
}

}  // namespace tributary
