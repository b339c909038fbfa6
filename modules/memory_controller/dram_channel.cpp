#include "modules/memory_controller/dram_channel.hpp"

#include <algorithm>

namespace tributary {

namespace {

void at_least(dram_cycle& earliest, dram_cycle when) { earliest = std::max(earliest, when); }

}  // namespace

dram_counters& dram_counters::operator+=(const dram_counters& other) {
  activates += other.activates;
  reads += other.reads;
  writes += other.writes;
  row_hits += other.row_hits;
  refreshes += other.refreshes;
  forwarded += other.forwarded;
  merged += other.merged;
  turnarounds += other.turnarounds;
  return *this;
}

dram_channel::dram_channel(const dram_device& device, unsigned number, host& with)
    : device_(device),
      number_(number),
      host_(with),
      banks_per_group_(device.geometry.banks),
      banks_per_rank_(device.geometry.banks_per_rank()),
      banks_(device.geometry.banks_per_channel()),
      groups_(std::size_t{device.geometry.ranks} * device.geometry.bank_groups),
      ranks_(device.geometry.ranks) {
  const dram_timing& t = device_.timing;
  for (bank_state& bank : banks_) bank.queue.reserve(device_.policy.bank_queue);
  for (unsigned r = 0; r < ranks_.size(); ++r) {
    ranks_[r].refresh_due =
        device_.policy.refresh == refresh_policy::all_bank ? dram_cycle{t.refi} * (r + 1) / ranks_.size() : never;
  }
  for (unsigned b = 0; b < banks_.size(); ++b) {
    banks_[b].refresh_due =
        device_.policy.refresh == refresh_policy::per_bank ? dram_cycle{t.refi} * (b + 1) / banks_.size() : never;
  }
}

void dram_channel::take(const dram_location& where, bool write, std::uint64_t cookie, dram_cycle now) {
  const request taken{
      where.row,
      static_cast<std::uint32_t>(where.column),
      static_cast<std::uint16_t>(
          (where.rank * device_.geometry.bank_groups + where.bank_group) * device_.geometry.banks + where.bank),
      write,
      false,
      cookie,
      now};
  const auto same_place = [&taken](const request& each) {
    return each.bank == taken.bank && each.column == taken.column && each.row == taken.row;
  };
  if (std::any_of(writes_.begin(), writes_.end(), same_place)) {
    if (write) {
      ++counters_.merged;
    } else {
      ++counters_.forwarded;
      host_.read_complete(cookie, now + 1);
    }
    return;
  }
  if (idle()) catch_up(now);
  (write ? writes_ : reads_).push_back(taken);
  next_ = std::min(next_, std::max(now, stepped_until_));
}

/// Refreshes that fell due while the channel had nothing to do were done on time: the commands of the last of them are
/// issued for their cycles. One that would reach into the present is left to step().
void dram_channel::catch_up(dram_cycle now) {
  const dram_timing& t = device_.timing;
  const auto skip_to_last = [&](dram_cycle& due) {
    const dram_cycle missed = (now - due - 1) / t.refi;
    due += missed * t.refi;
    counters_.refreshes += missed;
  };
  dram_cycle bus = stepped_until_;
  for (unsigned r = 0; r < ranks_.size(); ++r) {
    rank_state& rank = ranks_[r];
    if (rank.refresh_due >= now) continue;
    skip_to_last(rank.refresh_due);
    refresh_in_the_past(r * banks_per_rank_, banks_per_rank_, rank.refresh_due, bus, now);
  }
  for (unsigned b = 0; b < banks_.size(); ++b) {
    if (banks_[b].refresh_due >= now) continue;
    skip_to_last(banks_[b].refresh_due);
    refresh_in_the_past(b, 1, banks_[b].refresh_due, bus, now);
  }
}

void dram_channel::refresh_in_the_past(unsigned first, unsigned count, dram_cycle& due, dram_cycle& bus,
                                       dram_cycle now) {
  const dram_timing& t = device_.timing;
  const bool one_bank = device_.policy.refresh == refresh_policy::per_bank;
  dram_cycle free = std::max(bus, due);
  dram_cycle ready = free;
  for (unsigned b = first; b < first + count; ++b) {
    at_least(ready, banks_[b].activate);
    if (!banks_[b].open) continue;
    free = std::max(free, banks_[b].precharge) + 1;
    at_least(ready, free - 1 + t.rp);
  }
  at_least(ready, free);
  if (ready >= now) return;
  free = std::max(bus, due);
  for (unsigned b = first; b < first + count; ++b) {
    bank_state& bank = banks_[b];
    if (bank.open) {
      free = std::max(free, bank.precharge) + 1;
      issue(dram_command_kind::precharge, b, bank.row, 0, free - 1);
    }
    bank.open = false;
    at_least(bank.activate, ready + (one_bank ? t.rfc_pb : t.rfc));
  }
  issue(one_bank ? dram_command_kind::refresh_bank : dram_command_kind::refresh, first, 0, 0, ready);
  bus = ready + 1;
  due += t.refi;
  ++counters_.refreshes;
}

dram_cycle dram_channel::activate_ready(unsigned bank) const {
  const rank_state& rank = ranks_[rank_of(bank)];
  return std::max({banks_[bank].activate, groups_[group_of(bank)].activate, rank.activate,
                   rank.last_activates[rank.oldest_activate]});
}

dram_cycle dram_channel::column_ready(unsigned bank, bool write) const {
  const bank_state& b = banks_[bank];
  const group_state& g = groups_[group_of(bank)];
  const rank_state& r = ranks_[rank_of(bank)];
  return write ? std::max({b.write, g.write, r.write}) : std::max({b.read, g.read, r.read});
}

/// A bank's best column or row command. The first that is ready stays chosen, else the one ready earliest.
void dram_channel::choose(unsigned number, dram_cycle now, choice& column, choice& row) const {
  const bank_state& bank = banks_[number];
  if (ranks_[rank_of(number)].refreshing || bank.refresh_due <= now) return;
  const std::vector<request>& queue = bank.queue;
  const auto offer = [now](choice& best, const choice& each) {
    if (best.when > now && each.when < best.when) best = each;
  };
  const request& oldest = queue.front();
  if (!bank.open) {
    offer(row, {activate_ready(number), number, 0, dram_command_kind::activate});
    return;
  }
  const bool overdue = now - oldest.arrived > device_.policy.age_limit;
  bool hit = false;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const request& each = queue[i];
    if (each.row != bank.row) {
      if (overdue && i == 0) break;  // nothing overtakes it any longer
      continue;
    }
    const auto same_column = [&each](const request& other) {
      return other.row == each.row && other.column == each.column;
    };
    const auto end = queue.begin() + static_cast<std::ptrdiff_t>(i);
    if (i != 0 && std::any_of(queue.begin(), end, same_column)) continue;  // waits for the older one
    hit = true;
    const dram_cycle when = column_ready(number, each.write);
    offer(column, {when, number, i, each.write ? dram_command_kind::write : dram_command_kind::read});
    if (when <= now) break;
  }
  if (!hit) offer(row, {bank.precharge, number, 0, dram_command_kind::precharge});
}

