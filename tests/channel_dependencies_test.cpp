#include "planner/channel_dependencies.hpp"

#include <gtest/gtest.h>

namespace tributary::planner {
namespace {

/// Devices 0 .. n-1 in a ring; link i leads from i to i + 1, so clockwise is link direction 2 i.
topology ring_of(unsigned n) {
  topology network;
  for (unsigned d = 0; d < n; ++d) network.add_device("d" + std::to_string(d));
  for (unsigned d = 0; d < n; ++d) {
    network_link link;
    link.a = d;
    link.b = (d + 1) % n;
    link.rate_ab = link.rate_ba = 1;
    link.latency_ab = link.latency_ba = 1;
    network.add_link(link);
  }
  return network;
}

/// From every device `hops` clockwise.
std::vector<stream_routes> clockwise(unsigned n, unsigned hops) {
  std::vector<stream_routes> streams;
  for (unsigned d = 0; d < n; ++d) {
    std::vector<edge_id> path;
    for (unsigned h = 0; h < hops; ++h) path.push_back(2 * ((d + h) % n));
    streams.push_back({{path}});
  }
  return streams;
}

TEST(ChannelDependencies, ARingOfTwoHopStreamsIsACircle) {
  const topology ring = ring_of(5);
  const std::vector<edge_id> circle = circle_of_waits(ring, clockwise(5, 2), std::vector<bool>(10, true));
  ASSERT_EQ(circle.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(circle[(i + 1) % 5], (circle[i] + 2) % 10) << "each waits for the next clockwise";
  }
}

TEST(ChannelDependencies, StreamsOfOneHopWaitForNothing) {
  EXPECT_TRUE(circle_of_waits(ring_of(5), clockwise(5, 1), std::vector<bool>(10, true)).empty());
}

TEST(ChannelDependencies, OneQueueThatCannotFillBreaksTheCircle) {
  std::vector<bool> may_fill(10, true);
  may_fill[4] = false;
  EXPECT_TRUE(circle_of_waits(ring_of(5), clockwise(5, 2), may_fill).empty());
}

TEST(ChannelDependencies, ATreeHasNoCircle) {
  topology star;
  for (unsigned d = 0; d < 5; ++d) star.add_device("d" + std::to_string(d));
  std::vector<stream_routes> streams;
  for (unsigned d = 1; d < 5; ++d) {
    network_link link;
    link.a = 0;
    link.b = d;
    link.rate_ab = link.rate_ba = 1;
    star.add_link(link);
  }
  for (unsigned from = 0; from < 4; ++from) {
    stream_routes stream;
    for (unsigned to = 0; to < 4; ++to) {
      if (to != from) stream.paths.push_back({2 * from + 1, 2 * to});
    }
    streams.push_back(stream);
  }
  EXPECT_TRUE(circle_of_waits(star, streams, std::vector<bool>(8, true)).empty());
  EXPECT_EQ(streams_on(star, streams), (std::vector<unsigned>{3, 1, 3, 1, 3, 1, 3, 1}));
}

}  // namespace
}  // namespace tributary::planner
