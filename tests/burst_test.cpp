#include "tlm/burst.hpp"

#include <gtest/gtest.h>

#include "tlm/quantities.hpp"

namespace tributary {
namespace {

TEST(WireFormat, CountsPacketsAndBytesByHand) {
  // 9000 - 52 = 8948 payload bytes a packet, 52 + 38 = 90 bytes around it. 1 MiB = 117 x 8948 + 1660.
  const wire_format format;
  EXPECT_EQ(format.payload_per_packet(), 8948U);
  EXPECT_EQ(format.packets(1 << 20), 118U);
  EXPECT_EQ(format.wire_bytes(1 << 20), 1'048'576U + 118U * 90U);
  EXPECT_EQ(format.first_packet_wire_bytes(1 << 20), 9038U);
  EXPECT_EQ(format.last_packet_wire_bytes(1 << 20), 1660U + 90U);
}

TEST(WireFormat, ExactMultiplesAndSmallPayloads) {
  const wire_format format;
  EXPECT_EQ(format.packets(2 * 8948), 2U);
  EXPECT_EQ(format.last_packet_wire_bytes(2 * 8948), 9038U);
  EXPECT_EQ(format.packets(0), 1U) << "a burst without payload is one packet of headers";
  EXPECT_EQ(format.wire_bytes(0), 90U);
  EXPECT_EQ(format.first_packet_wire_bytes(100), 190U);
}

TEST(Quantities, TransferTimesAreExactAndRoundUp) {
  EXPECT_EQ(transfer_time(1, 100'000'000'000), 80U);
  EXPECT_EQ(transfer_time(1'059'196, 800'000'000'000), 10'591'960U);
  EXPECT_EQ(transfer_time(1, 3'000'000'000'000), 3U) << "2.67 ps is 3 ps: a line never beats its rate";
  EXPECT_EQ(transfer_time(std::uint64_t{1} << 50, 1'000'000'000), 9'007'199'254'740'992'000ULL)
      << "no overflow in between";
}

TEST(BurstPool, CopiesShareOneContentUntilTheLastIsGone) {
  burst_pool pool;
  burst_content content;
  content.payload_bytes = content.chunk_bytes = 4096;
  content.values = std::make_shared<const chunk_values>(1024);
  const std::weak_ptr<const chunk_values> values = content.values;
  burst& first = pool.make(std::move(content), {});
  first.head = 7;
  burst& second = pool.copy(first);
  EXPECT_EQ(&first.content(), &second.content());
  EXPECT_EQ(second.head, 7U);
  EXPECT_EQ(pool.live_bursts(), 2U);
  EXPECT_EQ(pool.live_contents(), 1U);
  pool.release(first);
  EXPECT_FALSE(values.expired());
  EXPECT_EQ(second.content().payload_bytes, 4096U);
  pool.release(second);
  EXPECT_TRUE(values.expired()) << "real data goes with the last copy";
  EXPECT_EQ(pool.live_contents(), 0U);
}

TEST(BurstPool, ReusesWhatIsReleased) {
  burst_pool pool;
  for (int i = 0; i < 1000; ++i) {
    burst& one = pool.make({}, {});
    one.spent.queueing = 5;
    pool.release(one);
  }
  EXPECT_EQ(pool.bursts_ever_allocated(), 1U);
  EXPECT_EQ(pool.make({}, {}).spent.total(), 0U) << "a reused burst starts clean";
}

TEST(Burst, HoldCountsTheTailsWaitAsQueueing) {
  burst_pool pool;
  burst& one = pool.make({}, {});
  one.head = 10;
  one.tail = 100;
  one.hold_until(60, "here");
  EXPECT_EQ(one.head, 60U);
  EXPECT_EQ(one.tail, 100U);
  EXPECT_EQ(one.spent.queueing, 0U);
  one.hold_until(130, "here");
  EXPECT_EQ(one.tail, 130U);
  EXPECT_EQ(one.spent.queueing, 30U);
}

}  // namespace
}  // namespace tributary
