#include "modules/memory_controller/memory_controller.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/forked.hpp"
#include "tests/support/memory_master.hpp"
#include "tlm/memory_checker.hpp"

namespace tributary::test {
namespace {

memory_parameters eight_channels() {
  memory_parameters p;
  p.capacity_bytes = 1 << 30;
  p.channels = 8;
  p.interleave_bytes = 256;
  p.channel_rate = 64'000'000'000;  // 8 GB/s: 125 ps a byte
  p.latency = 100'000;
  return p;
}

struct bench {
  memory_controller memory;
  memory_checker checker{"checker"};
  memory_master master{"master"};
  explicit bench(const memory_parameters& parameters) : memory("memory", parameters) {
    master.port.socket.bind(checker.in);
    checker.out.bind(memory.socket);
  }
  void expect_clean() {
    EXPECT_TRUE(checker.violations().empty()) << checker.violations().front();
    EXPECT_EQ(checker.outstanding(), 0U);
  }
};

SIMULATION_TEST(MemoryController, AnAccessOverAllChannelsMovesAtTheirSum) {
  bench b(eight_channels());
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  b.master.port.access(tlm::TLM_WRITE_COMMAND, 0, 1 << 20, nullptr, 1);
  // 1 MiB over 8 channels is 131072 bytes each, 125 ps a byte, plus 100 ns.
  EXPECT_EQ(b.master.done[1].when, 131'072U * 125 + 100'000);
  b.master.port.access(tlm::TLM_READ_COMMAND, 0, 1 << 20, nullptr, 2);
  EXPECT_EQ(b.master.done[2].when, 2 * 131'072U * 125 + 100'000)
      << "the second waits for the first, the latency overlaps";
  b.expect_clean();
}

SIMULATION_TEST(MemoryController, SmallAccessesUseOnlyTheirChannel) {
  bench b(eight_channels());
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  b.master.port.access(tlm::TLM_READ_COMMAND, 0, 256, nullptr, 1);              // channel 0
  b.master.port.access(tlm::TLM_READ_COMMAND, 256, 256, nullptr, 2);            // channel 1: in parallel
  b.master.port.access(tlm::TLM_READ_COMMAND, 8 * 256, 256, nullptr, 3);        // channel 0 again
  b.master.port.access(tlm::TLM_READ_COMMAND, 7 * 256 + 128, 256, nullptr, 4);  // half on 7, half on 0
  EXPECT_EQ(b.master.done[1].when, 32'000U + 100'000);
  EXPECT_EQ(b.master.done[2].when, 32'000U + 100'000);
  EXPECT_EQ(b.master.done[3].when, 64'000U + 100'000);
  EXPECT_EQ(b.master.done[4].when, 80'000U + 100'000);
  b.expect_clean();
}

SIMULATION_TEST(MemoryController, AnswersErrorsAsTheStandardSays) {
  bench b(eight_channels());
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  const auto attempt = [&b](auto change) {
    unsigned char data[64] = {};
    tlm::tlm_generic_payload access;
    access.set_read();
    access.set_address(0);
    access.set_data_ptr(data);
    access.set_data_length(64);
    access.set_streaming_width(64);
    change(access);
    sc_core::sc_time t;
    b.master.port.socket->b_transport(access, t);
    return access.get_response_status();
  };
  EXPECT_EQ(attempt([](auto&) {}), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(attempt([](auto& a) { a.set_address((1 << 30) - 63); }), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(attempt([](auto& a) { a.set_address(~0ULL); }), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(attempt([](auto& a) { a.set_streaming_width(32); }), tlm::TLM_BURST_ERROR_RESPONSE);
  unsigned char enables[1] = {0xff};
  EXPECT_EQ(attempt([&](auto& a) {
              a.set_byte_enable_ptr(enables);
              a.set_byte_enable_length(1);
            }),
            tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  EXPECT_EQ(attempt([](auto& a) { a.set_command(tlm::TLM_IGNORE_COMMAND); }), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(b.memory.counters().errors, 4U);
  b.expect_clean();
}

void stores_what_is_written(bool four_phase) {
  memory_parameters parameters = eight_channels();
  parameters.four_phase = four_phase;
  parameters.queue_depth = 4;
  bench b(parameters);
  std::vector<std::uint32_t> out(100'000);
  std::iota(out.begin(), out.end(), 7U);
  std::vector<std::uint32_t> in(out.size());
  const auto bytes = static_cast<std::uint32_t>(out.size() * 4);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  b.master.port.access(tlm::TLM_WRITE_COMMAND, 65'000, bytes, out.data(), 1);
  for (std::uint64_t i = 2; i < 20; ++i) b.master.port.access(tlm::TLM_READ_COMMAND, 0, 4096, nullptr, i);
  b.master.port.access(tlm::TLM_READ_COMMAND, 65'000, bytes, in.data(), 20);
  sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_MS));
  EXPECT_EQ(in, out);
  ASSERT_EQ(b.master.done.size(), 20U);
  for (const auto& [cookie, done] : b.master.done) EXPECT_TRUE(done.ok) << cookie;
  EXPECT_EQ(b.master.port.outstanding(), 0U);

  unsigned char word[4];
  tlm::tlm_generic_payload debug;
  debug.set_read();
  debug.set_address(65'000 + 40);
  debug.set_data_ptr(word);
  debug.set_data_length(4);
  EXPECT_EQ(b.master.port.socket->transport_dbg(debug), 4U);
  EXPECT_EQ(word[0], 17);
  b.expect_clean();
}

SIMULATION_TEST(MemoryController, StoresWhatIsWrittenWithEarlyCompletion) { stores_what_is_written(false); }
SIMULATION_TEST(MemoryController, StoresWhatIsWrittenInFourPhasesWithBackPressure) { stores_what_is_written(true); }

SIMULATION_TEST(MemoryController, BothAnswersTakeTheSameTime) {
  memory_parameters parameters = eight_channels();
  memory_controller early("early", parameters);
  parameters.four_phase = true;
  memory_controller phased("phased", parameters);
  memory_master a("a");
  memory_master b("b");
  a.port.socket.bind(early.socket);
  b.port.socket.bind(phased.socket);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  for (std::uint64_t i = 0; i < 10; ++i) {
    a.port.access(tlm::TLM_READ_COMMAND, i * 5000, 20'000, nullptr, i);
    b.port.access(tlm::TLM_READ_COMMAND, i * 5000, 20'000, nullptr, i);
  }
  sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_MS));
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(a.done[i].when, b.done[i].when) << i;
}

}  // namespace
}  // namespace tributary::test
