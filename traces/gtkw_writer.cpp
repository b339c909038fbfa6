#include "traces/gtkw_writer.hpp"

#include <cmath>
#include <fstream>
#include <map>
#include <stdexcept>

namespace tributary {

namespace {

// Trace flags of GTKWave's save files (its analyzer.h).
constexpr unsigned hex_flag = 0x2;
constexpr unsigned decimal_flag = 0x4;
constexpr unsigned binary_flag = 0x8;
constexpr unsigned right_justified = 0x20;
constexpr unsigned file_translated = 0x2000;
constexpr unsigned analog_step = 0x8000;
constexpr unsigned analog_extension = 0x20000;
constexpr unsigned full_scale = 0x80000;
constexpr unsigned blank = 0x200;
constexpr unsigned collapsed = 0x1000;
constexpr unsigned closed_group = 0x400000;
constexpr unsigned group_begin = 0x800000;
constexpr unsigned group_end = 0x1000000;

std::string flags(unsigned bits) {
  char text[16];
  std::snprintf(text, sizeof text, "@%x\n", bits);
  return text;
}

// GTKWave's trace colours by number.
enum class colour : unsigned {
  normal = 0,
  red = 1,
  orange = 2,
  yellow = 3,
  green = 4,
  blue = 5,
  indigo = 6,
  violet = 7
};

colour colour_of(const probe_info& info) {
  if (info.name.find("stall") != std::string::npos) return colour::red;
  if (info.name.find("occupancy") != std::string::npos) return colour::orange;
  if (info.kind == probe_kind::state || info.kind == probe_kind::count) return colour::yellow;
  if (info.name.find("busy") != std::string::npos) return colour::blue;
  return colour::normal;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

}  // namespace

std::string full_name(const traced_signal& signal) {
  std::string name;
  for (const std::string& scope : signal.scope) name += scope + ".";
  return name + signal.source->info().name;
}

void write_gtkw(const std::string& folder, const std::string& vcd_name, const std::vector<wave_group>& groups,
                const std::vector<wave_marker>& markers, trace_level level, picoseconds from, picoseconds to) {
  // GTKWave draws 200 pixels in 2^-zoom time units; the wave area of the window below is about 1300 pixels wide.
  const double zoom = -std::log2(std::max(1.0, static_cast<double>(to - from)) * 200.0 / 1300.0);
  std::string save = "[*] Tributary waveforms: gtkwave waves.gtkw, from this folder\n";
  save += "[dumpfile] \"" + vcd_name + "\"\n[savefile] \"waves.gtkw\"\n[timestart] " + std::to_string(from) +
          "\n[size] 1600 1000\n[pos] 0 0\n";
  char zoom_text[32];
  std::snprintf(zoom_text, sizeof zoom_text, "*%.6f", zoom);
  save += std::string(zoom_text) + " " + std::to_string(from);  // primary marker at the beginning
  const std::size_t shown = std::min<std::size_t>(markers.size(), 26);
  for (std::size_t m = 0; m < 26; ++m) save += m < shown ? " " + std::to_string(markers[m].when) : " -1";
  save += "\n";
  for (std::size_t m = 0; m < shown; ++m) {
    save += std::string("[markername] ") + static_cast<char>('A' + m) + markers[m].label + "\n";
  }
  save += "[sst_width] 180\n[signals_width] 260\n[sst_expanded] 0\n[sst_vpaned_height] 300\n";

  std::map<std::vector<std::string>, std::string> translations;  // states -> file
  for (const wave_group& group : groups) {
    std::string body;
    for (const traced_signal& signal : group.signals) {
      const probe_info& info = signal.source->info();
      if (info.level > level) continue;
      const unsigned width = vcd_writer::width_of(info);
      const std::string name = full_name(signal) + (width > 1 ? "[" + std::to_string(width - 1) + ":0]" : "");
      const std::string label = signal.label.empty() ? signal.scope.back() + " " + info.name : signal.label;
      if (colour_of(info) != colour::normal) {
        body += "[color] " + std::to_string(static_cast<unsigned>(colour_of(info))) + "\n";
      }
      const std::string alias = "+{" + label + (info.unit.empty() ? "" : " (" + info.unit + ")") + "} ";
      switch (info.kind) {
        case probe_kind::state: {
          auto [entry, added] = translations.try_emplace(info.states, "");
          if (added) {
            entry->second = "states_" + std::to_string(translations.size()) + "_" + signal.scope.back() + ".txt";
            std::string lines;
            for (std::size_t value = 0; value < info.states.size(); ++value) {
              lines += std::to_string(value) + " " + info.states[value] + "\n";
            }
            write_file(folder + "/" + entry->second, lines);
          }
          body += flags(decimal_flag | right_justified | file_translated) + "^1 " + entry->second + "\n" + alias +
                  name + "\n";
          break;
        }
        case probe_kind::flag: body += flags(binary_flag | right_justified) + alias + name + "\n"; break;
        case probe_kind::count: body += flags(decimal_flag | right_justified) + alias + name + "\n"; break;
        case probe_kind::set: body += flags(hex_flag | right_justified) + alias + name + "\n"; break;
        case probe_kind::quantity:
          // An analogue trace is as high as itself plus the analogue extension lines below it.
          body += flags(decimal_flag | right_justified | analog_step | full_scale) + alias + name + "\n";
          body += flags(analog_extension | full_scale) + "-\n";
          break;
      }
    }
    if (body.empty()) continue;
    const unsigned begin = group_begin | blank | (group.open ? 0 : closed_group);
    save += flags(begin) + "-" + group.title + "\n";
    save += body + flags(group_end | blank | (group.open ? 0 : collapsed)) + "-" + group.title + "\n";
  }
  write_file(folder + "/waves.gtkw", save);
}

}  // namespace tributary
