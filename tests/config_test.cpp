// Bad input: each mistake is named with file, line and column.
#include <gtest/gtest.h>

#include <filesystem>

#include "platforms/spec.hpp"
#include "tests/support/files.hpp"

namespace tributary::test {
namespace {

const char* const good = R"(name: pair
workload: { update: 64 MiB, chunk: 1 MiB }
site_defaults:
  access: { up: 100 Gbps, down: 100 Gbps }
  aggregator: { preset: v80, memory: 1 GB }
sites:
  - { name: east }
  - { name: west }
links:
  - { between: [east, west], latency: 5 ms, rate: 400 Gbps }
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

struct mistake {
  const char* name;
  const char* from;
  const char* to;
  const char* place;  ///< line:column
  const char* message;
};

void PrintTo(const mistake& each, std::ostream* out) { *out << each.name; }

class BadConfig : public ::testing::TestWithParam<mistake> {};

TEST_P(BadConfig, IsRefusedWithItsPlace) {
  const temporary_folder folder;
  const std::string path = folder.write("bad.yaml", replaced(good, GetParam().from, GetParam().to));
  try {
    (void)load_platform(path, {});
    ADD_FAILURE() << "was accepted";
  } catch (const config_error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.rfind(path + ":" + GetParam().place + ": ", 0), 0U) << text;
    EXPECT_NE(text.find(GetParam().message), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << "one sentence";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, BadConfig,
    ::testing::Values(
        mistake{"truncated", "latency: 5 ms, rate: 400 Gbps }\n", "latency: 5 ms", "10:1", "not valid YAML"},
        mistake{"unknown_key", "chunk: 1 MiB", "chnk: 1 MiB", "2:29",
                "unknown key 'workload.chnk'; did you mean 'chunk'?"},
        mistake{"unknown_top_key", "name: pair", "name: pair\nnonsense: 1", "2:1", "unknown key 'nonsense'"},
        mistake{"unknown_site_key", "{ name: east }", "{ name: east, colour: red }", "7:19",
                "unknown key 'sites.east.colour'"},
        mistake{"unknown_default_key", "site_defaults:", "site_defaults:\n  colour: red", "4:3", "unknown key"},
        mistake{"unknown_link_default", "links:", "link_defaults: { speed: 1 Gbps }\nlinks:", "9:18", "speed'"},
        mistake{"missing_unit", "up: 100 Gbps", "up: 100", "4:17", "a unit is missing"},
        mistake{"wrong_unit", "latency: 5 ms", "latency: 5 Gbps", "10:39", "is not a unit of time"},
        mistake{"not_a_number", "up: 100 Gbps", "up: fast", "4:17", "a rate is due"},
        mistake{"negative", "latency: 5 ms", "latency: -5 ms", "10:39", "cannot be negative"},
        mistake{"zero_rate", "rate: 400 Gbps", "rate: 0 Gbps", "10:51", "must be greater than zero"},
        mistake{"zero_access", "up: 100 Gbps", "up: 0 bps", "4:17", "must be greater than zero"},
        mistake{"zero_update", "update: 64 MiB", "update: 0 B", "2:21", "must be greater than zero"},
        mistake{"duplicate_site", "name: west", "name: east", "8:13", "the site name 'east' is used twice"},
        mistake{"duplicate_key", "name: pair", "name: pair\nname: again", "2:1", "key 'name' stands twice"},
        mistake{"dangling_link", "[east, west]", "[east, wst]", "10:23", "did you mean 'west'?"},
        mistake{"loop_link", "[east, west]", "[east, east]", "10:23", "two different routers"},
        mistake{"one_end", "[east, west]", "[east]", "10:5", "a link has two ends"},
        mistake{"disconnected", "sites:", "sites:\n  - { name: north }", "8:5", "site 'east' is disconnected"},
        mistake{"unknown_preset", "preset: v80", "preset: v8", "5:25", "did you mean 'v80'?"},
        mistake{"memory_too_large", "memory: 1 GB", "memory: 64 GB", "5:38", "more than the device holds"},
        mistake{"missing_name", "name: pair\n", "", "1:1", "name is missing"},
        mistake{"empty_value", "name: pair", "name:", "1:1", "name has no value"},
        mistake{"no_update", "update: 64 MiB, ", "", "2:11", "workload.update is missing"},
        mistake{"list_for_map", "workload: { update: 64 MiB, chunk: 1 MiB }", "workload: [1]", "2:11", "must be a map"},
        mistake{"map_for_list", "links:", "routers: { a: 1 }\nlinks:", "9:10", "must be a list"},
        mistake{"latency_missing", "latency: 5 ms, ", "", "10:5", "latency is missing"},
        mistake{"both_latencies", "latency: 5 ms", "distance: 5 km, latency: 5 ms", "10:5", "not both"},
        mistake{"unknown_group_site", "name: pair", "name: pair\nschedule: { rounds: [[[east, wset]]] }", "2:30",
                "did you mean 'west'?"},
        mistake{"site_twice", "name: pair", "name: pair\nschedule: { rounds: [[[east, east]]] }", "2:30",
                "stands twice in the same round"},
        mistake{"group_too_large", "name: pair", "name: pair\nschedule: { type: rotating, group: 5 }", "2:36",
                "whole number from 2 to 2"},
        mistake{"unknown_schedule", "name: pair", "name: pair\nschedule: sometimes", "2:11", "is not 'all_to_all'"},
        mistake{"bad_choice", "name: pair", "name: pair\nnetwork: { buffering: per_strem }", "2:23",
                "did you mean 'per_stream'?"},
        mistake{"second_document", "links:", "---\nlinks:", "10:1", "one document a file"},
        mistake{"unknown_include", "name: pair", "name: pair\ninclude: nowhere.yaml", "2:10", "does not exist"},
        mistake{"compute_twice", "{ name: east }",
                "{ name: east, cluster: { compute: 1 s, training: { parameters: 1e9, tokens_per_step: 1e6, gpus: 8, "
                "peak: 400 TFLOPS } } }",
                "7:28", "not both"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Config, TheGoodOneIsAccepted) {
  const temporary_folder folder;
  const platform_spec spec = load_platform(folder.write("good.yaml", good), {});
  EXPECT_EQ(spec.sites.size(), 2U);
  EXPECT_EQ(spec.sites[0].access_up, 100'000'000'000U);
  EXPECT_EQ(spec.links[0].latency_ab, 5'000'000'000U);
  EXPECT_EQ(spec.sites[1].aggregator.memory_bytes, 1'000'000'000U);
  EXPECT_EQ(spec.sites[1].aggregator.device.dram.geometry.channels, 32U) << "from the card's memory preset";
}

TEST(Config, NotAFile) {
  try {
    (void)load_platform("/nowhere/at/all.yaml", {});
    ADD_FAILURE();
  } catch (const config_error& error) {
    EXPECT_STREQ(error.what(), "/nowhere/at/all.yaml: cannot be read");
  }
}

TEST(Config, AssignmentsReachEverywhere) {
  const temporary_folder folder;
  const std::string path = folder.write("good.yaml", good);
  const platform_spec spec =
      load_platform(path, {{"workload.chunk=2 MiB", "site_defaults.access.up=50 Gbps", "sites.west.access.up=25 Gbps",
                            "links.0.latency=7 ms", "run.seed=9", "run.seed=11"},
                           ""});
  EXPECT_EQ(spec.chunk_bytes, 2U << 20);
  EXPECT_EQ(spec.sites[0].access_up, 50'000'000'000U);
  EXPECT_EQ(spec.sites[1].access_up, 25'000'000'000U);
  EXPECT_EQ(spec.links[0].latency_ab, 7'000'000'000U);
  EXPECT_EQ(spec.seed, 11U) << "the last one wins";
  const auto refused = [&path](const char* assignment, const char* part) {
    try {
      (void)load_platform(path, {{assignment}, ""});
      ADD_FAILURE() << assignment;
    } catch (const config_error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused("sites.nort.access.up=1 Gbps", "no element 'nort'");
  refused("workload.chnk=1 MiB", "did you mean 'chunk'?");
  refused("workload.chunk=fast", "--set workload.chunk=fast:1:1: workload.chunk: 'fast'");
  refused("nonsense", "write path.to.key=value");
}

TEST(Config, IncludesLieUnderTheFile) {
  const temporary_folder folder;
  folder.write("base.yaml", good);
  const platform_spec spec =
      load_platform(folder.write("top.yaml", "include: base.yaml\nname: top\nworkload: { update: 32 MiB }\n"), {});
  EXPECT_EQ(spec.name, "top");
  EXPECT_EQ(spec.update_bytes, 32U << 20);
  EXPECT_EQ(spec.chunk_bytes, 1U << 20) << "maps are merged key by key";
  folder.write("loop.yaml", "include: loop.yaml\nname: loop\n");
  EXPECT_THROW((void)load_platform(folder.path() + "/loop.yaml", {}), config_error);
}

TEST(Config, DistanceBecomesLatency) {
  const temporary_folder folder;
  const platform_spec spec =
      load_platform(folder.write("d.yaml", replaced(good, "latency: 5 ms", "distance: 1000 km")), {});
  EXPECT_EQ(spec.links[0].latency_ab, 4'900'000'000U) << "4.9 us a km";
}

TEST(Config, ComputeTimeFromTheWorkload) {
  const temporary_folder folder;
  const platform_spec spec = load_platform(
      folder.write("t.yaml",
                   replaced(good, "{ name: east }",
                            "{ name: east, cluster: { training: { parameters: 7e9, tokens_per_step: 4e6, gpus: 1024, "
                            "peak: 989 TFLOPS, utilization: 0.4, local_steps: 3 } } }")),
      {});
  // 6 x 7e9 x 4e6 x 3 / (1024 x 989e12 x 0.4) = 1.244154 s
  EXPECT_NEAR(seconds(spec.sites[0].cluster.compute_time), 1.244154, 0.000001);
}

TEST(Config, NamesBecomeIdentifiers) {
  const temporary_folder folder;
  std::string text = replaced(good, "name: east", "name: \"São Paulo 1.b\"");
  text = replaced(text, "[east, west]", "[\"São Paulo 1.b\", west]");
  const platform_spec spec = load_platform(folder.write("n.yaml", text), {});
  EXPECT_EQ(spec.sites[0].identifier, "S_o_Paulo_1_b");
}

TEST(Config, EveryShippedPlatformLoads) {
  unsigned loaded = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms")) {
    EXPECT_NO_THROW((void)load_platform(entry.path().string(), {})) << entry.path();
    ++loaded;
  }
  EXPECT_GE(loaded, 5U);
}

TEST(Config, NearestWord) {
  EXPECT_EQ(nearest("buffring", {"buffering", "pace"}), "buffering");
  EXPECT_EQ(nearest("xyz", {"buffering", "pace"}), "");
}

}  // namespace
}  // namespace tributary::test
