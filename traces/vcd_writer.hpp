// Value change dump (IEEE 1364-2005, clause 18), written as values change.
//
// Why not sc_trace: it polls every traced object in every time step, which costs more than the whole model here, and it
// writes the date into the file, so the same run twice gives different bytes. Changes announced for a later time (a
// link that will fall idle) wait in order until time has come that far.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tlm/probe.hpp"

namespace tributary {

/// A probe with the place it has in the hierarchy, outermost first: {"tyo", "aggregator"} and the probe's own name.
struct traced_signal {
  std::vector<std::string> scope;
  probe* source = nullptr;
  std::string label;  ///< how a viewer's list shows it; empty: scope and name
};

class vcd_writer final : public probe_sink {
 public:
  /// Opens `path` at simulated time `from` and attaches to every signal whose level is within `level`. Values the
  /// probes have now are dumped first. Throws std::runtime_error when the file cannot be written.
  vcd_writer(const std::string& path, const std::string& comment, const std::vector<traced_signal>& signals,
             trace_level level, picoseconds from);
  vcd_writer(const vcd_writer&) = delete;
  vcd_writer& operator=(const vcd_writer&) = delete;
  vcd_writer(vcd_writer&&) = delete;
  vcd_writer& operator=(vcd_writer&&) = delete;
  /// Detaches; a file not closed by close() is removed.
  ~vcd_writer();

  void changed(unsigned id, picoseconds now, picoseconds when, std::uint64_t value) override;
  void held(unsigned id, picoseconds now, picoseconds until, std::uint64_t then, std::uint64_t generation) override;
  /// Writes what is due up to `now`, stamps `now` and closes. Changes beyond it are dropped. Throws std::runtime_error
  /// when the disk did not take the file.
  void close(picoseconds now);

  /// Bits a probe's value has in the file: state and set vectors, 1 for flags, 64 for counts; 0: written as real.
  [[nodiscard]] static unsigned width_of(const probe_info& info);

 private:
  struct signal {
    probe* source = nullptr;
    std::string code;
    unsigned width = 0;  ///< 0: real
    std::uint64_t written = 0;
    bool dirty = false;
    std::uint64_t next = 0;
  };
  struct future {
    picoseconds when;
    std::uint64_t sequence;
    unsigned id;
    std::uint64_t value;
    std::uint64_t generation;  ///< 0: unconditional
  };

  void header(const std::string& comment, const std::vector<traced_signal>& signals);
  void advance(picoseconds to);
  void apply(unsigned id, std::uint64_t value);
  void flush_step();
  void dump_all();
  void put(const signal& changed, std::uint64_t value);
  void write_buffer();

  std::string path_;
  std::FILE* file_ = nullptr;
  std::string buffer_;
  std::vector<signal> signals_;
  std::vector<unsigned> dirty_;
  std::vector<future> futures_;  ///< heap
  std::uint64_t sequence_ = 0;
  picoseconds time_ = 0;  ///< of the step being gathered
  picoseconds stamped_ = 0;
  bool dumped_ = false;
};

}  // namespace tributary
