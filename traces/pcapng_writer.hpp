// Packet captures of links as pcapng (IETF draft-ietf-opsawg-pcapng), one interface a link direction, picosecond time
// stamps. libpcap writes the older format only, whose clock stops at nanoseconds.
//
// A packet is captured up to its headers: Ethernet, IPv4, UDP and the aggregation header of tlm/wire_format.hpp, all
// fields in network order; the original length counts the payload too.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tlm/burst.hpp"

namespace tributary {

class pcapng_writer {
 public:
  static constexpr unsigned header_bytes = 14 + 20 + 8 + 24;

  /// Throws std::runtime_error when the file cannot be written.
  pcapng_writer(const std::string& path, const std::vector<std::string>& interfaces);
  pcapng_writer(const pcapng_writer&) = delete;
  pcapng_writer& operator=(const pcapng_writer&) = delete;
  pcapng_writer(pcapng_writer&&) = delete;
  pcapng_writer& operator=(pcapng_writer&&) = delete;
  ~pcapng_writer();  ///< a file not closed by close() is removed

  /// One packet (a burst of one packet) that began to leave at `start`.
  void packet(unsigned interface, picoseconds start, const burst_content& sent);
  void close();
  [[nodiscard]] std::uint64_t packets() const { return packets_; }

 private:
  void block(std::uint32_t type, const std::string& body);

  std::string path_;
  std::FILE* file_ = nullptr;
  std::uint64_t packets_ = 0;
};

}  // namespace tributary
