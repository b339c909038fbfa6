#include "modules/gpu_cluster/update_values.hpp"

#include <algorithm>
#include <limits>

namespace tributary {

namespace {

// SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection of 64 bits with full avalanche.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

std::uint32_t update_values::word(std::uint32_t round, unsigned site, std::uint64_t index) const {
  const std::uint64_t random = mix(seed_ ^ mix((std::uint64_t{round} << 8 | site) ^ mix(index)));
  if (format_ == value_format::int32) {
    const auto numerator = static_cast<std::int64_t>(random >> 39) - (1 << 24);  // of 2^24
    const std::int64_t scaled =
        scale_bits_ >= 24 ? numerator * (std::int64_t{1} << (scale_bits_ - 24)) : numerator >> (24 - scale_bits_);
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(scaled, std::numeric_limits<std::int32_t>::min(),
                                                               std::numeric_limits<std::int32_t>::max()));
  }
  if (format_ == value_format::bf16) {
    const auto element = [](std::uint64_t eight_bits) {
      return bf16_of(static_cast<float>(static_cast<std::int32_t>(eight_bits & 0xff) - 128) / 128.0F);
    };
    return element(random >> 48) | element(random >> 56) << 16;
  }
  const auto numerator = static_cast<std::int32_t>(random >> 49) - (1 << 14);
  return bits_of(static_cast<float>(numerator) / 16384.0F);
}

chunk_values update_values::slice(std::uint32_t round, unsigned site, std::uint64_t first, std::size_t count) const {
  chunk_values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = word(round, site, first + i);
  return values;
}

}  // namespace tributary
