#include "modules/gpu_cluster/gpu_cluster.hpp"

#include <gtest/gtest.h>

#include "tests/support/forked.hpp"
#include "tests/support/traffic.hpp"
#include "tlm/network_checker.hpp"

namespace tributary::test {
namespace {

namespace reg = cluster_register;
constexpr std::uint32_t mib = 1 << 20;

struct bench {
  burst_pool pool;
  std::unique_ptr<gpu_cluster> cluster;
  burst_source network{"network", pool};
  burst_sink sink{"sink", pool};
  network_checker in_check{"in_check"};
  network_checker out_check{"out_check"};
  register_driver driver{"driver"};
  sc_core::sc_signal<bool, sc_core::SC_MANY_WRITERS> interrupt;

  static cluster_parameters defaults() {
    cluster_parameters p;
    p.id = 1;
    p.compute_time = 10 * ms;
    p.reduce_time = 1 * ms;
    p.apply_time = 2 * ms;
    p.consume_rate = 512'000'000'000;
    p.seed = 42;
    return p;
  }
  explicit bench(const cluster_parameters& parameters = defaults()) {
    cluster = std::make_unique<gpu_cluster>("cluster", parameters, pool);
    network.out.bind(in_check.in);
    in_check.out.bind(cluster->in);
    cluster->out.bind(out_check.in);
    out_check.out.bind(sink.in);
    driver.socket.bind(cluster->control.socket);
    cluster->interrupt(interrupt);
  }
  void start(std::uint64_t chunks, site_set members = 0b111, picoseconds pace = 100 * us, picoseconds offset = 0) {
    driver.write(reg::members, members);
    driver.write(reg::update_bytes, chunks * mib);
    driver.write(reg::chunk_bytes, mib);
    driver.write(reg::pace_ps, pace);
    driver.write(reg::offset_ps, offset);
    driver.write(reg::control, command_start);
  }
  static burst_content merged(std::uint32_t chunk, site_set contributors = 0b101) {
    burst_content content = chunk_content(0, chunk, mib);
    content.kind = burst_kind::aggregate;
    content.contributors = contributors;
    return content;
  }
  void expect_clean() {
    EXPECT_TRUE(in_check.violations().empty()) << in_check.violations().front();
    EXPECT_TRUE(out_check.violations().empty()) << out_check.violations().front();
    EXPECT_EQ(pool.live_bursts(), 0U);
  }
};

SIMULATION_TEST(GpuCluster, ComputesThenSendsAtThePaceThenApplies) {
  bench b;
  b.start(4, 0b111, 100 * us, 50 * us);
  for (std::uint32_t c = 0; c < 4; ++c) b.network.add(20 * ms + c * 100 * us, bench::merged(c), 80 * us);
  sc_core::sc_start(sc_core::sc_time(100, sc_core::SC_MS));
  ASSERT_EQ(b.sink.arrivals.size(), 4U);
  for (std::uint64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(b.sink.arrivals[c].head, 11 * ms + 50 * us + c * 100 * us) << "compute + reduce + offset + pace";
  }
  const cluster_round& round = b.cluster->last_round();
  EXPECT_EQ(round.released, 11 * ms);
  EXPECT_EQ(round.received, 20 * ms + 380 * us);
  EXPECT_EQ(round.done, 22 * ms + 380 * us);
  EXPECT_EQ(round.payload_bytes_received, 4U * mib);
  EXPECT_TRUE(b.interrupt.read());
  EXPECT_EQ(b.driver.read(reg::status), status_done);
  EXPECT_EQ(b.cluster->coverage_errors(), 0U);
  b.expect_clean();
}

SIMULATION_TEST(GpuCluster, AloneItOnlyComputes) {
  bench b;
  b.start(4, 0b010);
  sc_core::sc_start(sc_core::sc_time(100, sc_core::SC_MS));
  EXPECT_TRUE(b.sink.arrivals.empty());
  EXPECT_EQ(b.cluster->last_round().done, 13 * ms);
  EXPECT_TRUE(b.interrupt.read());
}

SIMULATION_TEST(GpuCluster, ReleasesChunksAsTheBackwardPassFreesThem) {
  cluster_parameters p = bench::defaults();
  p.reduce_time = 0;
  p.released_early_share = 0.4;  // the last 4 of 10 ms, four chunks: at 7, 8, 9 and 10 ms
  bench b(p);
  b.start(4, 0b111, 0);
  sc_core::sc_start(sc_core::sc_time(20, sc_core::SC_MS));
  ASSERT_EQ(b.sink.arrivals.size(), 4U);
  for (std::uint64_t c = 0; c < 4; ++c) EXPECT_EQ(b.sink.arrivals[c].head, (7 + c) * ms);
}

SIMULATION_TEST(GpuCluster, TakesInNoFasterThanItsHostLink) {
  cluster_parameters p = bench::defaults();
  p.consume_rate = 8'000'000'000;  // 1 GB/s: 1 MiB in 1.048576 ms
  bench b(p);
  b.start(3);
  for (std::uint32_t c = 0; c < 3; ++c) b.network.add(20 * ms, bench::merged(c));
  sc_core::sc_start(sc_core::sc_time(100, sc_core::SC_MS));
  EXPECT_EQ(b.cluster->last_round().received, 20 * ms + 3 * 1'048'576'000ULL);
  b.expect_clean();
}

SIMULATION_TEST(GpuCluster, CountsChunksThatDoNotHoldTheWholeGroup) {
  bench b;
  b.start(2);
  b.network.add(20 * ms, bench::merged(0, 0b001));  // lacks site 2
  b.network.add(21 * ms, bench::merged(0, 0b001));  // site 0 twice
  b.network.add(22 * ms, bench::merged(1, 0b101));
  b.network.add(23 * ms, bench::merged(1, 0b111));  // contains itself
  sc_core::sc_start(sc_core::sc_time(100, sc_core::SC_MS));
  EXPECT_EQ(b.cluster->coverage_errors(), 2U);
}

SIMULATION_TEST(GpuCluster, ComparesRealValuesWithTheDirectReduction) {
  cluster_parameters p = bench::defaults();
  p.values = value_format::fp32;
  bench b(p);
  b.start(2);
  const update_values values(value_format::fp32, 42);
  for (std::uint32_t c = 0; c < 2; ++c) {
    chunk_values sum = values.slice(0, 0, c * (mib / 4ULL), mib / 4);
    add_values(value_format::fp32, sum, values.slice(0, 2, c * (mib / 4ULL), mib / 4).data(), mib / 4);
    if (c == 1) sum[77] = bits_of(float_of(sum[77]) + 0.25F);  // one wrong element
    burst_content content = bench::merged(c);
    content.values = std::make_shared<const chunk_values>(std::move(sum));
    b.network.add(20 * ms + c * ms, content);
  }
  sc_core::sc_start(sc_core::sc_time(100, sc_core::SC_MS));
  EXPECT_EQ(b.cluster->elements_compared(), 2U * mib / 4);
  EXPECT_EQ(b.driver.read(reg::mismatches), 1U);
  EXPECT_DOUBLE_EQ(b.cluster->largest_difference(), 0.25);
}

SIMULATION_TEST(GpuCluster, StragglesByTheSeedAlone) {
  cluster_parameters p = bench::defaults();
  p.straggler_sigma = 0.5;
  bench b(p);
  std::vector<picoseconds> released;
  for (std::uint64_t round = 0; round < 3; ++round) {
    b.driver.write(reg::control, command_clear);
    b.driver.write(reg::round, round);
    const picoseconds begin = sc_core::sc_time_stamp().value();
    b.start(1, 0b010);
    sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_SEC));
    released.push_back(b.cluster->last_round().done - begin);
  }
  // mt19937_64 and Boost's log-normal are specified to the bit, so these hold on any machine.
  EXPECT_NE(released[0], released[1]);
  EXPECT_NE(released[1], released[2]);
  EXPECT_GT(released[0], 3 * ms);
}

SIMULATION_TEST(GpuCluster, RefusesIllegalProgramming) {
  bench b;
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  b.start(1, 0b101);
  EXPECT_EQ(b.driver.read(reg::error), error_members);
  b.driver.write(reg::control, command_clear);
  b.start(0);
  EXPECT_EQ(b.driver.read(reg::error), error_chunk);
  b.driver.write(reg::control, command_clear);
  b.start(1);
  b.driver.write(reg::control, command_start);
  EXPECT_EQ(b.driver.read(reg::error), error_busy);
}

}  // namespace
}  // namespace tributary::test
