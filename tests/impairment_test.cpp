// Loss, jitter and outages of a link; queues of a router.
#include <gtest/gtest.h>

#include "modules/long_haul_link/long_haul_link.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/traffic.hpp"
#include "tlm/network_checker.hpp"

namespace tributary::test {
namespace {

constexpr std::uint32_t mib = 1 << 20;  // 118 packets, 1'059'196 wire bytes
constexpr bits_per_s rate = 100'000'000'000;

struct bench {
  burst_pool pool;
  long_haul_link link;
  burst_source source{"source", pool};
  burst_sink sink{"sink", pool};
  network_checker after{"after"};

  explicit bench(const link_direction_parameters& line) : link("link", {{line, line}}, pool) {
    source.out.bind(link.in[0]);
    link.out[0].bind(after.in);
    after.out.bind(sink.in);
  }
  void expect_balance() {
    const link_direction_counters& c = link.counters(0);
    EXPECT_EQ(c.wire_bytes_in, c.wire_bytes_out + c.lost_wire_bytes);
    EXPECT_EQ(c.payload_bytes_in, c.payload_bytes_out + c.lost_payload_bytes);
    EXPECT_TRUE(after.violations().empty()) << after.violations().front();
    EXPECT_EQ(pool.live_bursts(), 0U);
  }
};

link_direction_parameters line_with(loss_parameters loss) {
  link_direction_parameters line{rate, 1 * ms};
  line.loss = loss;
  line.seed = 7;
  return line;
}

SIMULATION_TEST(LinkLoss, IndependentLossTakesItsShare) {
  bench b(line_with({0.01}));
  for (std::uint32_t c = 0; c < 1000; ++c) b.source.add(0, chunk_content(0, c, mib));
  sc_core::sc_start();
  // 118'000 packets: 1180 +- 34 (one standard deviation of the binomial distribution).
  EXPECT_NEAR(static_cast<double>(b.link.counters(0).lost_packets), 1180, 4 * 34);
  b.expect_balance();
}

SIMULATION_TEST(LinkLoss, BothFidelitiesLoseTheSamePackets) {
  bench b(line_with({0.02}));
  const wire_format format;
  for (std::uint32_t c = 0; c < 20; ++c) b.source.add(0, chunk_content(0, c, mib));
  for (std::uint32_t c = 0; c < 20; ++c) {
    for (std::uint32_t offset = 0; offset < mib; offset += format.payload_per_packet()) {
      burst_content packet = chunk_content(0, c, mib);
      packet.offset_bytes = offset;
      packet.payload_bytes = std::min(format.payload_per_packet(), mib - offset);
      b.source.add(0, packet);
    }
  }
  sc_core::sc_start();
  std::uint64_t in_bursts = 0;
  std::uint64_t in_packets = 0;
  for (const auto& each : b.sink.arrivals) (each.content.packets > 1 ? in_bursts : in_packets) += each.payload_bytes;
  EXPECT_EQ(in_bursts, in_packets);
  EXPECT_LT(in_bursts, std::uint64_t{20} * mib);
  b.expect_balance();
}

SIMULATION_TEST(LinkLoss, GilbertElliottLosesInRuns) {
  // Bad one packet in 101, then for ten on average, all lost: a share of 1/11 / ... = 0.001 / (0.001 + 0.1) = 0.0099.
  const loss_parameters chain{0, 1, 0.001, 0.1};
  EXPECT_NEAR(chain.mean(), 0.0099, 1e-4);
  bench b(line_with(chain));
  for (std::uint32_t c = 0; c < 2000; ++c) b.source.add(0, chunk_content(0, c, mib));
  sc_core::sc_start();
  // Runs of mean length 10 make the count vary as if there were a tenth as many, of ten each: 2336 +- 215.
  EXPECT_NEAR(static_cast<double>(b.link.counters(0).lost_packets), 236'000 * chain.mean(), 4 * 215);
  std::uint64_t touched = 0;
  for (const auto& each : b.sink.arrivals) touched += each.payload_bytes < mib ? 1 : 0;
  EXPECT_LT(touched, 600U) << "independent losses at this rate would touch 1382 of 2000 chunks";
  b.expect_balance();
}

SIMULATION_TEST(LinkOutage, LosesWhatIsPutOnTheLineWhileItIsDown) {
  link_direction_parameters line{rate, 1 * ms};
  const picoseconds whole = 1'059'196ULL * 80;
  line.outages = {{whole + whole / 2, 3 * whole}};  // from the middle of chunk 1 to the end of chunk 2
  bench b(line);
  for (std::uint32_t c = 0; c < 5; ++c) b.source.add(0, chunk_content(0, c, mib));
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 4U) << "chunk 2 is gone entirely";
  EXPECT_EQ(b.sink.arrivals[0].payload_bytes, mib);
  EXPECT_EQ(b.sink.arrivals[1].payload_bytes, 59U * 8948) << "the first half of 118 packets";
  EXPECT_EQ(b.sink.arrivals[2].content.chunk, 3U);
  EXPECT_EQ(b.link.counters(0).outage_packets, 59U + 118U);
  b.expect_balance();
}

SIMULATION_TEST(LinkJitter, DelaysWithinItsBoundAndKeepsOrder) {
  link_direction_parameters line{rate, 1 * ms};
  line.jitter = 300 * us;
  line.jitter_interval = 100 * us;
  line.seed = 3;
  line.fec_latency = 2 * us;
  bench b(line);
  const picoseconds whole = 1'059'196ULL * 80;
  for (std::uint32_t c = 0; c < 200; ++c) b.source.add(0, chunk_content(0, c, mib));
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 200U);
  picoseconds least = 1 * ms;
  picoseconds most = 0;
  for (std::uint64_t c = 0; c < 200; ++c) {
    const auto& each = b.sink.arrivals[c];
    EXPECT_EQ(each.content.chunk, c);
    const picoseconds late = each.tail - ((c + 1) * whole + 1 * ms + 2 * us);
    EXPECT_LE(late, 300 * us);
    least = std::min(least, late);
    most = std::max(most, late);
    if (c > 0) {
      EXPECT_GE(each.head, b.sink.arrivals[c - 1].tail);
    }
  }
  EXPECT_GT(most, 250 * us);
  EXPECT_LT(least, most);
  b.expect_balance();
}

SIMULATION_TEST(LinkJitter, ReordersWhenAsked) {
  link_direction_parameters line{rate, 1 * ms};
  line.jitter = 5 * ms;
  line.jitter_interval = 100 * us;
  line.seed = 3;
  line.reorders = true;
  bench b(line);
  for (std::uint32_t c = 0; c < 100; ++c) b.source.add(0, chunk_content(0, c, mib));
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 100U);
  unsigned overtaken = 0;
  for (std::size_t i = 1; i < 100; ++i) {
    overtaken += b.sink.arrivals[i].content.chunk < b.sink.arrivals[i - 1].content.chunk ? 1 : 0;
    EXPECT_GE(b.sink.arrivals[i].head, b.sink.arrivals[i - 1].head);
  }
  EXPECT_GT(overtaken, 10U);
  b.expect_balance();
}

}  // namespace
}  // namespace tributary::test
