// The program `tributary`.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>

#include "platforms/report.hpp"
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
      fmt::print(" (look at it: tributary waves {})", folder);
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
  for (const planner::partition& round : schedule.rounds) {
    try {
      plans += fmt::format("    {}  {}\n", format_seconds(seconds(planner::plan_round(model, round).predicted)),
                           describe_groups(spec, round));
    } catch (const std::invalid_argument& error) {
      throw config_error(fmt::format("{}: {}", common.config, error.what()));
    }
  }
  if (!common.quiet) {
    fmt::print("{}: valid; {} sites, {} routers, {} links\n  {}, predicted:\n{}", spec.name, spec.sites.size(),
               spec.routers.size(), spec.links.size(), schedule.name, plans);
  }
  return done;
}

int presets_command(bool registers) {
  if (registers) {
    std::cout << "# Registers\n\nMade by `tributary presets --registers` from tlm/register_maps.cpp. Every register is "
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
