#include "planner/channel_dependencies.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/depth_first_search.hpp>

namespace tributary::planner {

namespace {

using dependency_graph = boost::adjacency_list<boost::setS, boost::vecS, boost::directedS>;

/// Keeps the way the search is on, and copies its end when that bites its own tail.
class circle_finder : public boost::default_dfs_visitor {
 public:
  explicit circle_finder(std::vector<edge_id>& found) : found_(&found) {}

  void discover_vertex(edge_id vertex, const dependency_graph&) { way_.push_back(vertex); }
  void finish_vertex(edge_id, const dependency_graph&) { way_.pop_back(); }
  void back_edge(const dependency_graph::edge_descriptor& edge, const dependency_graph& graph) {
    if (!found_->empty()) return;
    const auto first = std::find(way_.begin(), way_.end(), static_cast<edge_id>(boost::target(edge, graph)));
    found_->assign(first, way_.end());
  }

 private:
  std::vector<edge_id>* found_;
  std::vector<edge_id> way_;
};

}  // namespace

std::vector<stream_routes> routes_of(const round_plan& round, bool multicast) {
  std::vector<stream_routes> streams;
  for (const group_plan& planned : round.groups) {
    for (const multicast_tree& tree : planned.trees) {
      if (multicast) {
        streams.push_back({tree.paths});
      } else {
        for (const std::vector<edge_id>& path : tree.paths) streams.push_back({{path}});
      }
    }
  }
  return streams;
}

std::vector<unsigned> streams_on(const topology& network, const std::vector<stream_routes>& streams) {
  std::vector<unsigned> count(network.edges(), 0);
  for (const stream_routes& stream : streams) {
    std::vector<bool> seen(network.edges(), false);
    for (const std::vector<edge_id>& path : stream.paths) {
      for (const edge_id edge : path) {
        if (!seen[edge]) ++count[edge];
        seen[edge] = true;
      }
    }
  }
  return count;
}

std::vector<edge_id> circle_of_waits(const topology& network, const std::vector<stream_routes>& streams,
                                     const std::vector<bool>& may_fill) {
  dependency_graph waits(network.edges());
  for (const stream_routes& stream : streams) {
    for (const std::vector<edge_id>& path : stream.paths) {
      for (std::size_t hop = 1; hop < path.size(); ++hop) {
        if (may_fill[path[hop - 1]] && may_fill[path[hop]]) boost::add_edge(path[hop - 1], path[hop], waits);
      }
    }
  }
  std::vector<edge_id> found;
  std::vector<boost::default_color_type> colours(network.edges());
  // The visitor is copied: it must reach the same result by reference, and its way starts empty.
  boost::depth_first_search(waits, circle_finder(found),
                            boost::make_iterator_property_map(colours.begin(), get(boost::vertex_index, waits)));
  return found;
}

}  // namespace tributary::planner
