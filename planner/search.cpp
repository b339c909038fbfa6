#include "planner/search.hpp"

#include <algorithm>
#include <map>

namespace tributary::planner {

std::optional<rated_schedule> best_orthogonal_pair(const platform_model& model, unsigned size, double w) {
  const auto sites = static_cast<unsigned>(model.sites.size());
  if (size < 2 || sites != size * size || sites > 9) return std::nullopt;
  const std::vector<partition> partitions = all_partitions(sites, size);
  std::vector<double> cost;
  cost.reserve(partitions.size());
  for (const partition& each : partitions) cost.push_back(fluid_round_cost(model, each, w).seconds);
  std::optional<rated_schedule> best;
  for (std::size_t a = 0; a < partitions.size(); ++a) {
    for (std::size_t b = a + 1; b < partitions.size(); ++b) {
      const double total = cost[a] + cost[b];
      if (best && total >= best->seconds) continue;
      if (!orthogonal(partitions[a], partitions[b])) continue;
      const bool swap = cost[b] < cost[a];  // the quicker round first
      best = rated_schedule{
          {"rotating groups of " + std::to_string(size), {partitions[swap ? b : a], partitions[swap ? a : b]}}, total};
    }
  }
  return best;
}

schedule rotating_groups(const platform_model& model, unsigned size, double w) {
  if (std::optional<rated_schedule> best = best_orthogonal_pair(model, size, w)) return best->rounds;
  const auto sites = static_cast<unsigned>(model.sites.size());
  const unsigned columns = std::max(1U, (sites + size - 1) / size);
  partition rows;
  partition strides(columns);
  std::map<unsigned, group> by_row;
  for (unsigned site = 0; site < sites; ++site) {
    by_row[site / size].push_back(site);
    strides[site % columns].push_back(site);
  }
  for (auto& [row, members] : by_row) rows.push_back(members);
  return {"rotating groups of " + std::to_string(size), {rows, strides}};
}

}  // namespace tributary::planner
