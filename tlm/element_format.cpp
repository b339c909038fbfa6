#include "tlm/element_format.hpp"

#include <cmath>
#include <cstring>

namespace tributary {

float float_of(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

void add_values(value_format format, chunk_values& sum, const std::uint32_t* addend, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    sum[i] = format == value_format::int32 ? sum[i] + addend[i] : bits_of(float_of(sum[i]) + float_of(addend[i]));
  }
}

double element_difference(value_format format, std::uint32_t a, std::uint32_t b) {
  if (format == value_format::int32) {
    const auto signed_value = [](std::uint32_t word) { return static_cast<double>(static_cast<std::int32_t>(word)); };
    return std::abs(signed_value(a) - signed_value(b));
  }
  return std::abs(static_cast<double>(float_of(a)) - static_cast<double>(float_of(b)));
}

}  // namespace tributary
