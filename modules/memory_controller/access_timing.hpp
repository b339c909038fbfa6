// How long a whole access takes when its end is known as soon as it is made: the rate and the bulk level. No SystemC
// here.
#pragma once

#include <vector>

#include "tlm/quantities.hpp"

namespace tributary {

class access_timing {
 public:
  virtual ~access_timing() = default;
  access_timing() = default;
  access_timing(const access_timing&) = delete;
  access_timing& operator=(const access_timing&) = delete;
  access_timing(access_timing&&) = delete;
  access_timing& operator=(access_timing&&) = delete;

  /// Books an access from `when` on, after those booked before. Returns when its last byte is through. bytes > 0.
  virtual picoseconds book(std::uint64_t address, std::uint64_t bytes, bool write, picoseconds when) = 0;
  /// When everything booked is through.
  [[nodiscard]] virtual picoseconds free_from() const = 0;
  /// Time the channels worked, summed over channels.
  [[nodiscard]] picoseconds busy() const { return busy_; }

 protected:
  picoseconds busy_ = 0;
};

/// Channels of a constant rate, addresses interleaved over them: on-chip memory, or a device of which no more is known.
class rate_timing : public access_timing {
 public:
  /// `interleave_bytes` consecutive bytes lie on one channel.
  rate_timing(unsigned channels, std::uint64_t interleave_bytes, bits_per_s channel_rate);

  picoseconds book(std::uint64_t address, std::uint64_t bytes, bool write, picoseconds when) override;
  [[nodiscard]] picoseconds free_from() const override { return latest_free_; }

 private:
  [[nodiscard]] picoseconds book_unlike(picoseconds when, std::uint64_t from_stripes, std::uint64_t rest_first,
                                        std::uint64_t rest);

  std::uint64_t interleave_bytes_;
  bits_per_s channel_rate_;
  std::vector<picoseconds> channel_free_;  ///< no earlier than all_free_from_, whatever stands here
  picoseconds all_free_from_ = 0;          ///< every channel is free from then on, at the latest of those alike
  picoseconds latest_free_ = 0;            ///< the last of the channels to be free
};

}  // namespace tributary
