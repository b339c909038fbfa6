// Ways to reduce an update over all sites that are not one exchange of streams between equals: a hub, a ring, and
// transit reduction. For each: who sends what to whom, by which links, how fast, and how long it takes.
//
// M update bytes, n sites, w wire/payload, N chunks of s wire bytes, T the time from one chunk to the next:
//   hub      everybody to one site by unicast, the sum back by a copy to each. T >= (n-1) s / C of the hub's access
//   both
//            ways, >= m s / C on a link direction that m of the 2 (n-1) paths cross. Time N T + longest there and back.
//   ring     chunk c starts behind the site at place c mod n, is summed up once around (n-1 hops), and the sum goes
//            around once more (n-1 hops). Every site starts one chunk each T and so sends 2 (n-1) of them: T >= 2 (n-1)
//            m s / C on a link direction that m of the n paths to the next site cross. Time (N/n) T + the longest way
//            around. A site sends and receives 2 M (n-1) / n (Patarasuk and Yuan 2009).
//   transit  a tree over the sites: each adds what its children send to its own chunk and sends one stream to its
//   parent;
//            the root sends the sum down the tree by multicast. A link direction carries as many streams as
//            parent-child paths cross it: one where every branching has a site. Sources start so that chunks meet
//            (offsets), which leaves only chunks in assembly in memory. Time N T + up + down.
#pragma once

#include <vector>

#include "planner/cost_model.hpp"

namespace tributary::planner {

enum class collective_kind : std::uint8_t { hub, ring, transit };

/// One site's unicast stream to another.
struct unicast_path {
  unsigned from = 0;  ///< sites
  unsigned to = 0;
  std::vector<edge_id> edges;
};

struct collective_plan {
  collective_kind kind = collective_kind::hub;
  group members;
  unsigned root = 0;                 ///< site: the hub, the root of the tree; ring: the first place
  std::vector<unsigned> order;       ///< ring: sites by place
  std::vector<unsigned> parent;      ///< transit: per member, the site its sums go to (the root: itself)
  std::vector<unicast_path> paths;   ///< every stream to one site
  multicast_tree down;               ///< transit: the sum's way
  std::vector<picoseconds> offsets;  ///< per member, from the release to its first chunk
  picoseconds pace = 0;
  rate_limit limit = rate_limit::access_up;
  unsigned limit_at = 0;  ///< site, or edge for shared_link
  picoseconds predicted = 0;
};

/// Throws std::invalid_argument when there is no path, or memory holds less than transit reduction needs.
[[nodiscard]] collective_plan plan_collective(const platform_model& model, const group& members, collective_kind kind);

}  // namespace tributary::planner
