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

  bench(unsigned ports, bits_per_s rate, std::uint64_t queue_bytes = 64 << 20) {
    router_parameters parameters;
    parameters.ports = ports;
    parameters.forwarding_latency = 500'000;
    parameters.queue_bytes = queue_bytes;
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

}  // namespace
}  // namespace tributary::test
