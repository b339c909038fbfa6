// Timelines, captures and waveforms of whole runs.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "platforms/report.hpp"
#include "platforms/simulation.hpp"
#include "tests/support/files.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/vcd_parser.hpp"

namespace tributary::test {
namespace {

platform_spec shipped(const std::string& name, const std::vector<std::string>& assignments,
                      const std::string& schedule = "") {
  return load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/" + name + ".yaml", {assignments, schedule});
}

run_result run_into(const std::string& folder, const platform_spec& spec) {
  run_options options;
  options.folder = folder;
  simulation sim(spec, options);
  run_result result = sim.run();
  EXPECT_TRUE(result.passed());
  return result;
}

SIMULATION_TEST(Timeline, IsWellFormedAndAddsUpToTheBreakdown) {
  const temporary_folder folder;
  const platform_spec spec = shipped(
      "nine_city", {"workload.update=32 MiB", "site_defaults.cluster.compute=3 ms", "site_defaults.cluster.apply=1 ms"},
      "rotating:3");
  const run_result result = run_into(folder.path(), spec);
  const auto timeline = nlohmann::json::parse(read_file(folder.path() + "/timeline.json"));
  ASSERT_TRUE(timeline["traceEvents"].is_array());

  std::map<unsigned, std::string> processes;
  std::map<std::string, double> by_part;
  std::map<std::string, double> compute_of;
  std::map<std::uint64_t, double> flow_starts;
  std::set<std::string> names;
  unsigned flows = 0;
  unsigned counters = 0;
  for (const auto& event : timeline["traceEvents"]) {
    // The trace-event format: every event has a phase, a process and a track; all but metadata have a time.
    ASSERT_TRUE(event["ph"].is_string() && event["pid"].is_number() && event["tid"].is_number()) << event;
    const std::string phase = event["ph"];
    ASSERT_NE(std::string("XMCsf").find(phase), std::string::npos) << phase;
    if (phase == "M") {
      ASSERT_TRUE(event["args"].is_object());
      if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
      continue;
    }
    ASSERT_TRUE(event["ts"].is_number() && event["name"].is_string());
    EXPECT_GE(event["ts"].get<double>(), 0);
    if (phase == "X") {
      ASSERT_TRUE(event["dur"].is_number());
      EXPECT_GE(event["dur"].get<double>(), 0);
      names.insert(event["name"]);
      const std::string process = processes[event["pid"]];
      if (process == "critical path" && event["cat"] != "round") by_part[event["cat"]] += event["dur"].get<double>();
      if (event["name"] == "compute" && event["cat"] == "state") compute_of[process] += event["dur"].get<double>();
    } else if (phase == "C") {
      ++counters;
    } else if (phase == "s") {
      EXPECT_TRUE(flow_starts.emplace(event["id"], event["ts"]).second) << "a flow starts once";
    } else {
      ASSERT_EQ(flow_starts.count(event["id"]), 1U) << "a flow ends after it started";
      EXPECT_LE(flow_starts[event["id"]], event["ts"].get<double>());
      ++flows;
    }
  }
  round_breakdown sum;
  for (const round_result& round : result.rounds) {
    sum.compute += round.breakdown.compute;
    sum.serialization += round.breakdown.serialization;
    sum.propagation += round.breakdown.propagation;
    sum.memory_stall += round.breakdown.memory_stall;
    sum.queueing += round.breakdown.queueing;
    sum.control += round.breakdown.control;
  }
  EXPECT_NEAR(by_part["compute"], seconds(sum.compute) * 1e6, 1e-3);
  EXPECT_NEAR(by_part["serialization"], seconds(sum.serialization) * 1e6, 1e-3);
  EXPECT_NEAR(by_part["propagation"], seconds(sum.propagation) * 1e6, 1e-3);
  EXPECT_NEAR(by_part["memory_stall"], seconds(sum.memory_stall) * 1e6, 1e-3);
  EXPECT_NEAR(by_part["queueing"], seconds(sum.queueing) * 1e6, 1e-3);
  EXPECT_NEAR(by_part["control"], seconds(sum.control) * 1e6, 1e-3);
  EXPECT_NEAR(compute_of["tyo"], 2 * 3000.0, 1e-6) << "two rounds of 3 ms";
  for (const char* name :
       {"compute", "send", "wait", "apply", "reduce", "sending", "send chunk 0", "merge chunk 31", "propagation"}) {
    EXPECT_EQ(names.count(name), 1U) << name;
  }
  EXPECT_GT(counters, 100U);
  EXPECT_GT(flows, 2U * 9 * 2 * 16);
  EXPECT_EQ(flows, flow_starts.size());
}

SIMULATION_TEST(Timeline, ShowsMemoryStalls) {
  const temporary_folder folder;
  const platform_spec spec = shipped("three_site", {"network.pace=132 us", "run.round_timeout=2 s"});
  run_options options;
  options.folder = folder.path();
  simulation sim(spec, options);
  const run_result result = sim.run();
  const auto timeline = nlohmann::json::parse(read_file(folder.path() + "/timeline.json"));
  double stalled_us = 0;
  for (const auto& event : timeline["traceEvents"]) {
    if (event["ph"] == "X" && event["name"] == "memory stall") stalled_us += event["dur"].get<double>();
  }
  double expected = 0;
  for (const site_result& site : result.sites) {
    expected += seconds(site.aggregator.stalled[0] + site.aggregator.stalled[1]) * 1e6;
  }
  EXPECT_GT(expected, 0);
  EXPECT_NEAR(stalled_us, expected, 1e-3);
}

SIMULATION_TEST(Waveform, OfTheWholeRunHoldsEveryRound) {
  const temporary_folder folder;
  const run_result result = run_into(
      folder.path(), shipped("three_site", {"workload.update=8 MiB", "run.rounds=3", "run.whole_run_waveform=true"}));
  const vcd_dump whole = parse_vcd(read_file(folder.path() + "/run.vcd"));
  EXPECT_EQ(whole.first_time, 0U);
  EXPECT_EQ(whole.last_time, result.simulated);
  for (const round_result& round : result.rounds) {
    const vcd_dump one = parse_vcd(read_file(folder.path() + "/round_00" + std::to_string(round.index) + ".vcd"));
    for (const auto& [name, signal] : one.signals) {
      for (const auto& [when, value] : signal.changes) {
        if (when > round.opened && when < round.closed) {
          EXPECT_EQ(whole.signals.at(name).at(when), value) << name;
        }
      }
    }
  }
}

SIMULATION_TEST(Waveform, SignalsAreChosenByGlob) {
  const temporary_folder folder;
  run_into(folder.path(),
           shipped("nine_city", {"workload.update=4 MiB", "run.signals=['tyo.*.occupancy', 'executor.*']"}));
  const vcd_dump dump = parse_vcd(read_file(folder.path() + "/round_000.vcd"));
  std::string names;
  for (const auto& [name, signal] : dump.signals) names += name + " ";
  EXPECT_EQ(names, "executor.round executor.state tyo.aggregator.occupancy ");
}

SIMULATION_TEST(Waveform, OddNamesAreWrittenSoThatAnyReaderTakesThem) {
  const temporary_folder folder;
  const std::string longest(100, 'x');
  const std::string config =
      "name: odd\nworkload: { update: 4 MiB }\nsite_defaults:\n  access: { up: 100 Gbps, down: 100 Gbps }\n"
      "  aggregator: { preset: v80, memory: 1 GB }\nsites:\n  - { name: \"New York, NY\" }\n  - { name: \"a.b.c\" }\n"
      "  - { name: \"Z\xc3\xbcrich \xe6\x9d\xb1\xe4\xba\xac\" }\n  - { name: \"" +
      longest +
      "\" }\n  - { name: \"1st $end\" }\n"
      "  - { name: \"a_b_c\" }\nlink_defaults: { rate: 100 Gbps, latency: 1 ms }\nlinks:\n"
      "  - { between: [\"New York, NY\", \"a.b.c\"] }\n  - { between: [\"a.b.c\", \"Z\xc3\xbcrich "
      "\xe6\x9d\xb1\xe4\xba\xac\"] }\n"
      "  - { between: [\"a.b.c\", \"" +
      longest + "\"] }\n  - { between: [\"a.b.c\", \"1st $end\"] }\n  - { between: [\"a.b.c\", \"a_b_c\"] }\n";
  const platform_spec spec = load_platform(folder.write("odd.yaml", config), {{"run.trace=packet"}, ""});
  const std::string out = folder.path() + "/out";
  std::filesystem::create_directory(out);
  const run_result result = run_into(out, spec);
  const vcd_dump dump = parse_vcd(read_file(out + "/round_000.vcd"));
  for (std::size_t s = 0; s < spec.sites.size(); ++s) {
    EXPECT_EQ(dump.signals.at(spec.sites[s].identifier + ".cluster.sent").last(), 4 << 20) << spec.sites[s].name;
  }
  const auto results = results_json(spec, result);
  EXPECT_TRUE(results["sites"].contains("Z\xc3\xbcrich \xe6\x9d\xb1\xe4\xba\xac")) << "results keep the name as given";
  EXPECT_TRUE(nlohmann::json::accept(read_file(out + "/timeline.json")));
  if (std::system("command -v vcd2fst >/dev/null 2>&1") == 0) {
    EXPECT_EQ(std::system(("vcd2fst " + out + "/round_000.vcd " + out + "/x.fst >/dev/null 2>&1").c_str()), 0);
  }
}

/// GTKWave's own reader and writer as a second opinion: values over time survive the way through FST.
SIMULATION_TEST(Waveform, SurvivesTheWayThroughFst) {
  if (std::system("command -v vcd2fst >/dev/null 2>&1") != 0) GTEST_SKIP() << "vcd2fst is not installed";
  const temporary_folder folder;
  run_into(folder.path(), shipped("three_site", {"workload.update=8 MiB", "run.trace=packet"}));
  const std::string base = folder.path() + "/round_000";
  ASSERT_EQ(std::system(("vcd2fst " + base + ".vcd " + base + ".fst >/dev/null 2>&1 && fst2vcd " + base + ".fst > " +
                         base + ".back")
                            .c_str()),
            0);
  const vcd_dump ours = parse_vcd(read_file(base + ".vcd"));
  // fst2vcd declares differently; its changes are compared by last value and number through its own codes.
  std::istringstream lines(read_file(base + ".back"));
  std::map<std::string, std::string> name_of;
  std::vector<std::string> scope;
  std::map<std::string, std::string> last;
  bool defined = false;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    std::string a;
    std::string b;
    std::string c;
    std::string d;
    words >> first;
    if (first == "$enddefinitions") defined = true;
    if (first == "$scope") {
      words >> a >> b;
      scope.push_back(b);
    } else if (first == "$upscope") {
      scope.pop_back();
    } else if (first == "$var") {
      words >> a >> b >> c >> d;
      std::string name;
      for (const std::string& each : scope) name += each + ".";
      name_of[c] = name + d;
    } else if (!defined || first.empty()) {
      continue;
    } else if (first[0] == 'r' || first[0] == 'b') {
      words >> a;
      last[name_of[a]] = first;
    } else if (first[0] == '0' || first[0] == '1') {
      last[name_of[first.substr(1)]] = first.substr(0, 1);
    }
  }
  EXPECT_EQ(name_of.size(), ours.signals.size());
  for (const auto& [name, signal] : ours.signals) {
    if (signal.type != "real") continue;
    EXPECT_EQ(std::strtod(last[name].c_str() + 1, nullptr), signal.last()) << name;
  }
}

std::uint32_t word(const std::string& data, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, data.data() + at, 4);
  return value;
}

