// Can link directions wait for each other in a circle? Under lossless back-pressure what has come by one link direction
// waits for room in the queues of those it goes on by. Where these dependencies make no circle, or every circle has a
// queue that cannot fill, there is no deadlock (Dally and Seitz 1987, "Deadlock-free message routing in multiprocessor
// interconnection networks").
#pragma once

#include <vector>

#include "planner/cost_model.hpp"

namespace tributary::planner {

/// What streams ask of the network: per stream the link directions from its source to each receiver, in order.
struct stream_routes {
  std::vector<std::vector<edge_id>> paths;
};

/// The streams of a round's groups. Without `multicast` every path is a stream of its own.
[[nodiscard]] std::vector<stream_routes> routes_of(const round_plan& round, bool multicast);

/// Streams that cross each link direction.
[[nodiscard]] std::vector<unsigned> streams_on(const topology& network, const std::vector<stream_routes>& streams);

/// Link directions that wait for each other in a circle, each for the next and the last for the first; empty: none.
/// `may_fill`: per link direction, whether the queue before it can be full.
[[nodiscard]] std::vector<edge_id> circle_of_waits(const topology& network, const std::vector<stream_routes>& streams,
                                                   const std::vector<bool>& may_fill);

}  // namespace tributary::planner
