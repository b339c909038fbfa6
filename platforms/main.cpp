// The program `tributary`.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>

#include "platforms/child.hpp"
#include "platforms/compare.hpp"
#include "platforms/lossless.hpp"
#include "platforms/map_report.hpp"
#include "platforms/planning.hpp"
#include "platforms/report.hpp"
#include "platforms/resources.hpp"
#include "platforms/version.hpp"

namespace fs = std::filesystem;
using namespace tributary;

namespace {

enum exit_code : int { done = 0, check_failed = 1, bad_input = 2, deadlocked = 3, internal_error = 4 };

/// A single line on the terminal, redrawn in place; nothing when standard error is no terminal.
class progress_bar {
 public:
  explicit progress_bar(bool wanted) : shown_(wanted && isatty(STDERR_FILENO) != 0) {}
  void show(double fraction) {
    if (!shown_) return;
    constexpr int width = 40;
    const int full = static_cast<int>(fraction * width);
    fmt::print(stderr, "\r  [{}{}] {:3.0f} %", std::string(static_cast<std::size_t>(full), '#'),
               std::string(static_cast<std::size_t>(width - full), '.'), fraction * 100);
    std::fflush(stderr);
  }
  void clear() {
    if (shown_) fmt::print(stderr, "\r{}\r", std::string(60, ' '));
  }
  [[nodiscard]] bool shown() const { return shown_; }

 private:
  bool shown_;
};

struct common_arguments {
  std::string config;
  load_options load;
  bool quiet = false;
};

struct run_arguments {
  std::string out;
  std::string trace;
  std::string fidelity;
  std::string json;
  unsigned rounds = 0;
  std::uint64_t seed = 0;
  bool seed_given = false;
  bool check_protocol = false;
  bool critical_path = false;
  bool whole_run = false;
  bool no_timeline = false;
  std::vector<std::string> signals;
  std::vector<std::string> capture;
};

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// Makes the run's folder. An earlier run's files in it are removed; a folder that holds anything else is refused.
void prepare_folder(const std::string& folder) {
  std::error_code failed;
  if (fs::exists(folder) && !fs::is_directory(folder)) {
    throw config_error(fmt::format("{}: exists and is not a folder", folder));
  }
  if (fs::exists(folder)) {
    std::vector<fs::path> earlier;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      const bool ours = name == "manifest.json" || name == "results.json" || name == "waves.gtkw" ||
                        name == "timeline.json" || name == "packets.pcapng" || name == "run.vcd" || name == "run.fst" ||
                        name.rfind("round_", 0) == 0 || name.rfind("states_", 0) == 0;
      if (!ours)
        throw config_error(fmt::format("{}: holds '{}', which no run wrote; choose another --out", folder, name));
      earlier.push_back(entry.path());
    }
    for (const fs::path& each : earlier) fs::remove(each, failed);
  }
  fs::create_directories(folder, failed);
  if (failed || access(folder.c_str(), W_OK) != 0) throw config_error(fmt::format("{}: cannot be written to", folder));
}

