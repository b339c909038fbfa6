#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "planner/cost_model.hpp"
#include "planner/mixing.hpp"
#include "planner/search.hpp"
#include "platforms/spec.hpp"

namespace tributary::planner {
namespace {

/// nine_city with `memory` bytes of aggregator memory.
platform_model nine_city(const std::string& memory) {
  return model_of(load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/nine_city.yaml",
                                {{"site_defaults.aggregator.memory=" + memory}, ""}));
}

enum city : unsigned { ams, bar, fra, lax, lon, nyc, seo, sin_, tyo };

TEST(Topology, ShortestPathsAreThePublishedLatencies) {
  // nine_city_latency_ms.csv of the reference data, upper triangle, in 10 us.
  const std::vector<std::vector<unsigned>> expected{{0, 10237, 211, 7277, 145, 4705, 10398, 5453, 9948},
                                                    {0, 0, 10448, 8104, 10092, 5532, 14316, 15690, 13866},
                                                    {0, 0, 0, 7488, 356, 4916, 10187, 5242, 9737},
                                                    {0, 0, 0, 0, 7132, 2572, 6212, 10257, 5762},
                                                    {0, 0, 0, 0, 0, 4560, 10543, 5598, 10093},
                                                    {0, 0, 0, 0, 0, 0, 8784, 10158, 8334},
                                                    {0, 0, 0, 0, 0, 0, 0, 4945, 450},
                                                    {0, 0, 0, 0, 0, 0, 0, 0, 4495},
                                                    {0, 0, 0, 0, 0, 0, 0, 0, 0}};
  const auto latency = nine_city("8 GB").latencies();
  for (unsigned i = 0; i < 9; ++i) {
    for (unsigned j = i; j < 9; ++j) {
      EXPECT_EQ(latency[i][j], picoseconds{expected[i][j]} * 10'000'000) << i << " " << j;
      EXPECT_EQ(latency[j][i], latency[i][j]);
    }
  }
}

topology small_mesh() {
  // a - b - c in a row at 1 ms each, a - c direct at 3 ms; b - c a second time at 0.5 ms.
  topology net;
  for (const char* name : {"a", "b", "c", "alone"}) net.add_device(name);
  const bits_per_s rate = 1'000'000'000;
  net.add_link({0, 1, rate, rate, 1'000'000'000, 1'000'000'000});
  net.add_link({1, 2, rate, rate, 1'000'000'000, 1'000'000'000});
  net.add_link({0, 2, rate, rate, 3'000'000'000, 3'000'000'000});
  net.add_link({1, 2, rate, rate, 500'000'000, 500'000'000});
  return net;
}

TEST(Topology, TakesTheQuickerOfParallelLinks) {
  const multicast_tree tree = small_mesh().tree(0, {2, 1});
  EXPECT_EQ(tree.latency, (std::vector<picoseconds>{1'500'000'000, 1'000'000'000}));
  EXPECT_EQ(tree.edges, (std::vector<edge_id>{0, 6})) << "shared part once";
}

TEST(Topology, FewestLinksMayTakeLonger) {
  // Star with a rim: root 0 to 1 and 2 directly at 1 ms; 1 - 2 at 1.5 ms. Reaching 3 behind both.
  topology net;
  for (const char* name : {"r", "x", "y", "z"}) net.add_device(name);
  const auto link = [&net](unsigned a, unsigned b, unsigned us) {
    const picoseconds latency = us * 1'000'000ULL;
    net.add_link({a, b, 1, 1, latency, latency});
  };
  link(0, 1, 1000);
  link(0, 2, 1000);
  link(1, 3, 1000);
  link(2, 3, 100);
  const multicast_tree quick = net.tree(0, {1, 3});
  const multicast_tree lean = net.tree(0, {1, 3}, tree_kind::fewest_links);
  EXPECT_EQ(quick.edges.size(), 3U);
  EXPECT_EQ(lean.edges.size(), 2U) << "z through x, which is in the tree already";
  EXPECT_EQ(lean.latency[1], 2'000'000'000U);
}

TEST(Topology, FindsWhatCannotBeReached) {
  EXPECT_EQ(small_mesh().unreachable(), std::optional<unsigned>(3));
  EXPECT_THROW((void)small_mesh().tree(0, {3}), std::invalid_argument);
}

// ---- the reference values of the design: w = 1, per_stream, paced ------------------------------------------------

struct reference_case {
  const char* memory;
  double all_to_all_s;
  double threes_s;
};

TEST(Reference, RoundTimesToFourDigits) {
  for (const reference_case& each :
       {reference_case{"128 MB", 69.809, 10.405}, {"2 GB", 4.615, 2.443}, {"8 GB", 1.277, 2.443}}) {
    const platform_model model = nine_city(each.memory);
    EXPECT_NEAR(fluid_round_cost(model, all_to_all(9).rounds[0], 1).seconds, each.all_to_all_s, 0.0005) << each.memory;
    const auto best = best_orthogonal_pair(model, 3, 1);
    ASSERT_TRUE(best);
    EXPECT_NEAR(best->seconds, each.threes_s, 0.0005) << each.memory;
  }
}

TEST(Reference, TheRoundsBehindThem) {
  const platform_model small = nine_city("128 MB");
  EXPECT_NEAR(fluid_round_cost(small, {{ams, lon, nyc}, {bar, fra, lax}, {seo, sin_, tyo}}, 1).seconds, 5.0345,
              0.00005);
  EXPECT_NEAR(fluid_round_cost(small, {{ams, bar, seo}, {fra, nyc, tyo}, {lax, lon, sin_}}, 1).seconds, 5.3703,
              0.00005);
  const platform_model large = nine_city("8 GB");
  EXPECT_NEAR(fluid_round_cost(large, {{ams, fra, sin_}, {bar, lax, lon}, {nyc, seo, tyo}}, 1).seconds, 1.22092,
              0.000005);
  EXPECT_NEAR(fluid_round_cost(large, {{ams, bar, nyc}, {fra, lax, seo}, {lon, sin_, tyo}}, 1).seconds, 1.22237,
              0.000005);
}

TEST(Reference, OneGroupByHand) {
  // {bar lax nyc}: receiver lax gets nyc after 25.72 ms and bar after 81.04 ms: 55.32 ms apart, so 128 MB / 55.32 ms.
  const platform_model model = nine_city("128 MB");
  const fluid_rate rate = fluid_group_rate(model, model.latencies(), {bar, lax, nyc}, 1);
  EXPECT_NEAR(rate.bytes_per_s, 2.3138e9, 0.00005e9);
  EXPECT_EQ(rate.limit, rate_limit::memory_capacity);
  EXPECT_EQ(rate.site, lax);
}

TEST(FluidRate, EachLimitBindsWhereItsFormulaSays) {
  platform_model model = nine_city("8 GB");
  const auto rate = [&model](const group& g) { return fluid_group_rate(model, model.latencies(), g, 1); };
  const group all{0, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_DOUBLE_EQ(rate(all).bytes_per_s, 12.5e9);

  model.sites[nyc].memory_rate = 8 * 40'000'000'000ULL;  // 40 GB/s: 2 (k-1) r
  EXPECT_DOUBLE_EQ(rate(all).bytes_per_s, 40e9 / 16);
  EXPECT_EQ(rate(all).limit, rate_limit::memory_bandwidth);
  model.buffering = buffering_policy::in_place;  // 2 (k-2) r
  EXPECT_DOUBLE_EQ(rate(all).bytes_per_s, 40e9 / 14);
  EXPECT_DOUBLE_EQ(rate({ams, nyc}).bytes_per_s, 12.5e9) << "two members need no memory at all";
  model.buffering = buffering_policy::per_stream;

  model = nine_city("8 GB");
  model.sites[fra].datapath_rate = 8 * 20'000'000'000ULL;
  EXPECT_DOUBLE_EQ(rate(all).bytes_per_s, 2.5e9);
  EXPECT_EQ(rate(all).limit, rate_limit::datapath);

  model = nine_city("8 GB");
  model.buffering = buffering_policy::none;
  EXPECT_DOUBLE_EQ(rate(all).bytes_per_s, 12.5e9 / 8) << "k-1 streams down one access link";
  EXPECT_EQ(rate(all).limit, rate_limit::access_down);

  model = nine_city("2 GB");
  model.flow = flow_control::credit;  // (B/(k-1)) / longest round trip: 2 x 156.9 ms
  EXPECT_DOUBLE_EQ(rate(all).bytes_per_s, 2e9 / 8 / 0.3138);
  model.buffering = buffering_policy::in_place;
  EXPECT_DOUBLE_EQ(rate(all).bytes_per_s, 2e9 / 0.3138);
}

TEST(FluidRate, SharedLinksAreFairBetweenGroups) {
  // Two groups of two over one 100 Gb/s link; a third elsewhere is not held back.
  platform_model model;
  for (const char* name : {"w", "e", "n"}) model.network.add_device(name);
  model.network.add_link({0, 1, 100'000'000'000, 100'000'000'000, 0, 0});
  model.network.add_link({1, 2, 400'000'000'000, 400'000'000'000, 0, 0});
  for (unsigned s = 0; s < 6; ++s) {
    site_model site;
    site.device = s < 2 ? 0 : s < 4 ? 1 : 2;
    site.access_up = site.access_down = site.aggregator_ports = site.consume_rate = 80'000'000'000;
    site.memory_rate = site.datapath_rate = 8'000'000'000'000;
    site.memory_bytes = 1 << 30;
    model.sites.push_back(site);
  }
  model.update_bytes = 1 << 30;
  model.chunk_bytes = 1 << 20;
  const fluid_round cost = fluid_round_cost(model, {{0, 2}, {1, 3}, {4, 5}}, 1);
  EXPECT_DOUBLE_EQ(cost.rates[0].bytes_per_s, 6.25e9);
  EXPECT_DOUBLE_EQ(cost.rates[1].bytes_per_s, 6.25e9);
  EXPECT_DOUBLE_EQ(cost.rates[2].bytes_per_s, 10e9);
  EXPECT_EQ(cost.rates[0].limit, rate_limit::shared_link);
  EXPECT_EQ(cost.rates[2].limit, rate_limit::access_up);
}

TEST(Plan, NeverAsksForMoreSlotsThanThereAre) {
  for (const char* memory : {"128 MB", "512 MB", "2 GB", "8 GB"}) {
    for (const auto policy : {buffering_policy::per_stream, buffering_policy::in_place}) {
      platform_model model = nine_city(memory);
      model.buffering = policy;
      const round_plan plan = plan_round(model, all_to_all(9).rounds[0]);
      const group_plan& group = plan.groups[0];
      for (unsigned j = 0; j < 9; ++j) {
        EXPECT_LE(slots_needed(model, group, j, group.pace), model.sites[j].memory_bytes / model.chunk_bytes) << memory;
      }
      if (group.limit == rate_limit::memory_capacity) {
        EXPECT_GT(slots_needed(model, group, group.limit_at, group.pace - 1),
                  model.sites[group.limit_at].memory_bytes / model.chunk_bytes)
            << "one picosecond faster would not fit";
      }
    }
  }
}

TEST(Plan, SaysWhenMemoryCannotHoldOneChunkAStream) {
  EXPECT_THROW((void)plan_round(nine_city("4 MiB"), all_to_all(9).rounds[0]), std::invalid_argument);
}

// ---- schedules and mixing ----------------------------------------------------------------------------------------

TEST(Schedules, NineSitesHave280PartitionsIntoThrees) {
  const std::vector<partition> all = all_partitions(9, 3);
  EXPECT_EQ(all.size(), 280U);
  for (const partition& each : all) EXPECT_TRUE(is_partition(each, 9));
}

TEST(Schedules, OrthogonalMeansOneSharedSiteEach) {
  const partition rows{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}};
  const partition columns{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}};
  EXPECT_TRUE(orthogonal(rows, columns));
  EXPECT_FALSE(orthogonal(rows, rows));
  EXPECT_FALSE(orthogonal(rows, {{0, 1, 6}, {3, 4, 7}, {2, 5, 8}}));
}

TEST(Mixing, OrthogonalThreesAreExactAfterTwoRounds) {
  const std::vector<partition> grid{{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}, {{0, 3, 6}, {1, 4, 7}, {2, 5, 8}}};
  const std::vector<double> equal(9, 1.0);
  const std::vector<double> sigma = disagreement({"grid", grid, {}}, equal, 3);
  EXPECT_NEAR(sigma[0], 1.0, 1e-12) << "groups agree inside, not between";
  EXPECT_EQ(sigma[1], 0.0);
  EXPECT_EQ(sigma[2], 0.0);
  EXPECT_EQ(rounds_to_epsilon({"grid", grid, {}}, equal, 1e-9, 10), 2U);
  EXPECT_EQ(disagreement(all_to_all(9), equal, 1)[0], 0.0);
}

TEST(Mixing, WeightsAreKept) {
  const std::vector<double> weights{1, 3};
  const Eigen::MatrixXd w = mixing_matrix({{0, 1}}, weights);
  EXPECT_DOUBLE_EQ(w(0, 0), 0.25);
  EXPECT_DOUBLE_EQ(w(0, 1), 0.75);
  EXPECT_EQ(disagreement({"pair", {{{0, 1}}}, {}}, weights, 1)[0], 0.0);
}

}  // namespace
}  // namespace tributary::planner
