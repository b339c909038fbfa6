#include "platforms/map_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "platforms/config_reader.hpp"
#include "platforms/quantity.hpp"
#include "platforms/report.hpp"

namespace tributary {

namespace {

using planner::map_cell;

/// Schedules that win somewhere, in the order of their first win.
std::vector<std::string> winners_of(const std::vector<map_cell>& cells) {
  std::vector<std::string> winners;
  for (const map_cell& cell : cells) {
    if (std::find(winners.begin(), winners.end(), cell.winner) == winners.end()) winners.push_back(cell.winner);
  }
  return winners;
}

std::size_t number_of(const std::vector<std::string>& winners, const std::string& name) {
  return static_cast<std::size_t>(std::find(winners.begin(), winners.end(), name) - winners.begin());
}

std::string figure_text(double figure, planner::objective goal) {
  return goal == planner::objective::exchange_rate ? fmt::format("{:.3g}/s", figure) : format_seconds(figure);
}

std::string rate_label(bits_per_s rate) { return fmt::format("{:g} Gb/s", static_cast<double>(rate) / 1e9); }

const char* goal_text(planner::objective goal) {
  switch (goal) {
    case planner::objective::time_to_epsilon: return "time to agreement";
    case planner::objective::exchange_rate: return "pairs served a second";
    case planner::objective::staleness: return "mean age of what a site has from another";
  }
  return "";
}

}  // namespace

std::string describe_map(const std::vector<map_cell>& cells, const std::string& title, planner::objective goal) {
  const std::vector<std::string> winners = winners_of(cells);
  std::string text = fmt::format("{}: best schedule by {}\n", title, goal_text(goal));
  std::vector<std::vector<std::string>> rows;
  const auto flush = [&] {
    if (!rows.empty()) text += render_table(rows);
    rows.clear();
  };
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const map_cell& cell = cells[c];
    if (c == 0 || cell.offered != cells[c - 1].offered) {
      flush();
      text +=
          fmt::format("\n  network offers: {}\n\n", planner::capability_names[static_cast<std::size_t>(cell.offered)]);
      rows.push_back({"memory"});
      for (std::size_t r = c;
           r < cells.size() && cells[r].memory_bytes == cell.memory_bytes && cells[r].offered == cell.offered; ++r) {
        rows.front().push_back(rate_label(cells[r].rate));
      }
    }
    if (c == 0 || cell.memory_bytes != cells[c - 1].memory_bytes || cell.offered != cells[c - 1].offered) {
      rows.push_back({format_bytes(static_cast<double>(cell.memory_bytes))});
    }
    rows.back().push_back(fmt::format("{} {}", static_cast<char>('A' + number_of(winners, cell.winner) % 26),
                                      figure_text(cell.figure, goal)));
  }
  flush();
  text += "\n";
  for (std::size_t w = 0; w < winners.size(); ++w) {
    text += fmt::format("  {}  {}\n", static_cast<char>('A' + w % 26), winners[w]);
  }
  return text;
}

