// Every check must be able to fail: from a sound run, one number is changed and exactly that check goes red.
#include "platforms/audit.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace tributary {
namespace {

run_audit sound_run() {
  run_audit run;
  run.rounds_due = 2;
  run.finished = true;
  run.real_values = run.protocol_checked = true;
  site_audit site;
  site.name = "ams";
  site.memory_capacity_bytes = 1000;
  site.aggregator.high_water_bytes = 1000;
  run.sites = {site};
  link_audit link;
  link.name = "ams-fra";
  link.counters.payload_bytes_in = link.counters.payload_bytes_out = 10;
  link.counters.wire_bytes_in = link.counters.wire_bytes_out = 20;
  run.links = {link};
  run.transfers = {{0, "ams", 5, 5, 5, 5}};
  run.rounds = {{0, 0, 10, 10}, {1, 10, 30, 20}};
  return run;
}

TEST(Audit, ASoundRunPasses) {
  for (const check_result& check : audit(sound_run())) EXPECT_TRUE(check.pass) << check.name << ": " << check.detail;
}

struct breakage {
  const char* what;
  const char* check;
  std::function<void(run_audit&)> apply;
};

class Audit : public ::testing::TestWithParam<int> {};

const std::vector<breakage>& breakages() {
  static const std::vector<breakage> all{
      {"a merged chunk lacks a member", "coverage", [](run_audit& r) { r.sites[0].coverage_errors = 1; }},
      {"the aggregator merged too few", "coverage", [](run_audit& r) { r.sites[0].aggregator.contributor_errors = 1; }},
      {"a late burst", "coverage", [](run_audit& r) { r.sites[0].aggregator.late_bursts = 1; }},
      {"a duplicate burst", "coverage", [](run_audit& r) { r.sites[0].aggregator.duplicate_bursts = 1; }},
      {"a link loses payload", "conservation", [](run_audit& r) { r.links[0].counters.payload_bytes_out = 9; }},
      {"a link makes up wire bytes", "conservation", [](run_audit& r) { r.links[0].counters.wire_bytes_out = 21; }},
      {"a site sent too little", "conservation", [](run_audit& r) { r.transfers[0].sent = 4; }},
      {"a site received too much", "conservation", [](run_audit& r) { r.transfers[0].received = 6; }},
      {"a burst without a route", "conservation", [](run_audit& r) { r.unrouted_bursts = 1; }},
      {"a burst left over", "conservation", [](run_audit& r) { r.live_bursts = 1; }},
      {"memory overfull", "occupancy", [](run_audit& r) { r.sites[0].aggregator.high_water_bytes = 1001; }},
      {"input held for memory", "no_overflow", [](run_audit& r) { r.sites[0].aggregator.stalled[0] = 1; }},
      {"a failed access", "memory_accesses", [](run_audit& r) { r.sites[0].aggregator.memory_errors = 1; }},
      {"parts do not sum", "time_adds_up", [](run_audit& r) { r.rounds[1].parts = 19; }},
      {"a round starts before the last one ended", "time_adds_up",
       [](run_audit& r) {
         r.rounds[1] = {1, 9, 30, 21};
       }},
      {"a round is missing", "all_rounds_ended", [](run_audit& r) { r.rounds.pop_back(); }},
      {"the executor gave up", "all_rounds_ended", [](run_audit& r) { r.finished = false; }},
      {"a wrong sum", "reduction", [](run_audit& r) { r.sites[0].mismatches = 1; }},
      {"a protocol violation", "protocol", [](run_audit& r) { r.protocol_violations = {"x"}; }},
  };
  return all;
}

TEST_P(Audit, OneBreakageTurnsItsCheckRed) {
  const breakage& broken = breakages()[static_cast<std::size_t>(GetParam())];
  run_audit run = sound_run();
  broken.apply(run);
  for (const check_result& check : audit(run)) {
    EXPECT_EQ(check.pass, check.name != broken.check) << broken.what << ": " << check.name;
    EXPECT_EQ(check.pass, check.detail.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Breakages, Audit, ::testing::Range(0, static_cast<int>(breakages().size())));

}  // namespace
}  // namespace tributary
