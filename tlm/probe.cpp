#include "tlm/probe.hpp"

#include <systemc>

namespace tributary {

void probe::set(std::uint64_t value) {
  value_ = value;
  if (sink_ == nullptr) return;
  const picoseconds now = sc_core::sc_time_stamp().value();
  sink_->changed(*this, now, now, value);
}

void probe::set_at(picoseconds when, std::uint64_t value) {
  value_ = value;
  if (sink_ != nullptr) sink_->changed(*this, sc_core::sc_time_stamp().value(), when, value);
}

}  // namespace tributary
