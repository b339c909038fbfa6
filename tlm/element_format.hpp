// Formats of update elements and the arithmetic the aggregators do on them. One element is one 32-bit word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tlm/burst.hpp"

namespace tributary {

enum class value_format : std::uint8_t {
  synthetic,  ///< no values travel; only sizes and times are modelled
  fp32,
  int32,
};

/// sum += addend over `count` elements; int32 wraps. `sum` must hold at least `count`.
void add_values(value_format format, chunk_values& sum, const std::uint32_t* addend, std::size_t count);

/// |a - b| of two elements in the format's own unit.
[[nodiscard]] double element_difference(value_format format, std::uint32_t a, std::uint32_t b);

[[nodiscard]] float float_of(std::uint32_t bits);
[[nodiscard]] std::uint32_t bits_of(float value);

}  // namespace tributary
