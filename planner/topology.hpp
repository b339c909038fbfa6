// The network as a graph: devices (routers) and links between them, parallel links allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tlm/quantities.hpp"

namespace tributary::planner {

/// A link's direction: 2 * link for a -> b, 2 * link + 1 for b -> a.
using edge_id = unsigned;

struct network_link {
  unsigned a = 0;
  unsigned b = 0;
  bits_per_s rate_ab = 0;
  bits_per_s rate_ba = 0;
  picoseconds latency_ab = 0;
  picoseconds latency_ba = 0;
  picoseconds jitter_ab = 0;  ///< most that a packet is late beyond the latency
  picoseconds jitter_ba = 0;
  double loss_ab = 0;  ///< share of packets lost
  double loss_ba = 0;
  bool down = false;  ///< no tree uses it
};

/// How multicast trees are chosen.
enum class tree_kind : std::uint8_t {
  shortest,         ///< each destination by its latency-shortest path
  fewest_links,     ///< fewest link bytes: Takahashi and Matsuyama's Steiner heuristic (1980), a factor 2 at most from
                    ///< optimal
  least_congestion  ///< shortest paths where every stream already on a link makes it longer, by the mean link latency
                    ///< on the fastest link and more on slower ones
};

/// A tree from one device to some others.
struct multicast_tree {
  unsigned root = 0;
  std::vector<edge_id> edges;  ///< each tree edge once, parents before children
  std::vector<unsigned> destinations;
  std::vector<std::vector<edge_id>> paths;  ///< per destination, from the root
  std::vector<picoseconds> latency;         ///< per destination, propagation only
};

class topology {
 public:
  unsigned add_device(std::string name);
  unsigned add_link(const network_link& link);

  [[nodiscard]] unsigned devices() const { return static_cast<unsigned>(names_.size()); }
  [[nodiscard]] const std::string& name(unsigned device) const { return names_[device]; }
  [[nodiscard]] const std::vector<network_link>& links() const { return links_; }
  [[nodiscard]] unsigned edges() const { return static_cast<unsigned>(links_.size()) * 2; }
  [[nodiscard]] unsigned tail_of(edge_id edge) const { return edge % 2 == 0 ? links_[edge / 2].a : links_[edge / 2].b; }
  [[nodiscard]] unsigned head_of(edge_id edge) const { return edge % 2 == 0 ? links_[edge / 2].b : links_[edge / 2].a; }
  [[nodiscard]] bits_per_s rate(edge_id edge) const {
    return edge % 2 == 0 ? links_[edge / 2].rate_ab : links_[edge / 2].rate_ba;
  }
  [[nodiscard]] picoseconds jitter(edge_id edge) const {
    return edge % 2 == 0 ? links_[edge / 2].jitter_ab : links_[edge / 2].jitter_ba;
  }
  [[nodiscard]] double loss(edge_id edge) const {
    return edge % 2 == 0 ? links_[edge / 2].loss_ab : links_[edge / 2].loss_ba;
  }
  void set_down(unsigned link, bool down) { links_[link].down = down; }
  [[nodiscard]] picoseconds latency(edge_id edge) const {
    return edge % 2 == 0 ? links_[edge / 2].latency_ab : links_[edge / 2].latency_ba;
  }

  /// A device that cannot be reached from device 0, if there is one.
  [[nodiscard]] std::optional<unsigned> unreachable() const;

  /// Tree from `root` to `destinations`. Among equally short paths the one found first in link order wins, so the
  /// result depends on the input alone. Throws std::invalid_argument when a destination cannot be reached.
  /// `streams_on`: streams per edge already there (least_congestion only; empty: none).
  [[nodiscard]] multicast_tree tree(unsigned root, const std::vector<unsigned>& destinations,
                                    tree_kind kind = tree_kind::shortest,
                                    const std::vector<unsigned>& streams_on = {}) const;

  /// Devices by which of them reach each other over links that are up: per device the smallest of its part.
  [[nodiscard]] std::vector<unsigned> parts() const;

 private:
  std::vector<std::string> names_;
  std::vector<network_link> links_;
};

}  // namespace tributary::planner
