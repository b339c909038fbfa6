// What happens to chunks, for those who draw timelines. Modules call a listener if they were given one.
#pragma once

#include <cstdint>

#include "tlm/quantities.hpp"

namespace tributary {

class chunk_listener {
 public:
  /// Site's cluster hands chunk's first byte to its access link, which has it sent by `until`.
  virtual void departed(unsigned site, std::uint32_t chunk, picoseconds at, picoseconds until) = 0;
  /// Chunk of `source` is completely in at the site's aggregator; its last burst came in from `head` to `tail`.
  virtual void arrived(unsigned site, unsigned source, std::uint32_t chunk, picoseconds head, picoseconds tail) = 0;
  /// The aggregator read and added all streams of the chunk between `from` and `to`.
  virtual void merged(unsigned site, std::uint32_t chunk, picoseconds from, picoseconds to) = 0;

 protected:
  ~chunk_listener() = default;
};

}  // namespace tributary
