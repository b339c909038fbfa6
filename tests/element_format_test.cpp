#include "tlm/element_format.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "modules/gpu_cluster/update_values.hpp"

namespace tributary::test {
namespace {

TEST(ElementFormat, Bf16RoundsToNearestTiesToEven) {
  EXPECT_EQ(bf16_of(1.0F), 0x3f80U);
  EXPECT_EQ(bf16_of(-2.0F), 0xc000U);
  EXPECT_EQ(bf16_of(1.0F + 1.0F / 256), 0x3f80U) << "half way between 0x3f80 and 0x3f81: to the even one";
  EXPECT_EQ(bf16_of(1.0F + 3.0F / 256), 0x3f82U) << "half way: up to the even one";
  EXPECT_EQ(bf16_of(1.0F + 1.0F / 256 + 1.0F / 65536), 0x3f81U) << "above half";
  EXPECT_EQ(bf16_of(std::numeric_limits<float>::infinity()), 0x7f80U);
  EXPECT_TRUE(std::isnan(float_of(bf16_of(std::nanf("1")) << 16)));
}

/// Summed in bf16 itself, 256 + 1 + 1 would stay 256 (8 bits of significand); in fp32 it is 258.
TEST(ElementFormat, Bf16IsSummedInFp32AndRoundedOnce) {
  const chunk_values first{bf16_of(256.0F)};
  const chunk_values one{bf16_of(1.0F)};
  chunk_values sum = widened(value_format::bf16, first);
  for (int i = 0; i < 2; ++i) add_values(value_format::bf16, sum, one.data(), 1);
  EXPECT_EQ(narrowed(value_format::bf16, sum)[0] & 0xffff, bf16_of(258.0F));
}

TEST(ElementFormat, Int32SaturatesAtBothEndsAndSaysHowOften) {
  chunk_values sum{0x7ffffffe, 0x80000001, 5};
  const chunk_values addend{5, 0xfffffff0, 7};
  EXPECT_EQ(add_values(value_format::int32, sum, addend.data(), 3), 2U);
  EXPECT_EQ(sum, (chunk_values{0x7fffffff, 0x80000000, 12}));
}

TEST(ElementFormat, FixedPointScalesAndHoldsTheEnds) {
  const update_values plain(value_format::int32, 3, 24);
  const update_values half(value_format::int32, 3, 23);
  const update_values high(value_format::int32, 3, 34);
  bool held = false;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto value = static_cast<std::int32_t>(plain.word(0, 1, i));
    EXPECT_LT(std::abs(value), (1 << 24) + 1);
    EXPECT_EQ(static_cast<std::int32_t>(half.word(0, 1, i)), value >> 1);
    const auto scaled = static_cast<std::int32_t>(high.word(0, 1, i));
    held = held || scaled == std::numeric_limits<std::int32_t>::max();
  }
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace tributary::test
