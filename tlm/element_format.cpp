#include "tlm/element_format.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tributary {

namespace {

float lower_of(std::uint32_t word) { return float_of(word << 16); }
float upper_of(std::uint32_t word) { return float_of(word & 0xffff0000); }

std::int32_t signed_of(std::uint32_t word) {
  std::int32_t value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

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

std::uint32_t bf16_of(float value) {
  const std::uint32_t bits = bits_of(value);
  if (std::isnan(value)) return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

chunk_values widened(value_format format, const chunk_values& words) {
  if (format != value_format::bf16) return words;
  chunk_values sum(words.size() * 2);
  for (std::size_t i = 0; i < words.size(); ++i) {
    sum[2 * i] = words[i] << 16;
    sum[2 * i + 1] = words[i] & 0xffff0000;
  }
  return sum;
}

std::uint64_t add_values(value_format format, chunk_values& sum, const std::uint32_t* addend, std::size_t count) {
  std::uint64_t saturated = 0;
  switch (format) {
    case value_format::synthetic: break;
    case value_format::fp32:
      for (std::size_t i = 0; i < count; ++i) sum[i] = bits_of(float_of(sum[i]) + float_of(addend[i]));
      break;
    case value_format::bf16:
      for (std::size_t i = 0; i < count; ++i) {
        sum[2 * i] = bits_of(float_of(sum[2 * i]) + lower_of(addend[i]));
        sum[2 * i + 1] = bits_of(float_of(sum[2 * i + 1]) + upper_of(addend[i]));
      }
      break;
    case value_format::int32:
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t exact = std::int64_t{signed_of(sum[i])} + signed_of(addend[i]);
        const std::int64_t held = std::clamp<std::int64_t>(exact, std::numeric_limits<std::int32_t>::min(),
                                                           std::numeric_limits<std::int32_t>::max());
        saturated += held != exact ? 1 : 0;
        sum[i] = static_cast<std::uint32_t>(held);
      }
      break;
  }
  return saturated;
}

chunk_values narrowed(value_format format, const chunk_values& sum) {
  if (format != value_format::bf16) return sum;
  chunk_values words(sum.size() / 2);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = bf16_of(float_of(sum[2 * i])) | bf16_of(float_of(sum[2 * i + 1])) << 16;
  }
  return words;
}

double element_difference(value_format format, std::uint32_t a, std::uint32_t b) {
  const auto apart = [](float x, float y) { return std::abs(static_cast<double>(x) - static_cast<double>(y)); };
  if (format == value_format::int32) {
    return std::abs(static_cast<double>(signed_of(a)) - static_cast<double>(signed_of(b)));
  }
  if (format == value_format::bf16) {
    return std::max(apart(lower_of(a), lower_of(b)), apart(upper_of(a), upper_of(b)));
  }
  return apart(float_of(a), float_of(b));
}

}  // namespace tributary
