// GTKWave save file: signals grouped by site, states with their names, amounts as analogue steps.
#pragma once

#include <string>
#include <vector>

#include "traces/vcd_writer.hpp"

namespace tributary {

/// One titled group of the display.
struct wave_group {
  std::string title;
  bool open = true;
  std::vector<traced_signal> signals;
};

/// A named marker; the first 26 are shown, as A to Z.
struct wave_marker {
  picoseconds when = 0;
  std::string label;
};

/// Name a signal has in the dump, without its range: site.module.signal.
[[nodiscard]] std::string full_name(const traced_signal& signal);

/// Writes `folder`/waves.gtkw for the dump `vcd_name` in the same folder, and a translate file for each state encoding
/// (states_*.txt). The view spans [from, to]. Signals beyond `level` are left out. Throws std::runtime_error.
void write_gtkw(const std::string& folder, const std::string& vcd_name, const std::vector<wave_group>& groups,
                const std::vector<wave_marker>& markers, trace_level level, picoseconds from, picoseconds to);

}  // namespace tributary
