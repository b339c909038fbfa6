// Whole platforms whose network loses, fails, or carries an update by another strategy.
#include <gtest/gtest.h>

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>
#include <map>

#include "platforms/compare.hpp"
#include "platforms/simulation.hpp"
#include "tests/support/files.hpp"
#include "tests/support/forked.hpp"

namespace tributary::test {
namespace {

platform_spec shipped(const std::string& name, std::vector<std::string> assignments = {}) {
  assignments.insert(assignments.begin(), "run.trace=none");
  return load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/" + name + ".yaml",
                       {std::move(assignments), ""});
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
}

bool has_event(const run_result& result, const std::string& what) {
  for (const network_event& each : result.network_events) {
    if (each.what.find(what) != std::string::npos) return true;
  }
  return false;
}

double duration_s(const run_result& result) { return seconds(result.rounds.at(0).closed - result.rounds.at(0).opened); }

// ---- two fidelities ---------------------------------------------------------------------------------------------

/// Three to six sites on a random connected network of four to seven routers, random groups.
platform_spec random_platform(unsigned number, const std::string& extra_link) {
  boost::random::mt19937_64 dice(number);
  const auto draw = [&dice](int least, int most) {
    return boost::random::uniform_int_distribution<int>(least, most)(dice);
  };
  const int sites = draw(3, 6);
  const int routers = sites + draw(0, 2);
  std::string yaml = "name: random\nworkload: { update: 1 MiB, chunk: 64 KiB, values: fp32 }\nrouters:\n";
  for (int r = 0; r < routers; ++r) yaml += "  - { name: r" + std::to_string(r) + " }\n";
  yaml += "site_defaults:\n  access: { up: 100 Gbps, down: 100 Gbps }\n  aggregator: { preset: v80, memory: 64 MB }\n";
  yaml += "sites:\n";
  for (int s = 0; s < sites; ++s) {
    yaml += "  - { name: s" + std::to_string(s) + ", router: r" + std::to_string(s) + " }\n";
  }
  yaml += "links:\n";
  const auto link = [&](int a, int b) {
    yaml += "  - { between: [r" + std::to_string(a) + ", r" + std::to_string(b) +
            "], latency: " + std::to_string(draw(100, 9000)) + " us, rate: " + std::to_string(draw(2, 40) * 10) +
            " Gbps" + extra_link + " }\n";
  };
  for (int r = 1; r < routers; ++r) link(draw(0, r - 1), r);
  for (int more = draw(0, 3); more-- > 0;) {
    const int a = draw(0, routers - 1);
    const int b = draw(0, routers - 1);
    if (a != b) link(a, b);
  }
  const std::vector<std::string> policies{"per_stream", "in_place"};
  yaml += "network: { buffering: " + policies[static_cast<std::size_t>(draw(0, 1))] + " }\n";
  yaml += draw(0, 1) == 0 ? "schedule: all_to_all\n" : "schedule: rotating:2\n";
  yaml += "run: { trace: none, seed: " + std::to_string(number) + " }\n";
  const temporary_folder folder;
  return load_platform(folder.write("random.yaml", yaml), {});
}

struct both_fidelities {
  double burst_s = 0;
  double packet_s = 0;
};

/// Runs both in processes of their own; each must be sound. On a lossless network the links carry the same bytes.
both_fidelities run_both(const platform_spec& spec) {
  both_fidelities times;
  platform_spec changed = spec;
  const child_outcome burst = simulate_in_child(changed);
  changed.packet_fidelity = true;
  const child_outcome packet = simulate_in_child(changed);
  for (const child_outcome* each : {&burst, &packet}) {
    EXPECT_TRUE(each->finished) << each->complaint;
    EXPECT_TRUE(each->passed);
  }
  if (!spec.lossy()) {
    EXPECT_EQ(burst.links.size(), packet.links.size());
    for (std::size_t l = 0; l < burst.links.size(); ++l) {
      EXPECT_EQ(burst.links[l].payload_bytes, packet.links[l].payload_bytes) << burst.links[l].name;
    }
  }
  times.burst_s = burst.simulated_s;
  times.packet_s = packet.simulated_s;
  return times;
}

class Fidelities : public ::testing::TestWithParam<unsigned> {};

/// Fifty platforms a case, four cases: 200.
TEST_P(Fidelities, AgreeOnRandomPlatforms) {
  for (unsigned i = 0; i < 50; ++i) {
    const unsigned number = GetParam() * 50 + i;
    SCOPED_TRACE(number);
    const both_fidelities times = run_both(random_platform(number, ""));
    EXPECT_NEAR(times.burst_s / times.packet_s, 1, 0.02);
  }
}

TEST_P(Fidelities, AgreeUnderLossJitterAndReordering) {
  const std::vector<std::string> impairments{", loss: 1e-4", ", loss: 1e-2", ", loss: 1e-4, jitter: 200 us",
                                             ", loss: 1e-2, jitter: 200 us, reorders: true"};
  for (unsigned i = 0; i < 50; ++i) {
    const unsigned number = GetParam() * 50 + i;
    SCOPED_TRACE(number);
    (void)run_both(random_platform(number, impairments[GetParam()]));  // sound: exact, balanced, ended
  }
}
INSTANTIATE_TEST_SUITE_P(Platforms, Fidelities, ::testing::Range(0U, 4U));

TEST(Fidelity, UncontendedRunsAgreeWithinAThousandth) {
  const both_fidelities times = run_both(shipped("two_site"));
  EXPECT_NEAR(times.burst_s / times.packet_s, 1, 0.001);
}

// ---- loss on one stream -----------------------------------------------------------------------------------------

/// The derivation in docs/network.md, "Completion time under loss". Two sites send each other N packets in chunks of n
/// that arrive T apart. Packet i is lost with p; a repair cycle (nack and repair) fails with q = 1 - (1 - p)^2, is
/// begun again after W, 2 W, 4 W, ... up to W_max, and takes 2 L when it does not. So the packet comes D after its
/// turn, with
///   P(D = 0) = 1 - p,  P(D = 2 L + sum over j < k of W_j) = p q^k (1 - q),
/// and the round ends E[max over all packets of D - (time from the packet's turn to the end)] later than without loss.
double expected_lateness(double p, double chunks, double chunk_interval_s, double latency_s, double wait_s,
                         double longest_wait_s) {
  const double q = 1 - (1 - p) * (1 - p);
  const auto later_than = [&](double x) {  // P(D > x)
    double probability = p;
    double late = 2 * latency_s;
    double wait = wait_s;
    while (late <= x && probability > 1e-15) {
      probability *= q;
      late += wait;
      wait = std::min(2 * wait, longest_wait_s);
    }
    return probability;
  };
  constexpr double packets_a_chunk = 118;  // ceil(1 MiB / 8948 B)
  double expected = 0;
  const double step = 20e-6;
  for (double x = step / 2; x < 1; x += step) {
    double all_in_time = 0;  // logarithm
    for (double c = 0; c < chunks; ++c) {
      all_in_time += 2 * packets_a_chunk * std::log1p(-later_than(x + c * chunk_interval_s));  // both directions
    }
    expected += step * (1 - std::exp(all_in_time));
  }
  return expected;
}

struct lossy_stream {
  double loss = 0;
  unsigned mebibytes = 0;
  unsigned seeds = 0;  ///< runs to average: rare losses need more of them
};

class OneStream : public ::testing::TestWithParam<lossy_stream> {};

TEST_P(OneStream, TakesWhatTheDerivationSays) {
  const lossy_stream& stream = GetParam();
  const auto measure = [&stream](double loss, unsigned seed) {
    return measure_forked([&] {
      const run_result result = run(shipped(
          "two_site", {"links.0.loss=" + std::to_string(loss), "run.seed=" + std::to_string(seed),
                       "network.repair.when=always", "workload.update=" + std::to_string(stream.mebibytes) + " MiB"}));
      expect_sound(result);
      return duration_s(result);
    });
  };
  double sum = 0;
  for (unsigned seed = 1; seed <= stream.seeds; ++seed) sum += measure(stream.loss, seed);
  const double lossless = measure(0, 1);
  const double interval = 84.7e-6;                        // 1 MiB with headers at 100 Gb/s
  const double wait = 2 * 4.9e-3 + 8 * interval + 10e-3;  // the default time-out
  const double derived = lossless + expected_lateness(stream.loss, stream.mebibytes, interval, 4.9e-3, wait, 1);
  EXPECT_NEAR(sum / stream.seeds / derived, 1, 0.05) << sum / stream.seeds << " s, lossless " << lossless << " s";
}
INSTANTIATE_TEST_SUITE_P(Loss, OneStream,
                         ::testing::Values(lossy_stream{1e-5, 64, 400}, lossy_stream{1e-4, 64, 400},
                                           lossy_stream{1e-3, 64, 40}, lossy_stream{1e-2, 64, 40},
                                           lossy_stream{1e-4, 512, 40}, lossy_stream{1e-2, 512, 40}));

// ---- failures ---------------------------------------------------------------------------------------------------

/// A triangle, so that there is a way around every link. 25 MiB at 1 Gb/s take 210 ms.
platform_spec triangle(const std::string& more, const std::string& first_link = "rate: 100 Gbps") {
  const temporary_folder folder;
  return load_platform(
      folder.write("triangle.yaml",
                   "name: triangle\nworkload: { update: 25 MiB, chunk: 128 KiB, values: fp32 }\n"
                   "site_defaults:\n  access: { up: 1 Gbps, down: 1 Gbps }\n  aggregator: { preset: v80 }\n"
                   "sites: [{ name: a }, { name: b }, { name: c }]\nlinks:\n"
                   "  - { between: [a, b], latency: 5 ms, " +
                       first_link +
                       " }\n"
                       "  - { between: [b, c], latency: 5 ms, rate: 100 Gbps }\n"
                       "  - { between: [a, c], latency: 5 ms, rate: 100 Gbps }\n" +
                       more),
      {{"run.trace=none"}, ""});
}

SIMULATION_TEST(Failures, AnOutageIsRoutedAround) {
  // The link is cut for good after 100 ms and found down after 20 ms.
  const run_result result =
      run(triangle("network: { detection: 20 ms }\n", "rate: 100 Gbps, outages: [{ from: 100 ms }]"));
  expect_sound(result);
  EXPECT_TRUE(has_event(result, "link a-b is known to be down"));
  EXPECT_GT(result.repair.lost_packets, 0U);
  EXPECT_LT(duration_s(result), 0.5);
  EXPECT_GT(duration_s(result), 0.23) << "20 ms of two streams are sent again";
}

SIMULATION_TEST(Failures, ADeadSiteIsLeftOutAndComesBack) {
  const run_result result =
      run(triangle("failures: [{ site: c, at: 100 ms, back: 600 ms }]\n"
                   "run: { rounds: 4, site_timeout: 50 ms }\n"));
  expect_sound(result);
  ASSERT_EQ(result.rounds.size(), 4U);
  EXPECT_EQ(result.rounds[0].groups, (planner::partition{{0, 1}})) << "the round completes for the rest";
  EXPECT_EQ(result.rounds[0].restarts, 1U);
  EXPECT_EQ(result.rounds[3].groups, (planner::partition{{0, 1, 2}})) << "the site is back";
  EXPECT_TRUE(has_event(result, "goes on without site c"));
  EXPECT_NEAR(result.sigma.back(), 0, 1e-9);
  EXPECT_GT(result.sigma[0], 0.1) << "without c there is no agreement";
}

SIMULATION_TEST(Failures, APartitionIsReportedAndEndsTheRun) {
  const run_result result = run(shipped("three_site", {"links.1.outages=[{from: 5 ms}]", "run.round_timeout=2 s"}));
  EXPECT_EQ(result.outcome, schedule_executor::outcome::timed_out);
  EXPECT_NE(result.complaint.find("partition: {north middle} | {south}"), std::string::npos) << result.complaint;
  EXPECT_FALSE(result.diagnosis.empty()) << "who waits for whom";
}

SIMULATION_TEST(Failures, APartitionThatHealsOnlyCostsTime) {
  const run_result result =
      run(shipped("three_site", {"links.1.outages=[{from: 5 ms, to: 205 ms}]", "workload.values=fp32",
                                 "workload.chunk=256 KiB", "workload.update=128 MiB", "run.round_timeout=5 s"}));
  expect_sound(result);
  EXPECT_TRUE(has_event(result, "partition: {north middle} | {south}"));
  EXPECT_GT(duration_s(result), 0.2);
}

SIMULATION_TEST(Failures, AnOverflowingQueueDropsAndTheRoundStillEnds) {
  const run_result result =
      run(triangle("run: { round_timeout: 60 s }\nnetwork: { pace: 1 ms }\n"
                   "router_defaults: { when_full: drop_tail, queue: 600 kB, ecn: 300 kB }\n",
                   "rate: 200 Mbps"));
  expect_sound(result);
  EXPECT_GT(result.repair.dropped_packets, 0U);
  EXPECT_GT(result.repair.ecn_marked_packets, 0U);
  for (const site_result& site : result.sites) EXPECT_EQ(site.mismatches, 0U);
}

/// Six sites around a ring: every stream to the farthest sites goes on over two and three links, both ways around.
platform_spec ring(const std::string& more) {
  const temporary_folder folder;
  std::string yaml =
      "name: ring\nworkload: { update: 8 MiB, chunk: 256 KiB, values: int32 }\n"
      "site_defaults:\n  access: { up: 100 Gbps, down: 100 Gbps }\n  aggregator: { preset: v80, memory: 2 MiB }\n"
      "sites: [{ name: a }, { name: b }, { name: c }, { name: d }, { name: e }, { name: f }]\nlinks:\n";
  const std::string names = "abcdefa";
  for (std::size_t i = 0; i < 6; ++i) {
    yaml +=
        "  - { between: [" + names.substr(i, 1) + ", " + names.substr(i + 1, 1) + "], latency: 1 ms, rate: 10 Gbps }\n";
  }
  return load_platform(folder.write("ring.yaml", yaml + more), {{"run.trace=none", "run.round_timeout=2 s"}, ""});
}

SIMULATION_TEST(Deadlock, ACircleOfFullQueuesIsForetoldAndEndsWithWhoWaitsForWhom) {
  // Ten times too fast, and one burst a queue.
  const run_result result = run(ring("network: { pace: 20 us }\nrouter_defaults: { queue: 256 KiB }\n"));
  EXPECT_EQ(result.outcome, schedule_executor::outcome::timed_out);
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_NE(result.warnings[0].find("wait for each other in a circle"), std::string::npos) << result.warnings[0];
  bool routers_wait = false;
  for (const std::string& line : result.diagnosis) {
    routers_wait = routers_wait || line.find("an egress queue is full") != std::string::npos;
  }
  EXPECT_TRUE(routers_wait);
}

SIMULATION_TEST(Deadlock, AtThePlannedPaceQueuesOfTwoChunksAStreamDo) {
  const run_result result = run(ring(""));
  expect_sound(result);
  EXPECT_TRUE(result.warnings.empty());
}

SIMULATION_TEST(Deadlock, DroppingRoutersKeepNobodyWaiting) {
  const run_result result =
      run(ring("network: { pace: 20 us }\nrouter_defaults: { queue: 256 KiB, when_full: drop_tail }\n"));
  expect_sound(result);
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_GT(result.repair.dropped_packets + result.repair.overrun_packets, 0U);
}

SIMULATION_TEST(Failures, AStragglerDelaysOnlyItsGroup) {
  const run_result result = run(shipped("nine_city", {"workload.update=64 MB", "schedule=nine_city_threes",
                                                      "run.rounds=1", "sites.ams.cluster.compute=2 s"}));
  expect_sound(result);
  const planner::partition& groups = result.rounds.at(0).groups;
  for (const planner::group& members : groups) {
    const bool late = members.front() == 0;  // ams
    for (const unsigned s : members) EXPECT_EQ(result.rounds[0].site_done[s] > ps_per_s, late) << s;
  }
}

// ---- joining groups ---------------------------------------------------------------------------------------------

/// Durations of two rounds, and when the first one opened.
struct two_rounds {
  double first_s = 0;
  double second_s = 0;
  double began_s = 0;
};
two_rounds joining(const std::string& schedule, const std::string& latency, bool before) {
  const run_result result = run(shipped(
      "nine_city", {"workload.update=64 MB", "schedule=" + schedule, "run.rounds=2", "network.join_latency=" + latency,
                    std::string("network.joined_before=") + (before ? "true" : "false")}));
  expect_sound(result);
  const auto duration = [&result](std::size_t r) {
    return seconds(result.rounds.at(r).closed - result.rounds.at(r).opened);
  };
  return {duration(0), duration(1), seconds(result.rounds.at(0).opened)};
}

TEST(Joining, CostsItsLatencyWheneverGroupsChangeUnlessDoneBefore) {
  // Setting registers takes its time too, and refreshes then fall elsewhere in the round.
  constexpr double programming = 1e-4;
  const auto of = [](const std::string& schedule, const std::string& latency, bool before, auto member) {
    return measure_forked([&] { return joining(schedule, latency, before).*member; });
  };
  const double first = of("rotating:3", "0 s", false, &two_rounds::first_s);
  const double second = of("rotating:3", "0 s", false, &two_rounds::second_s);
  EXPECT_NEAR(of("rotating:3", "50 ms", false, &two_rounds::first_s), first + 0.05, programming);
  EXPECT_NEAR(of("rotating:3", "50 ms", false, &two_rounds::second_s), second + 0.05, programming)
      << "new groups, new joins";
  EXPECT_NEAR(of("rotating:3", "50 ms", true, &two_rounds::first_s), first, programming);
  EXPECT_NEAR(of("rotating:3", "50 ms", true, &two_rounds::second_s), second, programming);
  EXPECT_NEAR(of("rotating:3", "50 ms", true, &two_rounds::began_s), 0.05, programming) << "once, before the run";
  const double same = of("all_to_all", "0 s", false, &two_rounds::second_s);
  EXPECT_NEAR(of("all_to_all", "50 ms", false, &two_rounds::second_s), same, programming) << "the groups stay";
}

SIMULATION_TEST(Repair, ParityStandsInForLostPackets) {
  const run_result result = run(shipped("three_site", {"link_defaults.loss=1e-3", "network.repair.parity=4",
                                                       "workload.values=fp32", "workload.update=64 MiB"}));
  expect_sound(result);
  EXPECT_GT(result.repair.recovered_packets, 0U);
  EXPECT_EQ(result.sites[0].mismatches, 0U);
  EXPECT_LT(result.repair.repair_packets, result.repair.lost_packets / 4) << "four in 122 are hardly ever exceeded";
}

// ---- strategies -------------------------------------------------------------------------------------------------

TEST(Strategies, TransitReductionCarriesOneUpdateALinkDirectionAndWins) {
  const platform_spec spec = shipped("nine_city_10g", {"workload.update=100 MiB"});
  std::map<std::string, child_outcome> all;
  for (const compared_strategy& each : compare_strategies(spec)) {
    EXPECT_TRUE(each.outcome.passed) << each.name << ": " << each.outcome.complaint;
    all[each.name] = each.outcome;
  }
  for (const transferred& link : all["transit reduction"].links) {
    if (!link.backbone) continue;
    EXPECT_TRUE(link.payload_bytes == 0 || link.payload_bytes == spec.update_bytes) << link.name;
  }
  EXPECT_LT(all["transit reduction"].simulated_s, all["multicast + aggregation"].simulated_s / 2);
  // By hand: the links between every ordered pair of sites along shortest paths, one update each.
  const planner::platform_model model = model_of(spec);
  std::uint64_t hops = 0;
  for (const planner::site_model& from : model.sites) {
    for (const planner::site_model& to : model.sites) {
      if (from.device != to.device) hops += model.network.tree(from.device, {to.device}).paths[0].size();
    }
  }
  std::uint64_t carried = 0;
  for (const transferred& link : all["unicast mesh"].links) carried += link.backbone ? link.payload_bytes : 0;
  EXPECT_EQ(carried, hops * spec.update_bytes);
  EXPECT_EQ(hops, 320U);
}

SIMULATION_TEST(Strategies, TransitReductionIsExact) {
  expect_sound(run(shipped("nine_city_10g", {"workload.update=8 MiB", "workload.chunk=64 KiB", "workload.values=fp32",
                                             "network.collective=transit", "run.fidelity=packet"})));
}
SIMULATION_TEST(Strategies, TheRingIsExact) {
  expect_sound(run(shipped("nine_city", {"workload.update=8 MiB", "workload.chunk=64 KiB", "workload.values=int32",
                                         "network.collective=ring"})));
}
SIMULATION_TEST(Strategies, TheHubIsExact) {
  expect_sound(run(shipped("nine_city", {"workload.update=8 MiB", "workload.chunk=64 KiB", "workload.values=fp32",
                                         "network.collective=hub", "run.fidelity=packet"})));
}

}  // namespace
}  // namespace tributary::test
