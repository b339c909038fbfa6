// Real values of updates, when a run carries them: made from the seed alone, so any site can say what any other sent.
#pragma once

#include <cstdint>

#include "tlm/element_format.hpp"

namespace tributary {

/// Element e of site s's update in round r.
///   fp32   multiples of 2^-14 in [-1, 1): sums of up to 64 of them are exact in fp32 (15 + 6 bits <= 24), so every
///          order of summation gives the same bits and a comparison can demand equality
///   int32  uniform over [-2^24, 2^24): sums of 64 do not overflow
class update_values {
 public:
  update_values(value_format format, std::uint64_t seed) : format_(format), seed_(seed) {}

  [[nodiscard]] value_format format() const { return format_; }
  [[nodiscard]] bool synthetic() const { return format_ == value_format::synthetic; }
  [[nodiscard]] std::uint32_t element(std::uint32_t round, unsigned site, std::uint64_t index) const;
  [[nodiscard]] chunk_values slice(std::uint32_t round, unsigned site, std::uint64_t first, std::size_t count) const;

 private:
  value_format format_;
  std::uint64_t seed_;
};

}  // namespace tributary
