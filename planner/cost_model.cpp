#include "planner/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "planner/chunk_journey.hpp"
#include "planner/send_offsets.hpp"

namespace tributary::planner {

const char* to_string(rate_limit limit) {
  switch (limit) {
    case rate_limit::access_up: return "access up";
    case rate_limit::access_down: return "access down";
    case rate_limit::aggregator_ports: return "aggregator ports";
    case rate_limit::datapath: return "datapath";
    case rate_limit::consume: return "cluster intake";
    case rate_limit::memory_bandwidth: return "memory bandwidth";
    case rate_limit::memory_capacity: return "memory capacity";
    case rate_limit::shared_link: return "shared link";
  }
  return "";
}

std::vector<std::vector<picoseconds>> platform_model::latencies() const {
  std::vector<unsigned> devices;
  for (const site_model& site : sites) devices.push_back(site.device);
  std::vector<std::vector<picoseconds>> result;
  for (const site_model& site : sites) result.push_back(network.tree(site.device, devices).latency);
  return result;
}

// ---- fluid ------------------------------------------------------------------------------------------------------

double wire_overhead(const platform_model& model, bool headers) {
  if (!headers) return 1;
  return static_cast<double>(model.format.wire_bytes(model.chunk_bytes)) / static_cast<double>(model.chunk_bytes);
}

namespace {

/// Bytes of memory traffic per byte of one stream's payload.
double memory_traffic(buffering_policy policy, std::size_t k) {
  const auto others = static_cast<double>(k - 1);
  switch (policy) {
    case buffering_policy::per_stream: return 2 * others;
    case buffering_policy::in_place: return k >= 3 ? 2 * (others - 1) : 0;
    case buffering_policy::none: return 0;
  }
  return 0;
}

struct latency_spread {
  double latest = 0;  ///< D_j
  double earliest = std::numeric_limits<double>::infinity();
  double sum_of_waits = 0;
  double longest_round_trip = 0;
};

latency_spread spread_at(const std::vector<std::vector<picoseconds>>& latency, const group& members, unsigned j) {
  latency_spread spread;
  for (const unsigned i : members) {
    if (i == j) continue;
    spread.latest = std::max(spread.latest, seconds(latency[i][j]));
    spread.earliest = std::min(spread.earliest, seconds(latency[i][j]));
    spread.longest_round_trip = std::max(spread.longest_round_trip, seconds(latency[i][j] + latency[j][i]));
  }
  for (const unsigned i : members) {
    if (i != j) spread.sum_of_waits += spread.latest - seconds(latency[i][j]);
  }
  return spread;
}

/// Byte-seconds of memory a receiver needs per byte/s of stream rate.
double memory_seconds(const platform_model& model, const latency_spread& spread, std::size_t k) {
  if (model.buffering == buffering_policy::none) return 0;
  const bool in_place = model.buffering == buffering_policy::in_place;
  if (model.flow == flow_control::credit) {
    return spread.longest_round_trip * (in_place ? 1.0 : static_cast<double>(k - 1));
  }
  return in_place ? spread.latest - spread.earliest : spread.sum_of_waits;
}

}  // namespace

double fluid_memory_need(const platform_model& model, const std::vector<std::vector<picoseconds>>& latency,
                         const group& members, unsigned receiver, double rate) {
  return rate * memory_seconds(model, spread_at(latency, members, receiver), members.size());
}

fluid_rate fluid_group_rate(const platform_model& model, const std::vector<std::vector<picoseconds>>& latency,
                            const group& members, double w, bool capacity) {
  const std::size_t k = members.size();
  const auto others = static_cast<double>(k - 1);
  fluid_rate best{std::numeric_limits<double>::infinity(), rate_limit::access_up, members.front()};
  const auto bound = [&best](double rate, rate_limit limit, unsigned site) {
    if (rate < best.bytes_per_s) best = {rate, limit, site};
  };
  const auto bytes = [](bits_per_s rate) { return static_cast<double>(rate) / 8; };
  for (const unsigned j : members) {
    const site_model& site = model.sites[j];
    const bool unmerged = model.buffering == buffering_policy::none;
    const double merged_streams = unmerged ? others : 1;
    bound(bytes(site.access_up) / (w * (model.multicast ? 1.0 : others)), rate_limit::access_up, j);
    bound(bytes(site.access_down) / (w * merged_streams), rate_limit::access_down, j);
    bound(bytes(site.aggregator_ports) / (w * others), rate_limit::aggregator_ports, j);
    bound(bytes(site.consume_rate) / merged_streams, rate_limit::consume, j);
    if (!unmerged) bound(bytes(site.datapath_rate) / others, rate_limit::datapath, j);
    const double traffic = memory_traffic(model.buffering, k);
    if (traffic > 0) bound(bytes(site.memory_rate) / traffic, rate_limit::memory_bandwidth, j);
    const double hold = memory_seconds(model, spread_at(latency, members, j), k);
    if (hold > 0 && capacity) bound(static_cast<double>(site.memory_bytes) / hold, rate_limit::memory_capacity, j);
  }
  return best;
}

namespace {

/// Max-min fair rates by progressive filling. loads[g] = (edge, coefficient) pairs: rate x coefficient is what group g
/// puts on the edge. caps[g]: what the group may use at most. Returns the rates; limiting[g] is the edge that stopped
/// g, or no_edge when its cap did.
constexpr edge_id no_edge = std::numeric_limits<edge_id>::max();

std::vector<double> max_min_fair(const std::vector<std::vector<std::pair<edge_id, double>>>& loads,
                                 const std::vector<double>& caps, const std::vector<double>& edge_rates,
                                 std::vector<edge_id>& limiting) {
  const std::size_t groups = caps.size();
  std::vector<double> rate(groups, 0);
  std::vector<bool> frozen(groups, false);
  std::vector<double> left = edge_rates;
  limiting.assign(groups, no_edge);
  for (;;) {
    std::vector<double> pressure(edge_rates.size(), 0);
    bool any = false;
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t g = 0; g < groups; ++g) {
      if (frozen[g]) continue;
      any = true;
      step = std::min(step, caps[g] - rate[g]);
      for (const auto& [edge, coefficient] : loads[g]) pressure[edge] += coefficient;
    }
    if (!any) return rate;
    for (std::size_t e = 0; e < pressure.size(); ++e) {
      if (pressure[e] > 0) step = std::min(step, left[e] / pressure[e]);
    }
    for (std::size_t e = 0; e < pressure.size(); ++e) left[e] -= step * pressure[e];
    for (std::size_t g = 0; g < groups; ++g) {
      if (frozen[g]) continue;
      rate[g] += step;
      if (rate[g] >= caps[g] * (1 - 1e-12)) {
        frozen[g] = true;
        continue;
      }
      for (const auto& [edge, coefficient] : loads[g]) {
        if (left[edge] <= edge_rates[edge] * 1e-12) {
          frozen[g] = true;
          limiting[g] = edge;
          break;
        }
      }
    }
  }
}

/// `streams_on`: streams on each edge so far; those of the group are added.
std::vector<multicast_tree> group_trees(const platform_model& model, const group& members,
                                        std::vector<unsigned>& streams_on) {
  std::vector<multicast_tree> trees;
  // Under least_congestion the first trees knew nothing of the last ones, so all are laid twice.
  const unsigned passes = model.trees == tree_kind::least_congestion ? 2 : 1;
  for (unsigned pass = 0; pass < passes; ++pass) {
    for (std::size_t m = 0; m < members.size(); ++m) {
      std::vector<unsigned> destinations;
      for (const unsigned j : members) {
        if (j != members[m]) destinations.push_back(model.sites[j].device);
      }
      if (pass > 0) {
        for (const edge_id e : trees[m].edges) --streams_on[e];
      }
      multicast_tree tree = model.network.tree(model.sites[members[m]].device, destinations, model.trees, streams_on);
      for (const edge_id e : tree.edges) ++streams_on[e];
      if (pass == 0) {
        trees.push_back(std::move(tree));
      } else {
        trees[m] = std::move(tree);
      }
    }
  }
  return trees;
}

/// A tree's edges carry its stream once, or without multicast once for every receiver behind them.
std::vector<std::pair<edge_id, double>> group_loads(const std::vector<multicast_tree>& trees, double per_stream,
                                                    bool multicast) {
  std::vector<std::pair<edge_id, double>> loads;
  for (const multicast_tree& tree : trees) {
    if (multicast) {
      for (const edge_id e : tree.edges) loads.emplace_back(e, per_stream);
    } else {
      for (const std::vector<edge_id>& path : tree.paths) {
        for (const edge_id e : path) loads.emplace_back(e, per_stream);
      }
    }
  }
  return loads;
}

std::vector<double> edge_byte_rates(const topology& network) {
  std::vector<double> rates(network.edges());
  for (edge_id e = 0; e < network.edges(); ++e) rates[e] = static_cast<double>(network.rate(e)) / 8;
  return rates;
}

bool uses_offsets(const platform_model& model) {
  return model.send_offsets && model.flow == flow_control::paced && model.buffering != buffering_policy::none;
}

}  // namespace

