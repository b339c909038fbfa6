#include "modules/gpu_cluster/update_values.hpp"

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

std::uint32_t update_values::element(std::uint32_t round, unsigned site, std::uint64_t index) const {
  const std::uint64_t random = mix(seed_ ^ mix((std::uint64_t{round} << 8 | site) ^ mix(index)));
  if (format_ == value_format::int32) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(random >> 39) - (1 << 24));
  }
  const auto numerator = static_cast<std::int32_t>(random >> 49) - (1 << 14);
  return bits_of(static_cast<float>(numerator) / 16384.0F);
}

chunk_values update_values::slice(std::uint32_t round, unsigned site, std::uint64_t first, std::size_t count) const {
  chunk_values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(round, site, first + i);
  return values;
}

}  // namespace tributary
