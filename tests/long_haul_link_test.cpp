#include "modules/long_haul_link/long_haul_link.hpp"

#include <gtest/gtest.h>

#include "tests/support/forked.hpp"
#include "tests/support/traffic.hpp"
#include "tlm/network_checker.hpp"

namespace tributary::test {
namespace {

constexpr std::uint32_t mib = 1 << 20;  // 118 packets, 1'059'196 wire bytes, first 9038, last 1750

struct bench {
  burst_pool pool;
  long_haul_link link;
  burst_source source{"source", pool};
  burst_sink sink{"sink", pool};
  network_checker before{"before"};
  network_checker after{"after"};

  bench(bits_per_s rate, picoseconds propagation) : link("link", {{{rate, propagation}, {rate, propagation}}}, pool) {
    source.out.bind(before.in);
    before.out.bind(link.in[0]);
    link.out[0].bind(after.in);
    after.out.bind(sink.in);
  }
  void expect_clean() {
    EXPECT_TRUE(before.violations().empty()) << before.violations().front();
    EXPECT_TRUE(after.violations().empty()) << after.violations().front();
    EXPECT_EQ(pool.live_bursts(), 0U);
    EXPECT_EQ(link.counters(0).wire_bytes_in, link.counters(0).wire_bytes_out);
  }
};

SIMULATION_TEST(LongHaulLink, ABurstFromMemoryTakesSerialisationPlusPropagation) {
  bench b(100'000'000'000, 4'900 * us);  // 80 ps a byte, 1000 km
  b.source.add(1000, chunk_content(0, 0, mib));
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 1U);
  EXPECT_EQ(b.sink.arrivals[0].head, 1000 + 9038 * 80 + 4'900 * us);
  EXPECT_EQ(b.sink.arrivals[0].tail, 1000 + 1'059'196ULL * 80 + 4'900 * us);
  EXPECT_EQ(b.sink.arrivals[0].spent.propagation, 4'900 * us);
  EXPECT_EQ(b.sink.arrivals[0].spent.serialization, 1'059'196ULL * 80);
  EXPECT_EQ(b.sink.arrivals[0].spent.queueing, 0U);
  b.expect_clean();
}

SIMULATION_TEST(LongHaulLink, ABurstTricklingInFromASlowerLineKeepsItsPace) {
  bench b(800'000'000'000, 0);  // 10 ps a byte
  b.source.add(0, chunk_content(0, 0, mib), 84 * us);
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 1U);
  EXPECT_EQ(b.sink.arrivals[0].head, 90'380U);
  EXPECT_EQ(b.sink.arrivals[0].tail, 84 * us + 17'500) << "tail + q/C, not head + s/C";
  b.expect_clean();
}

SIMULATION_TEST(LongHaulLink, BackToBackBurstsShareTheLineAndCountTheirWait) {
  bench b(100'000'000'000, 0);
  for (std::uint32_t c = 0; c < 3; ++c) b.source.add(0, chunk_content(0, c, mib));
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 3U);
  const picoseconds whole = 1'059'196ULL * 80;
  for (std::uint64_t c = 0; c < 3; ++c) {
    EXPECT_EQ(b.sink.arrivals[c].head, c * whole + 9038 * 80);
    EXPECT_EQ(b.sink.arrivals[c].tail, (c + 1) * whole);
    EXPECT_EQ(b.sink.arrivals[c].content.chunk, c);
  }
  EXPECT_EQ(b.link.counters(0).busy, 3 * whole);
  b.expect_clean();
}

SIMULATION_TEST(LongHaulLink, HoldsEverythingInOrderWhileTheFarEndIsClosed) {
  bench b(100'000'000'000, 1 * ms);
  b.sink.closed_until = 5 * ms;
  for (std::uint32_t c = 0; c < 4; ++c) b.source.add(0, chunk_content(0, c, mib));
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 4U);
  EXPECT_EQ(b.sink.arrivals[0].head, 5 * ms);
  for (std::uint32_t c = 0; c < 4; ++c) {
    EXPECT_EQ(b.sink.arrivals[c].content.chunk, c);
    EXPECT_GE(b.sink.arrivals[c].tail, 5 * ms);
    EXPECT_EQ(b.sink.arrivals[c].spent.total(), b.sink.arrivals[c].tail - b.sink.arrivals[c].departed)
        << "every picosecond of the tail is accounted for";
  }
  EXPECT_GT(b.link.counters(0).blocked, 0U);
  b.expect_clean();
}

SIMULATION_TEST(LongHaulLink, DirectionsAreIndependent) {
  burst_pool pool;
  long_haul_link link("link", {{{100'000'000'000, 3 * ms}, {400'000'000'000, 1 * ms}}}, pool);
  burst_source east("east", pool);
  burst_source west("west", pool);
  burst_sink at_west("at_west", pool);
  burst_sink at_east("at_east", pool);
  east.out.bind(link.in[0]);
  link.out[0].bind(at_west.in);
  west.out.bind(link.in[1]);
  link.out[1].bind(at_east.in);
  east.add(0, chunk_content(0, 0, mib));
  west.add(0, chunk_content(1, 0, mib));
  sc_core::sc_start();
  EXPECT_EQ(at_west.arrivals.at(0).tail, 1'059'196ULL * 80 + 3 * ms);
  EXPECT_EQ(at_east.arrivals.at(0).tail, 1'059'196ULL * 20 + 1 * ms);
}

}  // namespace
}  // namespace tributary::test
