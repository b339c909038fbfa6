#include "platforms/lossless.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "platforms/quantity.hpp"

namespace tributary {

std::optional<std::string> deadlock_warning(const platform_spec& spec, const planner::topology& network,
                                            const std::vector<planner::stream_routes>& streams) {
  const std::vector<unsigned> crossing = planner::streams_on(network, streams);
  const std::uint64_t a_stream = chunks_a_stream * spec.format.wire_bytes(spec.chunk_bytes);
  std::vector<std::uint64_t> of_router(spec.routers.size(), 0);
  for (planner::edge_id edge = 0; edge < network.edges(); ++edge) {
    of_router[network.tail_of(edge)] += crossing[edge] * a_stream;
  }
  std::vector<bool> may_fill(network.edges(), false);
  for (planner::edge_id edge = 0; edge < network.edges(); ++edge) {
    const unsigned at = network.tail_of(edge);
    const router_parameters& router = spec.routers[at].parameters;
    if (router.when_full == full_queue::drop_tail) continue;
    may_fill[edge] = crossing[edge] * a_stream > router.queue_bytes ||
                     (router.shared_bytes != 0 && of_router[at] > router.shared_bytes);
  }
  const std::vector<planner::edge_id> circle = planner::circle_of_waits(network, streams, may_fill);
  if (circle.empty()) return std::nullopt;
  std::string names;
  std::uint64_t enough = 0;
  for (const planner::edge_id edge : circle) {
    names += fmt::format("{}{} to {}", names.empty() ? "" : ", ", spec.routers[network.tail_of(edge)].name,
                         spec.routers[network.head_of(edge)].name);
    enough = std::max(enough, crossing[edge] * a_stream);
  }
  return fmt::format(
      "may deadlock: the link directions {} wait for each other in a circle, and the router queues before them hold "
      "less than {} chunks a stream ({} would do)",
      names, chunks_a_stream, format_bytes(static_cast<double>(enough)));
}

}  // namespace tributary
