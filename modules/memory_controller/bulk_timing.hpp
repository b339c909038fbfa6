// A DRAM device's time for whole accesses, without a step for each column: row by row for short accesses, in one step
// for long ones. From the same device description as the command scheduler, and held to within 3 % of its bandwidth by
// tests. No SystemC here. The derivation of each figure is in docs/memory.md.
#pragma once

#include <vector>

#include "modules/memory_controller/access_timing.hpp"
#include "modules/memory_controller/address_mapping.hpp"

namespace tributary {

class bulk_timing : public access_timing {
 public:
  /// Throws std::invalid_argument for a device that cannot be.
  explicit bulk_timing(const dram_device& device);

  picoseconds book(std::uint64_t address, std::uint64_t bytes, bool write, picoseconds when) override;
  [[nodiscard]] picoseconds free_from() const override { return latest_free_; }

  /// Bits a second of one endless sequential stream, all channels together.
  [[nodiscard]] bits_per_s sequential_rate() const;
  /// Bits a second of accesses of `access_bytes`, read and written in turn from two distant places. Call it on a fresh
  /// device.
  [[nodiscard]] bits_per_s mixed_rate(std::uint64_t access_bytes);

 private:
  struct bank_state {
    std::uint64_t row = ~std::uint64_t{0};
    picoseconds free = 0;
  };
  struct rank_state {
    picoseconds activates_free = 0;  ///< server of four ACTIVATEs in tFAW
  };
  struct channel_state {
    picoseconds bus_free = 0;
    unsigned last_rank = 0;
    unsigned last_group = ~0U;
    std::uint64_t alone = 0;    ///< columns in the last group that were served alone, as far as the queues reach
    std::uint64_t mixable = 0;  ///< those of the group before, among which the last group's columns are served
    unsigned apart = 0;         ///< cycles between two columns while so mixed
    std::uint64_t writes = 0;   ///< columns written since the last read
    std::vector<bank_state> banks;
    std::vector<rank_state> ranks;
  };

  [[nodiscard]] picoseconds cycles(std::uint64_t count) const;
  [[nodiscard]] picoseconds book_run(const dram_location& where, std::uint64_t columns, bool write);
  [[nodiscard]] picoseconds book_rows(std::uint64_t address, std::uint64_t bytes, bool write, picoseconds when);
  [[nodiscard]] picoseconds turnaround(channel_state& channel, std::uint64_t columns, bool write, unsigned rank,
                                       unsigned group);
  void measure_sequential();

  const dram_device device_;
  address_mapping mapping_;
  std::vector<channel_state> channels_;
  std::uint64_t window_columns_ = 0;  ///< columns of the next run that are served among those of the last
  std::uint64_t long_bytes_ = 0;      ///< accesses from here on are booked in one step
  picoseconds refresh_period_ = 1;    ///< in each, refresh_lost_ is lost
  picoseconds refresh_lost_ = 0;
  picoseconds port_time_ = 0;        ///< when the last run entered its channel's queue
  picoseconds sequential_time_ = 0;  ///< of sequential_bytes_ on every channel
  std::uint64_t sequential_bytes_ = 1;
  picoseconds all_free_from_ = 0;  ///< no channel's bus is free before
  picoseconds latest_free_ = 0;
  bool long_write_ = false;  ///< direction of the last long access
  channel_state shared_;     ///< for long accesses: what all channels have in common
};

}  // namespace tributary
