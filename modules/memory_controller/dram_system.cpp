#include "modules/memory_controller/dram_system.hpp"

#include <algorithm>

namespace tributary {

dram_system::dram_system(const dram_device& device, host& with) : device_(device), mapping_(device), host_(with) {
  for (unsigned c = 0; c < device_.geometry.channels; ++c) {
    channels_.emplace_back(device_, c, static_cast<dram_channel::host&>(*this));
  }
}

void dram_system::submit(std::uint64_t address, std::uint64_t bytes, bool write, std::uint64_t cookie) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(accesses_.size()));
    accesses_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  const std::uint64_t unit = device_.access_bytes();
  accesses_[index] = {cookie, address / unit * unit, address + bytes, 0, 0, write};
  entering_.push(index);
}

/// Columns enter in order: one whose channel is full holds up all behind it, as on an in-order port.
void dram_system::enter(dram_cycle now) {
  blocked_ = false;
  while (!entering_.empty() && entered_now_ < device_.policy.port_columns) {
    const std::uint32_t index = entering_.front();
    const std::uint64_t address = accesses_[index].next_address;
    const bool write = accesses_[index].write;
    const dram_location where = mapping_.locate(address);
    dram_channel& channel = channels_[where.channel];
    if (!channel.can_take(write)) {
      blocked_ = true;
      return;
    }
    accesses_[index].next_address += device_.access_bytes();
    ++accesses_[index].under_way;
    ++entered_now_;
    const bool last = accesses_[index].next_address >= accesses_[index].end_address;
    if (last) entering_.pop();
    channel.take(where, write, index, now);
    if (write) finish_column(index, now + 1);
  }
}

void dram_system::read_complete(std::uint64_t cookie, dram_cycle when) {
  finish_column(static_cast<std::uint32_t>(cookie), when);
}

void dram_system::finish_column(std::uint32_t index, dram_cycle when) {
  access& each = accesses_[index];
  each.latest = std::max(each.latest, when);
  if (--each.under_way != 0 || each.next_address < each.end_address) return;
  const std::uint64_t cookie = each.cookie;
  const dram_cycle latest = each.latest;
  free_.push_back(index);
  host_.access_complete(cookie, latest);
}

void dram_system::step(dram_cycle now) {
  if (now_ != now) {
    now_ = now;
    entered_now_ = 0;
  }
  enter(now);
  for (dram_channel& channel : channels_) {
    if (channel.next() <= now) channel.step(now);
  }
}

dram_cycle dram_system::next() const {
  dram_cycle next = dram_channel::never;
  for (const dram_channel& channel : channels_) next = std::min(next, channel.next());
  if (!entering_.empty() && !blocked_) next = std::min(next, now_ + 1);
  return next;
}

bool dram_system::idle() const {
  return entering_.empty() &&
         std::all_of(channels_.begin(), channels_.end(), [](const dram_channel& each) { return each.idle(); });
}

dram_counters dram_system::counters() const {
  dram_counters sum;
  for (const dram_channel& channel : channels_) sum += channel.counters();
  return sum;
}

void dram_system::watch(dram_command_listener& listener) {
  for (dram_channel& channel : channels_) channel.watch(listener);
}

}  // namespace tributary
