#include "planner/topology.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>
#include <stdexcept>

namespace tributary::planner {

namespace {

struct edge_properties {
  edge_id id = 0;
  picoseconds weight = 0;
};
using graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, edge_properties>;

constexpr edge_id no_edge = std::numeric_limits<edge_id>::max();

graph make_graph(const topology& net) {
  graph result(net.devices());
  for (edge_id e = 0; e < net.edges(); ++e) {
    if (net.links()[e / 2].down) continue;
    boost::add_edge(net.tail_of(e), net.head_of(e), edge_properties{e, net.latency(e)}, result);
  }
  return result;
}

/// Remembers the edge each device was reached by: parallel links need more than the predecessor device.
class record_edges : public boost::dijkstra_visitor<> {
 public:
  explicit record_edges(std::vector<edge_id>& reached_by) : reached_by_(&reached_by) {}
  void edge_relaxed(graph::edge_descriptor edge, const graph& in) {
    (*reached_by_)[boost::target(edge, in)] = in[edge].id;
  }

 private:
  std::vector<edge_id>* reached_by_;
};

struct shortest_paths {
  std::vector<edge_id> reached_by;
  std::vector<picoseconds> distance;
};

shortest_paths dijkstra(const graph& net, unsigned from) {
  shortest_paths result;
  result.reached_by.assign(boost::num_vertices(net), no_edge);
  result.distance.assign(boost::num_vertices(net), 0);
  boost::dijkstra_shortest_paths(net, from,
                                 boost::weight_map(boost::get(&edge_properties::weight, net))
                                     .distance_map(boost::make_iterator_property_map(
                                         result.distance.begin(), boost::get(boost::vertex_index, net)))
                                     .visitor(record_edges(result.reached_by)));
  return result;
}

std::vector<edge_id> path_to(const topology& net, const std::vector<edge_id>& reached_by, unsigned root, unsigned to) {
  std::vector<edge_id> path;
  for (unsigned at = to; at != root; at = net.tail_of(path.back())) {
    if (reached_by[at] == no_edge) {
      throw std::invalid_argument("no path from " + net.name(root) + " to " + net.name(to));
    }
    path.push_back(reached_by[at]);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

unsigned topology::add_device(std::string name) {
  names_.push_back(std::move(name));
  return devices() - 1;
}

unsigned topology::add_link(const network_link& link) {
  links_.push_back(link);
  return static_cast<unsigned>(links_.size()) - 1;
}

std::optional<unsigned> topology::unreachable() const {
  if (devices() == 0) return std::nullopt;
  const graph net = make_graph(*this);
  const shortest_paths from_first = dijkstra(net, 0);
  for (unsigned d = 1; d < devices(); ++d) {
    if (from_first.reached_by[d] == no_edge) return d;
  }
  return std::nullopt;
}

std::vector<unsigned> topology::parts() const {
  std::vector<unsigned> part(devices());
  for (unsigned d = 0; d < devices(); ++d) part[d] = d;
  for (bool changed = true; changed;) {
    changed = false;
    for (const network_link& link : links_) {
      if (link.down || part[link.a] == part[link.b]) continue;
      part[link.a] = part[link.b] = std::min(part[link.a], part[link.b]);
      changed = true;
    }
  }
  return part;
}

multicast_tree topology::tree(unsigned root, const std::vector<unsigned>& destinations, tree_kind kind,
                              const std::vector<unsigned>& streams_on) const {
  graph net = make_graph(*this);
  multicast_tree result;
  result.root = root;
  result.destinations = destinations;
  std::vector<edge_id> reached_by(devices(), no_edge);

  if (kind == tree_kind::shortest) {
    reached_by = dijkstra(net, root).reached_by;
  } else if (kind == tree_kind::least_congestion) {
    picoseconds sum = 0;
    bits_per_s fastest = 1;
    for (edge_id e = 0; e < edges(); ++e) {
      sum += latency(e);
      fastest = std::max(fastest, rate(e));
    }
    const picoseconds mean = edges() == 0 ? 0 : sum / edges();
    for (auto [edge, end] = boost::edges(net); edge != end; ++edge) {
      const edge_id id = net[*edge].id;
      const unsigned streams = streams_on.empty() ? 0 : streams_on[id];
      net[*edge].weight = latency(id) + streams * (mean * (fastest / std::max<bits_per_s>(1, rate(id))));
    }
    reached_by = dijkstra(net, root).reached_by;
  } else {
    // Grow the tree by the destination nearest to it, until all are in: tree edges cost nothing on the next search.
    std::vector<bool> in_tree(devices(), false);
    in_tree[root] = true;
    std::vector<unsigned> left = destinations;
    // One hop costs one link's bytes; latency only breaks ties.
    const picoseconds hop = ps_per_s * 1000;
    for (;;) {
      left.erase(std::remove_if(left.begin(), left.end(), [&](unsigned d) { return in_tree[d]; }), left.end());
      if (left.empty()) break;
      for (auto [edge, end] = boost::edges(net); edge != end; ++edge) {
        const edge_id id = net[*edge].id;
        const bool used = reached_by[head_of(id)] == id;
        // Entering the tree from outside would make a second way to the same device.
        net[*edge].weight = used ? 0 : (in_tree[head_of(id)] ? hop * 100 : hop + latency(id));
      }
      const shortest_paths now = dijkstra(net, root);
      const unsigned nearest = *std::min_element(left.begin(), left.end(), [&](unsigned x, unsigned y) {
        return now.distance[x] != now.distance[y] ? now.distance[x] < now.distance[y] : x < y;
      });
      for (const edge_id e : path_to(*this, now.reached_by, root, nearest)) {
        const unsigned device = head_of(e);
        if (!in_tree[device]) reached_by[device] = e;
        in_tree[device] = true;
      }
    }
  }

  std::vector<bool> have(edges(), false);
  for (const unsigned destination : destinations) {
    std::vector<edge_id> path = path_to(*this, reached_by, root, destination);
    picoseconds total = 0;
    for (const edge_id e : path) {
      total += latency(e);
      if (!have[e]) {
        have[e] = true;
        result.edges.push_back(e);
      }
    }
    result.latency.push_back(total);
    result.paths.push_back(std::move(path));
  }
  return result;
}

}  // namespace tributary::planner
