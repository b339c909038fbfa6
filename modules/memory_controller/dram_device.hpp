// A DRAM device as its data sheet gives it: geometry, timing in clock cycles, and how the controller uses it.
// No SystemC here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "tlm/quantities.hpp"

namespace tributary {

/// Clock cycles of the DRAM command clock.
using dram_cycle = std::uint64_t;

/// Minimum distances between commands (JEDEC JESD79-4 for DDR4, JESD79-5 for DDR5, JESD235 for HBM), in cycles.
struct dram_timing {
  picoseconds clock = 0;       ///< tCK
  unsigned burst_cycles = 4;   ///< data bus cycles of one column access: burst length / 2
  unsigned read_latency = 0;   ///< CL: READ to first data
  unsigned write_latency = 0;  ///< CWL: WRITE to first data
  unsigned rcd = 0;            ///< ACTIVATE to READ or WRITE of the same bank
  unsigned rp = 0;             ///< PRECHARGE to ACTIVATE of the same bank
  unsigned ras = 0;            ///< ACTIVATE to PRECHARGE of the same bank; tRC = tRAS + tRP
  unsigned ccd_s = 0;          ///< column to column, other bank group
  unsigned ccd_l = 0;          ///< column to column, same bank group
  unsigned rrd_s = 0;          ///< ACTIVATE to ACTIVATE, other bank group
  unsigned rrd_l = 0;          ///< ACTIVATE to ACTIVATE, same bank group
  unsigned faw = 0;            ///< at most four ACTIVATEs of a rank in this window
  unsigned wtr_s = 0;          ///< end of write data to READ, other bank group
  unsigned wtr_l = 0;          ///< end of write data to READ, same bank group
  unsigned wr = 0;             ///< end of write data to PRECHARGE of the same bank
  unsigned rtp = 0;            ///< READ to PRECHARGE of the same bank
  unsigned rfc = 0;            ///< REFRESH (all banks of a rank) to the next command of the rank
  unsigned rfc_pb = 0;         ///< REFRESH of one bank to the next command of the bank; 0: no per-bank refresh
  unsigned refi = 0;           ///< mean distance of all-bank REFRESHes
  unsigned rtrs = 1;           ///< idle data bus cycles between two ranks, and from read to write

  [[nodiscard]] unsigned rc() const { return ras + rp; }
  [[nodiscard]] unsigned column_s() const { return std::max(burst_cycles, ccd_s); }
  [[nodiscard]] unsigned column_l() const { return std::max(burst_cycles, ccd_l); }
  /// READ to WRITE: the write data follows the read data after the bus has turned.
  [[nodiscard]] unsigned read_to_write() const {
    return std::max(column_s(), read_latency + burst_cycles + rtrs - std::min(write_latency, read_latency));
  }
  [[nodiscard]] unsigned write_to_read_s() const { return write_latency + burst_cycles + wtr_s; }
  [[nodiscard]] unsigned write_to_read_l() const { return write_latency + burst_cycles + wtr_l; }
  [[nodiscard]] unsigned write_to_precharge() const { return write_latency + burst_cycles + wr; }
  /// WRITE to READ of another rank: only the data bus must have turned.
  [[nodiscard]] unsigned write_to_read_other_rank() const {
    const unsigned busy = write_latency + burst_cycles + rtrs;
    return std::max(column_s(), busy - std::min(busy, read_latency));
  }
};

struct dram_geometry {
  unsigned channels = 1;
  unsigned ranks = 1;
  unsigned bank_groups = 1;
  unsigned banks = 1;  ///< in a bank group
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;  ///< of bus_bits each
  unsigned bus_bits = 64;

  [[nodiscard]] unsigned banks_per_rank() const { return bank_groups * banks; }
  [[nodiscard]] unsigned banks_per_channel() const { return ranks * banks_per_rank(); }
  [[nodiscard]] std::uint64_t row_bytes() const { return columns * bus_bits / 8; }
  [[nodiscard]] std::uint64_t capacity_bytes() const {
    return std::uint64_t{channels} * banks_per_channel() * rows * row_bytes();
  }
};

enum class page_policy : std::uint8_t {
  open,    ///< a row stays open until another is needed
  closed,  ///< a row is closed with the last access that waits for it
};

enum class refresh_policy : std::uint8_t {
  all_bank,  ///< a rank at a time, ranks staggered
  per_bank,  ///< a bank at a time; the others work on
  none,      ///< for comparison only
};

/// What the controller does with the device.
struct dram_policy {
  /// Fields of the address from the most significant down: ro row, ra rank, bg bank group, ba bank, co column,
  /// ch channel, each at most with a number of bits ("ro", "co3"). A field may be split: "rorabaco4bgco".
  std::string mapping = "rochrababgco";
  page_policy page = page_policy::open;
  refresh_policy refresh = refresh_policy::all_bank;
  unsigned transaction_queue = 32;  ///< reads, and as many writes, that wait for a place in a bank's queue
  unsigned bank_queue = 8;          ///< commands a bank's queue holds
  unsigned drain_high = 32;         ///< writes waiting that start a drain
  unsigned drain_low = 0;           ///< writes left that end it
  dram_cycle age_limit = 2000;      ///< a request that waited this long is no longer overtaken by row hits
  unsigned port_columns = 4;        ///< column accesses a cycle that the ports together take, in order
  bool separate_row_bus = false;    ///< row and column commands on buses of their own (HBM)
};

struct dram_device {
  dram_timing timing;
  dram_geometry geometry;
  dram_policy policy;

  [[nodiscard]] bool present() const { return timing.clock != 0; }
  /// Bytes of one column access: the bus times the burst length.
  [[nodiscard]] std::uint64_t access_bytes() const {
    return std::uint64_t{geometry.bus_bits} / 8 * timing.burst_cycles * 2;
  }
  [[nodiscard]] std::uint64_t accesses_per_row() const { return geometry.row_bytes() / access_bytes(); }
  /// Data bus rate of one channel: access_bytes every burst_cycles.
  [[nodiscard]] bits_per_s channel_peak() const {
    return multiply_divide_down(access_bytes() * 8, ps_per_s, timing.burst_cycles * timing.clock);
  }
  /// Why the device cannot be, empty when it can.
  [[nodiscard]] std::string complaint() const;
};

}  // namespace tributary
