// The network transaction: a burst is the run of packets that carries one chunk, or part of it, from one source to
// one group. Everything multicast copies have in common sits once in a reference-counted burst_content; a burst is
// the small per-copy part with the times of this copy's journey. Both come from free lists: the hot path allocates
// nothing.
#pragma once

#include <algorithm>
#include <boost/dynamic_bitset.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "tlm/quantities.hpp"
#include "tlm/wire_format.hpp"

namespace tributary {

/// data: of one source, or of several whose values are summed on the way; aggregate: the finished sum; parity:
/// redundant packets of a chunk, any one of which stands in for any one lost; nack: what a receiver misses.
enum class burst_kind : std::uint8_t { data, aggregate, parity, credit, nack, control };

[[nodiscard]] constexpr bool carries_update(burst_kind kind) { return kind <= burst_kind::aggregate; }

/// Set of sites, one bit each; a platform has at most 64 sites.
using site_set = std::uint64_t;
inline constexpr unsigned max_sites = 64;
[[nodiscard]] constexpr site_set site_bit(unsigned site) { return site_set{1} << site; }

/// Real values of a chunk, when the run carries them: one 32-bit word an element (fp32 bits or two's complement).
using chunk_values = std::vector<std::uint32_t>;

/// Packets of a burst or chunk, by index.
using packet_set = boost::dynamic_bitset<std::uint64_t>;

/// A stretch of a chunk, in bytes.
struct byte_range {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

/// What a stretch of a round's time was spent on.
enum class path_part : std::uint8_t { compute, serialization, propagation, skew_wait, memory, queueing, control };

/// Where the time between leaving the source and now went, as seen by the tail (the last byte).
struct journey {
  picoseconds propagation = 0;
  picoseconds serialization = 0;  ///< sending at line rates, forwarding latencies
  picoseconds queueing = 0;       ///< waiting for a line, a reducer or an egress port that others use
  picoseconds memory = 0;         ///< aggregator memory and adder, from the tail's arrival to the merged chunk
  [[nodiscard]] picoseconds total() const { return propagation + serialization + queueing + memory; }
};

/// One stretch of the journey, for the few bursts that keep a trail of it.
struct trail_span {
  const char* what = "";   ///< "propagation", "reading and adding"
  const char* where = "";  ///< name of the module
  picoseconds from = 0;
  picoseconds to = 0;
  path_part part = path_part::propagation;
};
using trail = std::vector<trail_span>;

/// What all copies of a burst share. Immutable once the burst is sent.
struct burst_content {
  burst_kind kind = burst_kind::data;
  std::uint8_t priority = 0;  ///< 0 bulk data, 1 control (credits, acknowledgements): strictly first in routers
  std::uint16_t group = 0;    ///< group number within the round: selects the multicast tree together with source
  std::uint16_t source = 0;   ///< site that sent it (for an aggregate: the site whose aggregator merged it)
  std::uint32_t round = 0;
  std::uint16_t epoch = 0;         ///< of the round: counts its restarts with fewer members
  std::uint16_t attempt = 0;       ///< 0 the first transmission, else the how-manieth repair of its source
  std::uint32_t chunk = 0;         ///< chunk index within the update
  std::uint32_t offset_bytes = 0;  ///< first payload byte within the chunk
  std::uint32_t payload_bytes = 0;
  std::uint32_t chunk_bytes = 0;     ///< size of the whole chunk this is part of
  std::uint32_t sent_chunks = 0;     ///< of a stream: chunks its source had sent completely, once, before this burst
  std::uint32_t packet_payload = 0;  ///< payload of a full packet
  std::uint32_t packets = 0;
  std::uint32_t first_packet_wire_bytes = 0;
  std::uint32_t last_packet_wire_bytes = 0;
  std::uint64_t wire_bytes = 0;
  picoseconds send_start = 0;                  ///< when the source was free to send its first chunk of the round
  site_set contributors = 0;                   ///< sites whose values are summed in this burst
  std::shared_ptr<const chunk_values> values;  ///< null unless the run carries real values
  std::shared_ptr<const std::vector<byte_range>> missing;  ///< of a nack: stretches of `chunk` to send again

  /// Index within the chunk of the burst's first packet.
  [[nodiscard]] std::uint32_t first_packet() const {
    return static_cast<std::uint32_t>(offset_bytes / std::max(1U, packet_payload));
  }
};

/// Times of one copy of a burst.
struct burst_times {
  picoseconds head = 0;  ///< when the first packet is completely here, or when it begins to leave again
  picoseconds tail = 0;  ///< when the last packet is completely here; tail >= head
  // Head and tail as they came to the device that holds it, before any wait there.
  picoseconds arrival_head = 0;
  picoseconds arrival_tail = 0;
  picoseconds departed = 0;  ///< when the source handed it to its access link
  journey spent;             ///< adds up to tail - departed
  bool ecn_marked = false;
};

/// One copy of a burst on its way. Belongs to one module at a time; handed over by END_REQ (see tlm/network.hpp).
class burst : public burst_times {
 public:
  std::unique_ptr<trail> story;  ///< kept only by the last chunks of a round; gapless from `departed`

