#include "platforms/audit.hpp"

#include <fmt/format.h>

#include "platforms/quantity.hpp"

namespace tributary {

namespace {

std::string coverage(const run_audit& run) {
  for (const site_audit& site : run.sites) {
    const std::uint64_t wrong = site.coverage_errors + site.aggregator.contributor_errors;
    if (wrong != 0) return fmt::format("{}: {} merged chunks without their whole group exactly once", site.name, wrong);
    if (!run.repairs && site.aggregator.late_bursts + site.aggregator.duplicate_bursts != 0) {
      return fmt::format("{}: {} late and {} duplicate bursts", site.name, site.aggregator.late_bursts,
                         site.aggregator.duplicate_bursts);
    }
  }
  return {};
}

std::string conservation(const run_audit& run) {
  for (const link_audit& link : run.links) {
    const link_direction_counters& c = link.counters;
    // Without repair nothing is under way when the last round is over.
    const bool all_there = !run.finished || run.repairs || link.wire_bytes_under_way == 0;
    if (c.wire_bytes_in != c.wire_bytes_out + c.lost_wire_bytes + link.wire_bytes_under_way || !all_there ||
        (link.wire_bytes_under_way == 0 && c.payload_bytes_in != c.payload_bytes_out + c.lost_payload_bytes)) {
      return fmt::format("{}: {} wire bytes went in, {} came out, {} were lost, {} are under way", link.name,
                         c.wire_bytes_in, c.wire_bytes_out, c.lost_wire_bytes, link.wire_bytes_under_way);
    }
  }
  for (const transfer_audit& each : run.transfers) {
    if (each.sent != each.expected_sent || each.received != each.expected_received) {
      return fmt::format("round {}: {} sent {} and received {} payload bytes, expected {} and {}", each.round,
                         each.site, each.sent, each.received, each.expected_sent, each.expected_received);
    }
  }
  if (run.repairs) return {};
  if (run.unrouted_bursts != 0)
    return fmt::format("{} bursts met a router without an entry for them", run.unrouted_bursts);
  if (run.finished && run.live_bursts != 0) {
    return fmt::format("{} bursts are still somewhere after the last round", run.live_bursts);
  }
  return {};
}

std::string occupancy(const run_audit& run) {
  for (const site_audit& site : run.sites) {
    if (site.aggregator.high_water_bytes > site.memory_capacity_bytes) {
      return fmt::format("{}: {} of {} bytes", site.name, site.aggregator.high_water_bytes, site.memory_capacity_bytes);
    }
  }
  return {};
}

std::string no_overflow(const run_audit& run) {
  for (const site_audit& site : run.sites) {
    const picoseconds held = site.aggregator.stalled[static_cast<std::size_t>(stall_cause::memory_full)];
    if (site.aggregator.overrun_packets != 0) {
      return fmt::format("{}: {} packets found no aggregator memory and were sent again", site.name,
                         site.aggregator.overrun_packets);
    }
    if (held != 0) {
      return fmt::format("{}: more arrived than aggregator memory holds; input held for {}", site.name,
                         format_seconds(seconds(held)));
    }
  }
  return {};
}

std::string memory_accesses(const run_audit& run) {
  for (const site_audit& site : run.sites) {
    if (site.aggregator.memory_errors != 0) {
      return fmt::format("{}: {} memory accesses failed", site.name, site.aggregator.memory_errors);
    }
  }
  return {};
}

std::string time_adds_up(const run_audit& run) {
  picoseconds before = 0;
  for (const round_audit& round : run.rounds) {
    if (round.opened < before || round.closed < round.opened)
      return fmt::format("round {} runs backwards", round.index);
    before = round.closed;
    if (round.parts != round.closed - round.opened) {
      return fmt::format("round {}: its parts add up to {} ps of {} ps", round.index, round.parts,
                         round.closed - round.opened);
    }
  }
  return {};
}

std::string reduction(const run_audit& run) {
  for (const site_audit& site : run.sites) {
    if (site.mismatches != 0) {
      return fmt::format("{}: {} elements differ from the direct reduction, by up to {}", site.name, site.mismatches,
                         site.largest_difference);
    }
  }
  return {};
}

}  // namespace

std::vector<check_result> audit(const run_audit& run) {
  std::vector<check_result> checks;
  const auto add = [&checks](const char* name, std::string failure) {
    const bool pass = failure.empty();
    checks.push_back({name, pass, std::move(failure)});
  };
  add("coverage", coverage(run));
  add("conservation", conservation(run));
  add("occupancy", occupancy(run));
  if (run.as_planned) add("no_overflow", no_overflow(run));
  add("memory_accesses", memory_accesses(run));
  add("time_adds_up", time_adds_up(run));
  add("all_rounds_ended", run.rounds.size() == run.rounds_due && run.finished
                              ? ""
                              : fmt::format("{} of {} rounds", run.rounds.size(), run.rounds_due));
  if (run.real_values) add("reduction", reduction(run));
  if (run.protocol_checked) add("protocol", run.protocol_violations.empty() ? "" : run.protocol_violations.front());
  return checks;
}

}  // namespace tributary
