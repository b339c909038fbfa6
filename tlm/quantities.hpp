// Plain arithmetic on bytes, rates and picoseconds, shared by the model and by the planner. No SystemC here.
//
// Every time in Tributary is a whole number of picoseconds (the SystemC resolution the model runs at) and every
// rate a whole number of bits a second, so a sum of transfer times has no rounding that depends on its order.
#pragma once

#include <cstdint>

namespace tributary {

using picoseconds = std::uint64_t;
using bits_per_s = std::uint64_t;

inline constexpr picoseconds ps_per_s = 1'000'000'000'000ULL;

namespace detail {
__extension__ using wide = unsigned __int128;
}

/// a*b/c rounded up, through 128 bits. c must not be zero.
[[nodiscard]] constexpr std::uint64_t multiply_divide_up(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const auto product = static_cast<detail::wide>(a) * b;
  return static_cast<std::uint64_t>((product + c - 1) / c);
}

/// a*b/c rounded down, through 128 bits. c must not be zero.
[[nodiscard]] constexpr std::uint64_t multiply_divide_down(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return static_cast<std::uint64_t>(static_cast<detail::wide>(a) * b / c);
}

/// Time to put `bytes` on a line of `rate`: 8 * bytes / rate, rounded up (a line never beats its rate).
/// 100 Gb/s is exactly 80 ps a byte and 800 Gb/s exactly 10 ps. `rate` must not be zero.
[[nodiscard]] constexpr picoseconds transfer_time(std::uint64_t bytes, bits_per_s rate) {
  return multiply_divide_up(bytes, 8 * ps_per_s, rate);
}

[[nodiscard]] constexpr double seconds(picoseconds t) { return static_cast<double>(t) / 1e12; }

/// Seconds to picoseconds, to the nearest; negative values give zero.
[[nodiscard]] constexpr picoseconds from_seconds(double s) {
  return s <= 0 ? 0 : static_cast<picoseconds>(s * 1e12 + 0.5);
}

}  // namespace tributary