int run_command(const common_arguments& common, const run_arguments& run, const std::vector<std::string>& command) {
  load_options load = common.load;
  // Flags are assignments that win over everything else.
  const auto assign = [&load](const std::string& key, const std::string& value) {
    if (!value.empty()) load.assignments.push_back(key + "=" + value);
  };
  assign("run.trace", run.trace);
  assign("run.fidelity", run.fidelity);
  if (!run.signals.empty()) assign("run.signals", fmt::format("[\"{}\"]", fmt::join(run.signals, "\", \"")));
  if (!run.capture.empty()) assign("run.capture", fmt::format("[\"{}\"]", fmt::join(run.capture, "\", \"")));
  if (run.whole_run) assign("run.whole_run_waveform", "true");
  if (run.no_timeline) assign("run.timeline", "false");
  if (run.rounds != 0) assign("run.rounds", std::to_string(run.rounds));
  if (run.seed_given) assign("run.seed", std::to_string(run.seed));
  const platform_spec spec = load_platform(common.config, load);

  const bool to_stdout = run.json == "-";
  const std::string folder = run.out.empty() ? "traces/out/" + spec.name : run.out;
  progress_bar bar(!common.quiet && !to_stdout);
  run_options options;
  options.folder = folder;
  options.protocol_checkers = run.check_protocol;
  if (bar.shown()) options.on_progress = [&bar](double fraction) { bar.show(fraction); };

  const std::string started = utc_now();
  simulation sim(spec, options);
  prepare_folder(folder);
  const run_result result = sim.run();
  bar.clear();

  const std::string results = results_json(spec, result).dump(2) + "\n";
  write_whole_file(folder + "/results.json", results);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  write_whole_file(folder + "/manifest.json", manifest_json(spec, result, command, started, files).dump(2) + "\n");
  if (to_stdout) {
    std::cout << results;
  } else if (!run.json.empty()) {
    write_whole_file(run.json, results);
  }
  if (!common.quiet && !to_stdout) {
    std::cout << describe_run(spec, result);
    if (run.critical_path) {
      for (const round_result& round : result.rounds) std::cout << describe_critical_path(round);
      std::cout << "\n";
    }
    fmt::print("  wrote {}", folder);
    if (spec.trace != trace_level::none && !result.rounds.empty()) {
      fmt::print(" (look at it: {} waves {})", command.front(), folder);
    }
    fmt::print("\n");
  }
  switch (result.outcome) {
    case schedule_executor::outcome::finished: break;
    case schedule_executor::outcome::refused:
      fmt::print(stderr, "error: {}\n", result.complaint);
      return internal_error;
    case schedule_executor::outcome::timed_out:
    case schedule_executor::outcome::running:
      fmt::print(stderr, "error: {}\n",
                 result.complaint.empty() ? "the simulation stopped before its end" : result.complaint);
      for (const std::string& line : result.diagnosis) fmt::print(stderr, "  {}\n", line);
      return deadlocked;
  }
  return result.passed() ? done : check_failed;
}

int validate_command(const common_arguments& common) {
  const platform_spec spec = load_platform(common.config, common.load);
  const planner::platform_model model = model_of(spec);
  const planner::schedule schedule = schedule_of(spec, model);
  std::string plans;
  std::string warnings;
  for (const planner::partition& round : schedule.rounds) {
    try {
      const planner::round_plan plan = planner::plan_round(model, round);
      plans += fmt::format("    {}  {}\n", format_seconds(seconds(plan.predicted)), describe_groups(spec, round));
      const std::optional<std::string> warning =
          deadlock_warning(spec, model.network, planner::routes_of(plan, spec.multicast));
      if (warning && warnings.find(*warning) == std::string::npos) warnings += "  warning: " + *warning + "\n";
    } catch (const std::invalid_argument& error) {
      throw config_error(fmt::format("{}: {}", common.config, error.what()));
    }
  }
  if (!common.quiet) {
    fmt::print("{}: valid; {} sites, {} routers, {} links\n  {}, predicted:\n{}{}", spec.name, spec.sites.size(),
               spec.routers.size(), spec.links.size(), schedule.name, plans, warnings);
  }
  return done;
}

planner::objective objective_named(const std::string& name) {
  return name == "exchange"    ? planner::objective::exchange_rate
         : name == "staleness" ? planner::objective::staleness
                               : planner::objective::time_to_epsilon;
}

std::uint64_t quantity_of(const std::string& text, dimension what, const char* option) {
  try {
    const std::uint64_t value = parse_quantity(text, what);
    if (value == 0) throw quantity_error("must not be zero");
    return value;
  } catch (const quantity_error& error) {
    throw config_error(fmt::format("{} '{}': {}", option, text, error.what()));
  }
}

struct plan_arguments {
  std::string goal = "time";
  unsigned largest_group = 8;
  unsigned verify = 0;
  std::uint64_t seed = 1;
  std::string out;
};

