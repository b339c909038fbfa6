#include "planner/send_offsets.hpp"

#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <CoinPackedVector.hpp>
#include <algorithm>
#include <limits>
#include <stdexcept>

namespace tributary::planner {

namespace {

/// Columns of the programme: offsets, latest arrivals, in place earliest arrivals, t, E; all at least zero.
class offset_programme {
 public:
  offset_programme(std::size_t members, bool in_place)
      : k_(static_cast<int>(members)),
        in_place_(in_place),
        objective_(static_cast<std::size_t>(columns()), 0),
        lower_(objective_.size(), 0),
        upper_(objective_.size(), COIN_DBL_MAX) {
    rows_.setDimensions(0, columns());
  }
  [[nodiscard]] static int offset(std::size_t i) { return static_cast<int>(i); }
  [[nodiscard]] int latest(std::size_t j) const { return k_ + static_cast<int>(j); }
  [[nodiscard]] int earliest(std::size_t j) const { return 2 * k_ + static_cast<int>(j); }
  [[nodiscard]] int seconds_a_byte() const { return (in_place_ ? 3 : 2) * k_; }
  [[nodiscard]] int latest_of_all() const { return seconds_a_byte() + 1; }
  [[nodiscard]] int columns() const { return seconds_a_byte() + 2; }

  void minimise(int column, double coefficient) { objective_[static_cast<std::size_t>(column)] = coefficient; }
  void no_less(int column, double bound) { lower_[static_cast<std::size_t>(column)] = bound; }
  void at_least(const std::vector<std::pair<int, double>>& terms, double bound) {
    CoinPackedVector row;
    for (const auto& [column, coefficient] : terms) row.insert(column, coefficient);
    rows_.appendRow(row);
    bounds_.push_back(bound);
  }
  void solve() {
    const std::vector<double> unbounded(bounds_.size(), COIN_DBL_MAX);
    model_.setLogLevel(0);
    model_.loadProblem(rows_, lower_.data(), upper_.data(), objective_.data(), bounds_.data(), unbounded.data());
    model_.primal();
    if (!model_.isProvenOptimal()) throw std::runtime_error("the programme of send offsets was not solved");
  }
  [[nodiscard]] double value(int column) const { return model_.primalColumnSolution()[column]; }

 private:
  int k_;
  bool in_place_;
  std::vector<double> objective_;
  std::vector<double> lower_;
  std::vector<double> upper_;
  std::vector<double> bounds_;
  CoinPackedMatrix rows_{false, 0, 0};
  ClpSimplex model_;
};

}  // namespace

offset_solution best_offsets(const platform_model& model, const std::vector<std::vector<picoseconds>>& latency,
                             const group& members, double rate_cap) {
  const std::size_t k = members.size();
  const bool in_place = model.buffering == buffering_policy::in_place;
  offset_programme programme(k, in_place);
  // Scaled so that all figures are near one: t in seconds a megabyte.
  constexpr double megabyte = 1e6;
  programme.minimise(programme.seconds_a_byte(), static_cast<double>(model.update_bytes) / megabyte);
  programme.minimise(programme.latest_of_all(), 1);
  programme.no_less(programme.seconds_a_byte(), megabyte / rate_cap);
  for (std::size_t j = 0; j < k; ++j) {
    const double memory = static_cast<double>(model.sites[members[j]].memory_bytes) / megabyte;
    programme.at_least({{programme.latest_of_all(), 1}, {programme.latest(j), -1}}, 0);
    std::vector<std::pair<int, double>> waits{{programme.seconds_a_byte(), memory},
                                              {programme.latest(j), -static_cast<double>(k - 1)}};
    double latencies = 0;
    for (std::size_t i = 0; i < k; ++i) {
      if (i == j) continue;
      const double there = seconds(latency[members[i]][members[j]]);
      programme.at_least({{programme.latest(j), 1}, {programme.offset(i), -1}}, there);
      if (in_place) programme.at_least({{programme.offset(i), 1}, {programme.earliest(j), -1}}, -there);
      waits.emplace_back(programme.offset(i), 1);
      latencies += there;
    }
    if (in_place) {
      if (k > 2) {
        programme.at_least(
            {{programme.seconds_a_byte(), memory}, {programme.latest(j), -1}, {programme.earliest(j), 1}}, 0);
      }
    } else {
      programme.at_least(waits, -latencies);
    }
  }
  programme.solve();
  offset_solution solution;
  double first = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < k; ++i) {
    solution.offset_s.push_back(programme.value(programme.offset(i)));
    first = std::min(first, solution.offset_s.back());
  }
  for (double& each : solution.offset_s) each -= first;
  solution.bytes_per_s = megabyte / programme.value(programme.seconds_a_byte());
  solution.latest_s = programme.value(programme.latest_of_all()) - first;
  solution.seconds = static_cast<double>(model.update_bytes) / solution.bytes_per_s + solution.latest_s;
  return solution;
}

}  // namespace tributary::planner