void dram_channel::issue(dram_command_kind kind, unsigned bank, std::uint64_t row, std::uint64_t column,
                         dram_cycle now) {
  if (listeners_.empty()) return;
  const dram_command command{
      kind, now, rank_of(bank), group_of(bank) % device_.geometry.bank_groups, bank % banks_per_group_, row, column};
  for (dram_command_listener* listener : listeners_) listener->issued(number_, command);
}

void dram_channel::after_activate(unsigned number, dram_cycle now) {
  const dram_timing& t = device_.timing;
  bank_state& bank = banks_[number];
  rank_state& rank = ranks_[rank_of(number)];
  bank.open = true;
  at_least(bank.read, now + t.rcd);
  at_least(bank.write, now + t.rcd);
  at_least(bank.precharge, now + t.ras);
  at_least(bank.activate, now + t.rc());
  at_least(groups_[group_of(number)].activate, now + t.rrd_l);
  at_least(rank.activate, now + t.rrd_s);
  rank.last_activates[rank.oldest_activate] = now + t.faw;
  rank.oldest_activate = (rank.oldest_activate + 1) % 4;
  ++counters_.activates;
}

void dram_channel::after_column(unsigned number, bool write, dram_cycle now) {
  const dram_timing& t = device_.timing;
  group_state& group = groups_[group_of(number)];
  const unsigned own = rank_of(number);
  if (write) {
    at_least(group.write, now + t.column_l());
    at_least(group.read, now + t.write_to_read_l());
    at_least(banks_[number].precharge, now + t.write_to_precharge());
  } else {
    at_least(group.read, now + t.column_l());
    at_least(banks_[number].precharge, now + t.rtp);
  }
  for (unsigned r = 0; r < ranks_.size(); ++r) {
    rank_state& rank = ranks_[r];
    if (write) {
      at_least(rank.write, now + (r == own ? t.column_s() : t.burst_cycles + t.rtrs));
      at_least(rank.read, now + (r == own ? t.write_to_read_s() : t.write_to_read_other_rank()));
    } else {
      at_least(rank.read, now + (r == own ? t.column_s() : t.burst_cycles + t.rtrs));
      at_least(rank.write, now + t.read_to_write());
    }
  }
  if (write != bus_writes_) ++counters_.turnarounds;
  bus_writes_ = write;
}

