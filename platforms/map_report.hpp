// The capability map as text, and as a picture drawn by gnuplot.
#pragma once

#include <string>
#include <vector>

#include "planner/capability_map.hpp"

namespace tributary {

/// A table for each capability: memory down, link rate across, winner by letter and figure; a legend.
[[nodiscard]] std::string describe_map(const std::vector<planner::map_cell>& cells, const std::string& title,
                                       planner::objective goal);

/// Writes an .svg or .png by running gnuplot. Throws config_error when the ending is another or gnuplot is not there.
void draw_map(const std::vector<planner::map_cell>& cells, const std::string& title, planner::objective goal,
              const std::string& file);

}  // namespace tributary
