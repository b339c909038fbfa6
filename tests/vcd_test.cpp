#include "traces/vcd_writer.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "platforms/report.hpp"
#include "platforms/simulation.hpp"
#include "tests/support/files.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/vcd_parser.hpp"

namespace tributary::test {
namespace {

TEST(VcdParser, RefusesWhatTheGrammarDoesNotHave) {
  const std::string head =
      "$timescale 1 ps $end\n$scope module a $end\n$var wire 1 ! x $end\n$upscope $end\n$enddefinitions $end\n";
  EXPECT_NO_THROW((void)parse_vcd(head + "#0\n0!\n#5\n1!\n"));
  for (const char* bad : {"0!\n", "#0\n0!\n#0\n1!\n", "#0\n0!\n#5\n0!\n", "#0\n2!\n", "#0\n0\"\n", "#0\nb1 !\n",
                          "#0\n0!\n#5\n1!\n0!\n", ""}) {
    EXPECT_THROW((void)parse_vcd(head + bad), std::runtime_error) << bad;
  }
  EXPECT_THROW((void)parse_vcd("$scope module 1x $end\n"), std::runtime_error);
}

TEST(VcdWriter, WritesChangesInOrderAndFutureOnesWhenTheirTimeComes) {
  const temporary_folder folder;
  probe flag({"busy", probe_kind::flag, trace_level::round, "", "", {}});
  probe amount({"bytes", probe_kind::quantity, trace_level::chunk, "bytes", "", {}});
  probe state({"state", probe_kind::state, trace_level::round, "", "", {"idle", "run", "done"}});
  probe hidden({"detail", probe_kind::count, trace_level::packet, "", "", {}});
  const std::string path = folder.path() + "/x.vcd";
  {
    vcd_writer writer(path, "test",
                      {{{"a", "b"}, &flag, ""}, {{"a"}, &state, ""}, {{"a", "b"}, &amount, ""}, {{"c"}, &hidden, ""}},
                      trace_level::chunk, 1000);
    EXPECT_FALSE(hidden.attached()) << "beyond the level asked for";
    writer.changed(1, 1001, 1001, 1);
    writer.changed(1, 1001, 1500, 0);  // announced ahead
    writer.changed(2, 1200, 1200, 1'000'000'007);
    writer.changed(0, 1500, 1500, 2);
    writer.changed(1, 1500, 1500, 1);  // busy again in the same instant: no change to see
    writer.changed(1, 1500, 9000, 0);  // after the end
    writer.close(2000);
  }
  const vcd_dump dump = parse_vcd(read_file(path));
  EXPECT_EQ(dump.first_time, 1000U);
  EXPECT_EQ(dump.last_time, 2000U);
  using changes = std::vector<std::pair<std::uint64_t, double>>;
  EXPECT_EQ(dump.signals.at("a.b.busy").changes, (changes{{1000, 0}, {1001, 1}}));
  EXPECT_EQ(dump.signals.at("a.b.bytes").changes, (changes{{1000, 0}, {1200, 1'000'000'007}}));
  EXPECT_EQ(dump.signals.at("a.state").changes, (changes{{1000, 0}, {1500, 2}}));
  EXPECT_EQ(dump.signals.at("a.b.busy").last(), 1);
  EXPECT_EQ(dump.signals.count("c.detail"), 0U);
}

TEST(VcdWriter, AHeldValueFallsWhenTheLastHoldEnds) {
  const temporary_folder folder;
  probe command({"command", probe_kind::state, trace_level::packet, "", "", {"idle", "read", "write"}});
  const std::string path = folder.path() + "/x.vcd";
  vcd_writer writer(path, "test", {{{"a"}, &command, ""}}, trace_level::packet, 0);
  command.hold(1, 300, 0);  // simulated time stands at 0 outside a simulation
  command.hold(2, 500, 0);  // overlaps: the fall at 300 is no more
  writer.close(1000);
  using changes = std::vector<std::pair<std::uint64_t, double>>;
  EXPECT_EQ(parse_vcd(read_file(path)).signals.at("a.command").changes, (changes{{0, 2}, {500, 0}}));
}

TEST(VcdWriter, AnUnfinishedFileIsRemoved) {
  const temporary_folder folder;
  const std::string path = folder.path() + "/x.vcd";
  probe flag({"busy", probe_kind::flag, trace_level::round, "", "", {}});
  { const vcd_writer writer(path, "test", {{{"a"}, &flag, ""}}, trace_level::chunk, 0); }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(flag.attached());
}

SIMULATION_TEST(Waveform, SaysWhatTheResultsSay) {
  const temporary_folder folder;
  platform_spec spec = load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/three_site.yaml",
                                     {{"workload.update=32 MiB", "run.rounds=2", "run.trace=packet"}, ""});
  run_options options;
  options.folder = folder.path();
  simulation sim(spec, options);
  const run_result result = sim.run();
  ASSERT_TRUE(result.passed());
  for (const round_result& round : result.rounds) {
    const vcd_dump dump = parse_vcd(read_file(folder.path() + "/round_00" + std::to_string(round.index) + ".vcd"));
    EXPECT_EQ(dump.first_time, round.opened);
    EXPECT_EQ(dump.last_time, round.closed);
    EXPECT_EQ(dump.signals.at("executor.round").last(), round.index);
    for (std::size_t s = 0; s < spec.sites.size(); ++s) {
      const std::string& site = spec.sites[s].identifier;
      EXPECT_EQ(dump.signals.at(site + ".cluster.sent").last(), static_cast<double>(round.site_sent[s]));
      EXPECT_EQ(dump.signals.at(site + ".cluster.received").last(), static_cast<double>(round.site_received[s]));
      EXPECT_EQ(dump.signals.at(site + ".aggregator.occupancy").highest(),
                static_cast<double>(round.site_high_water[s]));
      EXPECT_EQ(dump.signals.at(site + ".aggregator.occupancy").last(), 0);
      EXPECT_EQ(dump.signals.at(site + ".aggregator.merged").last(), 32);
      EXPECT_EQ(dump.signals.at(site + ".aggregator.memory_stall").highest(), 0);
      EXPECT_EQ(dump.signals.at(site + ".access.requests_forward").last(),
                dump.signals.at(site + ".access.accepts_forward").last());
      EXPECT_EQ(dump.signals.at(site + ".memory.command").highest(), 2) << "reads and writes";
      EXPECT_EQ(dump.signals.at(site + ".memory.command").last(), 0) << "idle in the end";
      const vcd_signal& state = dump.signals.at(site + ".cluster.state");
      EXPECT_EQ(state.last(), 5) << "done";
      EXPECT_EQ(state.changes.back().first, round.site_done[s]);
    }
  }
}

SIMULATION_TEST(Waveform, TheSaveFileNamesOnlySignalsThatExist) {
  const temporary_folder folder;
  platform_spec spec = load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/nine_city.yaml",
                                     {{"workload.update=4 MiB"}, "rotating:3"});
  run_options options;
  options.folder = folder.path();
  simulation sim(spec, options);
  ASSERT_TRUE(sim.run().passed());
  const vcd_dump dump = parse_vcd(read_file(folder.path() + "/round_000.vcd"));
  std::istringstream lines(read_file(folder.path() + "/waves.gtkw"));
  std::set<std::string> named;
  unsigned groups = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("+{", 0) == 0) {
      std::string name = line.substr(line.find("} ") + 2);
      name = name.substr(0, name.find('['));
      EXPECT_EQ(dump.signals.count(name), 1U) << name;
      named.insert(name);
    }
    if (line.rfind("@800200", 0) == 0) ++groups;
    if (line.rfind("^1 ", 0) == 0) {
      EXPECT_TRUE(std::filesystem::exists(folder.path() + "/" + line.substr(3))) << line;
    }
  }
  EXPECT_EQ(named.size(), dump.signals.size()) << "every signal is shown somewhere";
  EXPECT_EQ(groups, 11U) << "the schedule, the critical path and nine sites";
}

}  // namespace
}  // namespace tributary::test
