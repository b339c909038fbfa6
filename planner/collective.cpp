#include "planner/collective.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>

#include "planner/chunk_journey.hpp"

namespace tributary::planner {

namespace {

constexpr unsigned none = std::numeric_limits<unsigned>::max();

struct bottleneck {
  picoseconds pace = 0;
  rate_limit limit = rate_limit::access_up;
  unsigned at = 0;
  void bound(picoseconds at_least, rate_limit why, unsigned where) {
    if (at_least <= pace) return;
    pace = at_least;
    limit = why;
    at = where;
  }
};

unicast_path path_between(const platform_model& model, unsigned from, unsigned to) {
  const multicast_tree tree = model.network.tree(model.sites[from].device, {model.sites[to].device});
  return {from, to, tree.paths.front()};
}

picoseconds latency_of(const topology& network, const std::vector<edge_id>& path) {
  picoseconds sum = 0;
  for (const edge_id e : path) sum += network.latency(e);
  return sum;
}

/// Bounds the pace by the links when every path carries `chunks` chunks a pace, `shared` ones counted together.
void bound_by_links(const platform_model& model, const std::vector<unicast_path>& paths, std::uint64_t chunks,
                    bottleneck& slowest) {
  std::vector<std::uint64_t> crossing(model.network.edges(), 0);
  for (const unicast_path& path : paths) {
    for (const edge_id e : path.edges) ++crossing[e];
  }
  const std::uint64_t wire = chunk_wire_bytes(model);
  for (edge_id e = 0; e < model.network.edges(); ++e) {
    if (crossing[e] == 0) continue;
    slowest.bound(transfer_time(crossing[e] * chunks * wire, model.network.rate(e)), rate_limit::shared_link, e);
  }
}

/// From a cluster to another one, passed through by the aggregator there.
picoseconds cluster_to_cluster(const platform_model& model, const unicast_path& path) {
  const site_model& from = model.sites[path.from];
  const site_model& to = model.sites[path.to];
  chunk_journey chunk(model.format, model.chunk_bytes, model.cut_through_header);
  chunk.cross(from.access_up, from.access_latency, false, true);
  chunk.forward(model.forwarding_latency);
  chunk.travel(model, path.edges);
  chunk.cross(to.aggregator_ports, to.access_latency, true, false);
  chunk.cross(to.access_down, to.access_latency, false, false);
  return std::max(chunk.now.tail, chunk.now.head + transfer_time(model.chunk_bytes, to.consume_rate));
}

picoseconds longest_compute(const platform_model& model, const group& members) {
  picoseconds longest = 0;
  for (const unsigned site : members) longest = std::max(longest, model.sites[site].compute_time);
  return longest;
}

picoseconds longest_apply(const platform_model& model, const group& members) {
  picoseconds longest = 0;
  for (const unsigned site : members) longest = std::max(longest, model.sites[site].apply_time);
  return longest;
}

void take_limit(collective_plan& plan, const bottleneck& slowest) {
  plan.pace = slowest.pace;
  plan.limit = slowest.limit;
  plan.limit_at = slowest.at;
}

// ---- hub --------------------------------------------------------------------------------------------------------

collective_plan plan_hub(const platform_model& model, const group& members, unsigned hub) {
  collective_plan plan;
  plan.kind = collective_kind::hub;
  plan.members = members;
  plan.root = hub;
  plan.offsets.assign(members.size(), 0);
  picoseconds there = 0;
  picoseconds back = 0;
  for (const unsigned site : members) {
    if (site == hub) continue;
    plan.paths.push_back(path_between(model, site, hub));
    there = std::max(there, cluster_to_cluster(model, plan.paths.back()));
    plan.paths.push_back(path_between(model, hub, site));
    back = std::max(back, cluster_to_cluster(model, plan.paths.back()));
  }
  const std::uint64_t wire = chunk_wire_bytes(model);
  const std::uint64_t others = members.size() - 1;
  bottleneck slowest;
  for (const unsigned site : members) {
    const site_model& at = model.sites[site];
    const std::uint64_t streams = site == hub ? others : 1;
    slowest.bound(transfer_time(streams * wire, at.access_up), rate_limit::access_up, site);
    slowest.bound(transfer_time(streams * wire, at.access_down), rate_limit::access_down, site);
    slowest.bound(transfer_time(streams * wire, at.aggregator_ports), rate_limit::aggregator_ports, site);
    slowest.bound(transfer_time(streams * model.chunk_bytes, at.consume_rate), rate_limit::consume, site);
  }
  bound_by_links(model, plan.paths, 1, slowest);
  take_limit(plan, slowest);
  const picoseconds copies = (others - 1) * transfer_time(wire, model.sites[hub].access_up);
  plan.predicted = longest_compute(model, members) + (model.chunks() - 1) * plan.pace + there + copies + back +
                   longest_apply(model, members);
  return plan;
}

// ---- ring -------------------------------------------------------------------------------------------------------

/// Nearest neighbour from the first site, then 2-opt, over the latencies there and back.
std::vector<unsigned> ring_order(const platform_model& model, const group& members) {
  const auto latency = model.latencies();
  const auto distance = [&latency](unsigned a, unsigned b) { return latency[a][b] + latency[b][a]; };
  std::vector<unsigned> order{members.front()};
  std::vector<unsigned> left(members.begin() + 1, members.end());
  while (!left.empty()) {
    const auto nearest = std::min_element(left.begin(), left.end(), [&](unsigned x, unsigned y) {
      return distance(order.back(), x) < distance(order.back(), y);
    });
    order.push_back(*nearest);
    left.erase(nearest);
  }
  const std::size_t n = order.size();
  for (bool better = n > 3; better;) {
    better = false;
    for (std::size_t i = 0; i + 2 < n; ++i) {
      for (std::size_t j = i + 2; j < n; ++j) {
        if (i == 0 && j + 1 == n) continue;
        const unsigned after = order[(j + 1) % n];
        if (distance(order[i], order[j]) + distance(order[i + 1], after) >=
            distance(order[i], order[i + 1]) + distance(order[j], after)) {
          continue;
        }
        std::reverse(order.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                     order.begin() + static_cast<std::ptrdiff_t>(j) + 1);
        better = true;
      }
    }
  }
  return order;
}

collective_plan plan_ring(const platform_model& model, const group& members) {
  collective_plan plan;
  plan.kind = collective_kind::ring;
  plan.members = members;
  plan.order = ring_order(model, members);
  plan.root = plan.order.front();
  plan.offsets.assign(members.size(), 0);
  const std::size_t n = members.size();
  picoseconds around = 0;
  for (std::size_t i = 0; i < n; ++i) {
    plan.paths.push_back(path_between(model, plan.order[i], plan.order[(i + 1) % n]));
    around += cluster_to_cluster(model, plan.paths.back());
  }
  const std::uint64_t hops = 2 * (n - 1);
  const std::uint64_t wire = chunk_wire_bytes(model);
  bottleneck slowest;
  for (const unsigned site : members) {
    const site_model& at = model.sites[site];
    slowest.bound(transfer_time(hops * wire, at.access_up), rate_limit::access_up, site);
    slowest.bound(transfer_time(hops * wire, at.access_down), rate_limit::access_down, site);
    slowest.bound(transfer_time(hops * wire, at.aggregator_ports), rate_limit::aggregator_ports, site);
    slowest.bound(transfer_time(hops * model.chunk_bytes, at.consume_rate), rate_limit::consume, site);
  }
  bound_by_links(model, plan.paths, hops, slowest);
  take_limit(plan, slowest);
  const std::uint64_t each = (model.chunks() + n - 1) / n;
  // Twice around, less the two hops it does not take (the shortest are not left out: a bound).
  const picoseconds way = 2 * around - 2 * (around / n);
  plan.predicted = longest_compute(model, members) + each * plan.pace + way + longest_apply(model, members);
  return plan;
}

// ---- transit reduction ------------------------------------------------------------------------------------------

/// A spanning tree of the devices, as undirected links, hung up at a device.
struct device_tree {
  std::vector<edge_id> up;      ///< per device, the edge towards the root; none at the root or outside
  std::vector<unsigned> order;  ///< devices, root first
};

device_tree hang_up(const topology& network, const std::vector<bool>& in_tree, unsigned root) {
  device_tree tree;
  tree.up.assign(network.devices(), none);
  std::vector<bool> seen(network.devices(), false);
  tree.order.push_back(root);
  seen[root] = true;
  for (std::size_t i = 0; i < tree.order.size(); ++i) {
    const unsigned at = tree.order[i];
    for (edge_id e = 0; e < network.edges(); ++e) {
      if (!in_tree[e / 2] || network.tail_of(e) != at || seen[network.head_of(e)]) continue;
      const unsigned next = network.head_of(e);
      seen[next] = true;
      tree.up[next] = e ^ 1U;
      tree.order.push_back(next);
    }
  }
  return tree;
}

collective_plan plan_transit_on(const platform_model& model, const group& members, const std::vector<bool>& in_tree,
                                unsigned root) {
  const topology& network = model.network;
  collective_plan plan;
  plan.kind = collective_kind::transit;
  plan.members = members;
  plan.root = root;
  const device_tree tree = hang_up(network, in_tree, model.sites[root].device);
  std::map<unsigned, unsigned> site_at;  // where several share a device the root, or the first, is on the way
  for (const unsigned site : members) site_at.emplace(model.sites[site].device, site);
  site_at[model.sites[root].device] = root;

  for (const unsigned site : members) {
    unicast_path path{site, root, {}};
    unsigned at = model.sites[site].device;
    if (site_at[at] != site) {
      path.to = site_at[at];
    } else {
      while (tree.up[at] != none) {
        path.edges.push_back(tree.up[at]);
        at = network.head_of(tree.up[at]);
        const auto found = site_at.find(at);
        if (found == site_at.end()) continue;
        path.to = found->second;
        break;
      }
    }
    plan.parent.push_back(path.to);
    if (site != root) plan.paths.push_back(std::move(path));
  }

  // Down: from the root to every member, by tree edges.
  plan.down.root = model.sites[root].device;
  std::vector<bool> used(network.edges(), false);
  std::map<unsigned, std::vector<edge_id>> down_to;
  for (const unsigned site : members) {
    if (site == root) continue;
    const unsigned device = model.sites[site].device;
    std::vector<edge_id> path;
    for (unsigned at = device; tree.up[at] != none; at = network.head_of(tree.up[at])) path.push_back(tree.up[at] ^ 1U);
    std::reverse(path.begin(), path.end());
    for (const edge_id e : path) {
      if (used[e]) continue;
      used[e] = true;
      plan.down.edges.push_back(e);
    }
    plan.down.destinations.push_back(device);
    plan.down.latency.push_back(latency_of(network, path));
    plan.down.paths.push_back(path);
  }

  // Pace.
  const std::uint64_t wire = chunk_wire_bytes(model);
  std::map<unsigned, std::uint64_t> children;
  for (const unicast_path& path : plan.paths) ++children[path.to];
  bottleneck slowest;
  for (const unsigned site : members) {
    const site_model& at = model.sites[site];
    const std::uint64_t streams = 1 + children[site];
    slowest.bound(transfer_time(wire, at.access_up), rate_limit::access_up, site);
    slowest.bound(transfer_time(wire, at.access_down), rate_limit::access_down, site);
    // In come the streams and the result, out goes one.
    slowest.bound(transfer_time((streams + (site == root ? 0 : 1)) * wire, at.aggregator_ports),
                  rate_limit::aggregator_ports, site);
    slowest.bound(transfer_time(model.chunk_bytes, at.consume_rate), rate_limit::consume, site);
    slowest.bound(transfer_time(streams * model.chunk_bytes, at.datapath_rate), rate_limit::datapath, site);
    const std::uint64_t traffic =
        model.buffering == buffering_policy::in_place ? (streams > 2 ? 2 * (streams - 1) : 0) : 2 * streams;
    if (traffic > 0) {
      slowest.bound(transfer_time(traffic * model.chunk_bytes, at.memory_rate), rate_limit::memory_bandwidth, site);
    }
  }
  bound_by_links(model, plan.paths, 1, slowest);
  for (const edge_id e : plan.down.edges) {
    slowest.bound(transfer_time(wire, network.rate(e)), rate_limit::shared_link, e);
  }
  take_limit(plan, slowest);

  // When each site's own chunk, and then its sum, is ready: leaves first. A site with slack waits with its whole
  // branch.
  const auto index_of = [&members](unsigned site) {
    return static_cast<std::size_t>(std::lower_bound(members.begin(), members.end(), site) - members.begin());
  };
  const std::uint64_t chunk = model.chunk_bytes;
  const auto own_way = [&](unsigned site) {
    const site_model& at = model.sites[site];
    chunk_journey own(model.format, chunk, model.cut_through_header);
    own.cross(at.access_up, at.access_latency, false, true);
    own.forward(model.forwarding_latency);
    own.cross(at.aggregator_ports, at.access_latency, true, false);
    return own.now;
  };
  const auto up_way = [&](const unicast_path& path) {
    const site_model& from = model.sites[path.from];
    const site_model& to = model.sites[path.to];
    chunk_journey sum(model.format, chunk, model.cut_through_header);
    sum.cross(from.aggregator_ports, from.access_latency, false, true);
    sum.forward(model.forwarding_latency);
    sum.travel(model, path.edges);
    sum.cross(to.aggregator_ports, to.access_latency, true, false);
    return sum.now;
  };
  const auto merge = [&](unsigned site) {
    const site_model& at = model.sites[site];
    const std::uint64_t streams = 1 + children[site];
    const picoseconds adding = transfer_time(streams * chunk, at.datapath_rate);
    const picoseconds memory =
        model.buffering == buffering_policy::in_place
            ? (streams > 1 ? transfer_time(2 * chunk, at.memory_rate) + 2 * at.memory_latency : 0)
            : transfer_time((streams + 1) * chunk, at.memory_rate) + 2 * at.memory_latency;
    return std::max(adding, memory) + at.adder_latency;
  };
  std::vector<picoseconds> ready(members.size(), 0);  // all streams of the first chunk are in
  std::vector<unsigned> by_depth;                     // children before parents
  for (auto device = tree.order.rbegin(); device != tree.order.rend(); ++device) {
    const auto first = site_at.find(*device);
    if (first == site_at.end()) continue;
    for (const unsigned site : members) {
      if (model.sites[site].device == *device && site != first->second) by_depth.push_back(site);
    }
    by_depth.push_back(first->second);
  }
  const auto path_from = [&plan](unsigned site) -> const unicast_path& {
    return *std::find_if(plan.paths.begin(), plan.paths.end(),
                         [site](const unicast_path& p) { return p.from == site; });
  };
  for (const unsigned site : by_depth) {
    picoseconds& at = ready[index_of(site)];
    at = std::max(at, own_way(site).tail);
    if (site == root) continue;
    const unicast_path& path = path_from(site);
    picoseconds& above = ready[index_of(path.to)];
    above = std::max(above, at + merge(site) + up_way(path).tail);
  }
  std::vector<picoseconds> slack(members.size(), 0);
  plan.offsets.assign(members.size(), 0);
  for (auto at = by_depth.rbegin(); at != by_depth.rend(); ++at) {
    const std::size_t i = index_of(*at);
    if (*at != root) {
      const unicast_path& path = path_from(*at);
      const std::size_t above = index_of(path.to);
      slack[i] = slack[above] + ready[above] - (ready[i] + merge(*at) + up_way(path).tail);
    }
    plan.offsets[i] = ready[i] + slack[i] - own_way(*at).tail;
  }
  const site_model& top = model.sites[root];
  picoseconds down = 0;
  for (std::size_t d = 0, i = 0; i < members.size(); ++i) {
    const site_model& to = model.sites[members[i]];
    chunk_journey sum(model.format, chunk, model.cut_through_header);
    if (members[i] != root) {
      sum.cross(top.aggregator_ports, top.access_latency, false, true);
      sum.forward(model.forwarding_latency);
      sum.travel(model, plan.down.paths[d++]);
      sum.cross(to.aggregator_ports, to.access_latency, true, false);
    }
    sum.cross(to.access_down, to.access_latency, false, false);
    down = std::max(down, std::max(sum.now.tail, sum.now.head + transfer_time(chunk, to.consume_rate)));
  }
  plan.predicted = longest_compute(model, members) + (model.chunks() - 1) * plan.pace + ready[index_of(root)] +
                   merge(root) + down + longest_apply(model, members);

  // Memory holds what is in assembly, and what streams of the round make each other late.
  std::vector<unsigned> streams_on(network.edges(), 0);
  for (const unicast_path& path : plan.paths) {
    for (const edge_id e : path.edges) ++streams_on[e];
  }
  for (const unsigned site : members) {
    picoseconds late = merge(site) + transfer_time(wire, model.sites[site].access_up);
    for (const unicast_path& path : plan.paths) {
      if (path.to != site) continue;
      for (const edge_id e : path.edges) {
        late += (streams_on[e] - 1) * transfer_time(wire, network.rate(e)) + network.jitter(e);
        late = std::max(late, transfer_time(wire, network.rate(e)));
      }
    }
    const std::uint64_t held = late / std::max<picoseconds>(1, plan.pace) + 2;
    const std::uint64_t slots = model.sites[site].memory_bytes / model.chunk_bytes;
    const std::uint64_t streams = model.buffering == buffering_policy::in_place ? 1 : 1 + children[site];
    if (held * streams > slots) {
      throw std::invalid_argument("aggregator memory of " + model.sites[site].name + " holds " + std::to_string(slots) +
                                  " chunks; transit reduction needs " + std::to_string(held * streams));
    }
  }
  return plan;
}

/// Without the devices that lead to no member.
std::vector<bool> pruned(const topology& network, std::vector<bool> in_tree, const std::vector<bool>& needed) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<unsigned> degree(network.devices(), 0);
    for (unsigned l = 0; l < network.links().size(); ++l) {
      if (!in_tree[l]) continue;
      ++degree[network.links()[l].a];
      ++degree[network.links()[l].b];
    }
    for (unsigned l = 0; l < network.links().size(); ++l) {
      if (!in_tree[l]) continue;
      for (const unsigned end : {network.links()[l].a, network.links()[l].b}) {
        if (degree[end] != 1 || needed[end] || !in_tree[l]) continue;
        in_tree[l] = false;
        changed = true;
      }
    }
  }
  return in_tree;
}

