// Base of all Tributary modules: what a platform wants from any of them.
#pragma once

#include <deque>
#include <string>
#include <systemc>

#include "tlm/probe.hpp"
#include "tlm/quantities.hpp"

namespace tributary {

class model : public sc_core::sc_module {
 public:
  /// The module's trace sources, in the order a reader wants them.
  [[nodiscard]] std::deque<probe>& probes() { return probes_; }
  [[nodiscard]] const std::deque<probe>& probes() const { return probes_; }

  /// One sentence on what this module waits for, empty when it waits for nothing: the watchdog's diagnosis.
  [[nodiscard]] virtual std::string waits_for() const { return {}; }

  /// How often the methods of all modules have run: what the kernel had to do.
  [[nodiscard]] static std::uint64_t activations() { return activations_; }

 protected:
  explicit model(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {}

  probe& add_probe(probe_info info) { return probes_.emplace_back(std::move(info)); }

  /// A method process that runs `body` whenever `trigger` is notified, not at the start. Call from the constructor.
  template <typename Body>
  static void spawn_method(const char* process, const sc_core::sc_event& trigger, Body body) {
    sc_core::sc_spawn_options options;
    options.spawn_method();
    options.dont_initialize();
    options.set_sensitivity(&trigger);
    sc_core::sc_spawn(
        [body] {
          ++activations_;
          body();
        },
        process, &options);
  }

  [[nodiscard]] static picoseconds now() { return sc_core::sc_time_stamp().value(); }
  [[nodiscard]] static sc_core::sc_time as_time(picoseconds t) { return sc_core::sc_time::from_value(t); }
  /// From now until `t`; zero when `t` has passed.
  [[nodiscard]] static sc_core::sc_time until(picoseconds t) { return as_time(t > now() ? t - now() : 0); }

 private:
  static inline std::uint64_t activations_ = 0;
  std::deque<probe> probes_;
};

}  // namespace tributary
