// What a run leaves behind: results.json, manifest.json and a table for the terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "platforms/simulation.hpp"

namespace tributary {

/// results.json: stable names, the same bytes for the same spec and seed (wall time is in the manifest).
[[nodiscard]] nlohmann::ordered_json results_json(const platform_spec& spec, const run_result& result);

/// manifest.json: version, seed, command, whole resolved configuration, time stamps, wall time.
[[nodiscard]] nlohmann::ordered_json manifest_json(const platform_spec& spec, const run_result& result,
                                                   const std::vector<std::string>& command, const std::string& started,
                                                   const std::vector<std::string>& files);

/// The spec with every default filled in, as configuration text would say it.
[[nodiscard]] nlohmann::ordered_json resolved_configuration(const platform_spec& spec);

/// Names of a round's groups: "{ams fra sin} {bar lax lon} ...", or "all 9 sites".
[[nodiscard]] std::string describe_groups(const platform_spec& spec, const planner::partition& groups);

/// The table of rounds, with totals, what limits the pace, agreement and checks below it.
[[nodiscard]] std::string describe_run(const platform_spec& spec, const run_result& result);

/// The chain of spans that set the round's length, as a table.
[[nodiscard]] std::string describe_critical_path(const round_result& round);

/// Right-aligned columns under a header line; the last column left-aligned. All rows have as many cells as the first.
[[nodiscard]] std::string render_table(const std::vector<std::vector<std::string>>& rows);

/// Writes text to a temporary name beside `path` and renames it. Throws std::runtime_error.
void write_whole_file(const std::string& path, const std::string& text);

}  // namespace tributary
