#include "platforms/child.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "platforms/simulation.hpp"

namespace tributary {

namespace {

std::string outcome_of(const platform_spec& spec) {
  nlohmann::json answer;
  try {
    simulation sim(spec, {});
    const run_result result = sim.run();
    answer["finished"] = result.outcome == schedule_executor::outcome::finished;
    answer["passed"] = result.passed();
    answer["simulated_s"] = seconds(result.simulated);
    answer["complaint"] = result.complaint;
    double slowest = 0;
    std::uint64_t high_water = 0;
    for (const round_result& round : result.rounds) {
      slowest = std::max(slowest, seconds(round.closed - round.opened));
      high_water = std::max(high_water, round.memory_high_water_bytes);
    }
    answer["slowest_round_s"] = slowest;
    answer["high_water"] = high_water;
    answer["links"] = nlohmann::json::array();
    for (const link_result& link : result.links) {
      answer["links"].push_back({link.name, link.payload_bytes, link.utilization, link.backbone});
    }
  } catch (const std::exception& error) {
    answer = {{"finished", false}, {"passed", false}, {"complaint", error.what()}};
  }
  return answer.dump();
}

}  // namespace

child_outcome simulate_in_child(const platform_spec& spec) {
  platform_spec quiet = spec;
  quiet.trace = trace_level::none;
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe for a simulation's answer");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process for a simulation");
  if (child == 0) {
    close(ends[0]);
    const std::string answer = outcome_of(quiet);
    std::size_t written = 0;
    while (written < answer.size()) {
      const ssize_t n = write(ends[1], answer.data() + written, answer.size() - written);
      if (n <= 0) _exit(1);
      written += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string answer;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  child_outcome outcome;
  const nlohmann::json parsed = nlohmann::json::parse(answer, nullptr, false);
  if (status != 0 || parsed.is_discarded()) {
    outcome.complaint = "the simulation's process died";
    return outcome;
  }
  outcome.finished = parsed.value("finished", false);
  outcome.passed = parsed.value("passed", false);
  outcome.simulated_s = parsed.value("simulated_s", 0.0);
  outcome.slowest_round_s = parsed.value("slowest_round_s", 0.0);
  outcome.memory_high_water_bytes = parsed.value("high_water", std::uint64_t{0});
  for (const nlohmann::json& link : parsed.value("links", nlohmann::json::array())) {
    outcome.links.push_back(
        {link[0].get<std::string>(), link[1].get<std::uint64_t>(), link[2].get<double>(), link[3].get<bool>()});
  }
  outcome.complaint = parsed.value("complaint", std::string());
  return outcome;
}

}  // namespace tributary
