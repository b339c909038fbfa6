// Speed as ratios in one run: each scenario runs in a process of its own, all of them in turn, five times; the tables
// give medians, and ratios taken pair by pair within a turn.
//
//   tributary_bench [NS3_PROGRAM]      without ns-3 the network is compared with the bare SystemC loop alone
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "modules/memory_controller/bulk_timing.hpp"
#include "platforms/simulation.hpp"

using namespace tributary;

namespace {

struct measurement {
  double wall_s = 0;
  double activations = 0;  ///< of SystemC methods
  double packet_hops = 0;  ///< over backbone links
  double line_hops = 0;    ///< packets over any link, those between site and router included
  double bytes = 0;        ///< of memory accesses
  double peak_mb = 0;
};

struct scenario {
  std::string name;
  std::function<measurement()> run;
};

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The floor: one method waking itself by a plain event.
measurement bare_loop(double activations) {
  struct looper : sc_core::sc_module {
    sc_core::sc_event next;
    double left;
    looper(const sc_core::sc_module_name& name, double activations) : sc_core::sc_module(name), left(activations) {
      sc_core::sc_spawn_options options;
      options.spawn_method();
      options.set_sensitivity(&next);
      sc_core::sc_spawn(
          [this] {
            if (--left > 0) next.notify(sc_core::sc_time::from_value(1000));
          },
          "loop", &options);
    }
  } module("looper", activations);
  const double before = now_s();
  sc_core::sc_start();
  return {now_s() - before, activations, 0, 0, 0, 0};
}

measurement platform(const std::string& name, const std::vector<std::string>& assignments,
                     const std::string& folder = "") {
  platform_spec spec = load_platform(configs_folder() + "/platforms/" + name + ".yaml", {assignments, ""});
  run_options options;
  options.folder = folder;
  simulation sim(spec, options);
  const run_result result = sim.run();
  measurement measured{
      result.wall_s, static_cast<double>(model::activations()), 0, static_cast<double>(result.packet_hops), 0, 0};
  for (const link_result& link : result.links) {
    if (link.backbone) measured.packet_hops += static_cast<double>(link.packets);
  }
  if (!result.passed()) throw std::runtime_error(name + ": a check failed");
  return measured;
}

/// The traffic of bench/ns3_multicast.cpp.
measurement metro_traffic(const char* fidelity, std::uint64_t update_bytes) {
  return platform("nine_city", {"run.trace=none", std::string("run.fidelity=") + fidelity,
                                fmt::format("workload.update={} B", update_bytes), "link_defaults.rate=10 Gbps",
                                "network.pace=8388608 ns", "wire.headers=28 B"});
}

measurement ns3(const std::string& program, std::uint64_t update_bytes) {
  FILE* output = popen(fmt::format("'{}' {}", program, update_bytes).c_str(), "r");
  if (output == nullptr) return {};
  measurement measured;
  const int found = fscanf(output, "%lf %lf", &measured.wall_s, &measured.packet_hops);
  if (pclose(output) != 0 || found != 2) throw std::runtime_error("ns-3 failed");
  return measured;
}

/// One sequential stream, or reads and writes in turn of two: 16 MiB of accesses at the burst, 16 GiB at the bulk
/// level.
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
    return {now_s() - before, 0, 0, 0, static_cast<double>(total), 0};
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
  return {now_s() - before, 0, 0, 0, static_cast<double>(total), 0};
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

constexpr int repeats = 5;
using turns = std::vector<measurement>;

template <typename Pick>
double median_of(const turns& measured, Pick pick) {
  std::vector<double> values;
  for (const measurement& each : measured) values.push_back(pick(each));
  return median(std::move(values));
}

/// Median over turns of the ratio of two scenarios' figures in the same turn.
template <typename Pick>
double ratio_of(const turns& measured, const turns& base, Pick pick) {
  std::vector<double> values;
  for (std::size_t t = 0; t < measured.size(); ++t) values.push_back(pick(measured[t]) / pick(base[t]));
  return median(std::move(values));
}

double hops_per_s(const measurement& m) { return m.packet_hops / m.wall_s; }

/// Beside ns-3, and beside a bare loop of as many activations.
void network_table(const std::string& ns3_program) {
  struct row {
    std::string name;
    std::function<measurement()> run;
    turns measured;
    turns bare;
    turns beside;
  };
  constexpr std::uint64_t small = 16'000'000;
  constexpr std::uint64_t large = 1'600'000'000;
  std::vector<row> rows{
      {"packet, 16 MB", [] { return metro_traffic("packet", small); }, {}, {}, {}},
      {"burst, 16 MB", [] { return metro_traffic("burst", small); }, {}, {}, {}},
      {"burst, 1.6 GB", [] { return metro_traffic("burst", large); }, {}, {}, {}},
  };
  for (int r = 0; r < repeats; ++r) {
    for (row& each : rows) {
      if (!ns3_program.empty()) each.beside.push_back(ns3(ns3_program, small));
      each.measured.push_back(in_child(each.run));
      const double activations = each.measured.back().activations;
      each.bare.push_back(in_child([activations] { return bare_loop(activations); }));
    }
  }
  fmt::print("nine cities, metro links of 10 Gb/s, every site multicasts at 1 Gb/s (medians of five)\n");
  fmt::print("{:20} {:>9} {:>12} {:>14} {:>12} {:>9} {:>12} {:>13}\n", "", "wall s", "packet-hops", "packet-hops/s",
             "all lines/s", "to ns-3", "activations", "to bare loop");
  if (!ns3_program.empty()) {
    const turns& beside = rows.front().beside;
    fmt::print("{:20} {:9.4f} {:12.0f} {:14.3g}\n", "ns-3, 16 MB",
               median_of(beside, [](const measurement& m) { return m.wall_s; }), beside.front().packet_hops,
               median_of(beside, hops_per_s));
  }
  for (const row& each : rows) {
    const auto wall = [](const measurement& m) { return m.wall_s; };
    fmt::print("{:20} {:9.4f} {:12.0f} {:14.3g} {:12.3g} {:>9} {:12.0f} {:13.3f}\n", each.name,
               median_of(each.measured, wall), each.measured.front().packet_hops, median_of(each.measured, hops_per_s),
               median_of(each.measured, [](const measurement& m) { return m.line_hops / m.wall_s; }),
               each.beside.empty() ? "" : fmt::format("{:.1f}", ratio_of(each.measured, each.beside, hops_per_s)),
               each.measured.front().activations, ratio_of(each.bare, each.measured, wall));
  }
}

void platform_table() {
  char folder[] = "/tmp/tributary-bench-XXXXXX";
  if (mkdtemp(folder) == nullptr) return;
  const std::vector<std::string> quiet{"run.trace=none"};
  const std::vector<scenario> scenarios{
      {"nine_city 14 GB burst", [&] { return platform("nine_city", quiet); }},
      {"nine_city 14 GB burst, round trace", [&] { return platform("nine_city", {"run.trace=round"}, folder); }},
      {"nine_city 14 GB burst, chunk trace", [&] { return platform("nine_city", {"run.trace=chunk"}, folder); }},
      {"nine_city 128 MB packet",
       [&] {
         return platform("nine_city", {"run.trace=none", "run.fidelity=packet", "workload.update=128 MB"});
       }},
  };
  std::vector<turns> measured(scenarios.size());
  for (int r = 0; r < repeats; ++r) {
    for (std::size_t s = 0; s < scenarios.size(); ++s) measured[s].push_back(in_child(scenarios[s].run));
  }
  std::filesystem::remove_all(folder);
  fmt::print("\n{:36} {:>8} {:>14} {:>14} {:>9} {:>12}\n", "all-to-all rounds (medians of five)", "wall s",
             "activations/s", "all lines/s", "peak MB", "to the first");
  for (std::size_t s = 0; s < scenarios.size(); ++s) {
    const auto wall = [](const measurement& m) { return m.wall_s; };
    fmt::print("{:36} {:8.2f} {:14.3g} {:14.3g} {:9.0f} {:12.2f}\n", scenarios[s].name, median_of(measured[s], wall),
               median_of(measured[s], [](const measurement& m) { return m.activations / m.wall_s; }),
               median_of(measured[s], [](const measurement& m) { return m.line_hops / m.wall_s; }),
               median_of(measured[s], [](const measurement& m) { return m.peak_mb; }),
               ratio_of(measured[s], measured.front(), wall));
  }
}

void memory_table() {
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
          burst.push_back(each.bytes / each.wall_s / 1e9);
          bulk.push_back(whole.bytes / whole.wall_s / 1e9);
          ratio.push_back(bulk.back() / burst.back());
        }
        fmt::print("{:36} {:14.3f} {:14.1f} {:12.0f}\n",
                   fmt::format("{} {} {}", preset, rmw ? "read-write" : "read", bytes), median(burst), median(bulk),
                   median(ratio));
      }
    }
  }
}

}  // namespace

int sc_main(int /*argc*/, char** /*argv*/) { return 0; }

int main(int argc, char** argv) {
  try {
    network_table(argc > 1 ? argv[1] : "");
    platform_table();
    memory_table();
  } catch (const std::exception& error) {
    fmt::print(stderr, "tributary_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
