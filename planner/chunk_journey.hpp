// A chunk's way over idle lines, by the burst rule of long_haul_link: what every prediction of a time adds up.
#pragma once

#include <algorithm>

#include "planner/platform_model.hpp"

namespace tributary::planner {

/// Times from departure.
struct arrival {
  picoseconds head = 0;
  picoseconds tail = 0;
  picoseconds jitter = 0;  ///< most that other streams of the round, and the links, may delay it
  picoseconds repair = 0;  ///< what the first repair of a packet adds
  double loss = 0;         ///< share of packets lost on the way
};

class chunk_journey {
 public:
  chunk_journey(const wire_format& format, std::uint64_t payload, std::uint32_t cut_through_header = 0)
      : whole_(format.wire_bytes(payload)),
        first_(format.first_packet_wire_bytes(payload)),
        last_(format.last_packet_wire_bytes(payload)),
        header_(cut_through_header) {}

  /// Over a line between two devices, of which routers may cut through.
  void cross(bits_per_s rate, picoseconds propagation, bool from_router, bool to_router) {
    const std::uint32_t first = header_ != 0 && to_router ? std::min(header_, first_) : first_;
    const std::uint32_t last = header_ != 0 && from_router ? std::min(header_, last_) : last_;
    const picoseconds head = now.head + transfer_time(first, rate) + propagation;
    now.tail = std::max(now.tail + transfer_time(last, rate), now.head + transfer_time(whole_, rate)) + propagation;
    now.head = head;
  }
  void forward(picoseconds latency) {
    now.head += latency;
    now.tail += latency;
  }
  /// From a router over the path's links, each followed by a router.
  void travel(const platform_model& model, const std::vector<edge_id>& path) {
    for (const edge_id e : path) {
      cross(model.network.rate(e), model.network.latency(e), true, true);
      forward(model.forwarding_latency);
    }
  }
  [[nodiscard]] picoseconds whole_on(bits_per_s rate) const { return transfer_time(whole_, rate); }

  arrival now;

 private:
  std::uint64_t whole_;
  std::uint32_t first_;
  std::uint32_t last_;
  std::uint32_t header_;
};

/// Wire bytes of a whole chunk and the parity packets that follow it.
[[nodiscard]] inline std::uint64_t chunk_wire_bytes(const platform_model& model) {
  return model.format.wire_bytes(model.chunk_bytes) +
         std::uint64_t{model.parity_packets} * (model.format.payload_per_packet() + model.format.overhead_per_packet());
}

}  // namespace tributary::planner
