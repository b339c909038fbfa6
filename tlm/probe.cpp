#include "tlm/probe.hpp"

#include <algorithm>
#include <systemc>

namespace tributary {

void probe::set(std::uint64_t value) {
  value_ = value;
  if (listeners_.empty()) return;
  const picoseconds now = sc_core::sc_time_stamp().value();
  for (const listener& each : listeners_) each.sink->changed(each.id, now, now, value);
}

void probe::set_at(picoseconds when, std::uint64_t value) {
  value_ = value;
  if (listeners_.empty()) return;
  const picoseconds now = sc_core::sc_time_stamp().value();
  for (const listener& each : listeners_) each.sink->changed(each.id, now, when, value);
}

void probe::hold(std::uint64_t value, picoseconds until, std::uint64_t then) {
  value_ = value;
  ++generation_;
  if (listeners_.empty()) return;
  const picoseconds now = sc_core::sc_time_stamp().value();
  for (const listener& each : listeners_) {
    each.sink->changed(each.id, now, now, value);
    each.sink->held(each.id, now, until, then, generation_);
  }
}

void probe::detach(const probe_sink& sink) {
  listeners_.erase(std::remove_if(listeners_.begin(), listeners_.end(),
                                  [&sink](const listener& each) { return each.sink == &sink; }),
                   listeners_.end());
}

}  // namespace tributary
