// Commands on a DRAM channel, for whoever watches them: the timing checker, the waveform.
#pragma once

#include <cstdint>

#include "modules/memory_controller/dram_device.hpp"

namespace tributary {

enum class dram_command_kind : std::uint8_t {
  activate,
  precharge,
  read,
  write,
  read_precharge,   ///< READ that closes the row after it
  write_precharge,  ///< WRITE that closes the row after it
  refresh,          ///< all banks of a rank
  refresh_bank,
};

struct dram_command {
  dram_command_kind kind = dram_command_kind::activate;
  dram_cycle cycle = 0;
  unsigned rank = 0;
  unsigned bank_group = 0;
  unsigned bank = 0;  ///< within its bank group
  std::uint64_t row = 0;
  std::uint64_t column = 0;

  [[nodiscard]] bool reads() const {
    return kind == dram_command_kind::read || kind == dram_command_kind::read_precharge;
  }
  [[nodiscard]] bool writes() const {
    return kind == dram_command_kind::write || kind == dram_command_kind::write_precharge;
  }
};

class dram_command_listener {
 public:
  virtual void issued(unsigned channel, const dram_command& command) = 0;

 protected:
  ~dram_command_listener() = default;
};

}  // namespace tributary
