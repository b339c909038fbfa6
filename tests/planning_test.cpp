// The planner against the simulation, and the commands built on it.
#include "platforms/planning.hpp"
#include "platforms/resources.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>
#include <map>

#include "platforms/child.hpp"
#include "tests/support/files.hpp"

namespace tributary::test {
namespace {

platform_spec nine_city(const std::vector<std::string>& assignments) {
  return load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/nine_city.yaml", {assignments, ""});
}

/// A connected platform of 3 to 8 sites with random rates, distances, memory and buffering: a function of its seed.
std::string random_platform(std::uint64_t seed) {
  boost::random::mt19937_64 random(seed);
  const auto pick = [&random](unsigned low, unsigned high) {
    return boost::random::uniform_int_distribution<unsigned>(low, high)(random);
  };
  const unsigned sites = pick(3, 8);
  std::string text = "name: random" + std::to_string(seed) + "\n";
  const unsigned chunk_kib = 64U << pick(0, 4);
  text += "workload: { update: " + std::to_string(chunk_kib * pick(100, 200)) +
          " KiB, chunk: " + std::to_string(chunk_kib) + " KiB }\n";
  text += std::string("network: { buffering: ") + (pick(0, 1) == 0 ? "per_stream" : "in_place") +
          ", flow: " + (pick(0, 2) == 0 ? "credit" : "paced") +
          ", trees: " + (pick(0, 1) == 0 ? "shortest" : "fewest_links") + " }\n";
  text += "site_defaults:\n  access: { up: " + std::to_string(pick(1, 8) * 25) + " Gbps, down: 200 Gbps }\n";
  text += "sites:\n";
  for (unsigned s = 0; s < sites; ++s) {
    text += "  - { name: s" + std::to_string(s) + ", aggregator: { preset: v80, memory: " +
            std::to_string(static_cast<std::uint64_t>(chunk_kib) * pick(40, 4000)) + " KiB } }\n";
  }
  text += "links:\n";
  const auto link = [&](unsigned a, unsigned b) {
    text += "  - { between: [s" + std::to_string(a) + ", s" + std::to_string(b) +
            "], rate: " + std::to_string(pick(1, 16) * 50) + " Gbps, latency: " + std::to_string(pick(10, 60'000)) +
            " us }\n";
  };
  for (unsigned s = 1; s < sites; ++s) link(pick(0, s - 1), s);
  for (unsigned extra = pick(0, sites); extra > 0; --extra) {
    const unsigned a = pick(0, sites - 1);
    const unsigned b = pick(0, sites - 1);
    if (a != b) link(a, b);
  }
  // A random partition: sites dealt into one to three groups, singletons allowed.
  const unsigned groups = pick(1, std::min(3U, sites / 2));
  std::vector<std::string> names(groups);
  for (unsigned s = 0; s < sites; ++s) {
    std::string& group = names[s < groups ? s : pick(0, groups - 1)];
    group += (group.empty() ? "s" : ", s") + std::to_string(s);
  }
  text += "schedule: { rounds: [[";
  for (unsigned g = 0; g < groups; ++g) text += (g == 0 ? "[" : ", [") + names[g] + "]";
  return text + "]] }\n";
}

TEST(PlannerAgainstSimulation, HundredRandomPlatformsWithinTwoPercentAndNeverAnOverflow) {
  const temporary_folder folder;
  double worst = 0;
  std::map<planner::rate_limit, unsigned> limits;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::string text = random_platform(seed);
    const platform_spec spec = load_platform(folder.write("random.yaml", text), {});
    const planner::platform_model model = model_of(spec);
    const planner::round_plan plan = planner::plan_round(model, spec.schedule.rounds[0]);
    for (const planner::group_plan& group : plan.groups) ++limits[group.limit];
    const double predicted = seconds(plan.predicted);
    const child_outcome outcome = simulate_in_child(spec);
    ASSERT_TRUE(outcome.finished) << seed << ": " << outcome.complaint << "\n" << text;
    EXPECT_TRUE(outcome.passed) << seed << "\n" << text;
    EXPECT_NEAR(outcome.slowest_round_s, predicted, predicted * 0.02) << seed << "\n" << text;
    worst = std::max(worst, std::abs(outcome.slowest_round_s / predicted - 1));
  }
  RecordProperty("worst_deviation_percent", std::to_string(worst * 100));
  EXPECT_GT(limits[planner::rate_limit::access_up], 20U) << "the platforms are of every kind";
  EXPECT_GT(limits[planner::rate_limit::memory_capacity], 20U);
  EXPECT_GT(limits[planner::rate_limit::shared_link], 5U);
  std::printf("worst deviation of prediction from simulation: %.3f %%\n", worst * 100);
}

struct throughput_case {
  const char* memory;
  const char* chunk;
  std::uint64_t chunk_bytes;
};

void PrintTo(const throughput_case& each, std::ostream* out) { *out << each.memory; }

class Throughput : public ::testing::TestWithParam<std::tuple<throughput_case, std::string, std::string>> {};

/// Throughput over memory size against the closed formulas, all-to-all over nine cities, whatever holds the memory.
TEST_P(Throughput, IsWhatTheFormulasSayAndMemoryNeverOverflows) {
  const auto& [size, policy, flow] = GetParam();
  // Credits let a whole window leave before the first one is due back, so rates are right over whole windows.
  const std::uint64_t slots = parse_quantity(size.memory, dimension::bytes) / size.chunk_bytes;
  const std::uint64_t window = policy == "per_stream" ? slots / 8 : slots;
  const std::uint64_t chunks = flow == "paced" ? 6000 : (6000 + window - 1) / window * window + 1;
  const platform_spec spec = nine_city({std::string("site_defaults.aggregator.memory=") + size.memory,
                                        std::string("workload.chunk=") + size.chunk,
                                        "workload.update=" + std::to_string(chunks * size.chunk_bytes) + " B",
                                        "network.buffering=" + policy, "network.flow=" + flow});
  const planner::platform_model model = model_of(spec);
  const planner::fluid_rate formula = planner::fluid_group_rate(
      model, model.latencies(), planner::all_to_all(9).rounds[0][0], planner::wire_overhead(model, true));
  const child_outcome outcome = simulate_in_child(spec);
  ASSERT_TRUE(outcome.finished) << outcome.complaint;
  EXPECT_TRUE(outcome.passed);
  const double measured = static_cast<double>(spec.update_bytes) / (outcome.slowest_round_s - 0.1569);
  EXPECT_NEAR(measured, formula.bytes_per_s, formula.bytes_per_s * 0.02);
  EXPECT_LE(outcome.memory_high_water_bytes, spec.sites[0].aggregator.memory_bytes);
}

INSTANTIATE_TEST_SUITE_P(NineCities, Throughput,
                         ::testing::Combine(::testing::Values(throughput_case{"128 MB", "128 KiB", 128 << 10},
                                                              throughput_case{"512 MB", "256 KiB", 256 << 10},
                                                              throughput_case{"2 GB", "1 MiB", 1 << 20},
                                                              throughput_case{"8 GB", "2 MiB", 2 << 20}),
                                            ::testing::Values("per_stream", "in_place"),
                                            ::testing::Values("paced", "credit")),
                         [](const auto& test) {
                           std::string name = std::string(std::get<0>(test.param).memory) + "_" +
                                              std::get<1>(test.param) + "_" + std::get<2>(test.param);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

struct bandwidth_case {
  const char* schedule;
  const char* policy;
  const char* flow;
  double traffic;  ///< bytes of memory traffic for a byte of one stream: 2 (k-1) or 2 (k-2)
};

class MemoryBandwidth : public ::testing::TestWithParam<bandwidth_case> {};

/// A DDR4-2400 module in the place of the card's HBM: memory bandwidth is the limit, where the formula says. Paced
/// senders follow the planner; under credits nothing but the memory itself holds them.
TEST_P(MemoryBandwidth, OfDdr4IsTheLimitWhereTheFormulaSays) {
  const bandwidth_case c = GetParam();
  platform_spec spec =
      load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/nine_city.yaml",
                    {{"run.trace=none", "run.rounds=1", "site_defaults.aggregator.device.preset=ddr4_2400",
                      "workload.update=12 GB", "site_defaults.aggregator.memory=16 GB",
                      std::string("network.buffering=") + c.policy, std::string("network.flow=") + c.flow},
                     c.schedule});
  ASSERT_EQ(spec.sites[0].aggregator.device.preset, "ddr4_2400");
  const child_outcome outcome = simulate_in_child(spec);
  ASSERT_TRUE(outcome.finished) << outcome.complaint;
  EXPECT_TRUE(outcome.passed);
  // 14.9 GB/s: the device's sequential figure (tests/memory_device_test.cpp), whole chunks read and written in turn.
  const double formula = 14.9e9 / c.traffic;
  // All groups are held alike, so the one with the longest path ends the round.
  const planner::platform_model model = model_of(spec);
  const auto latency = model.latencies();
  double longest = 0;
  const planner::schedule rounds = schedule_of(spec, model);
  for (const planner::group& group : rounds.rounds[0]) {
    for (const unsigned i : group) {
      for (const unsigned j : group) longest = std::max(longest, seconds(latency[i][j]));
    }
  }
  const double measured = static_cast<double>(spec.update_bytes) / (outcome.slowest_round_s - longest);
  EXPECT_NEAR(measured, formula, 0.03 * formula);
}

INSTANTIATE_TEST_SUITE_P(NineCities, MemoryBandwidth,
                         ::testing::Values(bandwidth_case{"all_to_all", "per_stream", "paced", 16},
                                           bandwidth_case{"all_to_all", "per_stream", "credit", 16},
                                           bandwidth_case{"all_to_all", "in_place", "paced", 14},
                                           bandwidth_case{"all_to_all", "in_place", "credit", 14},
                                           bandwidth_case{"rotating:3", "per_stream", "paced", 4},
                                           bandwidth_case{"rotating:3", "in_place", "paced", 2}),
                         [](const auto& test) {
                           return std::string(test.param.schedule).substr(0, 3) + "_" + test.param.policy + "_" +
                                  test.param.flow;
                         });

/// By hand for nine cities, all-to-all, 8 GB, chunks of 1 MiB.
TEST(Resources, AreWhatTheAssumptionsGiveByHand) {
  const platform_spec spec = nine_city({"site_defaults.aggregator.memory=8 GB"});
  const resource_estimate e = estimate_resources(spec, 0);
  EXPECT_EQ(e.streams, 8U);
  EXPECT_EQ(e.adders, 8U * 64 / 4);
  EXPECT_EQ(e.dsp, 256U);
  EXPECT_EQ(e.ultra_ram_bits, 8ULL * ((32 << 20) + 2 * (1 << 20)));
  EXPECT_EQ(e.ultra_ram, 968U) << "285,212,672 bits are 967.1 blocks of 294,912";
  // 7629 slots: 13 bits a pointer; 953 entries of 14 bits of tag (13,352 chunks), 8 x (21 + 1) of counters and flags,
  // 8 x 13 of pointers, 4 of contributors.
  EXPECT_EQ(e.slot_table_bits, 953U * (14 + 176 + 104 + 4));
  EXPECT_EQ(e.free_list_bits, 7629U * 13);
  EXPECT_EQ(e.block_ram, 8U + 3);
  // 2 x 8 x 12.375 GB/s.
  EXPECT_NEAR(e.memory_bytes_per_s, 16 * 12.375e9, 0.001 * 16 * 12.375e9);
  EXPECT_NE(describe_resources(spec).find("968 of 1925"), std::string::npos);

  const platform_spec in_place =
      nine_city({"site_defaults.aggregator.memory=8 GB", "network.buffering=in_place", "workload.values=bf16"});
  const resource_estimate p = estimate_resources(in_place, 0);
  EXPECT_EQ(p.adders, 256U) << "elements of 2 bytes";
  EXPECT_NEAR(p.memory_bytes_per_s, 2 * 14 * 12.375e9, 0.01 * 28 * 12.375e9) << "sums in fp32";
}

TEST(Planning, TheBestScheduleIsWrittenAndRuns) {
  const temporary_folder folder;
  platform_spec spec = nine_city({"site_defaults.aggregator.memory=2 GB", "workload.update=500 MB"});
  plan_request request;
  request.search.largest_group = 3;
  request.verify = 2;
  const std::vector<planned_schedule> plans = plan_schedules(spec, request);
  ASSERT_GE(plans.size(), 4U);
  for (unsigned p = 0; p < 2; ++p) {
    ASSERT_TRUE(plans[p].simulated_s) << plans[p].remark;
    EXPECT_NEAR(*plans[p].simulated_s, plans[p].predicted_s, plans[p].predicted_s * 0.02);
    EXPECT_EQ(plans[p].remark, "");
  }
  const std::string file = folder.write("best.yaml", schedule_yaml(spec, plans[0]));
  const platform_spec again =
      load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/nine_city.yaml", {{}, file});
  EXPECT_EQ(again.schedule.rounds, plans[0].rated.rounds.rounds);
  EXPECT_NE(describe_plans(spec, plans).find("all-to-all"), std::string::npos);
}

TEST(Planning, LeastMemoryIsLeast) {
  const platform_spec spec = nine_city({});
  const planner::schedule everyone = planner::all_to_all(9);
  const auto memory = least_memory(spec, everyone, 1.5, 32'000'000'000ULL);
  ASSERT_TRUE(memory);
  EXPECT_LE(planned_pass_s(spec, everyone, *memory), 1.5);
  EXPECT_GT(planned_pass_s(spec, everyone, *memory - spec.chunk_bytes), 1.5);
  // Fluid, by hand: 1.5 s = 14 GB / r + 156.9 ms, so r = 10.424 GB/s; Singapore needs 636.82 ms of it: 6.638 GB.
  EXPECT_NEAR(static_cast<double>(*memory), 6.638e9, 0.02 * 6.638e9);
  EXPECT_FALSE(least_memory(spec, everyone, 1.0, 32'000'000'000ULL)) << "below serialisation and latency";
}

TEST(Planning, CrossoverLiesWhereTheFormulasSay) {
  // per_stream: all-to-all takes as long as two rounds of threes, 2.466 s, at r = 14 GB / (2.466 - 0.157) s = 6.064
  // GB/s, which needs 636.82 ms of memory at Singapore: 3.86 GB. in_place needs D - min L there: 156.90 - 44.95 =
  // 111.95 ms at Singapore, 101.58 ms at Barueri and 138.66 at Seoul and Tokyo (138.66 = 143.16 - 4.50, and so on):
  // 0.841 GB.
  const auto per_stream = memory_crossover(nine_city({}), 3, 32'000'000'000ULL);
  ASSERT_TRUE(per_stream);
  EXPECT_NEAR(static_cast<double>(per_stream->memory_bytes), 3.862e9, 0.02 * 3.862e9);
  EXPECT_LE(per_stream->first_s, per_stream->second_s);
  const auto in_place = memory_crossover(nine_city({"network.buffering=in_place"}), 3, 32'000'000'000ULL);
  ASSERT_TRUE(in_place);
  EXPECT_NEAR(static_cast<double>(in_place->memory_bytes), 0.841e9, 0.02 * 0.841e9);
}

}  // namespace
}  // namespace tributary::test