int plan_command(const common_arguments& common, const plan_arguments& plan) {
  const platform_spec spec = load_platform(common.config, common.load);
  plan_request request;
  request.search.goal = objective_named(plan.goal);
  request.search.largest_group = plan.largest_group;
  request.search.epsilon = spec.epsilon;
  request.search.seed = plan.seed;
  request.verify = plan.verify;
  const std::vector<planned_schedule> plans = plan_schedules(spec, request);
  if (!plan.out.empty()) write_whole_file(plan.out, schedule_yaml(spec, plans.front()));
  if (!common.quiet) {
    std::cout << describe_plans(spec, plans);
    fmt::print("\n  best by {}: {}\n", plan.goal, plans.front().rated.rounds.name);
    if (!plan.out.empty())
      fmt::print("  wrote {} (tributary run {} --schedule {})\n", plan.out, common.config, plan.out);
  }
  return done;
}

struct size_arguments {
  std::string of = "memory";
  std::string target;
  unsigned crossover = 0;
  bool confirm = false;
};

int size_command(const common_arguments& common, const size_arguments& size) {
  const platform_spec spec = load_platform(common.config, common.load);
  const planner::platform_model model = model_of(spec);
  std::uint64_t most = spec.sites.front().aggregator.device.capacity_bytes;
  for (const site_spec& site : spec.sites) most = std::min(most, site.aggregator.device.capacity_bytes);
  const auto simulate = [&spec](const planner::schedule& rounds, std::uint64_t memory) {
    platform_spec checked = spec;
    for (site_spec& site : checked.sites) site.aggregator.memory_bytes = memory;
    checked.schedule = {schedule_spec::kind::explicit_rounds, 0, rounds.name, rounds.rounds, rounds.blend};
    checked.rounds = 0;
    return simulate_in_child(checked);
  };
  if (size.crossover != 0) {
    const auto found = memory_crossover(spec, size.crossover, most);
    if (!found) {
      fmt::print("{}: all-to-all does not catch up with rotating groups of {} up to {}\n", spec.name, size.crossover,
                 format_bytes(static_cast<double>(most)));
      return check_failed;
    }
    if (found->memory_bytes == spec.chunk_bytes) {
      fmt::print("{}: all-to-all is no slower than rotating groups of {} with any memory\n", spec.name, size.crossover);
      return done;
    }
    fmt::print("{}: from {} of aggregator memory on, all-to-all ({}) is no slower than rotating groups of {} ({})\n",
               spec.name, format_bytes(static_cast<double>(found->memory_bytes)), format_seconds(found->first_s),
               size.crossover, format_seconds(found->second_s));
    if (!size.confirm) return done;
    bool confirmed = true;
    for (const double factor : {0.98, 1.02}) {
      const auto memory = static_cast<std::uint64_t>(static_cast<double>(found->memory_bytes) * factor);
      planner::platform_model at = model;
      for (planner::site_model& site : at.sites) site.memory_bytes = memory;
      const child_outcome everyone = simulate(planner::all_to_all(static_cast<unsigned>(spec.sites.size())), memory);
      const child_outcome rotation =
          simulate(planner::rotating_groups(at, size.crossover, planner::wire_overhead(at, true)), memory);
      const bool expected = (everyone.simulated_s <= rotation.simulated_s) == (factor > 1);
      confirmed = confirmed && expected && everyone.passed && rotation.passed;
      fmt::print("  simulated at {}: all-to-all {}, rotation {}{}\n", format_bytes(static_cast<double>(memory)),
                 format_seconds(everyone.simulated_s), format_seconds(rotation.simulated_s),
                 expected ? "" : "  (not as predicted)");
    }
    return confirmed ? done : check_failed;
  }
  if (size.target.empty()) throw config_error("size: give --target TIME or --crossover K");
  double target = 0;
  try {
    target = seconds(parse_quantity(size.target, dimension::time));
  } catch (const quantity_error& error) {
    throw config_error(fmt::format("--target '{}': {}", size.target, error.what()));
  }
  const planner::schedule rounds = schedule_of(spec, model);
  if (size.of != "memory") {
    const sized what = size.of == "memory_bandwidth" ? sized::memory_bandwidth
                       : size.of == "clock"          ? sized::clock
                       : size.of == "access_rate"    ? sized::access_rate
                                                     : sized::link_rate;
    const auto value = least_value(spec, rounds, what, target);
    if (!value) {
      fmt::print("{}: {} cannot be over in {} with any {}\n", spec.name, rounds.name, format_seconds(target), size.of);
      return check_failed;
    }
    const auto figure = static_cast<double>(*value);
    const std::string amount = what == sized::clock              ? fmt::format("{:.3f} MHz", figure / 1e6)
                               : what == sized::memory_bandwidth ? fmt::format("{:.3f} GB/s", figure / 8e9)
                                                                 : fmt::format("{:.3f} Gb/s", figure / 1e9);
    fmt::print("{}: {} needs a {} of {} to be over in {}\n", spec.name, rounds.name, size.of, amount,
               format_seconds(target));
    if (!size.confirm) return done;
    platform_spec checked = with_value(spec, what, *value);
    checked.schedule = {schedule_spec::kind::explicit_rounds, 0, rounds.name, rounds.rounds, rounds.blend};
    checked.rounds = 0;
    const child_outcome outcome = simulate_in_child(checked);
    fmt::print("  simulated: {}\n", format_seconds(outcome.simulated_s));
    return outcome.passed && outcome.simulated_s <= target * 1.02 ? done : check_failed;
  }
  const auto memory = least_memory(spec, rounds, target, most);
  if (!memory) {
    fmt::print("{}: {} cannot be over in {} with any memory up to {}: the best is {}\n", spec.name, rounds.name,
               format_seconds(target), format_bytes(static_cast<double>(most)),
               format_seconds(planned_pass_s(spec, rounds, most)));
    return check_failed;
  }
  fmt::print("{}: {} needs {} of aggregator memory to be over in {} (planned: {})\n", spec.name, rounds.name,
             format_bytes(static_cast<double>(*memory)), format_seconds(target),
             format_seconds(planned_pass_s(spec, rounds, *memory)));
  if (!size.confirm) return done;
  const child_outcome outcome = simulate(rounds, *memory);
  fmt::print("  simulated: {}, at most {} of memory in use\n", format_seconds(outcome.simulated_s),
             format_bytes(static_cast<double>(outcome.memory_high_water_bytes)));
  return outcome.passed && outcome.simulated_s <= target * 1.02 ? done : check_failed;
}

