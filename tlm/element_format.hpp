// Formats of update elements and the arithmetic the aggregators do on them. Values travel in 32-bit words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tlm/burst.hpp"

namespace tributary {

enum class value_format : std::uint8_t {
  synthetic,  ///< no values travel; only sizes and times are modelled
  fp32,       ///< IEEE 754 binary32, one a word
  bf16,       ///< upper half of a binary32, two a word, the first in the lower half; summed in fp32, rounded once
  int32,      ///< fixed point, one a word; sums saturate
};

/// Words of a running sum for each word that travels: bf16 is summed in fp32, an element a word.
[[nodiscard]] constexpr std::uint32_t sum_words_per_word(value_format format) {
  return format == value_format::bf16 ? 2 : 1;
}

/// A running sum that holds the values in `words`.
[[nodiscard]] chunk_values widened(value_format format, const chunk_values& words);
/// sum += addend, `count` words of it. Returns how many int32 elements were held at the ends of their range.
std::uint64_t add_values(value_format format, chunk_values& sum, const std::uint32_t* addend, std::size_t count);
/// What a running sum travels as: bf16 rounds to nearest, ties to even.
[[nodiscard]] chunk_values narrowed(value_format format, const chunk_values& sum);

/// Largest |a - b| of the elements of two words, in the format's own unit.
[[nodiscard]] double element_difference(value_format format, std::uint32_t a, std::uint32_t b);

[[nodiscard]] float float_of(std::uint32_t bits);
[[nodiscard]] std::uint32_t bits_of(float value);
/// Upper half of the binary32 nearest to `value` that has only zeros below; ties to even, NaN stays NaN.
[[nodiscard]] std::uint32_t bf16_of(float value);

}  // namespace tributary