void dram_channel::issue_column(const choice& chosen, dram_cycle now) {
  const dram_timing& t = device_.timing;
  bank_state& bank = banks_[chosen.bank];
  const request served = bank.queue[chosen.position];
  bank.queue.erase(bank.queue.begin() + static_cast<std::ptrdiff_t>(chosen.position));
  if (bank.queue.empty()) occupied_ &= ~(std::uint64_t{1} << chosen.bank);
  if (!served.write) --queued_reads_;
  if (!served.activated) ++counters_.row_hits;
  ++(served.write ? counters_.writes : counters_.reads);
  after_column(chosen.bank, served.write, now);
  const bool close =
      device_.policy.page == page_policy::closed &&
      std::none_of(bank.queue.begin(), bank.queue.end(), [&bank](const request& each) { return each.row == bank.row; });
  dram_command_kind kind = chosen.kind;
  if (close) {
    kind = served.write ? dram_command_kind::write_precharge : dram_command_kind::read_precharge;
    bank.open = false;
    at_least(bank.activate, bank.precharge + t.rp);  // it closes itself as soon as it may
  }
  issue(kind, chosen.bank, served.row, served.column, now);
  if (!served.write) host_.read_complete(served.cookie, now + t.read_latency + t.burst_cycles);
}

/// All-bank refresh: closes the banks of a rank that is due, then refreshes it. True when it used the row bus.
bool dram_channel::refresh(dram_cycle now) {
  const dram_timing& t = device_.timing;
  for (unsigned r = 0; r < ranks_.size(); ++r) {
    rank_state& rank = ranks_[r];
    if (rank.refresh_due > now) continue;
    rank.refreshing = true;
    const unsigned first = r * banks_per_rank_;
    bool closed = true;
    dram_cycle ready = 0;
    for (unsigned b = first; b < first + banks_per_rank_; ++b) {
      bank_state& bank = banks_[b];
      if (!bank.open) {
        at_least(ready, bank.activate);
        continue;
      }
      closed = false;
      if (bank.precharge > now) {
        next_ = std::min(next_, bank.precharge);
        continue;
      }
      bank.open = false;
      at_least(bank.activate, now + t.rp);
      issue(dram_command_kind::precharge, b, bank.row, 0, now);
      return true;
    }
    if (!closed) continue;
    if (ready > now) {
      next_ = std::min(next_, ready);
      continue;
    }
    for (unsigned b = first; b < first + banks_per_rank_; ++b) at_least(banks_[b].activate, now + t.rfc);
    rank.refresh_due += t.refi;
    rank.refreshing = false;
    ++counters_.refreshes;
    issue(dram_command_kind::refresh, first, 0, 0, now);
    return true;
  }
  return false;
}

bool dram_channel::refresh_banks(dram_cycle now) {
  const dram_timing& t = device_.timing;
  for (unsigned b = 0; b < banks_.size(); ++b) {
    bank_state& bank = banks_[b];
    if (bank.refresh_due > now) continue;
    const dram_cycle ready = bank.open ? bank.precharge : bank.activate;
    if (ready > now) {
      next_ = std::min(next_, ready);
      continue;
    }
    if (bank.open) {
      bank.open = false;
      at_least(bank.activate, now + t.rp);
      issue(dram_command_kind::precharge, b, bank.row, 0, now);
      return true;
    }
    at_least(bank.activate, now + t.rfc_pb);
    bank.refresh_due += t.refi;
    ++counters_.refreshes;
    issue(dram_command_kind::refresh_bank, b, 0, 0, now);
    return true;
  }
  return false;
}