struct map_arguments {
  std::string goal = "time";
  std::vector<std::string> memories{"128 MB", "256 MB", "512 MB", "1 GB", "2 GB", "4 GB", "8 GB", "16 GB"};
  std::vector<std::string> rates{"25 Gbps", "50 Gbps", "100 Gbps", "200 Gbps", "400 Gbps"};
  unsigned largest_group = 8;
  bool transit = false;
  std::string out;
};

int map_command(const common_arguments& common, const map_arguments& map) {
  const platform_spec spec = load_platform(common.config, common.load);
  planner::map_request request;
  for (const std::string& each : map.memories) {
    request.memories.push_back(quantity_of(each, dimension::bytes, "--memory"));
  }
  for (const std::string& each : map.rates) request.rates.push_back(quantity_of(each, dimension::rate, "--rate"));
  request.search.goal = objective_named(map.goal);
  request.search.largest_group = map.largest_group;
  request.search.epsilon = spec.epsilon;
  request.search.restarts = 2;
  request.transit = map.transit;
  const planner::platform_model model = model_of(spec);
  const std::vector<planner::map_cell> cells =
      planner::map_schedules(model, planner::wire_overhead(model, true), request);
  if (!map.out.empty()) draw_map(cells, spec.name, request.search.goal, map.out);
  if (!common.quiet) {
    std::cout << describe_map(cells, spec.name, request.search.goal);
    if (!map.out.empty()) fmt::print("\n  wrote {}\n", map.out);
  }
  return done;
}

/// Exit code 1 when a strategy that can run did not end well.
int compare_command(const common_arguments& common, const std::string& json) {
  const platform_spec spec = load_platform(common.config, common.load);
  const std::vector<compared_strategy> all = compare_strategies(spec);
  const std::string text = comparison_json(all).dump(2) + "\n";
  if (json == "-") {
    std::cout << text;
  } else {
    if (!json.empty()) write_whole_file(json, text);
    if (!common.quiet) std::cout << describe_comparison(spec, all);
  }
  const bool failed = std::any_of(all.begin(), all.end(), [](const compared_strategy& each) {
    return each.outcome.finished && !each.outcome.passed;
  });
  return failed ? check_failed : done;
}

