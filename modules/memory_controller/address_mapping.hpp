// From addresses to channel, rank, bank group, bank, row and column, by a string of fields. No SystemC here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "modules/memory_controller/dram_device.hpp"

namespace tributary {

/// Where one column access goes.
struct dram_location {
  unsigned channel = 0;
  unsigned rank = 0;
  unsigned bank_group = 0;
  unsigned bank = 0;  ///< within its bank group
  std::uint64_t row = 0;
  std::uint64_t column = 0;  ///< in column accesses (bursts), not in bus words
};

class address_mapping {
 public:
  /// Throws std::invalid_argument, with one sentence, when the string does not describe the device.
  explicit address_mapping(const dram_device& device);

  /// `address` below the device's capacity.
  [[nodiscard]] dram_location locate(std::uint64_t address) const;
  /// Bytes from an aligned address on that lie in one row of one channel.
  [[nodiscard]] std::uint64_t row_run_bytes() const { return row_run_bytes_; }
  /// Bytes from an aligned address on that lie in one channel.
  [[nodiscard]] std::uint64_t channel_run_bytes() const { return channel_run_bytes_; }

 private:
  struct field {
    unsigned what;   ///< index into the six kinds
    unsigned shift;  ///< of its lowest bit in the address
    unsigned bits;
    unsigned position;  ///< of its lowest bit in the value
  };
  std::vector<field> fields_;  ///< from the least significant up
  std::uint64_t row_run_bytes_ = 0;
  std::uint64_t channel_run_bytes_ = 0;
};

}  // namespace tributary
