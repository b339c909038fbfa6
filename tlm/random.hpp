// Counter-based random numbers: the draw depends on what it is for (key, counter) and on nothing that happened before,
// so two runs, and two fidelities of one run, draw alike for the same packet on any machine.
#pragma once

#include <cstdint>

namespace tributary {

/// The output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection that passes BigCrush on
/// counters.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t key, std::uint64_t counter) {
  return mixed(mixed(key) ^ counter);
}

/// True for a share `threshold` / 2^64 of draws.
[[nodiscard]] inline std::uint64_t threshold_of(double probability) {
  if (probability >= 1) return ~std::uint64_t{0};
  return static_cast<std::uint64_t>(probability * 0x1p64);
}

}  // namespace tributary