void dram_channel::update_drain() {
  if (draining_) {
    // With nothing to read there is no reason to turn the bus.
    if (writes_.size() <= device_.policy.drain_low && !(reads_.empty() && !writes_.empty())) draining_ = false;
    return;
  }
  if (writes_.size() >= device_.policy.drain_high || (reads_.empty() && queued_reads_ == 0 && !writes_.empty())) {
    draining_ = true;
  }
}

bool dram_channel::transfer_from(std::vector<request>& queue) {
  for (auto each = queue.begin(); each != queue.end(); ++each) {
    bank_state& bank = banks_[each->bank];
    if (bank.queue.size() >= device_.policy.bank_queue) continue;
    if (each->write) {
      // A waiting read of the same place came first and must see the old value.
      const auto same_place = [&each](const request& read) {
        return read.bank == each->bank && read.row == each->row && read.column == each->column;
      };
      if (std::any_of(reads_.begin(), reads_.end(), same_place)) continue;
    } else {
      ++queued_reads_;
    }
    bank.queue.push_back(*each);
    occupied_ |= std::uint64_t{1} << each->bank;
    queue.erase(each);
    return true;
  }
  return false;
}

bool dram_channel::transfer() {
  update_drain();
  if (!draining_) return transfer_from(reads_);
  // A read that the writes wait for goes first.
  return transfer_from(writes_) || (!writes_.empty() && !reads_.empty() && occupied_ == 0 && transfer_from(reads_));
}

void dram_channel::step(dram_cycle now) {
  next_ = never;
  stepped_until_ = now + 1;
  bool acted = false;
  bool row_bus_used = false;
  if (device_.policy.refresh == refresh_policy::all_bank) row_bus_used = refresh(now);
  if (device_.policy.refresh == refresh_policy::per_bank) row_bus_used = refresh_banks(now);
  acted = row_bus_used;

  // Round robin over the banks, from the one after the last served: the first ready command wins its bus.
  choice column;
  choice row;
  const bool two_buses = device_.policy.separate_row_bus;
  const auto look = [&](std::uint64_t banks) {
    for (; banks != 0; banks &= banks - 1) {
      choose(static_cast<unsigned>(__builtin_ctzll(banks)), now, column, row);
      const bool column_found = column.when <= now;
      const bool row_found = row.when <= now;
      if (two_buses ? column_found && row_found : column_found || row_found) return;
    }
  };
  const std::uint64_t before = (std::uint64_t{1} << first_bank_) - 1;
  look(occupied_ & ~before);
  if (two_buses || (column.when > now && row.when > now)) look(occupied_ & before);

  const bool column_bus_used = column.when <= now && (two_buses || !row_bus_used);
  if (column_bus_used) {
    first_bank_ = (column.bank + 1) % static_cast<unsigned>(banks_.size());
    issue_column(column, now);
    acted = true;
  }
  if (row.when <= now && !row_bus_used && (two_buses || !column_bus_used)) {
    bank_state& bank = banks_[row.bank];
    if (row.kind == dram_command_kind::activate) {
      request& cause = bank.queue.front();
      cause.activated = true;
      bank.row = cause.row;
      after_activate(row.bank, now);
    } else {
      bank.open = false;
      at_least(bank.activate, now + device_.timing.rp);
    }
    issue(row.kind, row.bank, bank.row, 0, now);
    if (!column_bus_used) first_bank_ = (row.bank + 1) % static_cast<unsigned>(banks_.size());
    acted = true;
  }
  if (transfer()) acted = true;

  if (acted) {
    next_ = now + 1;
    return;
  }
  next_ = std::min({next_, std::max(column.when, now + 1), std::max(row.when, now + 1)});
  if (!idle()) {
    for (const rank_state& rank : ranks_) {
      if (rank.refresh_due > now) next_ = std::min(next_, rank.refresh_due);
    }
    if (device_.policy.refresh == refresh_policy::per_bank) {
      for (const bank_state& bank : banks_) {
        if (bank.refresh_due > now) next_ = std::min(next_, bank.refresh_due);
      }
    }
  }
}

}  // namespace tributary