fluid_group fluid_group_cost(const platform_model& model, const std::vector<std::vector<picoseconds>>& latency,
                             const group& members, double w) {
  fluid_group cost;
  if (uses_offsets(model)) {
    cost.rate = fluid_group_rate(model, latency, members, w, false);
    const offset_solution offsets = best_offsets(model, latency, members, cost.rate.bytes_per_s);
    if (offsets.bytes_per_s < cost.rate.bytes_per_s * (1 - 1e-9)) {
      cost.rate = {offsets.bytes_per_s, rate_limit::memory_capacity, members.front()};
    }
    cost.latest_s = offsets.latest_s;
    return cost;
  }
  cost.rate = fluid_group_rate(model, latency, members, w);
  for (const unsigned i : members) {
    for (const unsigned j : members) cost.latest_s = std::max(cost.latest_s, seconds(latency[i][j]));
  }
  return cost;
}

fluid_round fluid_round_cost(const platform_model& model, const partition& round, double w) {
  const auto latency = model.latencies();
  fluid_round cost;
  cost.rates.resize(round.size());
  std::vector<std::size_t> active;
  std::vector<double> caps;
  std::vector<double> latest;
  std::vector<std::vector<std::pair<edge_id, double>>> loads;
  std::vector<unsigned> streams_on(model.network.edges(), 0);
  for (std::size_t g = 0; g < round.size(); ++g) {
    if (round[g].size() < 2) continue;
    const fluid_group alone = fluid_group_cost(model, latency, round[g], w);
    cost.rates[g] = alone.rate;
    active.push_back(g);
    caps.push_back(alone.rate.bytes_per_s);
    latest.push_back(alone.latest_s);
    loads.push_back(group_loads(group_trees(model, round[g], streams_on), w, model.multicast));
  }
  std::vector<edge_id> limiting;
  const std::vector<double> rates = max_min_fair(loads, caps, edge_byte_rates(model.network), limiting);
  for (std::size_t a = 0; a < active.size(); ++a) {
    fluid_rate& rate = cost.rates[active[a]];
    rate.bytes_per_s = rates[a];
    if (limiting[a] != no_edge) {
      rate.limit = rate_limit::shared_link;
      rate.site = limiting[a];
    }
    cost.seconds = std::max(cost.seconds, static_cast<double>(model.update_bytes) / rate.bytes_per_s + latest[a]);
  }
  return cost;
}

