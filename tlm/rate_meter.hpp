// A rate as an analogue step: bytes counted over fixed windows, shown at the end of each.
#pragma once

#include "tlm/probe.hpp"

namespace tributary {

class rate_meter {
 public:
  explicit rate_meter(picoseconds window) : window_(window) {}

  void start(picoseconds now, probe& shown) {
    from_ = now;
    bytes_ = 0;
    shown.set(0);
  }
  void add(picoseconds now, std::uint64_t bytes, probe& shown) {
    if (now >= from_ + window_) show(now, shown);
    bytes_ += bytes;
  }
  void stop(picoseconds now, probe& shown) {
    if (now > from_) show(now, shown);
    shown.set(0);
  }

 private:
  void show(picoseconds now, probe& shown) {
    shown.set(multiply_divide_down(bytes_, 8 * ps_per_s, now - from_));
    from_ = now;
    bytes_ = 0;
  }

  picoseconds window_;
  picoseconds from_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace tributary
