// One DRAM channel and its command scheduler: at most one command a cycle (a row and a column command on separate
// buses), first-ready first-come first-served with an age limit, write drain, refresh. No SystemC here.
//
// A column access waits in the read or the write queue until its bank's queue takes it, one a cycle; the bank queues
// are served round robin, row hits before older requests of the same bank. Writes go to the banks only in drains: from
// `drain_high` waiting writes down to `drain_low`, or while there is nothing to read. A read of what a waiting write
// holds is answered from the queue.
#pragma once

#include <vector>

#include "modules/memory_controller/address_mapping.hpp"
#include "modules/memory_controller/dram_command.hpp"
#include "tlm/ring.hpp"

namespace tributary {

struct dram_counters {
  std::uint64_t activates = 0;
  std::uint64_t reads = 0;  ///< column commands
  std::uint64_t writes = 0;
  std::uint64_t row_hits = 0;  ///< column commands that needed no ACTIVATE of their own
  std::uint64_t refreshes = 0;
  std::uint64_t forwarded = 0;  ///< reads answered from a waiting write
  std::uint64_t merged = 0;     ///< writes that overwrote a waiting one
  std::uint64_t turnarounds = 0;
  dram_counters& operator+=(const dram_counters& other);
};

class dram_channel final {
 public:
  /// Hears when the data of a read is complete on the bus.
  class host {
   public:
    virtual void read_complete(std::uint64_t cookie, dram_cycle when) = 0;

   protected:
    ~host() = default;
  };

  dram_channel(const dram_device& device, unsigned number, host& with);

  [[nodiscard]] bool can_take(bool write) const {
    return (write ? writes_ : reads_).size() < device_.policy.transaction_queue;
  }
  /// One column access; can_take() before. A write is complete for its sender as soon as it is taken.
  void take(const dram_location& where, bool write, std::uint64_t cookie, dram_cycle now);
  /// Does what this cycle allows. Call with every cycle that next() named, in order.
  void step(dram_cycle now);
  /// The next cycle in which there may be something to do, without new accesses; `never` when there is nothing.
  [[nodiscard]] dram_cycle next() const { return next_; }
  static constexpr dram_cycle never = ~dram_cycle{0};

  [[nodiscard]] bool idle() const { return reads_.empty() && writes_.empty() && occupied_ == 0; }
  [[nodiscard]] const dram_counters& counters() const { return counters_; }
  void watch(dram_command_listener& listener) { listeners_.push_back(&listener); }

 private:
  struct request {
    std::uint64_t row;
    std::uint32_t column;
    std::uint16_t bank;  ///< over all ranks of the channel
    bool write;
    bool activated;  ///< an ACTIVATE was issued for it
    std::uint64_t cookie;
    dram_cycle arrived;
  };
  struct bank_state {
    bool open = false;
    std::uint64_t row = 0;
    dram_cycle activate = 0;  ///< earliest cycle of each command, as far as this bank's own history goes
    dram_cycle precharge = 0;
    dram_cycle read = 0;
    dram_cycle write = 0;
    dram_cycle refresh_due = 0;  ///< per-bank refresh
    std::vector<request> queue;  ///< oldest first
  };
  struct group_state {
    dram_cycle activate = 0;
    dram_cycle read = 0;
    dram_cycle write = 0;
  };
  struct rank_state {
    dram_cycle activate = 0;
    dram_cycle read = 0;
    dram_cycle write = 0;
    dram_cycle last_activates[4] = {};  ///< + tFAW, ring
    unsigned oldest_activate = 0;
    dram_cycle refresh_due = 0;
    bool refreshing = false;  ///< a refresh is due and waits for its banks to close
  };
  struct choice {
    dram_cycle when = never;
    unsigned bank = 0;
    std::size_t position = 0;
    dram_command_kind kind = dram_command_kind::activate;
  };

  void catch_up(dram_cycle now);
  void refresh_in_the_past(unsigned first, unsigned count, dram_cycle& due, dram_cycle& bus, dram_cycle now);
  [[nodiscard]] bool refresh(dram_cycle now);
  [[nodiscard]] bool refresh_banks(dram_cycle now);
  void choose(unsigned bank, dram_cycle now, choice& column, choice& row) const;
  [[nodiscard]] bool transfer();
  [[nodiscard]] bool transfer_from(std::vector<request>& queue);
  void update_drain();
  void issue(dram_command_kind kind, unsigned bank, std::uint64_t row, std::uint64_t column, dram_cycle now);
  void issue_column(const choice& chosen, dram_cycle now);
  void after_activate(unsigned bank, dram_cycle now);
  void after_column(unsigned bank, bool write, dram_cycle now);
  [[nodiscard]] dram_cycle activate_ready(unsigned bank) const;
  [[nodiscard]] dram_cycle column_ready(unsigned bank, bool write) const;
  [[nodiscard]] unsigned rank_of(unsigned bank) const { return bank / banks_per_rank_; }
  [[nodiscard]] unsigned group_of(unsigned bank) const { return bank / banks_per_group_; }

  const dram_device device_;
  unsigned number_;
  host& host_;
  unsigned banks_per_group_;
  unsigned banks_per_rank_;
  std::vector<bank_state> banks_;
  std::vector<group_state> groups_;
  std::vector<rank_state> ranks_;
  std::uint64_t occupied_ = 0;  ///< banks with a queue that is not empty
  unsigned queued_reads_ = 0;   ///< in bank queues
  std::vector<request> reads_;
  std::vector<request> writes_;
  unsigned first_bank_ = 0;  ///< where the round robin begins
  bool draining_ = false;
  bool bus_writes_ = false;  ///< direction of the last column command
  dram_cycle next_ = never;
  dram_cycle stepped_until_ = 0;  ///< one command a cycle and bus
  dram_counters counters_;
  std::vector<dram_command_listener*> listeners_;
};

}  // namespace tributary
