// Real values of updates, when a run carries them: made from the seed alone, so any site can say what any other sent.
#pragma once

#include <cstdint>

#include "tlm/element_format.hpp"

namespace tributary {

/// Word w of site s's update in round r.
///   fp32   multiples of 2^-14 in [-1, 1): sums of up to 64 of them are exact in fp32 (15 + 6 bits <= 24), so every
///          order of summation gives the same bits and a comparison can demand equality
///   bf16   two multiples of 2^-7 in [-1, 1), exact in bf16 (8 bits); their sums are exact in fp32
///   int32  a multiple of 2^-24 in [-1, 1) times 2^scale, rounded down and held at the ends of the range
class update_values {
 public:
  /// `scale_bits`: of int32, 24 leaves room for sums of 64.
  update_values(value_format format, std::uint64_t seed, unsigned scale_bits = 24)
      : format_(format), seed_(seed), scale_bits_(scale_bits) {}

  [[nodiscard]] value_format format() const { return format_; }
  [[nodiscard]] bool synthetic() const { return format_ == value_format::synthetic; }
  [[nodiscard]] std::uint32_t word(std::uint32_t round, unsigned site, std::uint64_t index) const;
  [[nodiscard]] chunk_values slice(std::uint32_t round, unsigned site, std::uint64_t first, std::size_t count) const;

 private:
  value_format format_;
  std::uint64_t seed_;
  unsigned scale_bits_;
};

}  // namespace tributary
