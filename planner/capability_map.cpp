#include "planner/capability_map.hpp"

namespace tributary::planner {

platform_model with_capability(const platform_model& model, capability offered) {
  platform_model changed = model;
  changed.multicast = offered == capability::multicast || offered == capability::both;
  if (offered == capability::none || offered == capability::multicast) {
    changed.buffering = buffering_policy::none;
  } else if (changed.buffering == buffering_policy::none) {
    changed.buffering = buffering_policy::per_stream;
  }
  return changed;
}

std::vector<map_cell> map_schedules(const platform_model& model, double w, const map_request& request) {
  std::vector<map_cell> cells;
  for (const capability offered :
       {capability::none, capability::multicast, capability::aggregation, capability::both}) {
    platform_model changed = with_capability(model, offered);
    for (const std::uint64_t memory : request.memories) {
      for (const bits_per_s rate : request.rates) {
        for (site_model& site : changed.sites) {
          site.memory_bytes = memory;
          site.access_up = site.access_down = rate;
        }
        const rated_construction best = search_schedules(changed, w, request.search).front();
        map_cell cell{offered, memory, rate, best.rounds.name, best.to_epsilon_s};
        if (request.search.goal == objective::exchange_rate) cell.figure = best.exchanged.pairs_per_s;
        if (request.search.goal == objective::staleness) cell.figure = best.exchanged.mean_age_s;
        if (request.transit && offered == capability::both && request.search.goal == objective::time_to_epsilon) {
          const transit_cost transit = fluid_transit_cost(changed, w);
          if (transit.seconds < cell.figure) {
            cell.winner = "transit tree";
            cell.figure = transit.seconds;
          }
        }
        cells.push_back(std::move(cell));
      }
    }
  }
  return cells;
}

}  // namespace tributary::planner
