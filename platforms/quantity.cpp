#include "platforms/quantity.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace tributary {

namespace {

struct unit {
  const char* name;
  std::uint64_t scale;
};

struct dimension_info {
  const char* noun;
  const char* example;
  std::vector<unit> units;
};

constexpr std::uint64_t k = 1000;
constexpr std::uint64_t ki = 1024;

const dimension_info& info(dimension what) {
  static const std::array<dimension_info, 6> table{{
      {"size",
       "8 GB",
       {{"B", 1},
        {"kB", k},
        {"MB", k * k},
        {"GB", k * k * k},
        {"TB", k * k * k * k},
        {"KiB", ki},
        {"MiB", ki * ki},
        {"GiB", ki * ki * ki},
        {"TiB", ki * ki * ki * ki}}},
      {"rate",
       "100 Gbps",
       {{"bps", 1},
        {"kbps", k},
        {"Mbps", k * k},
        {"Gbps", k * k * k},
        {"Tbps", k * k * k * k},
        {"b/s", 1},
        {"kb/s", k},
        {"Mb/s", k * k},
        {"Gb/s", k * k * k},
        {"Tb/s", k * k * k * k},
        {"B/s", 8},
        {"kB/s", 8 * k},
        {"MB/s", 8 * k * k},
        {"GB/s", 8 * k * k * k},
        {"TB/s", 8 * k * k * k * k}}},
      {"time",
       "12.5 ms",
       {{"ps", 1},
        {"ns", k},
        {"us", k * k},
        {"\xc2\xb5s", k * k},
        {"ms", k * k * k},
        {"s", k * k * k * k},
        {"min", 60 * k * k * k * k},
        {"h", 3600 * k * k * k * k}}},
      {"length", "2000 km", {{"m", 1}, {"km", k}}},
      {"frequency", "250 MHz", {{"Hz", 1}, {"kHz", k}, {"MHz", k * k}, {"GHz", k * k * k}}},
      {"computing rate",
       "400 TFLOPS",
       {{"FLOPS", 1},
        {"GFLOPS", k * k * k},
        {"TFLOPS", k * k * k * k},
        {"PFLOPS", k * k * k * k * k},
        {"EFLOPS", k * k * k * k * k * k}}},
  }};
  return table[static_cast<std::size_t>(what)];
}

std::string units_of(const dimension_info& dim) {
  std::string list;
  for (const unit& each : dim.units) list += (list.empty() ? "" : ", ") + std::string(each.name);
  return list;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::uint64_t parse_quantity(std::string_view text, dimension what) {
  __extension__ using wide = unsigned __int128;
  const dimension_info& dim = info(what);
  const auto fail = [&](const std::string& why) { return quantity_error(why); };

  std::size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) ++at;
  wide mantissa = 0;
  int decimals = 0;
  int digits = 0;
  bool point = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point) || text[at] == '_'); ++at) {
    if (text[at] == '_') continue;
    if (text[at] == '.') {
      point = true;
      continue;
    }
    if (++digits > 24) throw fail("too many digits");
    mantissa = mantissa * 10 + static_cast<unsigned>(text[at] - '0');
    if (point) ++decimals;
  }
  if (digits == 0) throw fail(fmt::format("a {} is due, such as '{}'", dim.noun, dim.example));
  if (at + 1 < text.size() && (text[at] == 'e' || text[at] == 'E') &&
      (is_digit(text[at + 1]) ||
       ((text[at + 1] == '-' || text[at + 1] == '+') && at + 2 < text.size() && is_digit(text[at + 2])))) {
    ++at;
    int sign = 1;
    if (text[at] == '-' || text[at] == '+') sign = text[at++] == '-' ? -1 : 1;
    int exponent = 0;
    for (; at < text.size() && is_digit(text[at]); ++at) exponent = std::min(1000, exponent * 10 + (text[at] - '0'));
    decimals -= sign * exponent;
  }
  while (at < text.size() && text[at] == ' ') ++at;
  const std::string_view name = text.substr(at);
  if (name.empty())
    throw fail(fmt::format("a unit is missing: write for example '{}' ({})", dim.example, units_of(dim)));
  const unit* found = nullptr;
  for (const unit& each : dim.units) {
    if (name == each.name) found = &each;
  }
  if (found == nullptr)
    throw fail(fmt::format("'{}' is not a unit of {}: use one of {}", name, dim.noun, units_of(dim)));
  if (negative && mantissa != 0) throw fail(fmt::format("a {} cannot be negative", dim.noun));

  constexpr wide limit = std::numeric_limits<std::uint64_t>::max();
  wide value = mantissa * found->scale;  // at most 24 digits times 2^60: fits 128 bits with room for rounding
  for (; decimals < 0 && value != 0; ++decimals) {
    if (value > limit) throw fail("the value is too large");
    value *= 10;
  }
  for (; decimals > 1; --decimals) value /= 10;
  if (decimals == 1) value = (value + 5) / 10;
  if (value > limit) throw fail("the value is too large");
  return static_cast<std::uint64_t>(value);
}

namespace {

std::string scaled(double value, const std::array<const char*, 6>& units, double step) {
  std::size_t at = 0;
  while (at + 1 < units.size() && std::abs(value) >= step) {
    value /= step;
    ++at;
  }
  return fmt::format("{:.4g} {}", value, units[at]);
}

}  // namespace

std::string format_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  if (std::abs(seconds) >= 1) return fmt::format("{:.4g} s", seconds);
  return scaled(seconds * 1e12, {"ps", "ns", "us", "ms", "s", "s"}, 1000);
}

std::string format_bytes(double bytes) { return scaled(bytes, {"B", "kB", "MB", "GB", "TB", "PB"}, 1000); }

std::string format_rate(double bits_per_s) {
  return scaled(bits_per_s, {"bps", "kbps", "Mbps", "Gbps", "Tbps", "Pbps"}, 1000);
}

}  // namespace tributary
