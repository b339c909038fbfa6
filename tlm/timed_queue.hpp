// Work for later, on one plain sc_event: the hot path of every module. Measured here, a method on an own event runs
// two to five times as often a second as one behind a payload event queue (docs/performance.md).
#pragma once

#include <algorithm>
#include <systemc>
#include <utility>
#include <vector>

#include "tlm/quantities.hpp"

namespace tributary {

/// Items with a due time. Make a method sensitive to due(), drain it with pop_due() until that returns false.
/// Items of the same time come out in the order they went in.
template <typename Item>
class timed_queue {
 public:
  explicit timed_queue(const char* event_name) : event_(event_name) {}

  [[nodiscard]] const sc_core::sc_event& due() const { return event_; }

  void push(picoseconds when, Item item) {
    const bool earliest = heap_.empty() || when < heap_.front().when;
    heap_.push_back({when, sequence_++, std::move(item)});
    std::push_heap(heap_.begin(), heap_.end(), later);
    if (earliest) arm();
  }

  /// Moves the next due item out; false when none is due (the event is then armed for the next one).
  [[nodiscard]] bool pop_due(Item& item) {
    if (heap_.empty()) return false;
    if (heap_.front().when > sc_core::sc_time_stamp().value()) {
      arm();
      return false;
    }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    item = std::move(heap_.back().item);
    heap_.pop_back();
    return true;
  }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }

 private:
  struct entry {
    picoseconds when;
    std::uint64_t sequence;
    Item item;
  };
  static bool later(const entry& a, const entry& b) {
    return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
  }
  void arm() {
    const picoseconds now = sc_core::sc_time_stamp().value();
    const picoseconds when = heap_.front().when;
    event_.notify(sc_core::sc_time::from_value(when > now ? when - now : 0));
  }

  sc_core::sc_event event_;
  std::vector<entry> heap_;
  std::uint64_t sequence_ = 0;
};

}  // namespace tributary
