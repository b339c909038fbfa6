// How update bytes become packets on the wire.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tributary {

/// Packet layout of every link in a platform.
///
/// mtu_bytes      what a link carries as one network packet (the reference network's WAN links: 9000)
/// header_bytes   inside the MTU: IPv4 20 + UDP 8 + aggregation header 24 (round 4, group 2, source 2, chunk 4,
///                offset 4, length 4, contributor count 2, flags 2)
/// framing_bytes  outside the MTU: Ethernet header 14 + FCS 4 + preamble and SFD 8 + inter-packet gap 12 (IEEE 802.3)
///
/// A packet thus carries up to mtu - header bytes of payload and occupies payload + header + framing on the wire.
struct wire_format {
  std::uint32_t mtu_bytes = 9000;
  std::uint32_t header_bytes = 52;
  std::uint32_t framing_bytes = 38;

  [[nodiscard]] constexpr std::uint32_t payload_per_packet() const { return mtu_bytes - header_bytes; }
  [[nodiscard]] constexpr std::uint32_t overhead_per_packet() const { return header_bytes + framing_bytes; }

  /// Packets for `payload` bytes; an empty payload is one packet of headers (credits, control).
  [[nodiscard]] constexpr std::uint32_t packets(std::uint64_t payload) const {
    const std::uint64_t each = payload_per_packet();
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (payload + each - 1) / each));
  }
  [[nodiscard]] constexpr std::uint64_t wire_bytes(std::uint64_t payload) const {
    return payload + std::uint64_t{packets(payload)} * overhead_per_packet();
  }
  /// Wire size of the first packet of a run carrying `payload` bytes: what a store-and-forward hop waits for.
  [[nodiscard]] constexpr std::uint32_t first_packet_wire_bytes(std::uint64_t payload) const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(payload, payload_per_packet())) + overhead_per_packet();
  }
  /// Wire size of the last packet of a run, which may be shorter than the others.
  [[nodiscard]] constexpr std::uint32_t last_packet_wire_bytes(std::uint64_t payload) const {
    const std::uint64_t before = std::uint64_t{packets(payload) - 1} * payload_per_packet();
    return static_cast<std::uint32_t>(payload - before) + overhead_per_packet();
  }
};

}  // namespace tributary
