// Quantities with units, read exactly: decimal text to a whole number of the model's smallest unit, without passing
// through floating point.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tributary {

enum class dimension : std::uint8_t {
  bytes,       ///< B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB -> bytes
  rate,        ///< bps, kbps, Mbps, Gbps, Tbps, Gb/s ..., GB/s ... -> bits a second
  time,        ///< ps, ns, us, ms, s, min, h -> picoseconds
  length,      ///< m, km -> metres
  frequency,   ///< Hz, kHz, MHz, GHz -> hertz
  operations,  ///< FLOPS, GFLOPS, TFLOPS, PFLOPS, EFLOPS -> floating-point operations a second
};

/// Says what is wrong with a quantity; the caller adds where it stands.
class quantity_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `12.5 ms` as dimension::time gives 12'500'000'000. Rounds to the nearest unit; throws quantity_error for text that
/// is no number, a missing or unknown unit, a negative value, or a value past 64 bits.
[[nodiscard]] std::uint64_t parse_quantity(std::string_view text, dimension what);

/// Shortest text that reads well: `1.277 s`, `8 GB`, `100 Gbps`. Four significant digits.
[[nodiscard]] std::string format_seconds(double seconds);
[[nodiscard]] std::string format_bytes(double bytes);
[[nodiscard]] std::string format_rate(double bits_per_s);

}  // namespace tributary