void draw_map(const std::vector<map_cell>& cells, const std::string& title, planner::objective goal,
              const std::string& file) {
  const std::string ending = std::filesystem::path(file).extension().string();
  if (ending != ".svg" && ending != ".png") throw config_error(fmt::format("{}: a map is an .svg or a .png", file));
  const std::vector<std::string> winners = winners_of(cells);
  std::vector<std::uint64_t> memories;
  std::vector<bits_per_s> rates;
  for (const map_cell& cell : cells) {
    if (std::find(memories.begin(), memories.end(), cell.memory_bytes) == memories.end()) {
      memories.push_back(cell.memory_bytes);
    }
    if (std::find(rates.begin(), rates.end(), cell.rate) == rates.end()) rates.push_back(cell.rate);
  }
  // Okabe and Ito's palette: told apart by everyone.
  constexpr std::array<const char*, 8> colours{"#56b4e9", "#e69f00", "#009e73", "#cc79a7",
                                               "#f0e442", "#0072b2", "#d55e00", "#bbbbbb"};
  std::string script = ending == ".svg"
                           ? "set terminal svg noenhanced size 1100,860 font 'sans,12' background 'white'\n"
                           : "set terminal pngcairo noenhanced size 1100,860 font 'sans,11'\n";
  const std::string part = file + ".part";
  script += fmt::format("set output '{}'\n", part);
  script += fmt::format(
      "set multiplot layout 2,2 title \"{}: best schedule by {}\" offset 0,-0.5 margins 0.1,0.97,0.2,0.9 "
      "spacing 0.12,0.14\nunset key\nset tics nomirror out\n",
      title, goal_text(goal));
  std::string xtics;
  for (std::size_t r = 0; r < rates.size(); ++r) {
    xtics += fmt::format("{}'{:g}' {}", r == 0 ? "" : ", ", static_cast<double>(rates[r]) / 1e9, r);
  }
  std::string ytics;
  for (std::size_t m = 0; m < memories.size(); ++m) {
    ytics += fmt::format("{}'{}' {}", m == 0 ? "" : ", ", format_bytes(static_cast<double>(memories[m])), m);
  }
  script +=
      fmt::format("set xtics ({})\nset ytics ({})\nset xlabel 'cluster link, Gb/s'\nset ylabel 'aggregator memory'\n",
                  xtics, ytics);
  script += fmt::format("set xrange [-0.5:{}]\nset yrange [-0.5:{}]\n", static_cast<double>(rates.size()) - 0.5,
                        static_cast<double>(memories.size()) - 0.5);
  for (std::size_t offered = 0; offered < planner::capability_names.size(); ++offered) {
    script +=
        fmt::format("set title 'network offers: {}'\nunset object\nunset label\n", planner::capability_names[offered]);
    int object = 1;
    for (const map_cell& cell : cells) {
      if (static_cast<std::size_t>(cell.offered) != offered) continue;
      const auto x = static_cast<double>(std::find(rates.begin(), rates.end(), cell.rate) - rates.begin());
      const auto y =
          static_cast<double>(std::find(memories.begin(), memories.end(), cell.memory_bytes) - memories.begin());
      script += fmt::format(
          "set object {} rectangle from {},{} to {},{} fillcolor rgb '{}' fillstyle solid 0.75 border "
          "linecolor rgb 'white'\n",
          object++, x - 0.5, y - 0.5, x + 0.5, y + 0.5, colours[number_of(winners, cell.winner) % colours.size()]);
      script += fmt::format("set label '{}' at {},{} center font ',9'\n", figure_text(cell.figure, goal), x, y);
    }
    if (offered == 0) {  // the legend, once, below everything
      for (std::size_t w = 0; w < winners.size(); ++w) {
        const double x = 0.1 + 0.3 * static_cast<double>(w % 3);
        const double y = 0.085 - 0.03 * static_cast<double>(w - w % 3) / 3;
        script += fmt::format(
            "set object {} rectangle from screen {},{} to screen {},{} fillcolor rgb '{}' fillstyle "
            "solid 0.75 noborder\n",
            object++, x, y, x + 0.02, y + 0.02, colours[w % colours.size()]);
        script += fmt::format("set label '{}' at screen {},{} left\n", winners[w], x + 0.027, y + 0.01);
      }
    }
    script += "plot NaN notitle\n";
  }
  script += "unset multiplot\n";
  FILE* pipe = popen("gnuplot 2>/dev/null", "w");
  if (pipe == nullptr) throw config_error("gnuplot could not be started");
  std::fwrite(script.data(), 1, script.size(), pipe);
  if (pclose(pipe) != 0 || !std::filesystem::exists(part)) {
    std::filesystem::remove(part);
    throw config_error(fmt::format("{}: gnuplot did not draw it; is it installed (Debian package gnuplot-nox)?", file));
  }
  std::filesystem::rename(part, file);
}

}  // namespace tributary
