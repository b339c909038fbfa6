// Speed as ratios in one run: each scenario runs in a process of its own, all of them in turn, five times; the table
// gives medians and, pair by pair, the ratio to the bare SystemC loop of the same round.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "modules/memory_controller/bulk_timing.hpp"
#include "platforms/simulation.hpp"

using namespace tributary;

namespace {

struct measurement {
  double wall_s = 0;
  double events = 0;  ///< bursts over links, or activations of the bare loop
  double packet_hops = 0;
  double peak_mb = 0;
};

struct scenario {
  std::string name;
  std::function<measurement()> run;
};

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The floor: one method waking itself by a plain event.
measurement bare_loop() {
  constexpr int activations = 5'000'000;
  struct looper : sc_core::sc_module {
    sc_core::sc_event next;
    int left = activations;
    explicit looper(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {
      sc_core::sc_spawn_options options;
      options.spawn_method();
      options.set_sensitivity(&next);
      sc_core::sc_spawn(
          [this] {
            if (--left > 0) next.notify(sc_core::sc_time::from_value(1000));
          },
          "loop", &options);
    }
  } module("looper");
  const double before = now_s();
  sc_core::sc_start();
  return {now_s() - before, activations, 0, 0};
}

measurement platform(const std::string& name, const std::vector<std::string>& assignments,
                     const std::string& folder = "") {
  platform_spec spec = load_platform(configs_folder() + "/platforms/" + name + ".yaml", {assignments, ""});
  run_options options;
  options.folder = folder;
  simulation sim(spec, options);
  const run_result result = sim.run();
  return {result.wall_s, static_cast<double>(result.events), static_cast<double>(result.packet_hops), 0};
}

/// One sequential stream, or reads and writes in turn of two: 16 MiB of accesses at the burst, 16 GiB at the bulk
/// level. `events` are bytes.
measurement memory_level_speed(const std::string& preset, bool bulk, std::uint64_t access_bytes, bool rmw) {
  const dram_device device = memory_preset(preset).dram;
  const std::uint64_t half = device.geometry.capacity_bytes() / 2;
  const std::uint64_t total = std::uint64_t{16} << (bulk ? 30 : 20);
  const std::uint64_t count = total / access_bytes;
  const auto address = [&](std::uint64_t i) {
    const std::uint64_t at = (rmw ? i / 2 : i) * access_bytes % (half - access_bytes);
    return rmw && i % 2 != 0 ? half + at : at;
  };
  if (bulk) {
    bulk_timing timing(device);
    const double before = now_s();
    for (std::uint64_t i = 0; i < count; ++i) (void)timing.book(address(i), access_bytes, rmw && i % 2 != 0, 0);
    return {now_s() - before, static_cast<double>(total), 0, 0};
  }
  struct : dram_system::host {
    void access_complete(std::uint64_t /*cookie*/, dram_cycle /*when*/) override {}
  } host;
  dram_system system(device, host);
  const double before = now_s();
  std::uint64_t issued = 0;
  dram_cycle cycle = 0;
  while (issued < count || !system.idle()) {
    while (issued < count && system.waiting() < 4) {
      system.submit(address(issued), access_bytes, rmw && issued % 2 != 0, issued);
      ++issued;
    }
    system.step(cycle);
    if (system.next() == dram_channel::never) break;
    cycle = system.next();
  }
  return {now_s() - before, static_cast<double>(total), 0, 0};
}

measurement in_child(const std::function<measurement()>& run) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    measurement result = run();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    result.peak_mb = static_cast<double>(usage.ru_maxrss) / 1000;
    const bool written = write(ends[1], &result, sizeof result) == sizeof result;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  measurement result;
  const bool whole = read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!whole || status != 0) fmt::print(stderr, "a scenario failed\n");
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int sc_main(int, char**) { return 0; }

int main() {
  char folder[] = "/tmp/tributary-bench-XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const std::vector<std::string> quiet{"run.trace=none"};
  const std::vector<scenario> scenarios{
      {"bare SystemC method loop", bare_loop},
      {"nine_city 14 GB burst", [&] { return platform("nine_city", quiet); }},
      {"nine_city 14 GB burst, round trace", [&] { return platform("nine_city", {"run.trace=round"}, folder); }},
      {"nine_city 14 GB burst, chunk trace", [&] { return platform("nine_city", {"run.trace=chunk"}, folder); }},
      {"nine_city 128 MB packet",
       [&] {
         return platform("nine_city", {"run.trace=none", "run.fidelity=packet", "workload.update=128 MB"});
       }},
  };
  constexpr int repeats = 5;
  std::vector<std::vector<measurement>> measured(scenarios.size());
  for (int r = 0; r < repeats; ++r) {
    for (std::size_t s = 0; s < scenarios.size(); ++s) measured[s].push_back(in_child(scenarios[s].run));
  }
  fmt::print("{:36} {:>8} {:>12} {:>14} {:>9} {:>10}\n", "scenario (medians of five)", "wall s", "events/s",
             "packet-hops/s", "peak MB", "events : bare");
  for (std::size_t s = 0; s < scenarios.size(); ++s) {
    const auto of = [&](auto pick) {
      std::vector<double> values;
      values.reserve(repeats);
      for (int r = 0; r < repeats; ++r)
        values.push_back(pick(measured[s][static_cast<std::size_t>(r)], measured[0][static_cast<std::size_t>(r)]));
      return median(values);
    };
    fmt::print("{:36} {:8.2f} {:12.3g} {:14.3g} {:9.0f} {:10.3f}\n", scenarios[s].name,
               of([](const measurement& m, const measurement&) { return m.wall_s; }),
               of([](const measurement& m, const measurement&) { return m.events / m.wall_s; }),
               of([](const measurement& m, const measurement&) { return m.packet_hops / m.wall_s; }),
               of([](const measurement& m, const measurement&) { return m.peak_mb; }),
               of([](const measurement& m, const measurement& bare) {
                 return m.events / m.wall_s / (bare.events / bare.wall_s);
               }));
  }
  std::filesystem::remove_all(folder);

  fmt::print("\n{:36} {:>14} {:>14} {:>12}\n", "memory controller (medians of five)", "burst GB/s", "bulk GB/s",
             "bulk : burst");
  for (const char* preset : {"ddr4_2400", "hbm2", "hbm2e_v80"}) {
    for (const std::uint64_t bytes : {4096ULL, 1ULL << 20}) {
      for (const bool rmw : {false, true}) {
        std::vector<double> burst;
        std::vector<double> bulk;
        std::vector<double> ratio;
        for (int r = 0; r < repeats; ++r) {
          const measurement each = in_child([&] { return memory_level_speed(preset, false, bytes, rmw); });
          const measurement whole = in_child([&] { return memory_level_speed(preset, true, bytes, rmw); });
          burst.push_back(each.events / each.wall_s / 1e9);
          bulk.push_back(whole.events / whole.wall_s / 1e9);
          ratio.push_back(bulk.back() / burst.back());
        }
        fmt::print("{:36} {:14.3f} {:14.1f} {:12.0f}\n",
                   fmt::format("{} {} {}", preset, rmw ? "read-write" : "read", bytes), median(burst), median(bulk),
                   median(ratio));
      }
    }
  }
  return 0;
}
