#include "platforms/quantity.hpp"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(Quantity, ReadsEveryDimensionExactly) {
  EXPECT_EQ(parse_quantity("12.5 ms", dimension::time), 12'500'000'000U);
  EXPECT_EQ(parse_quantity("57.62ms", dimension::time), 57'620'000'000U);
  EXPECT_EQ(parse_quantity("4.9 us", dimension::time), 4'900'000U);
  EXPECT_EQ(parse_quantity("1 \xc2\xb5s", dimension::time), 1'000'000U);
  EXPECT_EQ(parse_quantity("100 Gbps", dimension::rate), 100'000'000'000U);
  EXPECT_EQ(parse_quantity("820 GB/s", dimension::rate), 6'560'000'000'000U);
  EXPECT_EQ(parse_quantity("14 GB", dimension::bytes), 14'000'000'000U);
  EXPECT_EQ(parse_quantity("16 GiB", dimension::bytes), 17'179'869'184U);
  EXPECT_EQ(parse_quantity("2000 km", dimension::length), 2'000'000U);
  EXPECT_EQ(parse_quantity("250 MHz", dimension::frequency), 250'000'000U);
  EXPECT_EQ(parse_quantity("1.5e3 MB", dimension::bytes), 1'500'000'000U);
  EXPECT_EQ(parse_quantity("0.1 B", dimension::bytes), 0U) << "rounds to the nearest unit";
  EXPECT_EQ(parse_quantity("0.5 B", dimension::bytes), 1U);
}

void expect_refused(const char* text, dimension what, const char* part) {
  try {
    (void)parse_quantity(text, what);
    ADD_FAILURE() << text << " was accepted";
  } catch (const quantity_error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Quantity, SaysWhatIsWrong) {
  expect_refused("100", dimension::rate, "a unit is missing");
  expect_refused("100 GHz", dimension::rate, "is not a unit of rate");
  expect_refused("fast", dimension::rate, "a rate is due");
  expect_refused("-5 ms", dimension::time, "cannot be negative");
  expect_refused("99999999999 TB", dimension::bytes, "too large");
  expect_refused("1e40 B", dimension::bytes, "too large");
  expect_refused("", dimension::bytes, "a size is due");
  expect_refused("12 12 ms", dimension::time, "is not a unit of time");
}

TEST(Quantity, PrintsShort) {
  EXPECT_EQ(format_seconds(1.2769), "1.277 s");
  EXPECT_EQ(format_seconds(0.0125), "12.5 ms");
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_bytes(8e9), "8 GB");
  EXPECT_EQ(format_rate(100e9), "100 Gbps");
}

}  // namespace
}  // namespace tributary
