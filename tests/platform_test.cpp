// Whole platforms against first principles.
#include <gtest/gtest.h>

#include "platforms/report.hpp"
#include "platforms/simulation.hpp"
#include "tests/support/files.hpp"
#include "tests/support/forked.hpp"

namespace tributary::test {
namespace {

platform_spec shipped(const std::string& name, std::vector<std::string> assignments = {}, std::string schedule = "") {
  assignments.insert(assignments.begin(), "run.trace=none");
  return load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/" + name + ".yaml",
                       {std::move(assignments), std::move(schedule)});
}

run_result run(const platform_spec& spec) {
  run_options options;
  options.protocol_checkers = true;
  simulation sim(spec, options);
  return sim.run();
}

void expect_sound(const run_result& result) {
  EXPECT_EQ(result.outcome, schedule_executor::outcome::finished) << result.complaint;
  for (const check_result& check : result.checks) EXPECT_TRUE(check.pass) << check.name << ": " << check.detail;
  for (const round_result& round : result.rounds) {
    ASSERT_FALSE(round.critical_path.empty());
    picoseconds at = round.opened;
    for (const path_span& span : round.critical_path) {
      EXPECT_EQ(span.from, at) << "the critical path has no gap: " << span.what << " at " << span.where;
      EXPECT_GT(span.to, span.from);
      at = span.to;
    }
    EXPECT_EQ(at, round.closed) << "the critical path is as long as the round";
  }
}

picoseconds duration(const round_result& round) { return round.closed - round.opened; }

/// Every memory command of a whole run is watched (run() plugs the checkers in); real values arrive exact.
SIMULATION_TEST(Memory, EveryCommandOfARunKeepsTheRules) {
  const run_result result =
      run(shipped("three_site", {"site_defaults.aggregator.device.level=burst", "workload.update=4 MiB",
                                 "workload.values=fp32", "workload.chunk=64 KiB"}));
  expect_sound(result);
  EXPECT_GT(result.sites[0].memory.commands.reads, 10'000U);
  EXPECT_GT(result.sites[0].memory.commands.row_hits, 0U);
  EXPECT_EQ(result.sites[0].mismatches, 0U);
}

SIMULATION_TEST(Memory, OnChipFirstSpillsOverAWholePlatform) {
  const platform_spec spec =
      shipped("nine_city", {"site_defaults.aggregator.placement=on_chip_first", "workload.update=200 MB"});
  EXPECT_EQ(spec.sites[0].aggregator.on_chip_bytes, 64'000'000U);
  const run_result result = run(spec);
  expect_sound(result);
  std::uint64_t spilled = 0;
  for (const site_result& site : result.sites) {
    EXPECT_GT(site.on_chip_bytes, 0U);
    spilled += site.aggregator.spilled_chunks;
  }
  EXPECT_GT(spilled, 0U) << "200 MB from eight sites do not fit into 64 MB";
}

SIMULATION_TEST(Memory, Bf16InPlaceIsExactOverAWholePlatform) {
  const run_result result = run(shipped("three_site", {"workload.update=16 MiB", "workload.values=bf16",
                                                       "network.buffering=in_place", "run.fidelity=packet"}));
  expect_sound(result);
  EXPECT_GT(result.sites[0].elements_compared, 0U);
  EXPECT_EQ(result.sites[0].mismatches, 0U);
}

SIMULATION_TEST(Memory, FixedPointSaturationIsCountedNotHidden) {
  const run_result result =
      run(shipped("three_site", {"workload.update=4 MiB", "workload.values=int32", "workload.scale_bits=31"}));
  expect_sound(result);
  EXPECT_GT(result.sites[0].saturated, 1000U);
  EXPECT_EQ(result.sites[0].mismatches, 0U);
}

SIMULATION_TEST(TwoSites, MatchFirstPrinciplesToThePicosecond) {
  const run_result result = run(shipped("two_site"));
  expect_sound(result);
  // 64 chunks of 1 MiB; a chunk is 118 packets, 1'059'196 bytes on the wire, its last packet 1750.
  const picoseconds at_100g = 1'059'196ULL * 80;
  const picoseconds last_departure = 63 * at_100g;  // paced at the access line
  const picoseconds access = at_100g;               // out of GPU memory at 100 Gb/s
  const picoseconds routers = 2 * 500'000;
  const picoseconds fibre = 4'900'000'000;       // 1000 km at 4.9 us
  const picoseconds backbone = 1750 * 20;        // last packet at 400 Gb/s: the rest came in slower
  const picoseconds ports = 1750 * 10;           // and at 800 Gb/s
  const picoseconds merge = 8'192'000 + 64'000;  // 1 MiB at 128 GB/s, 16 cycles of 4 ns; memory is quicker
  const picoseconds down = at_100g;
  ASSERT_EQ(result.rounds.size(), 1U);
  EXPECT_EQ(duration(result.rounds[0]), last_departure + access + routers + fibre + backbone + ports + merge + down);
  EXPECT_EQ(duration(result.rounds[0]), 10'417'127'700U);
  const round_breakdown& parts = result.rounds[0].breakdown;
  EXPECT_EQ(parts.propagation, fibre);
  EXPECT_EQ(parts.memory_stall, merge);
  EXPECT_EQ(parts.serialization, last_departure + access + routers + backbone + ports + down);
  EXPECT_EQ(parts.queueing + parts.skew_wait + parts.control + parts.compute, 0U);
  EXPECT_EQ(result.rounds[0].predicted, duration(result.rounds[0])) << "the planner counts the same";
}

SIMULATION_TEST(TwoSites, ComputeApplyAndAsymmetryAddUp) {
  const run_result result =
      run(shipped("two_site", {"site_defaults.cluster.compute=30 ms", "sites.east.cluster.compute=40 ms",
                               "site_defaults.cluster.apply=5 ms", "links.0.latency_back=9 ms"}));
  expect_sound(result);
  // west gets east's stream: 40 ms compute, 4.9 ms fibre. east gets west's: 30 ms, 9 ms. The first is later.
  EXPECT_EQ(duration(result.rounds[0]), 10'417'127'700U + 40'000'000'000U + 5'000'000'000U);
  EXPECT_EQ(result.rounds[0].breakdown.compute, 45'000'000'000U);
  EXPECT_EQ(result.rounds[0].last_site, 1U);
}

SIMULATION_TEST(ThreeSites, MemoryBoundPaceCoversTheSkew) {
  const platform_spec spec = shipped("three_site");
  const run_result result = run(spec);
  expect_sound(result);
  // north hears middle after 1.96 ms and south after 9.8 ms: 7.84 ms of skew, 64 MB of memory: 8.163 GB/s at most, a
  // little less for the chunks in assembly (61 slots: seven hundredths of the fluid rate at these sizes).
  const double fluid = 64e6 / 7.84e-3;
  const double rate = result.rounds[0].rates[0] / 8;
  EXPECT_LT(rate, fluid);
  EXPECT_GT(rate, fluid * 0.95);
  EXPECT_LE(result.rounds[0].memory_high_water_bytes, 64'000'000U);
  EXPECT_GT(result.rounds[0].memory_high_water_bytes, 64'000'000U * 95 / 100) << "memory is used to the brim";
  EXPECT_EQ(result.rounds[0].stalled, 0U);
  EXPECT_NEAR(seconds(duration(result.rounds[0])), (256 << 20) / rate + 9.8e-3, 0.0005);
  EXPECT_GT(result.rounds[0].breakdown.skew_wait, 0U);
}

SIMULATION_TEST(ThreeSites, InPlaceNeedsLessMemoryForTheSameSkew) {
  const run_result result = run(shipped("three_site", {"network.buffering=in_place"}));
  expect_sound(result);
  EXPECT_LE(result.rounds[0].memory_high_water_bytes, 64'000'000U);
}

SIMULATION_TEST(ThreeSites, AMemoryAnsweringInFourPhasesGivesTheSameRound) {
  const platform_spec early = shipped("three_site", {"workload.update=32 MiB"});
  const run_result result =
      run(shipped("three_site", {"workload.update=32 MiB", "site_defaults.aggregator.device.four_phase=true"}));
  expect_sound(result);
  planner::platform_model model = model_of(early);
  EXPECT_NEAR(seconds(duration(result.rounds[0])),
              seconds(planner::plan_round(model, planner::all_to_all(3).rounds[0]).predicted), 1e-6);
}

SIMULATION_TEST(ThreeSites, PacketFidelityAgreesWithBursts) {
  const run_result result = run(shipped("three_site", {"workload.update=16 MiB", "run.fidelity=packet"}));
  expect_sound(result);
  const planner::platform_model model = model_of(shipped("three_site", {"workload.update=16 MiB"}));
  const double burst = seconds(planner::plan_round(model, planner::all_to_all(3).rounds[0]).predicted);
  EXPECT_NEAR(seconds(duration(result.rounds[0])), burst, burst * 0.001);
}

SIMULATION_TEST(ThreeSites, TooFastAPaceIsReportedNotHidden) {
  // At line rate 64 MB do not cover the skew. The input is held, so nothing is lost, but the check goes red.
  platform_spec spec = shipped("three_site", {"network.pace=84.8 us", "run.round_timeout=1 s"});
  const run_result result = run(spec);
  EXPECT_FALSE(result.passed());
  for (const check_result& check : result.checks) {
    if (check.name == "no_overflow") {
      EXPECT_FALSE(check.pass);
    }
    if (check.name == "occupancy") {
      EXPECT_TRUE(check.pass);
    }
  }
}

SIMULATION_TEST(Sabotage, AWrongRoundNumberTurnsCoverageRedAndEndsInADiagnosis) {
  platform_spec spec = shipped("three_site", {"workload.update=16 MiB", "run.round_timeout=200 ms"});
  simulation sim(spec, {});
  sc_core::sc_spawn([&sim] {
    sc_core::wait(sc_core::sc_time(5, sc_core::SC_MS));
    sim.aggregator(0).control.set(aggregator_register::round, 7);
  });
  const run_result result = sim.run();
  EXPECT_EQ(result.outcome, schedule_executor::outcome::timed_out);
  std::string failed;
  for (const check_result& check : result.checks) {
    if (!check.pass) failed += check.name + " ";
  }
  EXPECT_EQ(failed, "coverage all_rounds_ended ");
  ASSERT_FALSE(result.diagnosis.empty());
  EXPECT_NE(result.diagnosis[0].find("north (site 0) cluster"), std::string::npos) << result.diagnosis[0];
  EXPECT_NE(result.diagnosis[0].find("lacks sites"), std::string::npos);
}

void reduces_exactly(const char* values, const char* policy, const char* schedule, const char* fidelity) {
  const run_result result =
      run(shipped("nine_city",
                  {"workload.update=2 MiB", "workload.chunk=256 KiB", std::string("workload.values=") + values,
                   std::string("network.buffering=") + policy, std::string("run.fidelity=") + fidelity},
                  schedule));
  expect_sound(result);
  for (const site_result& site : result.sites) {
    EXPECT_EQ(site.elements_compared, result.rounds.size() * (2U << 20) / 4);
    EXPECT_EQ(site.mismatches, 0U);
  }
}

SIMULATION_TEST(NineCities, Fp32ThroughTheNetworkEqualsTheDirectReduction) {
  reduces_exactly("fp32", "per_stream", "all_to_all", "burst");
}
SIMULATION_TEST(NineCities, Fp32InPlaceEqualsTheDirectReduction) {
  reduces_exactly("fp32", "in_place", "all_to_all", "burst");
}
SIMULATION_TEST(NineCities, Int32InThreesEqualsTheDirectReduction) {
  reduces_exactly("int32", "per_stream", "rotating:3", "burst");
}
SIMULATION_TEST(NineCities, Int32InPacketsEqualsTheDirectReduction) {
  reduces_exactly("int32", "in_place", "rotating:3", "packet");
}

/// The figures of the design, headers counted (w = 1.0101).
void takes(const char* memory, const char* schedule, double without_headers, double update_over_rate) {
  platform_spec spec = shipped("nine_city", {std::string("site_defaults.aggregator.memory=") + memory}, schedule);
  simulation sim(spec, {});
  const run_result result = sim.run();
  expect_sound(result);
  const double w = planner::wire_overhead(model_of(spec), true);
  const double expected = without_headers + update_over_rate * (w - 1);
  EXPECT_NEAR(seconds(result.simulated), expected, expected * 0.02);
  EXPECT_EQ(result.sigma.back(), 0.0) << "agreement is exact";
  for (const round_result& round : result.rounds) {
    EXPECT_NEAR(seconds(duration(round)), seconds(round.predicted), seconds(round.predicted) * 0.001);
  }
}

SIMULATION_TEST(NineCities, AllToAllWith8GB) { takes("8 GB", "all_to_all", 1.277, 1.12); }
SIMULATION_TEST(NineCities, AllToAllWith2GB) { takes("2 GB", "all_to_all", 4.615, 0); }
SIMULATION_TEST(NineCities, RotatingThreesWith2GB) { takes("2 GB", "rotating:3", 2.443, 2.24); }
SIMULATION_TEST(NineCities, ThePublishedThreesFromTheirFile) { takes("2 GB", "nine_city_threes", 2.443, 2.24); }

SIMULATION_TEST(NineCities, EveryLinkCarriesWhatAHandCountGives) {
  const run_result result = run(shipped("nine_city", {"workload.update=16 MiB"}));
  expect_sound(result);
  // Barueri hangs on one link: its stream out, the eight others in. 16 chunks of 1 MiB.
  for (const link_result& link : result.links) {
    if (link.name == "nyc-bar:bar>nyc") {
      EXPECT_EQ(link.payload_bytes, 16U << 20);
    }
    if (link.name == "nyc-bar:nyc>bar") {
      EXPECT_EQ(link.payload_bytes, 8U * (16U << 20));
    }
    if (link.name == "ams.access:up") {
      EXPECT_EQ(link.wire_bytes, 16U * 1'059'196U);
    }
    if (link.name == "ams.access:down") {
      EXPECT_EQ(link.payload_bytes, 16U << 20) << "merged";
    }
    if (link.name == "ams.ports:in") {
      EXPECT_EQ(link.payload_bytes, 8U * (16U << 20)) << "not merged";
    }
  }
}

SIMULATION_TEST(NineCities, TheMeasured10GigabitDevicesRun) {
  const run_result result = run(shipped("nine_city_10g", {"workload.update=64 MiB"}));
  expect_sound(result);
  // Eight streams cross New York - Barueri: 1.25 Gb/s each on a 10 Gb/s line, headers included.
  EXPECT_NEAR(result.rounds[0].rates[0], 1.25e9 / 1.01013, 1e6);
  EXPECT_NEAR(seconds(duration(result.rounds[0])), seconds(result.rounds[0].predicted),
              seconds(result.rounds[0].predicted) * 0.02);
}

SIMULATION_TEST(Colocated, OneRoomHasNoPropagation) {
  const run_result result = run(shipped("colocated", {"workload.update=64 MiB"}));
  expect_sound(result);
  EXPECT_EQ(result.rounds[0].breakdown.propagation, 0U);
}

SIMULATION_TEST(Straggler, DelaysItsRoundByItsSeedAlone) {
  const auto spec = [](const char* seed) {
    return shipped("three_site", {"workload.update=4 MiB", "site_defaults.cluster.compute=100 ms",
                                  "site_defaults.cluster.straggler_sigma=0.3", std::string("run.seed=") + seed});
  };
  const run_result result = run(spec("5"));
  expect_sound(result);
  EXPECT_NE(result.rounds[0].breakdown.compute, 100'000'000'000U);
}

}  // namespace
}  // namespace tributary::test
