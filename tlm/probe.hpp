// Trace sources. A module declares probes for what a reader of a waveform wants to see; a sink (a VCD writer, a test)
// may listen. A probe nobody listens to costs one compare.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tlm/quantities.hpp"

namespace tributary {

/// How much a run traces; each level includes the ones before it.
enum class trace_level : std::uint8_t { none, round, chunk, packet };

enum class probe_kind : std::uint8_t {
  state,     ///< enumeration; info().states names the values
  flag,      ///< 0 or 1
  count,     ///< whole number shown as a number (round, group)
  set,       ///< bit set (contributors)
  quantity,  ///< amount over time (bytes, slots), drawn as an analogue step
};

struct probe_info {
  std::string name;  ///< the last part of site.module.signal
  probe_kind kind = probe_kind::quantity;
  trace_level level = trace_level::chunk;
  std::string unit;  ///< "bytes", "chunks", empty
  std::string description;
  std::vector<std::string> states;  ///< for probe_kind::state, by value
};

class probe_sink {
 public:
  /// The probe it numbered `id` has the value `value` from `when` on, announced at simulated time `now`; when >= now.
  virtual void changed(unsigned id, picoseconds now, picoseconds when, std::uint64_t value) = 0;

  /// The probe has the value `then` from `until` on, unless it is held again before (source.generation() has moved on).
  virtual void held(unsigned /*id*/, picoseconds /*now*/, picoseconds /*until*/, std::uint64_t /*then*/,
                    std::uint64_t /*generation*/) {}

 protected:
  ~probe_sink() = default;
};

class probe {
 public:
  explicit probe(probe_info info) : info_(std::move(info)) {}

  void set(std::uint64_t value);                       ///< from now on
  void set_at(picoseconds when, std::uint64_t value);  ///< from a moment not before now
  /// `value` from now until `until`, then `then` - unless held again before: for what overlapping activities keep busy.
  void hold(std::uint64_t value, picoseconds until, std::uint64_t then);
  [[nodiscard]] std::uint64_t generation() const { return generation_; }  ///< counts calls of hold
  [[nodiscard]] std::uint64_t value() const { return value_; }
  [[nodiscard]] const probe_info& info() const { return info_; }

  /// The sink hears of every change from now on, with the number it gives the probe here.
  void attach(probe_sink& sink, unsigned id) { listeners_.push_back({&sink, id}); }
  void detach(const probe_sink& sink);
  [[nodiscard]] bool attached() const { return !listeners_.empty(); }

 private:
  struct listener {
    probe_sink* sink;
    unsigned id;
  };
  probe_info info_;
  std::vector<listener> listeners_;
  std::uint64_t value_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace tributary
