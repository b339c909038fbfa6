// All channels of a DRAM device behind the controller's ports: accesses of any length, cut into column accesses that
// enter the channels' queues in order, at most `port_columns` a cycle. No SystemC here.
#pragma once

#include <deque>
#include <vector>

#include "modules/memory_controller/dram_channel.hpp"

namespace tributary {

class dram_system final : private dram_channel::host {
 public:
  class host {
   public:
    /// The last byte of an access is through: reads have their data, writes have entered the queues.
    virtual void access_complete(std::uint64_t cookie, dram_cycle when) = 0;

   protected:
    ~host() = default;
  };

  /// Throws std::invalid_argument for a device that cannot be.
  dram_system(const dram_device& device, host& with);

  /// Queues an access behind those before it. Below the device's capacity, bytes > 0.
  void submit(std::uint64_t address, std::uint64_t bytes, bool write, std::uint64_t cookie);
  /// Does what this cycle allows; call again in the same cycle after submit().
  void step(dram_cycle now);
  /// The next cycle to call step() in; dram_channel::never when everything is done.
  [[nodiscard]] dram_cycle next() const;
  /// Accesses that have not entered the queues completely.
  [[nodiscard]] std::size_t waiting() const { return entering_.size(); }
  [[nodiscard]] bool idle() const;
  [[nodiscard]] dram_counters counters() const;
  void watch(dram_command_listener& listener);
  [[nodiscard]] const dram_device& device() const { return device_; }

 private:
  struct access {
    std::uint64_t cookie = 0;
    std::uint64_t next_address = 0;
    std::uint64_t end_address = 0;
    std::uint64_t under_way = 0;  ///< columns in queues and banks
    dram_cycle latest = 0;
    bool write = false;
  };

  void read_complete(std::uint64_t cookie, dram_cycle when) override;
  void finish_column(std::uint32_t index, dram_cycle when);
  void enter(dram_cycle now);

  const dram_device device_;
  address_mapping mapping_;
  host& host_;
  std::deque<dram_channel> channels_;
  std::vector<access> accesses_;
  std::vector<std::uint32_t> free_;
  ring<std::uint32_t> entering_;
  dram_cycle now_ = dram_channel::never;
  unsigned entered_now_ = 0;  ///< columns in cycle now_
  bool blocked_ = false;      ///< the next column's channel has no room
};

}  // namespace tributary
