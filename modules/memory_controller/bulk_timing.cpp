#include "modules/memory_controller/bulk_timing.hpp"

#include <algorithm>

namespace tributary {

bulk_timing::bulk_timing(const dram_device& device) : device_(device), mapping_(device) {
  const dram_timing& t = device_.timing;
  const dram_geometry& g = device_.geometry;
  channel_state empty;
  empty.banks.resize(g.banks_per_channel());
  empty.ranks.resize(g.ranks);
  channels_.assign(g.channels, empty);
  // The next run's columns mix with the last run's while both are in the queues, once the next row is open.
  const std::uint64_t queued = device_.policy.transaction_queue + device_.policy.bank_queue;
  const std::uint64_t opening = (t.rp + t.rcd) / t.column_l();
  window_columns_ = queued > opening ? queued - opening : 0;
  if (device_.policy.refresh != refresh_policy::none) {
    refresh_period_ = t.refi;
    // Closing the open rows before and opening one after it belong to a refresh.
    refresh_lost_ = (device_.policy.refresh == refresh_policy::per_bank ? t.rfc_pb : t.rfc) + t.rp + t.rcd;
  }
  long_bytes_ = 16 * mapping_.row_run_bytes() * g.channels;
  measure_sequential();
}

/// Command clock cycles as time, with the share that refresh takes.
picoseconds bulk_timing::cycles(std::uint64_t count) const {
  return multiply_divide_up(count * device_.timing.clock, refresh_period_, refresh_period_ - refresh_lost_);
}

/// Walks the whole cycle of rows, banks and groups once, to know what one endless stream gets.
void bulk_timing::measure_sequential() {
  const dram_geometry& g = device_.geometry;
  const std::uint64_t period = mapping_.row_run_bytes() * g.channels * g.banks_per_channel() * 2;
  (void)book_rows(0, period, false, 0);
  const picoseconds first = latest_free_;
  (void)book_rows(period % g.capacity_bytes(), period, false, 0);
  sequential_time_ = latest_free_ - first;
  sequential_bytes_ = period / g.channels;
  channel_state empty;
  empty.banks.resize(g.banks_per_channel());
  empty.ranks.resize(g.ranks);
  std::fill(channels_.begin(), channels_.end(), empty);
  port_time_ = latest_free_ = busy_ = 0;
}

bits_per_s bulk_timing::sequential_rate() const {
  return multiply_divide_down(sequential_bytes_ * 8 * device_.geometry.channels, ps_per_s, sequential_time_);
}

bits_per_s bulk_timing::mixed_rate(std::uint64_t access_bytes) {
  const std::uint64_t half = device_.geometry.capacity_bytes() / 2;
  const std::uint64_t bytes = std::min(access_bytes, half);
  const std::uint64_t pairs = std::max<std::uint64_t>(8, std::min(long_bytes_ * 8, half) / bytes);
  picoseconds end = 0;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::uint64_t at = i * bytes % (half - bytes + 1);
    end = std::max(book(at, bytes, false, 0), book(half + at, bytes, true, 0));
  }
  return multiply_divide_down(2 * pairs * bytes * 8, ps_per_s, end);
}

/// Data bus time lost to turning from writes to reads and back. Writes are drained in batches: fewer columns than a
/// batch cost their share of a turn.
picoseconds bulk_timing::turnaround(channel_state& channel, std::uint64_t columns, bool write, unsigned rank,
                                    unsigned group) {
  if (write) {
    channel.writes += columns;
    return 0;
  }
  if (channel.writes == 0) return 0;
  const dram_timing& t = device_.timing;
  // Data to data: a read behind a write of its own rank waits for tWTR and the read latency.
  const unsigned wait = t.read_latency + (group == channel.last_group ? t.wtr_l : t.wtr_s);
  const unsigned lost = t.rtrs + (rank == channel.last_rank ? wait : t.rtrs);
  const std::uint64_t batch = device_.policy.drain_high;
  const std::uint64_t drained = std::min(channel.writes, batch);
  channel.writes = 0;
  return multiply_divide_up(cycles(lost), drained, batch);
}

