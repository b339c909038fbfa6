// Watches every command on every channel and records each pair closer than the device allows, and each command to a
// bank in the wrong state. Keeps its own books, independent of the scheduler: a list of the rules of a data sheet.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "modules/memory_controller/dram_command.hpp"

namespace tributary {

class dram_command_checker final : public dram_command_listener {
 public:
  explicit dram_command_checker(const dram_device& device);

  void issued(unsigned channel, const dram_command& command) override;

  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }  ///< the first hundred
  [[nodiscard]] std::uint64_t commands() const { return commands_; }

 private:
  struct bank_state {
    bool open = false;
    std::uint64_t row = 0;
  };
  struct channel_state {
    std::vector<bank_state> banks;
    std::deque<dram_command> recent;                ///< as far back as any rule reaches
    std::vector<std::deque<dram_cycle>> activates;  ///< per rank, the last four
    dram_cycle last_column = 0;
    dram_cycle last_row = 0;
    bool any_column = false;
    bool any_row = false;
  };

  void check_state(channel_state& channel, const dram_command& command);
  void check_distance(const dram_command& earlier, const dram_command& later);
  void check_bus(channel_state& channel, const dram_command& command);
  void violation(const dram_command& command, const std::string& what);

  const dram_device device_;
  std::vector<channel_state> channels_;
  std::vector<std::string> violations_;
  std::uint64_t commands_ = 0;
};

}  // namespace tributary
