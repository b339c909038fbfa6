// timeline.json in the trace-event format that Chrome's tracing and Perfetto read.
//
// A process per site with tracks for cluster, sending, aggregator, memory stalls and merges; a process for the backbone
// with a track per link direction; a process for the critical path. Long runs are thinned, and say so: chunk spans and
// flow arrows for some chunks of a round, counters no denser than a few thousand points, link spans joined over short
// gaps.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tlm/chunk_events.hpp"
#include "traces/vcd_writer.hpp"

namespace tributary {

/// One span of a track given from outside (the critical path).
struct timeline_span {
  std::string name;
  std::string category;
  std::string where;
  picoseconds from = 0;
  picoseconds to = 0;
};

class timeline_writer final : public probe_sink, public chunk_listener {
 public:
  /// `sites`: names by number. `resolution`: no counter point or link gap shorter than this is drawn.
  timeline_writer(const std::string& path, const std::vector<std::string>& sites, picoseconds resolution);
  timeline_writer(const timeline_writer&) = delete;
  timeline_writer& operator=(const timeline_writer&) = delete;
  timeline_writer(timeline_writer&&) = delete;
  timeline_writer& operator=(timeline_writer&&) = delete;
  /// Detaches; a file not closed by close() is removed.
  ~timeline_writer();

  /// Follows a module's state, a stall flag, an amount or a link's busy flag. `process` is a site's name or "backbone".
  void follow(probe& source, const std::string& process, const std::string& track);

  /// A round of `chunks` chunks begins: every `chunks`/16th is drawn, and the last.
  void begin_round(std::uint32_t chunks);
  void end_round(unsigned index, picoseconds from, picoseconds to, const std::vector<timeline_span>& critical_path);
  /// Ends open spans at `now` and closes. Throws std::runtime_error when the disk did not take the file.
  void close(picoseconds now);

  void changed(unsigned id, picoseconds now, picoseconds when, std::uint64_t value) override;
  void departed(unsigned site, std::uint32_t chunk, picoseconds at, picoseconds until) override;
  void arrived(unsigned site, unsigned source, std::uint32_t chunk, picoseconds head, picoseconds tail) override;
  void merged(unsigned site, std::uint32_t chunk, picoseconds from, picoseconds to) override;

 private:
  struct followed {
    probe* source = nullptr;
    unsigned process = 0;
    unsigned track = 0;
    std::uint64_t value = 0;
    picoseconds since = 0;
    picoseconds busy_from = 0;  ///< joined link span
    picoseconds busy_to = 0;
    bool busy_open = false;
    picoseconds last_point = 0;
    bool pending_point = false;
  };

  [[nodiscard]] unsigned process_of(const std::string& name);
  [[nodiscard]] unsigned track_of(unsigned process, const std::string& name);
  [[nodiscard]] bool drawn(std::uint32_t chunk) const;
  void span(const std::string& name, const std::string& category, unsigned process, unsigned track, picoseconds from,
            picoseconds to, const std::string& arguments = {});
  void flow(char phase, std::uint64_t id, unsigned process, unsigned track, picoseconds at);
  void counter(const followed& what, picoseconds at);
  void end_state(followed& what, picoseconds at);
  void end_busy(followed& what);
  void event(const std::string& body);

  std::string path_;
  std::FILE* file_ = nullptr;
  bool first_ = true;
  std::vector<std::string> sites_;
  picoseconds resolution_;
  std::vector<followed> followed_;
  std::map<std::string, unsigned> processes_;
  std::map<std::pair<unsigned, std::string>, unsigned> tracks_;
  std::uint64_t flows_ = 0;
  std::uint32_t chunks_ = 0;
  std::uint32_t stride_ = 1;
  std::map<std::pair<unsigned, std::uint32_t>, picoseconds> departures_;  ///< of drawn chunks, by source
};

}  // namespace tributary