/// Books `columns` accesses of one row. Returns when the last is through.
picoseconds bulk_timing::book_run(const dram_location& where, std::uint64_t columns, bool write) {
  const dram_timing& t = device_.timing;
  channel_state& channel = channels_[where.channel];
  const unsigned group = where.rank * device_.geometry.bank_groups + where.bank_group;
  bank_state& bank = channel.banks[group * device_.geometry.banks + where.bank];
  const bool row_miss = bank.row != where.row || device_.policy.page == page_policy::closed;

  // Within a bank group columns follow each other every tCCD_L, among two groups every tCCD_S, among two
  // ranks every burst and tRTRS.
  if (group != channel.last_group) {
    channel.mixable = channel.alone;
    channel.alone = 0;
    channel.apart = std::min(where.rank == channel.last_rank ? t.column_s() : t.burst_cycles + t.rtrs, t.column_l());
  }
  const std::uint64_t mixed = std::min(channel.mixable, columns);
  channel.mixable -= mixed;
  channel.alone = std::min(window_columns_, channel.alone + columns - mixed);
  const std::uint64_t bus = columns * t.column_l() - 2 * mixed * std::uint64_t{t.column_l() - channel.apart} +
                            (mixed == 0 && where.rank != channel.last_rank ? t.rtrs : 0);
  channel.bus_free = std::max(channel.bus_free, all_free_from_);

  const picoseconds bus_time = cycles(bus) + turnaround(channel, columns, write, where.rank, group);
  rank_state& rank = channel.ranks[where.rank];
  const picoseconds activate_time = row_miss ? cycles(std::max(t.faw, 4 * t.rrd_s)) / 4 : 0;
  const std::uint64_t last_column = t.rcd + (columns - 1) * t.column_l();
  const std::uint64_t open = std::max<std::uint64_t>(t.ras, last_column + (write ? t.write_to_precharge() : t.rtp));
  const picoseconds bank_time = row_miss ? cycles(open + t.rp) : 0;

  // Columns enter in order, and only while the queues have room: each server may be behind by what they hold. The run
  // itself takes part of them; a bank that is behind fills its own queue first.
  const auto wait_for_room = [&](picoseconds free, picoseconds service, std::uint64_t queue) {
    const picoseconds room = service * (queue - std::min(queue - 1, columns / 2)) / columns;
    if (free > room) port_time_ = std::max(port_time_, free - room);
  };
  const std::uint64_t queue = device_.policy.transaction_queue;
  wait_for_room(channel.bus_free, std::max(bus_time, activate_time), queue);
  if (row_miss) {
    wait_for_room(rank.activates_free, activate_time, queue);
    wait_for_room(bank.free, bank_time, queue + device_.policy.bank_queue);
  }

  busy_ += bus_time;
  channel.bus_free = std::max(channel.bus_free, port_time_) + bus_time;
  picoseconds through = channel.bus_free;
  if (row_miss) {
    rank.activates_free = std::max(rank.activates_free, port_time_) + activate_time;
    bank.free = std::max(bank.free, port_time_) + bank_time;
    through = std::max({through, rank.activates_free, bank.free - cycles(open + t.rp - last_column)});
  }
  bank.row = where.row;
  channel.last_rank = where.rank;
  channel.last_group = group;
  latest_free_ = std::max(latest_free_, through);
  return through;
}

picoseconds bulk_timing::book_rows(std::uint64_t address, std::uint64_t bytes, bool write, picoseconds when) {
  const std::uint64_t unit = device_.access_bytes();
  const std::uint64_t run = mapping_.row_run_bytes();
  const std::uint64_t end = address + bytes;
  port_time_ = std::max(port_time_, when);
  picoseconds through = 0;
  for (std::uint64_t at = address / unit * unit; at < end;) {
    const std::uint64_t stop = std::min(end, (at / run + 1) * run);
    through = std::max(through, book_run(mapping_.locate(at), (stop - at + unit - 1) / unit, write));
    at = stop;
  }
  return through;
}

picoseconds bulk_timing::book(std::uint64_t address, std::uint64_t bytes, bool write, picoseconds when) {
  const dram_timing& t = device_.timing;
  const picoseconds opening = (t.rcd + t.read_latency) * t.clock;
  if (bytes < long_bytes_) return book_rows(address, bytes, write, when) + opening;
  // All channels alike.
  const std::uint64_t share = bytes / channels_.size();
  const picoseconds turn = turnaround(shared_, share / device_.access_bytes(), write, 0, 0);
  // Reads and writes of distant places in turn find the other's rows open in the same banks.
  const bool turned = long_write_ != write;
  const unsigned closing = write ? t.rtp : t.write_to_precharge();
  const picoseconds reopening = turned ? cycles(closing + t.rp + t.rcd) : 0;
  long_write_ = write;
  const picoseconds time = multiply_divide_up(share, sequential_time_, sequential_bytes_) + turn + reopening;
  all_free_from_ = latest_free_ = port_time_ = std::max(latest_free_, when) + time;
  busy_ += time * channels_.size();
  return latest_free_ + opening;
}

}  // namespace tributary