SIMULATION_TEST(Capture, HoldsEveryPacketOfTheLink) {
  const temporary_folder folder;
  const run_result result =
      run_into(folder.path(),
               shipped("three_site", {"workload.update=4 MiB", "run.fidelity=packet", "run.capture=['north-*']"}));
  const std::string data = read_file(folder.path() + "/packets.pcapng");
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  unsigned interfaces = 0;
  std::map<unsigned, std::uint64_t> last_time;
  for (std::size_t at = 0; at < data.size(); at += word(data, at + 4)) {
    ASSERT_GE(word(data, at + 4), 12U);
    ASSERT_EQ(word(data, at + 4), word(data, at + word(data, at + 4) - 4)) << "block lengths frame the block";
    if (word(data, at) == 1) ++interfaces;
    if (word(data, at) != 6) continue;
    ++packets;
    bytes += word(data, at + 24) + 4 + 8 + 12;  // FCS, preamble and gap are not captured
    const std::uint64_t time = std::uint64_t{word(data, at + 12)} << 32 | word(data, at + 16);
    EXPECT_GE(time, last_time[word(data, at + 8)]);
    last_time[word(data, at + 8)] = time;
  }
  EXPECT_EQ(interfaces, 2U);
  std::uint64_t expected_packets = 0;
  std::uint64_t expected_bytes = 0;
  for (const link_result& link : result.links) {
    if (link.name.rfind("north-middle", 0) != 0) continue;
    expected_packets += link.packets;
    expected_bytes += link.wire_bytes;
  }
  EXPECT_EQ(packets, expected_packets);
  EXPECT_EQ(bytes, expected_bytes);
  if (std::system("command -v tshark >/dev/null 2>&1") == 0) {
    const std::string count = folder.path() + "/count";
    ASSERT_EQ(
        std::system(("tshark -r " + folder.path() +
                     "/packets.pcapng -Y 'ip.checksum.status != 0 && udp.port == 20000' -o ip.check_checksum:TRUE "
                     "-T fields -e frame.number 2>/dev/null | wc -l > " +
                     count)
                        .c_str()),
        0);
    EXPECT_EQ(std::stoull(read_file(count)), packets);
  }
}

