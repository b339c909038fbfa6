#include <algorithm>

#include "modules/memory_controller/access_timing.hpp"

namespace tributary {

rate_timing::rate_timing(unsigned channels, std::uint64_t interleave_bytes, bits_per_s channel_rate)
    : interleave_bytes_(interleave_bytes), channel_rate_(channel_rate), channel_free_(channels, 0) {}

/// `from_stripes` bytes on every channel, and `rest` more that begin `rest_first` into a stripe.
picoseconds rate_timing::book_unlike(picoseconds when, std::uint64_t from_stripes, std::uint64_t rest_first,
                                     std::uint64_t rest) {
  const std::uint64_t unit = interleave_bytes_;
  const std::uint64_t stripe = unit * channel_free_.size();
  const picoseconds stripes_time = transfer_time(from_stripes, channel_rate_);
  picoseconds complete = when;
  for (picoseconds& free : channel_free_) free = std::max(free, all_free_from_);
  for (std::size_t c = 0; c < channel_free_.size(); ++c) {
    picoseconds service = stripes_time;
    if (rest != 0) {
      // [rest_first, rest_first + rest) may wrap round the stripe once.
      const std::uint64_t low = c * unit;
      const auto overlap = [&](std::uint64_t first, std::uint64_t last) {
        const std::uint64_t from = std::max(low, first);
        const std::uint64_t to = std::min(low + unit, last);
        return to > from ? to - from : 0;
      };
      const std::uint64_t end = rest_first + rest;
      const std::uint64_t bytes = overlap(rest_first, end) + (end > stripe ? overlap(0, end - stripe) : 0);
      service = transfer_time(from_stripes + bytes, channel_rate_);
    }
    if (service == 0) continue;
    channel_free_[c] = std::max(channel_free_[c], when) + service;
    busy_ += service;
    complete = std::max(complete, channel_free_[c]);
  }
  latest_free_ = *std::max_element(channel_free_.begin(), channel_free_.end());
  return complete;
}

picoseconds rate_timing::book(std::uint64_t address, std::uint64_t bytes, bool /*write*/, picoseconds when) {
  // Each channel's bytes: full stripes go to all channels alike, the rest to those it touches.
  const std::uint64_t stripe = interleave_bytes_ * channel_free_.size();
  const std::uint64_t whole_stripes = bytes / stripe;
  const std::uint64_t rest = bytes % stripe;
  const std::uint64_t from_stripes = whole_stripes * interleave_bytes_;
  if (rest == 0 && latest_free_ <= std::max(all_free_from_, when)) {
    // All channels alike, or all idle: one figure stands for all of them afterwards.
    const picoseconds stripes_time = transfer_time(from_stripes, channel_rate_);
    all_free_from_ = latest_free_ = std::max(latest_free_, when) + stripes_time;
    busy_ += stripes_time * channel_free_.size();
    return latest_free_;
  }
  return book_unlike(when, from_stripes, (address + whole_stripes * stripe) % stripe, rest);
}

}  // namespace tributary
