#include "planner/search.hpp"

#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "planner/mixing.hpp"

namespace tributary::planner {

namespace {

/// Seconds a group of sites takes alone on the network; each set of sites is worked out once.
class group_costs {
 public:
  group_costs(const platform_model& model, double w) : model_(model), w_(w), latency_(model.latencies()) {}

  double operator()(const group& members) {
    if (members.size() < 2) return 0;
    std::uint64_t key = 0;
    for (const unsigned site : members) key |= std::uint64_t{1} << site;
    const auto [entry, added] = known_.try_emplace(key, 0.0);
    if (added) {
      group sorted = members;
      std::sort(sorted.begin(), sorted.end());
      const fluid_group cost = fluid_group_cost(model_, latency_, sorted, w_);
      entry->second = static_cast<double>(model_.update_bytes) / cost.rate.bytes_per_s + cost.latest_s;
    }
    return entry->second;
  }
  double round(const partition& groups) {
    double slowest = 0;
    for (const group& members : groups) slowest = std::max(slowest, (*this)(members));
    return slowest;
  }
  double pass(const schedule& of) {
    double total = 0;
    for (const partition& round_groups : of.rounds) total += round(round_groups);
    return total;
  }
  [[nodiscard]] const std::vector<std::vector<picoseconds>>& latency() const { return latency_; }