TEST(Capture, NeedsPacketFidelity) { EXPECT_THROW((void)shipped("three_site", {"run.capture=['*']"}), config_error); }

/// traces/golden: reference waveforms, compared by what they say.
void matches_golden(const std::string& name, const std::string& platform, const std::vector<std::string>& assignments,
                    const std::string& schedule = "") {
  const temporary_folder folder;
  run_into(folder.path(), shipped(platform, assignments, schedule));
  const vcd_dump now = parse_vcd(read_file(folder.path() + "/round_000.vcd"));
  const vcd_dump golden =
      parse_vcd(read_file(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/../traces/golden/" + name + ".vcd"));
  for (const std::string& different : differing_signals(golden, now))
    ADD_FAILURE() << name << ": " << different << " differs";
}

SIMULATION_TEST(Golden, TwoSites) {
  matches_golden("two_site", "two_site", {"workload.update=4 MiB", "run.trace=packet"});
}
SIMULATION_TEST(Golden, ThreeSitesInPlace) {
  matches_golden("three_site_in_place", "three_site", {"workload.update=16 MiB", "network.buffering=in_place"});
}
SIMULATION_TEST(Golden, NineCitiesInThrees) {
  matches_golden("nine_city_threes", "nine_city", {"workload.update=8 MiB", "run.trace=round"}, "rotating:3");
}

TEST(Golden, TheComparisonSeesADifference) {
  const std::string head =
      "$timescale 1 ps $end\n$scope module a $end\n$var wire 1 ! x $end\n$upscope $end\n$enddefinitions $end\n";
  const vcd_dump a = parse_vcd(head + "#0\n0!\n#5\n1!\n#9\n");
  EXPECT_TRUE(
      differing_signals(a, parse_vcd("$comment other text $end\n" + head + "#0\n$dumpvars\n0!\n$end\n#5\n1!\n#9\n"))
          .empty());
  EXPECT_EQ(differing_signals(a, parse_vcd(head + "#0\n0!\n#6\n1!\n#9\n")).size(), 1U);
}

}  // namespace
}  // namespace tributary::test
