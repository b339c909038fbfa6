// The program as a user meets it: exit codes, streams, files.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/files.hpp"

namespace tributary::test {
namespace {

struct outcome {
  int code = -1;
  std::string out;  ///< standard output and error together unless redirected
};

outcome tributary(const std::string& arguments) {
  const std::string command = std::string(TRIBUTARY_PROGRAM) + " " + arguments;
  outcome result;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    result.out.append(buffer.data(), n);
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string config(const std::string& name) {
  return std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/" + name + ".yaml";
}

TEST(Program, HelpVersionAndUsageErrors) {
  EXPECT_EQ(tributary("--version").code, 0);
  const outcome help = tributary("run --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("Examples:"), std::string::npos);
  EXPECT_EQ(tributary("").code, 2);
  EXPECT_EQ(tributary("fly").code, 2);
  EXPECT_EQ(tributary("run").code, 2);
  EXPECT_EQ(tributary("run " + config("two_site") + " --rounds 0").code, 2);
}

TEST(Program, RunsAndLeavesItsFiles) {
  const temporary_folder folder;
  const std::string out = folder.path() + "/run";
  const outcome run = tributary("run " + config("two_site") + " --out " + out);
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_NE(run.out.find("all 7 checks passed"), std::string::npos) << run.out;
  for (const char* file : {"round_000.vcd", "waves.gtkw", "results.json", "manifest.json"}) {
    EXPECT_TRUE(std::filesystem::exists(out + "/" + file)) << file;
  }
  const auto results = nlohmann::json::parse(read_file(out + "/results.json"));
  EXPECT_EQ(results["rounds"].size(), 1U);
  EXPECT_DOUBLE_EQ(results["rounds"][0]["duration_s"].get<double>(), 0.0104171277);
  double parts = 0;
  for (const auto& part : results["rounds"][0]["breakdown"]) parts += part.get<double>();
  EXPECT_NEAR(parts, 0.0104171277, 1e-15);
  EXPECT_TRUE(results["checks"]["conservation"].get<bool>());
  EXPECT_EQ(results["consensus"]["sigma"][0], 0.0);
}

TEST(Program, MapResourcesAndSizesSpeakPlainly) {
  const outcome map =
      tributary("map " + config("nine_city") + " --largest-group 3 --memory '1 GB,8 GB' --rate '100 Gbps'");
  EXPECT_EQ(map.code, 0) << map.out;
  EXPECT_NE(map.out.find("network offers: both"), std::string::npos);
  EXPECT_NE(map.out.find("A  grid 3 x 3"), std::string::npos) << map.out;
  EXPECT_EQ(tributary("map " + config("nine_city") + " --memory 'much'").code, 2);
  EXPECT_EQ(tributary("map " + config("nine_city") + " --memory '0 GB'").code, 2);
  const temporary_folder folder;
  const outcome text =
      tributary("map " + config("two_site") + " --memory '1 GB' --rate '100 Gbps' --out " + folder.path() + "/map.txt");
  EXPECT_EQ(text.code, 2);
  EXPECT_NE(text.out.find("an .svg or a .png"), std::string::npos) << text.out;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const outcome resources = tributary("resources " + config("nine_city"));
  EXPECT_EQ(resources.code, 0);
  EXPECT_NE(resources.out.find("of 1925"), std::string::npos) << resources.out;
  const outcome size = tributary("size " + config("nine_city") + " --of memory_bandwidth --target '2 s'");
  EXPECT_EQ(size.code, 0) << size.out;
  EXPECT_NE(size.out.find("needs a memory_bandwidth of"), std::string::npos) << size.out;
  EXPECT_EQ(tributary("size " + config("nine_city") + " --of clock --target '1 s'").code, 1);
}

TEST(Program, DescribesWrongDevicesWhereTheyStand) {
  const auto refuses = [](const std::string& assignment, const std::string& why) {
    const outcome run = tributary("validate " + config("two_site") + " --set '" + assignment + "'");
    EXPECT_EQ(run.code, 2) << assignment << ": " << run.out;
    EXPECT_NE(run.out.find(why), std::string::npos) << run.out;
  };
  refuses("site_defaults.aggregator.device.dram.mapping=rorabgbacoxx", "'xx' is none of");
  refuses("site_defaults.aggregator.device.dram.rows=1000", "powers of two");
  refuses("site_defaults.aggregator.device.dram.timing.tFOO=3", "tFOO");
  refuses("site_defaults.aggregator.device.level=bank", "level");
  refuses("site_defaults.aggregator.device.capacity=999 GB", "capacity");
  refuses("site_defaults.aggregator.on_chip_memory=999 GB", "on_chip_memory");
  refuses("site_defaults.aggregator.slot_table.tag_bits=0", "tag_bits");
  refuses("workload.values=fp8", "fp8");
  refuses("network.offsets=maybe", "maybe");
}

TEST(Program, TheSameSeedGivesTheSameBytes) {
  const temporary_folder folder;
  const std::string options =
      " --schedule rotating:3 --set 'workload.update=8 MiB' --set site_defaults.cluster.compute='5 ms' "
      "--set site_defaults.cluster.straggler_sigma=0.2 --trace packet --out " +
      folder.path();
  ASSERT_EQ(tributary("run " + config("nine_city") + options + "/a --seed 7").code, 0);
  ASSERT_EQ(tributary("run " + config("nine_city") + options + "/b --seed 7").code, 0);
  ASSERT_EQ(tributary("run " + config("nine_city") + options + "/c --seed 8").code, 0);
  unsigned compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/a")) {
    const std::string name = entry.path().filename().string();
    if (name == "manifest.json") continue;
    EXPECT_EQ(read_file(entry.path().string()), read_file(folder.path() + "/b/" + name)) << name;
    ++compared;
  }
  EXPECT_GE(compared, 6U);
  EXPECT_NE(read_file(folder.path() + "/a/results.json"), read_file(folder.path() + "/c/results.json"));
}

TEST(Program, TheManifestIsAConfigurationAgain) {
  const temporary_folder folder;
  ASSERT_EQ(
      tributary("run " + config("three_site") + " -q --set 'workload.update=8 MiB' --out " + folder.path() + "/a").code,
      0);
  const auto manifest = nlohmann::json::parse(read_file(folder.path() + "/a/manifest.json"));
  folder.write("again.yaml", manifest["configuration"].dump());
  ASSERT_EQ(tributary("run " + folder.path() + "/again.yaml -q --out " + folder.path() + "/b").code, 0);
  EXPECT_EQ(read_file(folder.path() + "/a/results.json"), read_file(folder.path() + "/b/results.json"));
}

TEST(Program, JsonOnStandardOutputIsNothingElse) {
  const temporary_folder folder;
  const outcome run = tributary("run " + config("two_site") + " --json - --out " + folder.path() + "/x");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(nlohmann::json::parse(run.out)["name"], "two_site");
}

TEST(Program, BadInputExits2AndLeavesNothing) {
  const temporary_folder folder;
  const std::string path = folder.write("bad.yaml", "name: x\nworkload: { update: 5 }\n");
  const outcome run = tributary("run " + path + " --out " + folder.path() + "/out");
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out.rfind("error: " + path + ":2:21: workload.update: '5': a unit is missing", 0), 0U) << run.out;
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/out"));
  EXPECT_EQ(tributary("validate " + path).code, 2);
  // Memory that no pace can make enough is bad input as well.
  EXPECT_EQ(tributary("run " + config("nine_city") + " --set 'site_defaults.aggregator.memory=4 MiB' --out " +
                      folder.path() + "/out")
                .code,
            2);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/out"));
}

TEST(Program, WillNotWriteIntoAStrangersFolder) {
  const temporary_folder folder;
  folder.write("thesis.txt", "precious");
  EXPECT_EQ(tributary("run " + config("two_site") + " --out " + folder.path()).code, 2);
  EXPECT_EQ(read_file(folder.path() + "/thesis.txt"), "precious");
}

TEST(Program, AFailedCheckExits1AndADeadlock3) {
  const temporary_folder folder;
  // A little too fast: held now and then, still ends.
  const std::string base = "run " + config("three_site") + " --trace none --set run.round_timeout='2 s' --out " +
                           folder.path() + "/x --set network.pace=";
  const outcome held = tributary(base + "'132 us'");
  EXPECT_EQ(held.code, 1) << held.out;
  EXPECT_NE(held.out.find("no_overflow"), std::string::npos) << held.out;
  // Far too fast: memory fills with one stream while the other waits behind it.
  const outcome stuck = tributary(base + "'84.8 us'");
  EXPECT_EQ(stuck.code, 3) << stuck.out;
  EXPECT_NE(stuck.out.find("is held at the input: memory_full"), std::string::npos) << stuck.out;
}

TEST(Program, ValidatePresetsAndDoctor) {
  const outcome valid = tributary("validate " + config("nine_city") + " --schedule rotating:3");
  EXPECT_EQ(valid.code, 0);
  EXPECT_NE(valid.out.find("{ams fra sin}"), std::string::npos) << valid.out;
  const outcome presets = tributary("presets");
  EXPECT_EQ(presets.code, 0);
  EXPECT_NE(presets.out.find("v80"), std::string::npos);
  EXPECT_NE(presets.out.find("source:"), std::string::npos);
  EXPECT_EQ(tributary("doctor").code, 0);
}

}  // namespace
}  // namespace tributary::test
