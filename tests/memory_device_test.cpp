// DRAM devices: reference bandwidths, the rules of the data sheet, agreement of the bulk with the burst level.
#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>

#include "modules/memory_controller/bulk_timing.hpp"
#include "modules/memory_controller/dram_command_checker.hpp"
#include "platforms/spec.hpp"
#include "tests/support/device_traffic.hpp"
#include "tests/support/forked.hpp"
#include "tlm/memory_checker.hpp"

namespace tributary::test {
namespace {

memory_parameters preset(const std::string& name, memory_level level) {
  memory_device_spec spec = memory_preset(name);
  spec.level = level;
  memory_parameters parameters = spec.parameters();
  parameters.latency = 0;
  return parameters;
}

struct loop {
  memory_controller memory;
  memory_checker protocol{"protocol"};
  dram_command_checker commands;
  closed_loop_master master{"master"};
  loop(const memory_parameters& parameters, const dram_device& checked, bool watched = true)
      : memory("memory", parameters), commands(checked) {
    master.port.socket.bind(protocol.in);
    protocol.out.bind(memory.socket);
    if (watched) memory.watch(commands);
  }
  explicit loop(const memory_parameters& parameters) : loop(parameters, parameters.device) {}
  void run(std::function<device_access(std::uint64_t)> pattern, std::uint64_t count, unsigned under_way) {
    master.pattern = std::move(pattern);
    master.count = count;
    master.under_way = under_way;
    sc_core::sc_start();
    EXPECT_EQ(master.port.outstanding(), 0U);
    EXPECT_EQ(master.errors, 0U);
    EXPECT_TRUE(protocol.violations().empty()) << protocol.violations().front();
  }
};

// ---- reference figures: DRAMsim3, 100,000 requests of 64 B, closed loop ----------------------------------------

struct reference_row {
  const char* device;
  const char* pattern;
  double gigabytes_per_s;
};

class ReferenceBandwidth : public ::testing::TestWithParam<reference_row> {};

TEST_P(ReferenceBandwidth, LiesWithinFivePercent) {
  run_forked([row = GetParam()] {
    memory_parameters parameters = preset(row.device, memory_level::burst);
    parameters.queue_depth = 4096;
    loop l(parameters);
    const std::string pattern = row.pattern;
    l.run(pattern == "seqr"   ? sequential(64, false)
          : pattern == "seqw" ? sequential(64, true)
          : pattern == "rmw8" ? read_modify_write(64, 4096)
                              : random_places(64, std::uint64_t{2} << 30, false),
          100'000, 4096);
    const double measured = l.master.bytes_per_s() / 1e9;
    std::cout << row.device << ' ' << pattern << ": " << measured << " GB/s, reference " << row.gigabytes_per_s << '\n';
    EXPECT_NEAR(measured, row.gigabytes_per_s, 0.05 * row.gigabytes_per_s);
    EXPECT_TRUE(l.commands.violations().empty()) << l.commands.violations().front();
    EXPECT_GT(l.commands.commands(), 100'000U);
  });
}

INSTANTIATE_TEST_SUITE_P(DramSim3, ReferenceBandwidth,
                         ::testing::Values(reference_row{"ddr4_2400", "seqr", 14.96},
                                           reference_row{"ddr4_2400", "seqw", 15.04},
                                           reference_row{"ddr4_2400", "rmw8", 13.98},
                                           reference_row{"ddr4_2400", "rand", 16.95},
                                           reference_row{"hbm2", "seqr", 237.2}, reference_row{"hbm2", "seqw", 237.9},
                                           reference_row{"hbm2", "rmw8", 119.8}, reference_row{"hbm2", "rand", 61.3}),
                         [](const auto& each) { return std::string(each.param.device) + "_" + each.param.pattern; });

// ---- first principles -------------------------------------------------------------------------------------------

/// One access to an idle device: ACT, tRCD, READ, CL, the burst.
SIMULATION_TEST(DramDevice, AnIdleReadTakesRowColumnAndBurst) {
  loop l(preset("ddr4_2400", memory_level::burst));
  l.run(sequential(64, false), 1, 1);
  // The access enters in cycle 0 and reaches its bank's queue; ACT in cycle 1.
  EXPECT_EQ(l.master.last, (1U + 17 + 17 + 4) * 830);
}

/// Same row: column after column, tCCD_L apart in one bank group.
SIMULATION_TEST(DramDevice, ARowStreamsAtTheColumnDistanceOfItsBankGroup) {
  loop l(preset("ddr4_2400", memory_level::burst));
  l.run(sequential(64, false), 100, 100);
  EXPECT_EQ(l.master.last, (1U + 17 + 99 * 6 + 17 + 4) * 830);
}

/// Two bank groups in turn: the data bus is the limit.
SIMULATION_TEST(DramDevice, BankGroupsInTurnFillTheDataBus) {
  memory_parameters p = preset("ddr4_2400", memory_level::burst);
  p.device.policy.mapping = "rochrabacobg";  // bank group lowest
  loop l(p);
  l.run(sequential(64, false), 400, 400);
  const picoseconds bus = 400 * 4 * 830;
  EXPECT_GT(l.master.last, bus);
  EXPECT_LT(l.master.last, bus + 80U * 830);
}

/// Rows of one bank in turn: tRC each.
SIMULATION_TEST(DramDevice, RowsOfOneBankAreARowCycleApart) {
  loop l(preset("ddr4_2400", memory_level::burst));
  const std::uint64_t next_row = 8192ULL * 4 * 4 * 2;  // all banks of both ranks lie between
  l.run([=](std::uint64_t i) { return device_access{i * next_row, 64, false}; }, 20, 20);
  EXPECT_EQ(l.master.last, (1U + 19 * (39 + 17) + 17 + 17 + 4) * 830);
}

/// Five activates: the fifth waits for the window.
SIMULATION_TEST(DramDevice, TheFifthActivateWaitsForTheWindow) {
  memory_parameters p = preset("hbm2", memory_level::burst);
  p.device.timing.rrd_s = p.device.timing.rrd_l = 4;
  loop l(p);
  const std::uint64_t next_bank = 8192;  // columns, then channels, then banks
  l.run([=](std::uint64_t i) { return device_access{i * next_bank, 64, false}; }, 5, 5);
  EXPECT_EQ(l.master.last, (1U + 30 + 14 + 14 + 2) * 1000);
}

SIMULATION_TEST(DramDevice, RefreshTakesItsShare) {
  memory_parameters p = preset("hbm2", memory_level::burst);
  loop with(p);
  with.run(sequential(1024, false), 20'000, 64);
  EXPECT_GE(with.memory.counters().commands.refreshes, with.master.last / (3900 * 1000) * 8);
}

TEST(DramDevice, WithoutRefreshTheBusIsFull) {
  const auto rate = [](refresh_policy policy) {
    return measure_forked([policy] {
      memory_parameters p = preset("hbm2", memory_level::burst);
      p.device.policy.refresh = policy;
      loop l(p);
      l.run(sequential(1024, false), 20'000, 256);
      return l.master.bytes_per_s();
    });
  };
  const double with = rate(refresh_policy::all_bank);
  const double without = rate(refresh_policy::none);
  EXPECT_NEAR(without, 256e9, 0.01 * 256e9);
  // Closing, tRFC and opening again in every tREFI.
  EXPECT_NEAR(with / without, 1 - (260.0 + 14 + 14) / 3900, 0.01);
}

SIMULATION_TEST(DramDevice, ClosedPagePaysForRepeatedRows) {
  memory_parameters p = preset("ddr4_2400", memory_level::burst);
  p.device.policy.page = page_policy::closed;
  loop l(p);
  // One access at a time: the row is closed before the next comes.
  l.run(sequential(64, false), 10, 1);
  EXPECT_EQ(l.memory.counters().commands.activates, 10U);
  EXPECT_EQ(l.memory.counters().commands.row_hits, 0U);
  EXPECT_TRUE(l.commands.violations().empty()) << l.commands.violations().front();
}

SIMULATION_TEST(DramDevice, AReadBehindAWaitingWriteIsAnsweredFromTheQueue) {
  memory_parameters p = preset("ddr4_2400", memory_level::burst);
  loop l(p);
  l.run(
      [](std::uint64_t i) {
        // reads keep the write waiting
        return device_access{i == 1 || i == 20 ? std::uint64_t{1} << 20 : i * 64, 64, i == 1};
      },
      21, 21);
  EXPECT_EQ(l.memory.counters().commands.forwarded, 1U);
}

SIMULATION_TEST(DramDevice, AnOldRequestIsNotOvertakenForEver) {
  memory_parameters p = preset("ddr4_2400", memory_level::burst);
  p.device.policy.refresh = refresh_policy::none;
  p.device.policy.age_limit = 300;
  loop l(p);
  const std::uint64_t other_row = 8192ULL * 32;
  picoseconds waited = 0;
  // A stream of hits with one request to another row of the same bank in its midst.
  struct spy : dram_command_listener {
    dram_cycle seen = 0;
    void issued(unsigned, const dram_command& c) override {
      if (c.reads() && c.row == 1 && seen == 0) seen = c.cycle;
    }
  } spy;
  l.memory.watch(spy);
  l.run([=](std::uint64_t i) { return device_access{i == 50 ? other_row : i % 128 * 64, 64, false}; }, 5000, 40);
  waited = spy.seen;
  EXPECT_GT(waited, 0U);
  EXPECT_LT(waited, 50U * 6 + 300 + 40 * 6 + 200);
}

// ---- the rules --------------------------------------------------------------------------------------------------

std::function<device_access(std::uint64_t)> anything(std::uint64_t seed, std::uint64_t range) {
  return [=, generator = std::mt19937_64(seed)](std::uint64_t) mutable {
    // Mostly near each other, so that rows hit, conflict and turn around; some anywhere.
    const std::uint64_t r = generator();
    const std::uint64_t base = (r & 7) == 0 ? generator() % range : (r >> 3 & 3) * 262'144 + generator() % 32'768;
    const std::uint32_t bytes = 1U << (r >> 8) % 11;
    return device_access{std::min(base, range - bytes), bytes, (r >> 32) % 5 < 2};
  };
}

struct rule_case {
  const char* device;
  page_policy page;
  refresh_policy refresh;
};

class TimingRules : public ::testing::TestWithParam<rule_case> {};

TEST_P(TimingRules, HoldOverRandomCommands) {
  run_forked([c = GetParam()] {
    memory_parameters p = preset(c.device, memory_level::burst);
    p.queue_depth = 256;
    p.device.policy.page = c.page;
    p.device.policy.refresh = c.refresh;
    if (c.refresh == refresh_policy::per_bank && p.device.timing.rfc_pb == 0) p.device.timing.rfc_pb = 120;
    loop l(p);
    l.run(anything(7, std::uint64_t{1} << 30), 30'000, 200);
    EXPECT_TRUE(l.commands.violations().empty())
        << l.commands.violations().size() << " violations, the first: " << l.commands.violations().front();
    std::cout << "commands " << l.commands.commands() << '\n';
    EXPECT_GT(l.commands.commands(), 125'000U);  // eight cases: more than a million
    const dram_counters counters = l.memory.counters().commands;
    EXPECT_GT(counters.turnarounds, 100U);
    EXPECT_GT(counters.refreshes, 10U);
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, TimingRules,
                         ::testing::Values(rule_case{"ddr4_2400", page_policy::open, refresh_policy::all_bank},
                                           rule_case{"ddr4_2400", page_policy::closed, refresh_policy::all_bank},
                                           rule_case{"ddr4_3200", page_policy::open, refresh_policy::all_bank},
                                           rule_case{"ddr5_4800", page_policy::open, refresh_policy::per_bank},
                                           rule_case{"ddr5_4800", page_policy::closed, refresh_policy::all_bank},
                                           rule_case{"hbm2", page_policy::open, refresh_policy::all_bank},
                                           rule_case{"hbm2", page_policy::closed, refresh_policy::per_bank},
                                           rule_case{"hbm2e", page_policy::open, refresh_policy::per_bank}),
                         [](const auto& each) {
                           return std::string(each.param.device) +
                                  (each.param.page == page_policy::open ? "_open" : "_closed") +
                                  (each.param.refresh == refresh_policy::per_bank ? "_per_bank" : "_all_bank");
                         });

/// A scheduler that believes in one shorter distance is caught.
struct broken_rule {
  const char* name;
  unsigned dram_timing::*parameter;
};

class BrokenScheduler : public ::testing::TestWithParam<broken_rule> {};

TEST_P(BrokenScheduler, IsCaught) {
  run_forked([rule = GetParam()] {
    const memory_parameters right = preset("ddr4_2400", memory_level::burst);
    memory_parameters wrong = right;
    wrong.queue_depth = 256;
    wrong.device.timing.*rule.parameter -= 1;
    loop l(wrong, right.device);
    l.run(anything(7, std::uint64_t{1} << 30), 6'000, 200);
    EXPECT_FALSE(l.commands.violations().empty()) << rule.name;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Parameters, BrokenScheduler,
    ::testing::Values(broken_rule{"tRCD", &dram_timing::rcd}, broken_rule{"tRP", &dram_timing::rp},
                      broken_rule{"tRAS", &dram_timing::ras}, broken_rule{"CL", &dram_timing::read_latency},
                      broken_rule{"CWL", &dram_timing::write_latency}, broken_rule{"tCCD_L", &dram_timing::ccd_l},
                      broken_rule{"burst", &dram_timing::burst_cycles}, broken_rule{"tRRD_S", &dram_timing::rrd_s},
                      broken_rule{"tRRD_L", &dram_timing::rrd_l}, broken_rule{"tFAW", &dram_timing::faw},
                      broken_rule{"tWTR_S", &dram_timing::wtr_s}, broken_rule{"tWTR_L", &dram_timing::wtr_l},
                      broken_rule{"tWR", &dram_timing::wr}, broken_rule{"tRTP", &dram_timing::rtp},
                      broken_rule{"tRFC", &dram_timing::rfc}, broken_rule{"tRTRS", &dram_timing::rtrs}),
    [](const auto& each) { return std::string(each.param.name); });

// ---- bulk against burst -----------------------------------------------------------------------------------------

struct bulk_case {
  const char* device;
  const char* pattern;
  std::uint32_t bytes;
};

class BulkLevel : public ::testing::TestWithParam<bulk_case> {};

TEST_P(BulkLevel, AgreesWithTheBurstLevelWithinThreePercent) {
  const bulk_case c = GetParam();
  std::array<double, 2> rate{};
  for (std::size_t level = 0; level < 2; ++level) {
    rate[level] = measure_forked([c, level] {
      memory_parameters p = preset(c.device, level == 0 ? memory_level::burst : memory_level::bulk);
      p.queue_depth = 64;
      loop l(p, p.device, false);
      const std::string pattern = c.pattern;
      // Streams of an aggregator: slots of a chunk, read and written whole.
      const std::uint64_t spacing = c.bytes <= 4096 ? 1'000'000 : std::uint64_t{64} << 20;
      l.run(pattern == "seqr"   ? sequential(c.bytes, false)
            : pattern == "seqw" ? sequential(c.bytes, true)
            : pattern == "rmw8" ? read_modify_write(c.bytes, c.bytes, spacing)
                                : random_places(c.bytes, std::uint64_t{2} << 30, false),
            (std::uint64_t{pattern == "rand" ? 32U : 16U} << 20) / c.bytes, 32);
      return l.master.bytes_per_s();
    });
  }
  std::cout << c.device << ' ' << c.pattern << ' ' << c.bytes << ": burst " << rate[0] / 1e9 << " GB/s, bulk "
            << rate[1] / 1e9 << " GB/s\n";
  // The one exception: small reads and writes drained against each other in the same four banks of every HBM2E channel,
  // row conflict after row conflict; the bulk level does not see the order of drains.
  const bool colliding = std::string(c.device) == "hbm2e" && std::string(c.pattern) == "rmw8" && c.bytes == 65536;
  EXPECT_NEAR(rate[1] / rate[0], 1, colliding ? 0.15 : 0.03);
}

std::vector<bulk_case> bulk_cases() {
  std::vector<bulk_case> cases;
  for (const char* device : {"ddr4_2400", "ddr5_4800", "hbm2", "hbm2e"}) {
    for (const char* pattern : {"seqr", "seqw", "rmw8", "rand"}) {
      for (const std::uint32_t bytes : {4096U, 65536U, 1U << 20}) cases.push_back({device, pattern, bytes});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Devices, BulkLevel, ::testing::ValuesIn(bulk_cases()), [](const auto& each) {
  return std::string(each.param.device) + "_" + each.param.pattern + "_" + std::to_string(each.param.bytes);
});

// ---- address mapping --------------------------------------------------------------------------------------------

TEST(AddressMapping, PutsEachFieldWhereTheStringSays) {
  dram_device device = memory_preset("ddr4_2400").dram;
  device.policy.mapping = "rorabaco4bgco3";  // 128 columns of 64 B: 7 bits
  const address_mapping mapping(device);
  dram_location at = mapping.locate(64 * 7);
  EXPECT_EQ(at.column, 7U);
  EXPECT_EQ(at.bank_group, 0U);
  at = mapping.locate(64 * 8);
  EXPECT_EQ(at.column, 0U);
  EXPECT_EQ(at.bank_group, 1U);
  at = mapping.locate(64 * 8 * 4);
  EXPECT_EQ(at.column, 8U);
  EXPECT_EQ(at.bank_group, 0U);
  at = mapping.locate(64 * 8 * 4 * 16);
  EXPECT_EQ(at.bank, 1U);
  EXPECT_EQ(mapping.row_run_bytes(), 512U);
}

TEST(AddressMapping, RefusesStringsThatDoNotDescribeTheDevice) {
  dram_device device = memory_preset("ddr4_2400").dram;
  for (const char* mapping : {"", "ro", "rorabgbacoxx", "rorabgbaco9", "rorabgbaco3", "rorabgbaco7co"}) {
    device.policy.mapping = mapping;
    EXPECT_THROW(address_mapping{device}, std::invalid_argument) << mapping;
  }
}

// ---- the standard -----------------------------------------------------------------------------------------------

SIMULATION_TEST(DramDevice, BlockingTransportWaitsInAThreadAndRefusesAMethod) {
  memory_controller memory("memory", preset("ddr4_2400", memory_level::burst));
  struct caller : sc_core::sc_module {
    tlm_utils::simple_initiator_socket<caller> socket{"socket"};
    picoseconds took = 0;
    unsigned char data[64] = {42};
    unsigned char back[64] = {};
    tlm::tlm_response_status in_method = tlm::TLM_INCOMPLETE_RESPONSE;
    sc_core::sc_event done;
    explicit caller(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {
      sc_core::sc_spawn([this] {
        transfer(true, data);
        transfer(false, back);
        took = sc_core::sc_time_stamp().value();
        done.notify(sc_core::SC_ZERO_TIME);
      });
      sc_core::sc_spawn_options method;
      method.spawn_method();
      method.dont_initialize();
      method.set_sensitivity(&done);
      sc_core::sc_spawn([this] { in_method = transfer(false, back); }, "method", &method);
    }
    tlm::tlm_response_status transfer(bool write, unsigned char* with) {
      tlm::tlm_generic_payload access;
      access.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
      access.set_address(4096);
      access.set_data_ptr(with);
      access.set_data_length(64);
      access.set_streaming_width(64);
      sc_core::sc_time t = sc_core::SC_ZERO_TIME;
      socket->b_transport(access, t);
      if (t != sc_core::SC_ZERO_TIME) sc_core::wait(t);
      return access.get_response_status();
    }
  } caller("caller");
  caller.socket.bind(memory.socket);
  sc_core::sc_start();
  EXPECT_EQ(caller.back[0], 42);
  EXPECT_GT(caller.took, 38U * 830);
  EXPECT_EQ(caller.in_method, tlm::TLM_GENERIC_ERROR_RESPONSE);
}

SIMULATION_TEST(DramDevice, RefusesACapacityBeyondTheDevice) {
  memory_parameters p = preset("ddr4_2400", memory_level::burst);
  p.capacity_bytes *= 2;
  EXPECT_THROW(memory_controller("memory", p), std::invalid_argument);
}

}  // namespace
}  // namespace tributary::test
