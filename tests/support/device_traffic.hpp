// Closed-loop traffic on a memory: a pattern of accesses through the aggregator's own memory port, with enough of them
// under way that the device is the limit.
#pragma once

#include <functional>
#include <random>

#include "modules/fpga_aggregator/memory_port.hpp"
#include "modules/memory_controller/memory_controller.hpp"
#include "tests/support/memory_master.hpp"

namespace tributary::test {

struct device_access {
  std::uint64_t address = 0;
  std::uint32_t bytes = 64;
  bool write = false;
};

class closed_loop_master : public model, private memory_port::host {
 public:
  memory_port port{"port", *this};
  std::function<device_access(std::uint64_t index)> pattern;
  std::uint64_t count = 0;
  unsigned under_way = 1;  ///< accesses at any time
  picoseconds last = 0;    ///< completion of the last
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;

  explicit closed_loop_master(const sc_core::sc_module_name& name) : model(name) {
    sc_core::sc_spawn([this] { fill(); }, "start");
  }
  [[nodiscard]] double bytes_per_s() const { return static_cast<double>(bytes) / seconds(last); }

 private:
  void memory_done(std::uint64_t /*cookie*/, picoseconds when, bool ok) override {
    last = std::max(last, when);
    errors += ok ? 0 : 1;
    --outstanding_;
    if (!filling_) fill();
  }
  void fill() {
    filling_ = true;
    while (issued_ < count && outstanding_ < under_way) {
      const device_access next = pattern(issued_);
      ++outstanding_;
      bytes += next.bytes;
      port.access(next.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND, next.address, next.bytes, nullptr,
                  issued_++);
    }
    filling_ = false;
  }
  std::uint64_t issued_ = 0;
  unsigned outstanding_ = 0;
  bool filling_ = false;
};

/// The patterns of the reference figures. `rmw8`: eight streams in turn, a burst read from one region, then written to
/// another. Where the regions lie decides which banks collide; here a stream's begin 1 MB after the stream's before it
/// and the regions written 512 MB after those read.
inline std::function<device_access(std::uint64_t)> sequential(std::uint32_t bytes, bool write) {
  return [=](std::uint64_t i) { return device_access{i * bytes, bytes, write}; };
}
inline std::function<device_access(std::uint64_t)> read_modify_write(std::uint32_t bytes, std::uint64_t burst_bytes,
                                                                     std::uint64_t spacing = 1'000'000) {
  return [=](std::uint64_t i) {
    const std::uint64_t per_burst = burst_bytes / bytes;
    const std::uint64_t burst = i / per_burst;
    const bool write = burst % 2 != 0;
    const std::uint64_t turn = burst / 2;
    return device_access{
        turn % 8 * spacing + turn / 8 * burst_bytes + i % per_burst * bytes + (write ? 512'000'000 : 0), bytes, write};
  };
}
inline std::function<device_access(std::uint64_t)> random_places(std::uint32_t bytes, std::uint64_t range, bool write) {
  return [=, generator = std::mt19937_64(1)](std::uint64_t) mutable {
    return device_access{generator() % range / bytes * bytes, bytes, write};
  };
}

}  // namespace tributary::test