transit_cost fluid_transit_cost(const platform_model& model, double w) {
  std::vector<unsigned> devices;
  for (const site_model& site : model.sites) devices.push_back(site.device);
  transit_cost best;
  best.seconds = std::numeric_limits<double>::infinity();
  for (unsigned root = 0; root < model.sites.size(); ++root) {
    const multicast_tree tree = model.network.tree(model.sites[root].device, devices, tree_kind::shortest);
    transit_cost cost;
    cost.root = root;
    cost.bytes_per_s = std::numeric_limits<double>::infinity();
    const auto bound = [&cost](double rate, rate_limit limit) {
      if (rate >= cost.bytes_per_s) return;
      cost.bytes_per_s = rate;
      cost.limit = limit;
    };
    // Streams into each site's aggregator: one from every branch below it, and its own cluster's.
    std::vector<unsigned> streams(model.network.devices(), 0);
    for (const edge_id e : tree.edges) {
      const edge_id up = e ^ 1U;
      for (const edge_id each : {e, up}) {
        bound(static_cast<double>(model.network.rate(each)) / 8 / w, rate_limit::shared_link);
      }
      ++streams[model.network.tail_of(e)];
    }
    for (const site_model& site : model.sites) {
      const double in = 1.0 + streams[site.device];
      bound(static_cast<double>(site.access_up) / 8 / w, rate_limit::access_up);
      bound(static_cast<double>(site.access_down) / 8 / w, rate_limit::access_down);
      // Up and down again: what comes from below, the own chunk, and the result.
      bound(static_cast<double>(site.aggregator_ports) / 8 / (w * (in + 1)), rate_limit::aggregator_ports);
      bound(static_cast<double>(site.datapath_rate) / 8 / in, rate_limit::datapath);
      bound(static_cast<double>(site.consume_rate) / 8, rate_limit::consume);
    }
    for (const picoseconds latency : tree.latency) cost.height_s = std::max(cost.height_s, seconds(latency));
    cost.seconds = static_cast<double>(model.update_bytes) / cost.bytes_per_s + 2 * cost.height_s;
    if (cost.seconds < best.seconds) best = cost;
  }
  return best;
}

