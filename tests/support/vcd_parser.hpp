// A strict reader of value change dumps (IEEE 1364-2005, clause 18): anything outside the grammar is an error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tributary::test {

struct vcd_signal {
  std::string name;  ///< scope.scope.signal
  std::string type;
  unsigned width = 0;
  std::vector<std::pair<std::uint64_t, double>> changes;  ///< time in ps, value; the first is the initial dump
  [[nodiscard]] double at(std::uint64_t time) const;
  [[nodiscard]] double last() const { return changes.back().second; }
  [[nodiscard]] double highest() const;
};

struct vcd_dump {
  std::map<std::string, vcd_signal> signals;
  std::uint64_t first_time = 0;
  std::uint64_t last_time = 0;
};

/// Throws std::runtime_error naming the line.
[[nodiscard]] vcd_dump parse_vcd(const std::string& text);

/// Signals whose value over time differs; empty when two dumps say the same, however they are written.
[[nodiscard]] std::vector<std::string> differing_signals(const vcd_dump& a, const vcd_dump& b);

}  // namespace tributary::test