/// The best tree and root found: shortest-path trees of every root, then exchanges of one link for another as long as
/// they help. A branching at a device without a site costs a second stream on a link, so the shortest tree need not be
/// the best.
collective_plan plan_transit(const platform_model& model, const group& members) {
  const topology& network = model.network;
  std::vector<bool> needed(network.devices(), false);
  for (const unsigned site : members) needed[model.sites[site].device] = true;
  std::vector<unsigned> devices;
  for (unsigned d = 0; d < network.devices(); ++d) {
    if (needed[d]) devices.push_back(d);
  }
  std::string complaint;
  const auto rate = [&](const std::vector<bool>& tree, unsigned root, collective_plan& best,
                        std::vector<bool>& best_tree) {
    try {
      collective_plan plan = plan_transit_on(model, members, tree, root);
      if (best.pace != 0 && plan.predicted >= best.predicted) return false;
      best = std::move(plan);
      best_tree = tree;
      return true;
    } catch (const std::invalid_argument& why) {
      complaint = why.what();
      return false;
    }
  };
  struct candidate_root {
    collective_plan plan;
    std::vector<bool> tree;
  };
  std::vector<candidate_root> roots;
  for (const unsigned root : members) {
    candidate_root each;
    std::vector<bool> tree(network.links().size(), false);
    for (const edge_id e : network.tree(model.sites[root].device, devices).edges) tree[e / 2] = true;
    if (rate(tree, root, each.plan, each.tree)) roots.push_back(std::move(each));
  }
  std::stable_sort(roots.begin(), roots.end(), [](const candidate_root& a, const candidate_root& b) {
    return a.plan.predicted < b.plan.predicted;
  });
  constexpr std::size_t improved_roots = 4;
  if (roots.size() > improved_roots) roots.resize(improved_roots);
  collective_plan best;
  for (candidate_root& each : roots) {
    const unsigned root = each.plan.root;
    collective_plan here = std::move(each.plan);
    std::vector<bool> here_tree = std::move(each.tree);
    for (bool better = here.pace != 0; better;) {
      better = false;
      const std::vector<bool> from = here_tree;
      for (unsigned in = 0; in < network.links().size(); ++in) {
        if (from[in] || network.links()[in].down) continue;
        // The cycle the new link closes: its ends' ways to the root.
        std::vector<bool> with = from;
        with[in] = true;
        for (unsigned out = 0; out < network.links().size(); ++out) {
          if (!from[out]) continue;
          std::vector<bool> candidate = with;
          candidate[out] = false;
          const device_tree hung = hang_up(network, candidate, model.sites[root].device);
          const bool whole = std::all_of(devices.begin(), devices.end(), [&](unsigned d) {
            return d == model.sites[root].device || hung.up[d] != none;
          });
          if (whole) better |= rate(pruned(network, candidate, needed), root, here, here_tree);
        }
      }
    }
    if (here.pace != 0 && (best.pace == 0 || here.predicted < best.predicted)) best = std::move(here);
  }
  if (best.pace == 0) throw std::invalid_argument(complaint);
  return best;
}

}  // namespace

collective_plan plan_collective(const platform_model& model, const group& members, collective_kind kind) {
  switch (kind) {
    case collective_kind::ring: return plan_ring(model, members);
    case collective_kind::transit: return plan_transit(model, members);
    case collective_kind::hub: break;
  }
  collective_plan best;
  for (const unsigned hub : members) {
    collective_plan plan = plan_hub(model, members, hub);
    if (best.pace == 0 || plan.predicted < best.predicted) best = std::move(plan);
  }
  return best;
}

}  // namespace tributary::planner