 private:
  const platform_model& model_;
  double w_;
  std::vector<std::vector<picoseconds>> latency_;
  std::unordered_map<std::uint64_t, double> known_;
};

/// Largest memory any receiver of the round needs at its group's rate.
double memory_need(const platform_model& model, const std::vector<std::vector<picoseconds>>& latency,
                   const partition& round, double w) {
  double most = 0;
  for (const group& members : round) {
    if (members.size() < 2) continue;
    const double rate = fluid_group_rate(model, latency, members, w).bytes_per_s;
    for (const unsigned j : members) most = std::max(most, fluid_memory_need(model, latency, members, j, rate));
  }
  return most;
}

}  // namespace

std::optional<rated_schedule> best_orthogonal_pair(const platform_model& model, unsigned size, double w) {
  const auto sites = static_cast<unsigned>(model.sites.size());
  if (size < 2 || sites != size * size || sites > 9) return std::nullopt;
  const std::vector<partition> partitions = all_partitions(sites, size);
  const auto latency = model.latencies();
  std::vector<double> cost;
  std::vector<double> memory;
  for (const partition& each : partitions) {
    cost.push_back(fluid_round_cost(model, each, w).seconds);
    memory.push_back(memory_need(model, latency, each, w));
  }
  std::optional<rated_schedule> best;
  double best_memory = 0;
  for (std::size_t a = 0; a < partitions.size(); ++a) {
    for (std::size_t b = a + 1; b < partitions.size(); ++b) {
      const double total = cost[a] + cost[b];
      const double need = std::max(memory[a], memory[b]);
      if (best) {
        const double slack = best->seconds * 1e-12;  // sums of the same terms in another order are equal
        if (total > best->seconds + slack || (total > best->seconds - slack && need >= best_memory)) continue;
      }
      if (!orthogonal(partitions[a], partitions[b])) continue;
      const bool swap = cost[b] < cost[a];  // the quicker round first
      best = rated_schedule{
          {"rotating groups of " + std::to_string(size), {partitions[swap ? b : a], partitions[swap ? a : b]}}, total};
      best_memory = need;
    }
  }
  return best;
}

rated_schedule best_labelling(const platform_model& model, const construction& of, double w, std::uint64_t seed,
                              unsigned restarts) {
  const auto sites = static_cast<unsigned>(model.sites.size());
  group_costs costs(model, w);
  boost::random::mt19937_64 random(seed);
  std::vector<unsigned> best_label(sites);
  std::iota(best_label.begin(), best_label.end(), 0U);
  double best = costs.pass(of.rounds);
  const bool symmetric = std::all_of(of.rounds.rounds.begin(), of.rounds.rounds.end(),
                                     [](const partition& round) { return round.size() == 1; });
  // A sweep tries every swap and costs every group; long schedules of many sites get fewer restarts, so that the whole
  // search stays within seconds. By count, not by clock: the answer is the same on any machine.
  std::size_t groups = 0;
  for (const partition& round : of.rounds.rounds) groups += round.size();
  const double sweeps = 1.2e6 / (static_cast<double>(groups) * sites * sites / 2);
  const auto attempts = static_cast<unsigned>(std::min<double>(restarts, sweeps));
  for (unsigned attempt = 0; attempt <= attempts && !symmetric; ++attempt) {
    std::vector<unsigned> label(sites);
    std::iota(label.begin(), label.end(), 0U);
    if (attempt > 0) {
      for (unsigned i = sites - 1; i > 0; --i) {
        std::swap(label[i], label[boost::random::uniform_int_distribution<unsigned>(0, i)(random)]);
      }
    }
    double current = costs.pass(relabelled(of.rounds, label));
    for (bool improved = true; improved;) {
      improved = false;
      for (unsigned i = 0; i < sites; ++i) {
        for (unsigned j = i + 1; j < sites; ++j) {
          std::swap(label[i], label[j]);
          const double swapped = costs.pass(relabelled(of.rounds, label));
          if (swapped < current * (1 - 1e-12)) {
            current = swapped;
            improved = true;
          } else {
            std::swap(label[i], label[j]);
          }
        }
      }
    }
    if (current < best * (1 - 1e-12)) {
      best = current;
      best_label = label;
    }
  }
  rated_schedule result{relabelled(of.rounds, best_label), 0};
  for (const partition& round : result.rounds.rounds) result.seconds += fluid_round_cost(model, round, w).seconds;
  return result;
}

schedule rotating_groups(const platform_model& model, unsigned size, double w) {
  if (std::optional<rated_schedule> best = best_orthogonal_pair(model, size, w)) return best->rounds;
  const auto sites = static_cast<unsigned>(model.sites.size());
  return best_labelling(model, grid_rotation(sites, size), w, 1, 4).rounds;
}

std::vector<rated_construction> search_schedules(const platform_model& model, double w, const search_options& options) {
  const auto sites = static_cast<unsigned>(model.sites.size());
  std::vector<double> weights;
  for (const site_model& site : model.sites) weights.push_back(site.weight);
  const bool equal_weights =
      std::all_of(weights.begin(), weights.end(), [&](double x) { return x == weights.front(); });

  std::vector<rated_construction> rated;
  for (const construction& each : constructions_for(sites, options.largest_group)) {
    rated_construction candidate;
    const std::size_t size = each.rounds.rounds.front().front().size();
    std::optional<rated_schedule> exact;
    if (each.exact_after == 2 && each.rounds.rounds.size() == 2 && size * size == sites) {
      exact = best_orthogonal_pair(model, static_cast<unsigned>(size), w);
    }
    candidate.rounds = exact ? exact->rounds : best_labelling(model, each, w, options.seed, options.restarts).rounds;
    candidate.rounds.name = each.rounds.name;
    for (const partition& round : candidate.rounds.rounds) {
      candidate.round_s.push_back(fluid_round_cost(model, round, w).seconds);
    }
    candidate.pass_s = std::accumulate(candidate.round_s.begin(), candidate.round_s.end(), 0.0);
    candidate.exact_after = equal_weights ? each.exact_after : 0;
    const auto most = static_cast<unsigned>(candidate.rounds.rounds.size()) * 40;
    candidate.rounds_to_epsilon = rounds_to_epsilon(candidate.rounds, weights, options.epsilon, most);
    candidate.to_epsilon_s = std::numeric_limits<double>::infinity();
    if (candidate.rounds_to_epsilon > 0) {
      candidate.to_epsilon_s = 0;
      for (unsigned t = 0; t < candidate.rounds_to_epsilon; ++t) {
        candidate.to_epsilon_s += candidate.round_s[t % candidate.round_s.size()];
      }
    }
    candidate.exchanged = exchange(candidate.rounds, candidate.round_s, sites);
    rated.push_back(std::move(candidate));
  }
  std::stable_sort(rated.begin(), rated.end(), [&](const rated_construction& a, const rated_construction& b) {
    switch (options.goal) {
      case objective::time_to_epsilon: return a.to_epsilon_s < b.to_epsilon_s;
      case objective::exchange_rate: return a.exchanged.pairs_per_s > b.exchanged.pairs_per_s;
      case objective::staleness: return a.exchanged.mean_age_s < b.exchanged.mean_age_s;
    }
    return false;
  });
  return rated;
}

}  // namespace tributary::planner
