#include "modules/multicast_router/multicast_router.hpp"

#include <gtest/gtest.h>

#include "modules/long_haul_link/long_haul_link.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/traffic.hpp"
#include "tlm/network_checker.hpp"

namespace tributary::test {
namespace {

constexpr std::uint32_t mib = 1 << 20;
constexpr std::uint64_t wire = 1'059'196;

/// One router with `ports` ports; port p sends over a link of `rate` to sink p.
struct bench {
  burst_pool pool;
  std::vector<std::unique_ptr<burst_source>> sources;
  std::unique_ptr<multicast_router> router;
  std::vector<std::unique_ptr<long_haul_link>> links;
  std::vector<std::unique_ptr<burst_sink>> sinks;
  std::vector<std::unique_ptr<network_checker>> checkers;
  register_driver driver{"driver"};

  bench(unsigned ports, bits_per_s rate, std::uint64_t queue_bytes = 64 << 20)
      : bench(ports, rate, [queue_bytes] {
          router_parameters parameters;
          parameters.queue_bytes = queue_bytes;
          return parameters;
        }()) {}

  bench(unsigned ports, bits_per_s rate, router_parameters parameters) {
    parameters.ports = ports;
    parameters.forwarding_latency = 500'000;
    router = std::make_unique<multicast_router>("router", parameters, pool);
    driver.socket.bind(router->control.socket);
    for (unsigned p = 0; p < ports; ++p) {
      const std::string n = std::to_string(p);
      sources.push_back(std::make_unique<burst_source>(("source" + n).c_str(), pool));
      links.push_back(std::make_unique<long_haul_link>(
          ("link" + n).c_str(), std::array<link_direction_parameters, 2>{{{rate, 0}, {rate, 0}}}, pool));
      sinks.push_back(std::make_unique<burst_sink>(("sink" + n).c_str(), pool));
      for (const char* place : {"in", "out", "far"}) {
        checkers.push_back(std::make_unique<network_checker>((place + n).c_str()));
      }
      network_checker& in = *checkers[p * 3];
      network_checker& out = *checkers[p * 3 + 1];
      network_checker& far = *checkers[p * 3 + 2];
      sources[p]->out.bind(in.in);
      in.out.bind(*router->in[p]);
      router->out[p]->bind(out.in);
      out.out.bind(links[p]->in[0]);
      links[p]->out[0].bind(far.in);
      far.out.bind(sinks[p]->in);
    }
  }
  void route(unsigned group, unsigned source, std::uint64_t ports) {
    EXPECT_EQ(driver.write(router_register::group, group), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(driver.write(router_register::source, source), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(driver.write(router_register::ports, ports), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(driver.write(router_register::control, command_start), tlm::TLM_OK_RESPONSE);
  }
  void expect_clean() {
    for (const auto& each : checkers) EXPECT_TRUE(each->violations().empty()) << each->violations().front();
    EXPECT_EQ(pool.live_bursts(), 0U);
  }
};

SIMULATION_TEST(MulticastRouter, CopiesToEveryPortOfTheEntryAfterTheForwardingLatency) {
  bench b(4, 800'000'000'000);
  b.route(2, 7, 0b1101);
  b.sources[1]->add(1000, chunk_content(7, 0, mib, 2), 20 * us);
  sc_core::sc_start();
  for (const unsigned p : {0U, 2U, 3U}) {
    ASSERT_EQ(b.sinks[p]->arrivals.size(), 1U) << p;
    EXPECT_EQ(b.sinks[p]->arrivals[0].head, 1000 + 500'000 + 90'380);
    EXPECT_EQ(b.sinks[p]->arrivals[0].tail, 1000 + 20 * us + 500'000 + 17'500);
  }
  EXPECT_TRUE(b.sinks[1]->arrivals.empty()) << "no copy back where it came from";
  EXPECT_EQ(b.driver.read(router_register::entries), 1U);
  b.expect_clean();
}

SIMULATION_TEST(MulticastRouter, EntriesTellGroupsAndSourcesApart) {
  bench b(3, 800'000'000'000);
  b.route(0, 1, 0b010);
  b.route(1, 1, 0b100);
  b.route(0, 2, 0b110);
  b.sources[0]->add(0, chunk_content(1, 0, mib, 0));
  b.sources[0]->add(100 * us, chunk_content(1, 0, mib, 1));
  b.sources[0]->add(200 * us, chunk_content(2, 0, mib, 0));
  b.sources[0]->add(300 * us, chunk_content(3, 0, mib, 0));  // no entry
  sc_core::sc_start();
  EXPECT_EQ(b.sinks[1]->arrivals.size(), 2U);
  EXPECT_EQ(b.sinks[2]->arrivals.size(), 2U);
  EXPECT_EQ(b.router->unrouted_bursts(), 1U);
  b.expect_clean();
}

SIMULATION_TEST(MulticastRouter, StreamsToOnePortQueueFirstComeFirstServed) {
  bench b(3, 100'000'000'000);
  b.route(0, 0, 0b100);
  b.route(0, 1, 0b100);
  b.sources[0]->add(0, chunk_content(0, 0, mib));
  b.sources[1]->add(1, chunk_content(1, 0, mib));
  sc_core::sc_start();
  const auto& arrivals = b.sinks[2]->arrivals;
  ASSERT_EQ(arrivals.size(), 2U);
  EXPECT_EQ(arrivals[0].content.source, 0U);
  EXPECT_EQ(arrivals[0].tail, 500'000 + wire * 80);
  EXPECT_EQ(arrivals[1].tail, 500'000 + 2 * wire * 80) << "starts when the first is sent";
  EXPECT_EQ(arrivals[1].spent.queueing, wire * 80 - 1);
  EXPECT_EQ(b.router->counters(2).queue_high_water_bytes, wire);
  b.expect_clean();
}

SIMULATION_TEST(MulticastRouter, ControlOvertakesWaitingData) {
  bench b(3, 100'000'000'000);
  b.route(0, 0, 0b100);
  b.route(0, 1, 0b100);
  for (std::uint32_t c = 0; c < 3; ++c) b.sources[0]->add(0, chunk_content(0, c, mib));
  burst_content credit = chunk_content(1, 0, 64);
  credit.kind = burst_kind::credit;
  credit.priority = 1;
  b.sources[1]->add(10 * us, credit);
  sc_core::sc_start();
  const auto& arrivals = b.sinks[2]->arrivals;
  ASSERT_EQ(arrivals.size(), 4U);
  EXPECT_EQ(arrivals[1].content.kind, burst_kind::credit) << "right after the burst on the line";
  b.expect_clean();
}

SIMULATION_TEST(MulticastRouter, FullQueueHoldsTheInputAndNothingIsLost) {
  bench b(3, 10'000'000'000, 3 * wire);
  b.route(0, 0, 0b100);
  b.route(0, 1, 0b100);
  for (std::uint32_t c = 0; c < 20; ++c) {
    b.sources[0]->add(0, chunk_content(0, c, mib));
    b.sources[1]->add(0, chunk_content(1, c, mib));
  }
  sc_core::sc_start();
  EXPECT_EQ(b.sinks[2]->arrivals.size(), 40U);
  EXPECT_LE(b.router->counters(2).queue_high_water_bytes, 3 * wire);
  EXPECT_EQ(b.sinks[2]->arrivals.back().tail, 500'000 + 40 * wire * 800) << "the line never idles";
  EXPECT_GT(b.sources[0]->taken.back(), 10 * ms) << "the source was held";
  b.expect_clean();
}

/// What source 0 and source 1 have got through to the sink of port 2 after each arrival, wire bytes.
std::vector<std::array<std::uint64_t, 2>> served(const bench& b) {
  std::vector<std::array<std::uint64_t, 2>> so_far;
  std::array<std::uint64_t, 2> sum{};
  for (const arrival_record& arrival : b.sinks[2]->arrivals) {
    sum.at(arrival.content.source) += wire_format{}.wire_bytes(arrival.payload_bytes);
    so_far.push_back(sum);
  }
  return so_far;
}

/// Source 0 offers 20 bursts of 1 MiB, source 1 a little later 80 of a quarter of that, all to port 2.
void offer_unequal_bursts(bench& b) {
  b.route(0, 0, 0b100);
  b.route(0, 1, 0b100);
  for (std::uint32_t c = 0; c < 20; ++c) b.sources[0]->add(0, chunk_content(0, c, mib));
  for (std::uint32_t c = 0; c < 80; ++c) b.sources[1]->add(10 * us, chunk_content(1, c, mib / 4));
}

// Shreedhar and Varghese 1995, theorem on fairness: of two streams that both have something waiting, neither gets ahead
// of the other by more than a quantum and two bursts of the greatest size.
SIMULATION_TEST(MulticastRouter, DeficitRoundRobinSharesBytesNotBursts) {
  router_parameters parameters;
  parameters.discipline = queue_discipline::deficit_round_robin;
  parameters.quantum_bytes = mib;
  bench b(3, 10'000'000'000, parameters);
  offer_unequal_bursts(b);
  sc_core::sc_start();
  const auto so_far = served(b);
  ASSERT_EQ(so_far.size(), 100U);
  const std::uint64_t all = so_far.back()[0];
  for (const auto& [first, second] : so_far) {
    if (first == all || second >= so_far.back()[1]) break;
    EXPECT_LE(first > second ? first - second : second - first, mib + 2 * wire);
  }
  b.expect_clean();
}

SIMULATION_TEST(MulticastRouter, FirstComeFirstServedLetsTheFirstPass) {
  router_parameters parameters;
  parameters.discipline = queue_discipline::fifo;
  bench b(3, 10'000'000'000, parameters);
  offer_unequal_bursts(b);
  sc_core::sc_start();
  const auto& arrivals = b.sinks[2]->arrivals;
  ASSERT_EQ(arrivals.size(), 100U);
  for (std::size_t i = 0; i < arrivals.size(); ++i) EXPECT_EQ(arrivals[i].content.source, i < 20 ? 0U : 1U) << i;
  b.expect_clean();
}

SIMULATION_TEST(MulticastRouter, DropTailLosesThePacketsThatDoNotFit) {
  router_parameters parameters;
  parameters.when_full = full_queue::drop_tail;
  parameters.queue_bytes = 3 * wire + wire / 2;
  bench b(3, 10'000'000'000, parameters);
  b.route(0, 0, 0b100);
  for (std::uint32_t c = 0; c < 10; ++c) b.sources[0]->add(0, chunk_content(0, c, mib));
  sc_core::sc_start();
  // One on the line, three in the queue, of the fifth the half that fits: 58 packets of 9038 bytes in 529,598.
  const auto& arrivals = b.sinks[2]->arrivals;
  ASSERT_EQ(arrivals.size(), 5U);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(arrivals[i].payload_bytes, mib) << i;
  EXPECT_EQ(arrivals[4].payload_bytes, 58 * 8948U);
  EXPECT_EQ(b.router->counters(2).dropped_packets, 118U - 58 + 5 * 118);
  EXPECT_EQ(b.router->counters(2).dropped_wire_bytes, 6 * wire - 58 * 9038);
  EXPECT_EQ(b.sources[0]->taken.back(), 0U) << "the sender is never held";
  b.expect_clean();
}

SIMULATION_TEST(MulticastRouter, PortsShareABuffer) {
  router_parameters parameters;
  parameters.when_full = full_queue::drop_tail;
  parameters.shared_bytes = 3 * wire;
  bench b(4, 10'000'000'000, parameters);
  b.route(0, 0, 0b0100);
  b.route(0, 1, 0b1000);
  for (std::uint32_t c = 0; c < 10; ++c) {
    b.sources[0]->add(0, chunk_content(0, c, mib));
    b.sources[1]->add(0, chunk_content(1, c, mib));
  }
  sc_core::sc_start();
  // One on either line, three in the buffer, whatever the queues of the ports would hold.
  EXPECT_EQ(b.sinks[2]->arrivals.size() + b.sinks[3]->arrivals.size(), 5U);
  EXPECT_EQ(b.router->counters(2).dropped_packets + b.router->counters(3).dropped_packets, 15 * 118U);
  b.expect_clean();
}

SIMULATION_TEST(MulticastRouter, ASharedBufferThatIsFullHoldsItsInputs) {
  router_parameters parameters;
  parameters.shared_bytes = 3 * wire;
  bench b(4, 10'000'000'000, parameters);
  b.route(0, 0, 0b0100);
  b.route(0, 1, 0b1000);
  for (std::uint32_t c = 0; c < 10; ++c) {
    b.sources[0]->add(0, chunk_content(0, c, mib));
    b.sources[1]->add(0, chunk_content(1, c, mib));
  }
  sc_core::sc_start();
  EXPECT_EQ(b.sinks[2]->arrivals.size(), 10U);
  EXPECT_EQ(b.sinks[3]->arrivals.size(), 10U);
  EXPECT_LE(std::max(b.router->counters(2).queue_high_water_bytes, b.router->counters(3).queue_high_water_bytes),
            3 * wire);
  EXPECT_GT(b.sources[0]->taken.back(), 1 * ms);
  b.expect_clean();
}

SIMULATION_TEST(MulticastRouter, MarksWhatFindsTheQueueLong) {
  router_parameters parameters;
  parameters.ecn_bytes = 2 * wire;
  bench b(3, 10'000'000'000, parameters);
  b.route(0, 0, 0b100);
  for (std::uint32_t c = 0; c < 6; ++c) b.sources[0]->add(0, chunk_content(0, c, mib));
  sc_core::sc_start();
  // The first is on the line; the second and third make two bursts that wait; the others find more than that.
  const auto& arrivals = b.sinks[2]->arrivals;
  ASSERT_EQ(arrivals.size(), 6U);
  for (unsigned i = 0; i < 6; ++i) EXPECT_EQ(arrivals[i].ecn_marked, i >= 3) << i;
  EXPECT_EQ(b.router->counters(2).ecn_marked_packets, 3 * 118U);
  b.expect_clean();
}

SIMULATION_TEST(MulticastRouter, AnEngineCopiesAtItsRate) {
  router_parameters parameters;
  parameters.replication_rate = 400'000'000'000;
  bench b(4, 800'000'000'000, parameters);
  b.route(0, 0, 0b1110);
  b.route(0, 1, 0b1000);
  b.sources[0]->add(0, chunk_content(0, 0, mib));
  b.sources[0]->add(0, chunk_content(0, 1, mib));
  b.sources[1]->add(0, chunk_content(1, 0, mib));
  sc_core::sc_start();
  // Three copies of 1,059,196 bytes at 400 Gb/s: 20 ps a byte; the second burst waits for the first.
  const picoseconds engine = 3 * wire * 20;
  for (const unsigned p : {1U, 2U}) {
    ASSERT_EQ(b.sinks[p]->arrivals.size(), 2U);
    EXPECT_EQ(b.sinks[p]->arrivals[0].tail, 500'000 + engine + 17'500) << "and the last packet onto the line";
    EXPECT_EQ(b.sinks[p]->arrivals[1].tail, 500'000 + 2 * engine + 17'500);
  }
  ASSERT_EQ(b.sinks[3]->arrivals.size(), 3U);
  b.expect_clean();
}

// Two lines of 100 Gb/s, 80 ps a byte, 3 ms each, and a router of 500 ns between them. What is asked for: 64 header
// bytes in before a packet goes on, or all 9038 of it.
void pass_through(std::uint32_t cut_through) {
  burst_pool pool;
  router_parameters parameters;
  parameters.ports = 2;
  parameters.forwarding_latency = 500'000;
  link_direction_parameters in_line{100'000'000'000, 3 * ms};
  link_direction_parameters out_line = in_line;
  in_line.cut_through_to = cut_through;
  out_line.cut_through_from = cut_through;
  multicast_router router("router", parameters, pool);
  long_haul_link in("in", {in_line, in_line}, pool);
  long_haul_link out("out", {out_line, out_line}, pool);
  burst_source source("source", pool);
  burst_source silent("silent", pool);
  burst_sink sink("sink", pool);
  burst_sink nobody("nobody", pool);
  register_driver driver("driver");
  source.out.bind(in.in[0]);
  in.out[0].bind(*router.in[0]);
  router.out[1]->bind(out.in[0]);
  out.out[0].bind(sink.in);
  router.out[0]->bind(in.in[1]);
  in.out[1].bind(nobody.in);
  silent.out.bind(out.in[1]);
  out.out[1].bind(*router.in[1]);
  driver.socket.bind(router.control.socket);
  driver.write(router_register::ports, 0b10);
  driver.write(router_register::control, command_start);
  source.add(0, chunk_content(0, 0, mib));
  sc_core::sc_start();
  ASSERT_EQ(sink.arrivals.size(), 1U);
  const picoseconds ways = 6 * ms + 500'000;
  if (cut_through == 0) {
    EXPECT_EQ(sink.arrivals[0].head, ways + 2 * 9038 * 80);
    EXPECT_EQ(sink.arrivals[0].tail, ways + 9038 * 80 + wire * 80) << "sent without a pause once the first is in";
  } else {
    EXPECT_EQ(sink.arrivals[0].head, ways + 64 * 80 + 9038 * 80);
    EXPECT_EQ(sink.arrivals[0].tail, ways + 64 * 80 + wire * 80);
  }
  EXPECT_EQ(pool.live_bursts(), 0U);
}

SIMULATION_TEST(MulticastRouter, StoresAPacketBeforeItForwards) { pass_through(0); }
SIMULATION_TEST(MulticastRouter, CutsThroughAfterTheHeader) { pass_through(64); }

}  // namespace
}  // namespace tributary::test