// ---- planned ----------------------------------------------------------------------------------------------------

namespace {

/// `streams_on[e]`: streams of the whole round that cross edge e.
arrival arrive(const platform_model& model, const site_model& from, const site_model& to, const multicast_tree& tree,
               std::size_t destination, std::uint64_t payload, const std::vector<unsigned>& streams_on) {
  chunk_journey chunk(model.format, payload, model.cut_through_header);
  chunk.cross(from.access_up, from.access_latency, false, true);
  chunk.forward(model.forwarding_latency);
  for (const edge_id e : tree.paths[destination]) {
    chunk.cross(model.network.rate(e), model.network.latency(e), true, true);
    chunk.forward(model.forwarding_latency);
    chunk.now.jitter += model.network.jitter(e);
    if (streams_on[e] > 1) chunk.now.jitter += (streams_on[e] - 1) * chunk.whole_on(model.network.rate(e));
  }
  chunk.cross(to.aggregator_ports, to.access_latency, true, false);
  return chunk.now;
}

picoseconds memory_time(const site_model& site, std::uint64_t bytes) {
  return transfer_time(bytes, site.memory_rate) + site.memory_latency;
}

/// From the last stream's tail to the merged chunk leaving the adders.
picoseconds merge_time(const platform_model& model, const site_model& site, std::size_t k, std::uint64_t payload) {
  const std::uint64_t operands = k - 1;
  switch (model.buffering) {
    case buffering_policy::per_stream:
      return std::max(memory_time(site, operands * payload), transfer_time(operands * payload, site.datapath_rate)) +
             site.adder_latency;
    case buffering_policy::in_place: {
      const picoseconds add = transfer_time(payload, site.datapath_rate);
      return (k > 2 ? std::max(memory_time(site, payload), add) : add) + site.adder_latency;
    }
    case buffering_policy::none: return 0;
  }
  return 0;
}

struct receiver_times {
  std::vector<arrival> from;  ///< per other member, in member order
  picoseconds released = 0;   ///< slots of a chunk are free, from the chunk's departure at its sources
};

receiver_times times_at(const platform_model& model, const group_plan& plan, std::size_t receiver,
                        std::uint64_t payload, const std::vector<unsigned>& streams_on) {
  receiver_times times;
  const site_model& to = model.sites[plan.members[receiver]];
  const std::size_t k = plan.members.size();
  for (std::size_t i = 0; i < k; ++i) {
    if (i == receiver) continue;
    const std::size_t destination = receiver < i ? receiver : receiver - 1;
    arrival there = arrive(model, model.sites[plan.members[i]], to, plan.trees[i], destination, payload, streams_on);
    picoseconds later = plan.offsets.empty() ? 0 : plan.offsets[i];
    if (!model.multicast) {  // copies leave one after the other
      later += destination * transfer_time(model.format.wire_bytes(payload), model.sites[plan.members[i]].access_up);
    }
    there.head += later;
    there.tail += later;
    if (model.repair) {  // a nack there, and the packets again
      there.repair = model.repair_delay + plan.trees[i].latency[destination] +
                     plan.trees[receiver].latency[i < receiver ? i : i - 1];
      double arrives = 1;
      for (const edge_id e : plan.trees[i].paths[destination]) arrives *= 1 - model.network.loss(e);
      there.loss = 1 - arrives;
    }
    times.from.push_back(there);
    picoseconds complete = there.tail + there.jitter;
    if (model.buffering == buffering_policy::per_stream) {
      complete = std::max(complete, there.head + there.jitter + memory_time(to, payload));
    }
    times.released = std::max(times.released, complete);
  }
  times.released += merge_time(model, to, k, payload);
  return times;
}

/// Chunks that wait for a packet to be sent again, at most but for one case in a thousand: each chunk with probability
/// q for a repair's time, a few of them for a second one, and three standard deviations of their (Poisson) number.
std::uint64_t chunks_in_repair(const receiver_times& times, std::uint32_t packets, picoseconds pace) {
  double whole = 1;
  double mean_losses = 0;
  double again = 0;
  picoseconds repair = 0;
  for (const arrival& each : times.from) {
    whole *= std::pow(1 - each.loss, packets);
    mean_losses += each.loss * packets;
    again += each.loss * packets * each.loss;
    repair = std::max(repair, each.repair);
  }
  if (mean_losses == 0) return 0;
  const double q = 1 - whole;
  const double tries = 1 / (1 - std::min(0.5, again / q));
  const double mean = std::min(1.0, q) * tries * static_cast<double>(repair) / static_cast<double>(pace);
  return static_cast<std::uint64_t>(std::ceil(std::min(9e18, mean + 3 * std::sqrt(mean))));
}

std::uint64_t slots_at(buffering_policy policy, const receiver_times& times, std::uint32_t packets, picoseconds pace) {
  // A slot held for H of every period T: at most floor(H/T) + 1 are held at once.
  const auto held = [pace](picoseconds hold) { return hold / pace + 1; };
  if (policy == buffering_policy::none) return 0;
  const std::uint64_t waiting = chunks_in_repair(times, packets, pace);
  if (policy == buffering_policy::in_place) {
    if (times.from.size() == 1) return 0;
    picoseconds earliest = times.from.front().head;
    for (const arrival& each : times.from) earliest = std::min(earliest, each.head);
    return held(times.released - earliest) + waiting;
  }
  std::uint64_t total = waiting * times.from.size();
  for (const arrival& each : times.from) total += held(times.released - each.head);
  return total;
}

std::vector<unsigned> count_streams(const platform_model& model, const std::vector<group_plan>& groups) {
  std::vector<unsigned> streams(model.network.edges(), 0);
  for (const group_plan& plan : groups) {
    for (const auto& [edge, count] : group_loads(plan.trees, 1, model.multicast)) ++streams[edge];
  }
  return streams;
}

/// Shortest pace at which the receiver's slots suffice.
picoseconds capacity_pace(const platform_model& model, const site_model& site, const receiver_times& times) {
  const std::uint64_t slots = site.memory_bytes / model.chunk_bytes;
  const std::uint32_t packets = model.format.packets(model.chunk_bytes);
  const std::uint64_t least = slots_at(model.buffering, times, packets, std::numeric_limits<picoseconds>::max());
  if (least > slots) {
    throw std::invalid_argument("aggregator memory of " + site.name + " holds " + std::to_string(slots) +
                                " chunks; the group needs at least " + std::to_string(least));
  }
  picoseconds low = 1;
  picoseconds high = times.released + 1;  // one chunk at a time always fits
  while (slots_at(model.buffering, times, packets, high) > slots) high *= 2;
  while (low < high) {
    const picoseconds middle = low + (high - low) / 2;
    if (slots_at(model.buffering, times, packets, middle) <= slots) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

struct paced_group {
  picoseconds pace = 0;
  picoseconds without_memory = 0;
  rate_limit limit = rate_limit::access_up;
  unsigned at = 0;
};

paced_group own_pace(const platform_model& model, const group_plan& plan, const std::vector<unsigned>& streams_on) {
  paced_group result;
  const std::size_t k = plan.members.size();
  const std::uint64_t chunk = model.chunk_bytes;
  const std::uint64_t wire = chunk_wire_bytes(model);
  const std::uint64_t copies = model.multicast ? 1 : k - 1;
  const bool unmerged = model.buffering == buffering_policy::none;
  const std::uint64_t down_streams = unmerged ? k - 1 : 1;
  const auto bound = [&result](picoseconds pace, rate_limit limit, unsigned site) {
    if (pace <= result.pace) return;
    result.pace = pace;
    result.limit = limit;
    result.at = site;
  };
  for (const unsigned j : plan.members) {
    const site_model& site = model.sites[j];
    bound(transfer_time(wire * copies, site.access_up), rate_limit::access_up, j);
    bound(transfer_time(wire * down_streams, site.access_down), rate_limit::access_down, j);
    bound(transfer_time(wire * (k - 1), site.aggregator_ports), rate_limit::aggregator_ports, j);
    bound(transfer_time(chunk * down_streams, site.consume_rate), rate_limit::consume, j);
    if (!unmerged) bound(transfer_time(chunk * (k - 1), site.datapath_rate), rate_limit::datapath, j);
    const auto traffic = static_cast<std::uint64_t>(memory_traffic(model.buffering, k));
    if (traffic > 0) bound(transfer_time(chunk * traffic, site.memory_rate), rate_limit::memory_bandwidth, j);
  }
  result.without_memory = result.pace;
  if (!unmerged && model.flow == flow_control::paced) {
    for (std::size_t j = 0; j < k; ++j) {
      const site_model& site = model.sites[plan.members[j]];
      bound(capacity_pace(model, site, times_at(model, plan, j, chunk, streams_on)), rate_limit::memory_capacity,
            plan.members[j]);
    }
  }
  return result;
}

/// From the release of the round to the apply of member `receiver`.
/// Windows and the longest credit cycle of a group under credit flow control. A slot is reserved from its credit's
/// departure: credit to the source, chunk to the receiver, merge, and so on.
void credit_windows(const platform_model& model, group_plan& plan, const std::vector<unsigned>& streams_on) {
  const std::size_t k = plan.members.size();
  const wire_format& format = model.format;
  for (std::size_t j = 0; j < k; ++j) {
    const site_model& receiver = model.sites[plan.members[j]];
    const std::uint64_t slots = receiver.memory_bytes / model.chunk_bytes;
    const std::uint64_t window = model.buffering == buffering_policy::in_place ? slots : slots / (k - 1);
    if (window == 0) {
      throw std::invalid_argument("aggregator memory of " + receiver.name + " holds " + std::to_string(slots) +
                                  " chunks; " + std::to_string(k - 1) + " streams need one each");
    }
    plan.windows.push_back(window);
    const receiver_times times = times_at(model, plan, j, model.chunk_bytes, streams_on);
    const picoseconds merge = merge_time(model, receiver, k, model.chunk_bytes);
    std::size_t index = 0;
    picoseconds cycle = 0;
    for (std::size_t i = 0; i < k; ++i) {
      if (i == j) continue;
      const site_model& sender = model.sites[plan.members[i]];
      const std::size_t destination = i < j ? i : i - 1;
      chunk_journey credit(format, 0, model.cut_through_header);
      credit.cross(receiver.aggregator_ports, receiver.access_latency, false, true);
      credit.forward(model.forwarding_latency);
      for (const edge_id e : plan.trees[j].paths[destination]) {
        credit.cross(model.network.rate(e), model.network.latency(e), true, true);
        credit.forward(model.forwarding_latency);
      }
      credit.cross(sender.aggregator_ports, sender.access_latency, true, false);
      credit.cross(sender.access_down, sender.access_latency, false, false);
      cycle = std::max(cycle, times.from[index++].tail + merge + credit.now.tail);
    }
    plan.credit_cycles.push_back(cycle);
  }
}

picoseconds finish_at(const platform_model& model, const group_plan& plan, std::size_t receiver) {
  const site_model& to = model.sites[plan.members[receiver]];
  const std::size_t k = plan.members.size();
  const std::vector<unsigned> alone(model.network.edges(), 0);
  picoseconds released = 0;  // all sources share the slowest start: their chunks meet at the receivers
  const std::uint64_t chunks = model.chunks();
  picoseconds finish = 0;
  // The last chunk may be short, so the one before it can come later.
  for (std::uint64_t c = chunks - std::min<std::uint64_t>(chunks, 2); c < chunks; ++c) {
    const std::uint64_t payload = std::min(model.chunk_bytes, model.update_bytes - c * model.chunk_bytes);
    const receiver_times times = times_at(model, plan, receiver, payload, alone);
    picoseconds merged = 0;
    std::size_t index = 0;
    for (std::size_t i = 0; i < k; ++i) {
      if (i == receiver) continue;
      const site_model& from = model.sites[plan.members[i]];
      const arrival& there = times.from[index++];
      picoseconds complete = there.tail;
      if (model.buffering == buffering_policy::per_stream) {
        complete = std::max(complete, there.head + memory_time(to, payload));
      }
      merged = std::max(merged, from.compute_time + departure(plan, c) + complete);
    }
    merged += merge_time(model, to, k, payload);
    chunk_journey down(model.format, payload);
    down.cross(to.access_down, to.access_latency, false, false);
    const picoseconds consumed =
        std::max(merged + down.now.tail, merged + down.now.head + transfer_time(payload, to.consume_rate));
    finish = std::max(finish, consumed);
  }
  released = finish;
  return released + to.apply_time;
}

}  // namespace

picoseconds departure(const group_plan& plan, std::uint64_t c) {
  picoseconds latest = c * plan.pace;
  // A receiver's window leaves at the pace, then the next one when its first credit is back, or right away if it was
  // back before; the slowest receiver rules.
  for (std::size_t j = 0; j < plan.windows.size(); ++j) {
    const std::uint64_t window = plan.windows[j];
    latest =
        std::max(latest, c / window * std::max(plan.credit_cycles[j], window * plan.pace) + c % window * plan.pace);
  }
  return latest;
}

double sustained_rate(const group_plan& plan, std::uint64_t chunk_bytes) {
  double per_chunk = static_cast<double>(plan.pace);
  for (std::size_t j = 0; j < plan.windows.size(); ++j) {
    per_chunk = std::max(per_chunk, static_cast<double>(plan.credit_cycles[j]) / static_cast<double>(plan.windows[j]));
  }
  return static_cast<double>(chunk_bytes) * 8e12 / per_chunk;
}

std::uint64_t slots_needed(const platform_model& model, const group_plan& plan, unsigned receiver, picoseconds pace) {
  std::vector<group_plan> alone{plan};
  return slots_at(model.buffering, times_at(model, plan, receiver, model.chunk_bytes, count_streams(model, alone)),
                  model.format.packets(model.chunk_bytes), pace);
}

namespace {

/// Offsets for what the group could send alone, with the slots that chunks in assembly take left out of its memory.
void add_offsets(const platform_model& model, group_plan& plan) {
  platform_model usable = model;
  const std::uint64_t assembling =
      2 * model.chunk_bytes * (model.buffering == buffering_policy::per_stream ? plan.members.size() - 1 : 1);
  for (site_model& site : usable.sites) {
    site.memory_bytes = site.memory_bytes > 2 * assembling ? site.memory_bytes - assembling : site.memory_bytes / 2 + 1;
  }
  const auto latency = model.latencies();
  const double cap = fluid_group_rate(model, latency, plan.members, wire_overhead(model, true), false).bytes_per_s;
  const offset_solution best = best_offsets(usable, latency, plan.members, cap);
  for (const double each : best.offset_s) plan.offsets.push_back(from_seconds(each));
}

}  // namespace

round_plan plan_round(const platform_model& model, const partition& round) {
  round_plan plan;
  std::vector<unsigned> laid(model.network.edges(), 0);
  for (const group& members : round) {
    if (members.size() < 2) {
      for (const unsigned site : members) {
        plan.predicted = std::max(plan.predicted, model.sites[site].compute_time + model.sites[site].apply_time);
      }
      continue;
    }
    group_plan each;
    each.members = members;
    each.trees = group_trees(model, members, laid);
    for (const multicast_tree& tree : each.trees) {
      for (const picoseconds latency : tree.latency) each.longest_latency = std::max(each.longest_latency, latency);
    }
    plan.groups.push_back(std::move(each));
  }
  const std::vector<unsigned> streams_on = count_streams(model, plan.groups);

  // Chunks a second, max-min fair over the links the groups share.
  std::vector<double> caps;
  std::vector<double> caps_without_memory;
  std::vector<std::vector<std::pair<edge_id, double>>> loads;
  std::vector<paced_group> own;
  const auto wire = static_cast<double>(chunk_wire_bytes(model));
  for (group_plan& each : plan.groups) {
    if (uses_offsets(model)) add_offsets(model, each);
    own.push_back(own_pace(model, each, streams_on));
    caps.push_back(1e12 / static_cast<double>(own.back().pace));
    caps_without_memory.push_back(1e12 / static_cast<double>(own.back().without_memory));
    loads.push_back(group_loads(each.trees, wire, model.multicast));
  }
  std::vector<edge_id> limiting;
  std::vector<edge_id> ignored;
  const std::vector<double> edge_rates = edge_byte_rates(model.network);
  const std::vector<double> rates = max_min_fair(loads, caps, edge_rates, limiting);
  const std::vector<double> unbuffered = max_min_fair(loads, caps_without_memory, edge_rates, ignored);
  const auto pace_of = [](double rate) { return static_cast<picoseconds>(1e12 / rate * (1 + 1e-12)) + 1; };
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    group_plan& each = plan.groups[g];
    const bool shared = limiting[g] != no_edge;
    each.pace = shared ? std::max(own[g].pace, pace_of(rates[g])) : own[g].pace;
    each.limit = shared ? rate_limit::shared_link : own[g].limit;
    each.limit_at = shared ? limiting[g] : own[g].at;
    each.unbuffered_pace =
        ignored[g] != no_edge ? std::max(own[g].without_memory, pace_of(unbuffered[g])) : own[g].without_memory;
    each.unbuffered_pace = std::min(each.unbuffered_pace, each.pace);
    if (model.flow == flow_control::credit && model.buffering != buffering_policy::none) {
      credit_windows(model, each, streams_on);
      for (std::size_t j = 0; j < each.windows.size(); ++j) {
        if (each.credit_cycles[j] <= each.windows[j] * each.pace || model.chunks() <= each.windows[j]) continue;
        each.limit = rate_limit::memory_capacity;
        each.limit_at = each.members[j];
      }
    }
    for (std::size_t j = 0; j < each.members.size(); ++j) {
      each.predicted = std::max(each.predicted, finish_at(model, each, j));
    }
    plan.predicted = std::max(plan.predicted, each.predicted);
  }
  return plan;
}

}  // namespace tributary::planner