int presets_command(bool registers) {
  if (registers) {
    std::cout << "# Registers\n\nMade by `tributary presets --registers` from tlm/registers.yaml. Every register is "
                 "64 bits; an access is one\n"
                 "aligned 8-byte read or write.\n\n"
              << to_markdown(aggregator_registers) << "\n"
              << to_markdown(cluster_registers) << "\n"
              << to_markdown(router_registers);
    return done;
  }
  for (const preset_entry& entry : list_presets()) {
    fmt::print("{:7} {:12} {}\n{:21}source: {}\n", entry.kind, entry.name, entry.summary, "", entry.source);
  }
  return done;
}

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::stringstream folders(path == nullptr ? "" : path);
  for (std::string each; std::getline(folders, each, ':');) {
    if (access((each + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// Opens a run's waveform in GTKWave; with `fst`, packs its dumps with vcd2fst first.
int waves_command(const std::string& folder, bool fst) {
  if (!fs::exists(fs::path(folder) / "waves.gtkw")) {
    throw config_error(fmt::format("{}: holds no waves.gtkw; give the folder of a traced run", folder));
  }
  fs::current_path(folder);
  if (fst) {
    if (!on_path("vcd2fst")) throw config_error("vcd2fst is not installed (Debian package gtkwave)");
    for (const auto& entry : fs::directory_iterator(".")) {
      if (entry.path().extension() != ".vcd") continue;
      const std::string from = entry.path().filename().string();
      const std::string to = entry.path().stem().string() + ".fst";
      if (std::system(fmt::format("vcd2fst {} {} >/dev/null", from, to).c_str()) != 0) {
        throw std::runtime_error("vcd2fst failed on " + from);
      }
      fmt::print("{}/{}\n", folder, to);
    }
    return done;
  }
  if (!on_path("gtkwave")) throw config_error("gtkwave is not installed (Debian package gtkwave)");
  execlp("gtkwave", "gtkwave", "waves.gtkw", nullptr);
  throw std::runtime_error("gtkwave could not be started");
}

int doctor_command() {
  bool healthy = true;
  const auto line = [&healthy](bool good, bool required, const std::string& text) {
    fmt::print("  {}  {}\n", good ? "ok     " : (required ? "MISSING" : "absent "), text);
    healthy = healthy && (good || !required);
  };
  fmt::print("tributary {}\n", version);
  line(true, true, fmt::format("SystemC {}", sc_core::sc_version_string));
  line(sc_core::sc_get_time_resolution() == sc_core::sc_time(1, sc_core::SC_PS), true, "time resolution 1 ps");
  const std::string folder = configs_folder();
  line(fs::exists(folder + "/presets/cards.yaml"), true, "configurations in " + folder);
  try {
    line(!list_presets().empty(), true, fmt::format("{} presets", list_presets().size()));
  } catch (const config_error& error) {
    line(false, true, fmt::format("presets: {}", error.what()));
  }
  line(on_path("gtkwave"), false, "gtkwave, to look at waveforms");
  line(on_path("vcd2fst"), false, "vcd2fst, to pack them");
  return healthy ? done : internal_error;
}

int dispatch(int argc, char** argv) {
  CLI::App app{"Tributary models distributed training over an intelligent wide-area network, from YAML to waveform."};
  app.set_version_flag("--version", std::string("tributary ") + version);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 a check failed, 2 bad input, 3 deadlock or time-out, 4 internal error.");

  common_arguments common;
  run_arguments run;
  bool registers = false;
  const auto add_common = [&common](CLI::App* command) {
    command->add_option("CONFIG", common.config, "platform file (YAML)")->required();
    command->add_option("--schedule", common.load.schedule, "all_to_all, rotating:K, or a schedule file");
    command->add_option("--set", common.load.assignments, "path.to.key=value; may be repeated")
        ->expected(1)
        ->take_all();
    command->add_flag("-q,--quiet", common.quiet, "no output but errors");
  };

  CLI::App* run_app = app.add_subcommand("run", "simulate a platform's schedule; write waveforms and results");
  add_common(run_app);
  run_app->add_option("--rounds", run.rounds, "rounds to run (default: one pass through the schedule)")
      ->check(CLI::Range(1U, 1'000'000U));
  run_app->add_option("--out", run.out, "output folder (default: traces/out/NAME)");
  run_app->add_option("--trace", run.trace, "none, round, chunk or packet");
  run_app->add_option("--fidelity", run.fidelity, "packet or burst");
  CLI::Option* seed = run_app->add_option("--seed", run.seed, "seed of everything random");
  run_app->add_option("--json", run.json, "also write results.json to this file; - is standard output");
  run_app->add_flag("--check-protocol", run.check_protocol, "plug protocol checkers into every connection");
  run_app->footer(
      "Examples:\n  tributary run configs/platforms/nine_city.yaml\n"
      "  tributary run configs/platforms/nine_city.yaml --schedule rotating:3 --set site_defaults.aggregator.memory='2 "
      "GB'\n"
      "  tributary run configs/platforms/two_site.yaml --fidelity packet --trace packet --out /tmp/two");

  run_app
      ->add_option("--signals", run.signals, "trace only signals that match, e.g. 'tyo.*.occupancy'; may be repeated")
      ->expected(1)
      ->take_all();
  run_app->add_option("--capture", run.capture, "write packets of matching links to packets.pcapng (packet fidelity)")
      ->expected(1)
      ->take_all();
  run_app->add_flag("--whole-run", run.whole_run, "also write run.vcd, one waveform over all rounds");
  run_app->add_flag("--no-timeline", run.no_timeline, "write no timeline.json");
  run_app->add_flag("--critical-path", run.critical_path, "print the chain of events that set each round's length");

  std::string waves_folder;
  bool waves_fst = false;
  CLI::App* waves_app = app.add_subcommand("waves", "open a run's waveform in GTKWave");
  waves_app->add_option("DIR", waves_folder, "folder of a run")->required();
  waves_app->add_flag("--fst", waves_fst, "instead pack the folder's dumps with vcd2fst");
  waves_app->footer("Example:\n  tributary waves traces/out/nine_city");

  CLI::App* validate_app =
      app.add_subcommand("validate", "check a platform file and show what the planner makes of it");
  add_common(validate_app);
  validate_app->footer("Example:\n  tributary validate configs/platforms/nine_city.yaml --schedule rotating:3");
  plan_arguments plan;
  CLI::App* plan_app =
      app.add_subcommand("plan", "rate every schedule that fits the platform; write the best as a schedule file");
  add_common(plan_app);
  plan_app
      ->add_option("--objective", plan.goal, "time (to agreement), exchange (pairs a second) or staleness (mean age)")
      ->check(CLI::IsMember({"time", "exchange", "staleness"}));
  plan_app->add_option("--largest-group", plan.largest_group, "largest group besides all-to-all")
      ->check(CLI::Range(2U, 64U));
  plan_app->add_option("--verify", plan.verify, "simulate this many of the best and compare");
  plan_app->add_option("--seed", plan.seed, "seed of the search");
  plan_app->add_option("--out", plan.out, "write the best schedule to this file");
  plan_app->footer(
      "Example:\n  tributary plan configs/platforms/nine_city.yaml --set site_defaults.aggregator.memory='2 GB' "
      "--verify 2 --out best.yaml");

  size_arguments size;
  CLI::App* size_app = app.add_subcommand(
      "size", "least memory, bandwidth, clock or rate for a target time, or where two schedules tie");
  add_common(size_app);
  size_app->add_option("--of", size.of, "what to size: memory, memory_bandwidth, clock, access_rate or link_rate")
      ->check(CLI::IsMember({"memory", "memory_bandwidth", "clock", "access_rate", "link_rate"}));
  size_app->add_option("--target", size.target, "one pass through the schedule takes at most this");
  size_app->add_option("--crossover", size.crossover, "where all-to-all catches up with rotating groups of this size")
      ->check(CLI::Range(2U, 64U));
  size_app->add_flag("--confirm", size.confirm, "simulate the answer");
  size_app->footer(
      "Examples:\n  tributary size configs/platforms/nine_city.yaml --target '1.5 s' --confirm\n"
      "  tributary size configs/platforms/nine_city.yaml --of memory_bandwidth --target '1.5 s' --confirm\n"
      "  tributary size configs/platforms/nine_city.yaml --crossover 3 --confirm");

  map_arguments map;
  CLI::App* map_app =
      app.add_subcommand("map", "which schedule wins for each network capability, memory and cluster link rate");
  add_common(map_app);
  map_app->add_option("--objective", map.goal, "time (to agreement), exchange (pairs a second) or staleness (mean age)")
      ->check(CLI::IsMember({"time", "exchange", "staleness"}));
  map_app->add_option("--memory", map.memories, "aggregator memories, comma between")->delimiter(',');
  map_app->add_option("--rate", map.rates, "cluster link rates, comma between")->delimiter(',');
  map_app->add_option("--largest-group", map.largest_group, "largest group besides all-to-all")
      ->check(CLI::Range(2U, 64U));
  map_app->add_flag("--transit", map.transit, "let reduction in transit (up and down a tree) compete");
  map_app->add_option("--out", map.out, "also draw it: .svg or .png (needs gnuplot)");
  map_app->footer("Example:\n  tributary map configs/platforms/nine_city.yaml --memory '1 GB,4 GB' --out map.svg");

  std::string compare_json;
  CLI::App* compare_app = app.add_subcommand(
      "compare",
      "simulate every strategy on the platform: unicast, ring, hub, multicast, aggregation, transit reduction");
  add_common(compare_app);
  compare_app->add_option("--json", compare_json, "also write the comparison to this file; - is standard output");
  compare_app->footer("Example:\n  tributary compare configs/platforms/nine_city_10g.yaml");

  CLI::App* resources_app = app.add_subcommand("resources", "what each aggregator would take of its FPGA (estimate)");
  add_common(resources_app);
  resources_app->footer(
      "Example:\n  tributary resources configs/platforms/nine_city.yaml --set network.buffering=in_place");

  CLI::App* presets_app = app.add_subcommand("presets", "list cards and memories a platform can name");
  presets_app->add_flag("--registers", registers, "print the register documentation (Markdown) instead");
  CLI::App* doctor_app = app.add_subcommand("doctor", "check this installation");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? done : bad_input;
  }
  run.seed_given = seed->count() > 0;
  if (run_app->parsed()) return run_command(common, run, std::vector<std::string>(argv, argv + argc));
  if (validate_app->parsed()) return validate_command(common);
  if (plan_app->parsed()) return plan_command(common, plan);
  if (size_app->parsed()) return size_command(common, size);
  if (map_app->parsed()) return map_command(common, map);
  if (compare_app->parsed()) return compare_command(common, compare_json);
  if (resources_app->parsed()) {
    std::cout << describe_resources(load_platform(common.config, common.load));
    return done;
  }
  if (presets_app->parsed()) return presets_command(registers);
  if (waves_app->parsed()) return waves_command(waves_folder, waves_fst);
  if (doctor_app->parsed()) return doctor_command();
  return bad_input;
}

}  // namespace

// SystemC's library wants an sc_main and brings a main that prints a banner; ours goes straight to the work.
int sc_main(int argc, char** argv) {
  sc_core::sc_report_handler::set_actions(sc_core::SC_FATAL, sc_core::SC_THROW);
  sc_core::sc_report_handler::set_actions(sc_core::SC_ERROR, sc_core::SC_THROW);
  sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_DO_NOTHING);
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  try {
    return dispatch(argc, argv);
  } catch (const config_error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return bad_input;
  } catch (const std::exception& error) {
    fmt::print(stderr, "internal error: {}\n", error.what());
    return internal_error;
  }
}

int main(int argc, char** argv) { return sc_main(argc, argv); }