  [[nodiscard]] const burst_content& content() const { return *content_; }

  // What of the content is still there: packets may have been lost on the way.
  [[nodiscard]] std::uint32_t packets() const { return content_->packets - lost_packets_; }
  [[nodiscard]] std::uint64_t wire_bytes() const { return content_->wire_bytes - lost_wire_bytes_; }
  /// Update bytes: what is neither data nor a sum carries none.
  [[nodiscard]] std::uint32_t payload_bytes() const {
    return carries_update(content_->kind) ? content_->payload_bytes - lost_payload_bytes_ : 0;
  }
  [[nodiscard]] bool has_lost(std::uint32_t packet) const { return lost_ != nullptr && lost_->test(packet); }
  /// Packet `packet` of the burst (counted within it) is lost.
  void lose(std::uint32_t packet);

  /// Sets head and tail of a burst that is complete where it is: in GPU memory, in an egress buffer.
  void starts_at(picoseconds when) { head = tail = arrival_head = arrival_tail = when; }
  /// It leaves no earlier than `when`. The line it leaves by counts the wait (long_haul_link).
  void leaves_after(picoseconds when) {
    if (head < when) head = when;
    if (tail < when) tail = when;
  }
  /// It was held back until `when` before it could come in; the tail's wait counts as queueing.
  void hold_until(picoseconds when, const char* where) {
    if (tail < when) {
      spent.queueing += when - tail;
      note("held back", where, when, path_part::queueing);
    }
    leaves_after(when);
    arrival_head = head;
    arrival_tail = tail;
  }
  /// Delays head, tail and arrival alike by fixed work of the path.
  void delay(picoseconds by, const char* where) {
    head += by;
    tail += by;
    arrival_head += by;
    arrival_tail += by;
    spent.serialization += by;
    note("forwarding", where, tail, path_part::serialization);
  }
  /// Adds the stretch up to `to` to the story, if one is kept.
  void note(const char* what, const char* where, picoseconds to, path_part part) {
    if (story != nullptr) extend(*story, departed, what, where, to, part);
  }
  static void extend(trail& story, picoseconds begin, const char* what, const char* where, picoseconds to,
                     path_part part) {
    const picoseconds from = story.empty() ? begin : story.back().to;
    if (to > from) story.push_back({what, where, from, to, part});
  }

 private:
  friend class burst_pool;
  struct counted_content {
    burst_content content;
    std::uint32_t references = 0;
    counted_content* next_free = nullptr;
  };
  const burst_content* content_ = nullptr;
  counted_content* shared_ = nullptr;
  burst* next_free_ = nullptr;
  std::unique_ptr<packet_set> lost_;  ///< null: none
  std::uint32_t lost_packets_ = 0;
  std::uint32_t lost_payload_bytes_ = 0;
  std::uint64_t lost_wire_bytes_ = 0;
};

/// Free lists for bursts and contents. One pool a simulation; not thread-safe, as SystemC is not.
class burst_pool {
 public:
  burst_pool() = default;
  burst_pool(const burst_pool&) = delete;
  burst_pool& operator=(const burst_pool&) = delete;
  burst_pool(burst_pool&&) = delete;
  burst_pool& operator=(burst_pool&&) = delete;
  ~burst_pool() = default;

  /// A fresh burst around `content`; packet counts and wire sizes are filled in from `format`.
  [[nodiscard]] burst& make(burst_content content, const wire_format& format);
  /// Another copy that shares the content and starts from the same times.
  [[nodiscard]] burst& copy(const burst& original);
  /// Gives a copy back; the content goes with the last of them.
  void release(burst& finished);

  [[nodiscard]] std::uint64_t live_bursts() const { return live_bursts_; }
  [[nodiscard]] std::uint64_t live_contents() const { return live_contents_; }
  [[nodiscard]] std::uint64_t bursts_ever_allocated() const { return bursts_.size(); }

 private:
  [[nodiscard]] burst& take();

  std::vector<std::unique_ptr<burst>> bursts_;
  std::vector<std::unique_ptr<burst::counted_content>> contents_;
  burst* free_bursts_ = nullptr;
  burst::counted_content* free_contents_ = nullptr;
  std::uint64_t live_bursts_ = 0;
  std::uint64_t live_contents_ = 0;
};

}  // namespace tributary
