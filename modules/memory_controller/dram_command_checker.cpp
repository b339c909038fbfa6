#include "modules/memory_controller/dram_command_checker.hpp"

#include <algorithm>

namespace tributary {

namespace {

using kind = dram_command_kind;

constexpr const char* names[] = {"ACT", "PRE", "RD", "WR", "RDA", "WRA", "REF", "REFpb"};

bool closes_itself(const dram_command& c) { return c.kind == kind::read_precharge || c.kind == kind::write_precharge; }
bool is_column(const dram_command& c) { return c.reads() || c.writes(); }
bool same_group(const dram_command& a, const dram_command& b) {
  return a.rank == b.rank && a.bank_group == b.bank_group;
}
bool same_bank(const dram_command& a, const dram_command& b) { return same_group(a, b) && a.bank == b.bank; }

}  // namespace

dram_command_checker::dram_command_checker(const dram_device& device) : device_(device) {
  channel_state empty;
  empty.banks.resize(device.geometry.banks_per_channel());
  empty.activates.resize(device.geometry.ranks);
  channels_.assign(device.geometry.channels, empty);
}

void dram_command_checker::violation(const dram_command& command, const std::string& what) {
  if (violations_.size() >= 100) return;
  violations_.push_back("cycle " + std::to_string(command.cycle) + ": " + names[static_cast<unsigned>(command.kind)] +
                        " to rank " + std::to_string(command.rank) + " bank group " +
                        std::to_string(command.bank_group) + " bank " + std::to_string(command.bank) + ": " + what);
}

/// One command a cycle; on separate buses one row and one column command.
void dram_command_checker::check_bus(channel_state& channel, const dram_command& command) {
  const bool column = is_column(command);
  const bool separate = device_.policy.separate_row_bus;
  if (channel.any_column && (column || !separate) && channel.last_column >= command.cycle) {
    violation(command, "the command bus is taken");
  }
  if (channel.any_row && (!column || !separate) && channel.last_row >= command.cycle) {
    violation(command, "the command bus is taken");
  }
  (column ? channel.last_column : channel.last_row) = command.cycle;
  (column ? channel.any_column : channel.any_row) = true;
}

void dram_command_checker::check_state(channel_state& channel, const dram_command& command) {
  const dram_geometry& g = device_.geometry;
  const unsigned first = command.rank * g.banks_per_rank();
  bank_state& bank = channel.banks[first + command.bank_group * g.banks + command.bank];
  switch (command.kind) {
    case kind::activate:
      if (bank.open) violation(command, "the bank is open");
      bank.open = true;
      bank.row = command.row;
      return;
    case kind::precharge:
      if (!bank.open) violation(command, "the bank is closed");
      bank.open = false;
      return;
    case kind::refresh:
      for (unsigned b = first; b < first + g.banks_per_rank(); ++b) {
        if (channel.banks[b].open) violation(command, "a bank is open");
      }
      return;
    case kind::refresh_bank:
      if (bank.open) violation(command, "the bank is open");
      return;
    default:
      if (!bank.open) violation(command, "the bank is closed");
      if (bank.row != command.row) violation(command, "another row is open");
      if (closes_itself(command)) bank.open = false;
      return;
  }
}

/// The rules of the data sheet, one line each: how far apart two commands of a channel must be.
void dram_command_checker::check_distance(const dram_command& a, const dram_command& b) {
  const dram_timing& t = device_.timing;
  const auto require = [&](bool applies, unsigned cycles, const char* rule) {
    if (applies && b.cycle < a.cycle + cycles) {
      violation(b, std::string(rule) + " after " + names[static_cast<unsigned>(a.kind)] + " in cycle " +
                       std::to_string(a.cycle) + " asks for " + std::to_string(cycles) + " cycles");
    }
  };
  const bool bank = same_bank(a, b);
  const bool group = same_group(a, b);
  const bool rank = a.rank == b.rank;
  const unsigned write_data_end = t.write_latency + t.burst_cycles;
  if (a.kind == kind::activate) {
    require(bank && is_column(b), t.rcd, "tRCD");
    require(bank && b.kind == kind::precharge, t.ras, "tRAS");
    require(bank && b.kind == kind::activate, t.ras + t.rp, "tRC");
    require(group && b.kind == kind::activate, t.rrd_l, "tRRD_L");
    require(rank && b.kind == kind::activate, t.rrd_s, "tRRD_S");
    require(rank && b.kind == kind::refresh, t.ras + t.rp, "tRC");
    require(bank && b.kind == kind::refresh_bank, t.ras + t.rp, "tRC");
  }
  if (a.kind == kind::precharge) {
    require(bank && b.kind == kind::activate, t.rp, "tRP");
    require(rank && b.kind == kind::refresh, t.rp, "tRP");
    require(bank && b.kind == kind::refresh_bank, t.rp, "tRP");
  }
  if (a.reads()) {
    require(group && b.reads(), t.ccd_l, "tCCD_L");
    require(rank && b.reads(), t.ccd_s, "tCCD_S");
    require(b.reads(), t.burst_cycles + (rank ? 0 : t.rtrs), "data bus");
    // The write's data follow the read's, with time to turn the bus.
    const unsigned data = t.read_latency + t.burst_cycles + t.rtrs;
    require(b.writes(), data > t.write_latency ? data - t.write_latency : 0, "read to write");
    require(bank && b.kind == kind::precharge, t.rtp, "tRTP");
  }
  if (a.writes()) {
    require(group && b.writes(), t.ccd_l, "tCCD_L");
    require(rank && b.writes(), t.ccd_s, "tCCD_S");
    require(b.writes(), t.burst_cycles + (rank ? 0 : t.rtrs), "data bus");
    require(group && b.reads(), write_data_end + t.wtr_l, "tWTR_L");
    require(rank && b.reads(), write_data_end + t.wtr_s, "tWTR_S");
    const unsigned data = write_data_end + t.rtrs;
    require(!rank && b.reads(), data > t.read_latency ? data - t.read_latency : 0, "write to read of another rank");
    require(bank && b.kind == kind::precharge, write_data_end + t.wr, "tWR");
  }
  if (closes_itself(a)) {
    const unsigned closing = a.reads() ? t.rtp : write_data_end + t.wr;
    require(bank && b.kind == kind::activate, closing + t.rp, "automatic precharge and tRP");
    require(rank && b.kind == kind::refresh, closing + t.rp, "automatic precharge and tRP");
    require(bank && b.kind == kind::refresh_bank, closing + t.rp, "automatic precharge and tRP");
  }
  if (a.kind == kind::refresh) require(rank, t.rfc, "tRFC");
  if (a.kind == kind::refresh_bank) {
    require(bank, t.rfc_pb, "tRFCpb");
  }
}

void dram_command_checker::issued(unsigned number, const dram_command& command) {
  ++commands_;
  channel_state& channel = channels_[number];
  check_bus(channel, command);
  const dram_timing& t = device_.timing;
  const dram_cycle reach =
      std::max({t.rfc, t.rfc_pb, t.rc(), t.write_to_precharge() + t.rp, t.write_to_read_l(), t.faw}) + 1;
  while (!channel.recent.empty() && channel.recent.front().cycle + reach < command.cycle) channel.recent.pop_front();
  for (const dram_command& earlier : channel.recent) check_distance(earlier, command);
  if (command.kind == kind::activate) {
    std::deque<dram_cycle>& last = channel.activates[command.rank];
    if (last.size() == 4) {
      if (command.cycle < last.front() + t.faw) violation(command, "tFAW: five ACTs in the window");
      last.pop_front();
    }
    last.push_back(command.cycle);
  }
  check_state(channel, command);
  channel.recent.push_back(command);
}

}  // namespace tributary
