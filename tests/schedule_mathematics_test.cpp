// Offsets, transit, sequences for any number, spectral gap, random groups, failures, the capability map.
#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>

#include "planner/capability_map.hpp"
#include "planner/mixing.hpp"
#include "planner/send_offsets.hpp"
#include "platforms/child.hpp"
#include "platforms/planning.hpp"

namespace tributary::test {
namespace {

using namespace planner;

platform_spec nine_city(std::vector<std::string> assignments, const std::string& schedule = "") {
  assignments.insert(assignments.begin(), "run.trace=none");
  return load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/nine_city.yaml",
                       {std::move(assignments), schedule});
}

unsigned number_of(const platform_spec& spec, const std::string& name) {
  for (unsigned s = 0; s < spec.sites.size(); ++s) {
    if (spec.sites[s].name == name) return s;
  }
  throw std::out_of_range(name);
}

// ---- send offsets -----------------------------------------------------------------------------------------------

/// {bar lax nyc} at 128 MB, by hand. Latencies: lax-nyc 25.72, nyc-bar 55.32, lax-bar 81.04 ms. Without offsets lax
/// waits 55.32 ms between its two streams: 2.3138 GB/s. Receivers' skews with nyc d later: lax 55.32 - d, bar 25.72 -
/// d, nyc 29.60 (of lax and bar, which start together). With lax e later: nyc 29.60 - e, bar 25.72 + e - d or less. All
/// vanish for e = 29.60, d = 55.32: lax's chunk reaches nyc with bar's, bar's reaches lax with nyc's, nyc's reaches bar
/// with lax's - so memory holds nothing and the access link is the limit.
TEST(SendOffsets, OfThreeCitiesOnALineMakeAllChunksMeet) {
  const platform_spec spec = nine_city({"site_defaults.aggregator.memory=128 MB"});
  const platform_model model = model_of(spec);
  const auto latency = model.latencies();
  const group members{number_of(spec, "bar"), number_of(spec, "lax"), number_of(spec, "nyc")};
  const fluid_rate without = fluid_group_rate(model, latency, members, 1);
  EXPECT_NEAR(without.bytes_per_s, 2.3138e9, 1e5);
  const offset_solution with = best_offsets(model, latency, members, 12.5e9);
  EXPECT_NEAR(with.bytes_per_s, 12.5e9, 1e3);
  // Some skew fits into 128 MB at 12.5 GB/s: 10.24 ms a receiver. So the offsets need not go all the way.
  for (std::size_t j = 0; j < 3; ++j) {
    double latest = 0;
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      if (i != j) latest = std::max(latest, with.offset_s[i] + seconds(latency[members[i]][members[j]]));
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (i != j) sum += latest - with.offset_s[i] - seconds(latency[members[i]][members[j]]);
    }
    EXPECT_LE(sum * with.bytes_per_s, 128e6 * (1 + 1e-9)) << "receiver " << j;
    EXPECT_LE(latest, with.latest_s + 1e-12);
  }
  EXPECT_LT(with.seconds, 1.3);
}

TEST(SendOffsets, NeverMakeAGroupSlower) {
  const platform_spec spec = nine_city({"site_defaults.aggregator.memory=300 MB"});
  platform_model model = model_of(spec);
  const auto latency = model.latencies();
  for (const buffering_policy policy : {buffering_policy::per_stream, buffering_policy::in_place}) {
    model.buffering = policy;
    for (unsigned a = 0; a < 9; ++a) {
      for (unsigned b = a + 1; b < 9; ++b) {
        for (unsigned c = b + 1; c < 9; ++c) {
          const group members{a, b, c};
          model.send_offsets = false;
          const fluid_group plain = fluid_group_cost(model, latency, members, 1);
          model.send_offsets = true;
          const fluid_group shifted = fluid_group_cost(model, latency, members, 1);
          const auto time = [&](const fluid_group& cost) {
            return static_cast<double>(model.update_bytes) / cost.rate.bytes_per_s + cost.latest_s;
          };
          EXPECT_LE(time(shifted), time(plain) * (1 + 1e-9));
        }
      }
    }
  }
}

class OffsetsSimulated : public ::testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {};

TEST_P(OffsetsSimulated, KeepTheirPromiseAndNeverOverflow) {
  const auto [memory, policy, schedule] = GetParam();
  const platform_spec spec =
      nine_city({std::string("site_defaults.aggregator.memory=") + memory, std::string("network.buffering=") + policy,
                 "network.offsets=optimised", "workload.chunk=256 KiB", "workload.update=4 GB"},
                schedule);
  const platform_model model = model_of(spec);
  double planned = 0;
  for (const partition& round : schedule_of(spec, model).rounds) planned += seconds(plan_round(model, round).predicted);
  const child_outcome outcome = simulate_in_child(spec);
  ASSERT_TRUE(outcome.finished) << outcome.complaint;
  EXPECT_TRUE(outcome.passed) << "no overflow, all exact";
  EXPECT_NEAR(outcome.simulated_s, planned, 0.005 * planned);
}

INSTANTIATE_TEST_SUITE_P(NineCities, OffsetsSimulated,
                         ::testing::Combine(::testing::Values("128 MB", "1 GB"),
                                            ::testing::Values("per_stream", "in_place"),
                                            ::testing::Values("all_to_all", "rotating:3")),
                         [](const auto& each) {
                           std::string name = std::string(std::get<0>(each.param)) + "_" + std::get<1>(each.param) +
                                              "_" + std::get<2>(each.param);
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

// ---- the reference values, simulated ----------------------------------------------------------------------------

struct reference {
  const char* memory;
  const char* schedule;
  double seconds;
};
class ReferenceValues : public ::testing::TestWithParam<reference> {};

/// DESIGN's figures count no headers; the wire's 1.0101 applies where the access link is the limit.
TEST_P(ReferenceValues, ComeOutOfTheSimulationWithinTwoPercent) {
  const reference r = GetParam();
  const platform_spec spec = nine_city(
      {std::string("site_defaults.aggregator.memory=") + r.memory, "workload.chunk=256 KiB", "run.timeline=false"},
      r.schedule);
  const child_outcome outcome = simulate_in_child(spec);
  ASSERT_TRUE(outcome.finished) << outcome.complaint;
  EXPECT_TRUE(outcome.passed);
  EXPECT_NEAR(outcome.simulated_s, r.seconds, 0.02 * r.seconds);
}

INSTANTIATE_TEST_SUITE_P(
    NineCities, ReferenceValues,
    ::testing::Values(reference{"128 MB", "all_to_all", 69.809}, reference{"128 MB", "rotating:3", 10.405},
                      reference{"2 GB", "all_to_all", 4.615}, reference{"2 GB", "rotating:3", 2.443},
                      reference{"8 GB", "all_to_all", 1.277}, reference{"8 GB", "rotating:3", 2.443}),
    [](const auto& each) {
      std::string name = std::string(each.param.memory) + "_" + each.param.schedule;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

// ---- transit ----------------------------------------------------------------------------------------------------

/// Two sites 1000 km apart: up and down the one link, M / r + 2 L.
TEST(Transit, OfTwoSitesIsUpAndDown) {
  const platform_spec spec =
      load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/two_site.yaml", {{}, ""});
  const platform_model model = model_of(spec);
  const transit_cost cost = fluid_transit_cost(model, 1);
  EXPECT_NEAR(cost.height_s, 4.9e-3, 1e-9);
  EXPECT_NEAR(cost.seconds, static_cast<double>(spec.update_bytes) / cost.bytes_per_s + 2 * 4.9e-3, 1e-9);
}

TEST(Transit, OfNineCitiesTakesTheBestRoot) {
  const platform_model model = model_of(nine_city({}));
  const transit_cost cost = fluid_transit_cost(model, 1);
  const auto latency = model.latencies();
  double best = 1;
  for (unsigned root = 0; root < 9; ++root) {
    double height = 0;
    for (unsigned s = 0; s < 9; ++s) height = std::max(height, seconds(latency[root][s]));
    best = std::min(best, height);
  }
  EXPECT_DOUBLE_EQ(cost.height_s, best);
  EXPECT_NEAR(cost.seconds, 14e9 / 12.5e9 + 2 * best, 1e-9) << "the access link is the limit";
}

// ---- sequences for any number -----------------------------------------------------------------------------------

TEST(BaseSequence, IsExactForEveryNumberOfSitesAndEveryBase) {
  for (unsigned base = 2; base <= 6; ++base) {
    for (unsigned n = 2; n <= 64; ++n) {
      const construction c = base_sequence(n, base);
      std::size_t largest = 0;
      for (const partition& round : c.rounds.rounds) {
        ASSERT_TRUE(is_partition(round, n)) << n << " base " << base;
        for (const group& members : round) largest = std::max(largest, members.size());
      }
      EXPECT_LE(largest, base);
      ASSERT_EQ(c.exact_after, c.rounds.rounds.size());
      const std::vector<double> sigma =
          disagreement(c.rounds, std::vector<double>(n, 1), static_cast<unsigned>(c.rounds.rounds.size()));
      EXPECT_LT(sigma.back(), 1e-9) << n << " sites, base " << base;
    }
  }
}

/// Five sites in pairs: four agree in two rounds, the fifth and one of them blend 2 x 4/5, the four agree again.
TEST(BaseSequence, OfFiveInPairsByHand) {
  const construction c = base_sequence(5, 2);
  ASSERT_EQ(c.rounds.rounds.size(), 5U);
  EXPECT_DOUBLE_EQ(c.rounds.blend[2], 1.6);
  EXPECT_EQ(c.rounds.rounds[2], (partition{{0, 4}, {1}, {2}, {3}}));
}

TEST(OnePeerExponential, IsExactForPowersOfTwoOnly) {
  for (unsigned n = 2; n <= 64; ++n) {
    const construction c = one_peer_exponential(n);
    const std::vector<double> sigma =
        disagreement(c.rounds, std::vector<double>(n, 1), static_cast<unsigned>(c.rounds.rounds.size()));
    for (const partition& round : c.rounds.rounds) ASSERT_TRUE(is_partition(round, n));
    const bool power = (n & (n - 1)) == 0;
    EXPECT_EQ(c.exact_after != 0, power);
    EXPECT_EQ(sigma.back() < 1e-9, power) << n;
  }
}

// ---- mixing -----------------------------------------------------------------------------------------------------

TEST(SpectralGap, IsOneForExactSchedulesAndTheRingsByFormula) {
  EXPECT_DOUBLE_EQ(spectral_gap(mixed_radix({3, 3}).rounds, std::vector<double>(9, 1)), 1);
  EXPECT_DOUBLE_EQ(spectral_gap(all_to_all(5), std::vector<double>(5, 1)), 1);
  // Ring of n = 6: W2 W1 with pair averages has second eigenvalue cos^2(pi / 3) = 1/4 (lambda = cos^2(2 pi q / n)).
  EXPECT_NEAR(spectral_gap(planner::ring(6).rounds, std::vector<double>(6, 1)), 0.75, 1e-9);
  EXPECT_NEAR(spectral_gap(planner::ring(12).rounds, std::vector<double>(12, 1)), 1 - std::pow(std::cos(M_PI / 6), 2),
              1e-9);
}

TEST(RandomGroups, ContractAsTheFormulaSays) {
  EXPECT_DOUBLE_EQ(random_groups_contraction(9, 9), 0);
  EXPECT_DOUBLE_EQ(random_groups_contraction(9, 3), 6.0 / 24);
  // All 280 partitions of nine into threes, averaged.
  Eigen::MatrixXd mean = Eigen::MatrixXd::Zero(9, 9);
  const std::vector<partition> all = all_partitions(9, 3);
  for (const partition& each : all) mean += mixing_matrix(each, std::vector<double>(9, 1));
  mean /= static_cast<double>(all.size());
  mean -= Eigen::MatrixXd::Constant(9, 9, 1.0 / 9);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(mean);
  EXPECT_NEAR(solver.eigenvalues().maxCoeff(), random_groups_contraction(9, 3), 1e-12);
}

TEST(Failures, ContractionIsExactAtTheEndsAndAsDrawnBetween) {
  const schedule grid = mixed_radix({3, 3}).rounds;
  EXPECT_NEAR(contraction_under_failures(grid, 9, 0), 0, 1e-12);
  EXPECT_NEAR(contraction_under_failures(grid, 9, 1), 1, 1e-12) << "nobody there: nothing changes";
  // One pair, failure p: both there with (1-p)^2, else unchanged: the difference survives with 1 - (1-p)^2.
  EXPECT_NEAR(contraction_under_failures(all_to_all(2), 2, 0.3), 1 - 0.49, 1e-12);
  // The grid against 20,000 draws, in the worst direction of the drawn mean.
  boost::random::mt19937_64 random(5);
  boost::random::uniform_int_distribution<unsigned> percent(0, 99);
  Eigen::MatrixXd mean = Eigen::MatrixXd::Zero(9, 9);
  constexpr int draws = 20'000;
  for (int d = 0; d < draws; ++d) {
    Eigen::MatrixXd product = Eigen::MatrixXd::Identity(9, 9);
    for (const partition& round : grid.rounds) {
      partition present;
      for (const group& members : round) {
        group there;
        for (const unsigned site : members) {
          if (percent(random) >= 20) there.push_back(site);
        }
        if (!there.empty()) present.push_back(there);
      }
      product = mixing_matrix(present, std::vector<double>(9, 1)) * product;
    }
    const Eigen::MatrixXd off = product - Eigen::MatrixXd::Constant(9, 9, 1.0 / 9);
    mean += off.transpose() * off / draws;
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(mean);
  EXPECT_NEAR(contraction_under_failures(grid, 9, 0.2), solver.eigenvalues().maxCoeff(), 0.02);
}

// ---- the map ----------------------------------------------------------------------------------------------------

TEST(CapabilityMap, WithoutHelpTheLinksCarryEveryCopy) {
  const platform_model model = model_of(nine_city({}));
  const auto latency = model.latencies();
  const group everyone{0, 1, 2, 3, 4, 5, 6, 7, 8};
  const auto rate = [&](capability offered) {
    return fluid_group_rate(with_capability(model, offered), latency, everyone, 1).bytes_per_s;
  };
  EXPECT_DOUBLE_EQ(rate(capability::none), 12.5e9 / 8);
  EXPECT_DOUBLE_EQ(rate(capability::multicast), 12.5e9 / 8) << "eight streams into the cluster";
  EXPECT_DOUBLE_EQ(rate(capability::aggregation), 12.5e9 / 8) << "eight copies out of it";
  EXPECT_DOUBLE_EQ(rate(capability::both), 12.5e9) << "8 GB cover the delays";
}

TEST(CapabilityMap, ShowsTheReferenceFinding) {
  const platform_model model = model_of(nine_city({}));
  map_request request;
  request.memories = {1'000'000'000, 8'000'000'000};
  request.rates = {100'000'000'000};
  request.search.largest_group = 3;
  const std::vector<map_cell> cells = map_schedules(model, 1, request);
  ASSERT_EQ(cells.size(), 8U);
  const auto winner = [&](capability offered, std::uint64_t memory) {
    for (const map_cell& cell : cells) {
      if (cell.offered == offered && cell.memory_bytes == memory) return cell.winner;
    }
    return std::string();
  };
  EXPECT_EQ(winner(capability::both, 1'000'000'000), "grid 3 x 3");
  EXPECT_EQ(winner(capability::both, 8'000'000'000), "all-to-all");
  EXPECT_EQ(winner(capability::none, 8'000'000'000), "grid 3 x 3");
  request.transit = true;
  bool transit = false;
  for (const map_cell& cell : map_schedules(model, 1, request)) transit = transit || cell.winner == "transit tree";
  EXPECT_TRUE(transit);
}

// ---- size -------------------------------------------------------------------------------------------------------

TEST(Sizing, FindsWhatTheFormulaGives) {
  const platform_spec spec = nine_city({"site_defaults.aggregator.memory=16 GB"});
  const planner::schedule everyone = all_to_all(9);
  const double target = 14e9 / 10e9 + 0.1569;  // 10 GB/s a stream
  const auto bandwidth = least_value(spec, everyone, sized::memory_bandwidth, target);
  ASSERT_TRUE(bandwidth);
  EXPECT_NEAR(static_cast<double>(*bandwidth) / 8, 16 * 10e9, 0.01 * 160e9);
  const auto access = least_value(spec, everyone, sized::access_rate, target);
  ASSERT_TRUE(access);
  EXPECT_NEAR(static_cast<double>(*access), 80e9 * 1.0101, 0.01 * 80e9);
  const auto clock = least_value(spec, everyone, sized::clock, target);
  ASSERT_TRUE(clock);
  EXPECT_NEAR(static_cast<double>(*clock), 8 * 10e9 / (64 * 8), 0.01 * 156e6);
  EXPECT_FALSE(least_value(spec, everyone, sized::link_rate, 1.0)) << "below serialisation and latency";
}

// ---- search -----------------------------------------------------------------------------------------------------

/// Random platforms of 27 and 64 cities: the search against every fixed construction in its own order of sites.
class SearchAgainstFixed : public ::testing::TestWithParam<unsigned> {};

TEST_P(SearchAgainstFixed, BeatsEveryFixedConstruction) {
  const unsigned n = GetParam();
  boost::random::mt19937_64 random(n);
  platform_model model;
  model.update_bytes = 14'000'000'000;
  model.chunk_bytes = 1 << 20;
  boost::random::uniform_int_distribution<picoseconds> latency(2'000'000'000, 60'000'000'000);
  for (unsigned s = 0; s < n; ++s) {
    site_model site;
    site.name = "s" + std::to_string(s);
    site.device = model.network.add_device(site.name);
    site.access_up = site.access_down = 100'000'000'000;
    site.aggregator_ports = 800'000'000'000;
    site.memory_bytes = 1'000'000'000;
    site.memory_rate = 6'000'000'000'000;
    site.datapath_rate = 1'024'000'000'000;
    site.consume_rate = 512'000'000'000;
    model.sites.push_back(site);
    if (s > 0) {
      const unsigned to = boost::random::uniform_int_distribution<unsigned>(0, s - 1)(random);
      const picoseconds t = latency(random);
      model.network.add_link({s, to, 800'000'000'000, 800'000'000'000, t, t});
    }
  }
  for (unsigned extra = 0; extra < n; ++extra) {
    boost::random::uniform_int_distribution<unsigned> any(0, n - 1);
    const unsigned a = any(random);
    const unsigned b = any(random);
    const picoseconds t = latency(random);
    if (a != b) model.network.add_link({a, b, 800'000'000'000, 800'000'000'000, t, t});
  }
  search_options options;
  options.largest_group = 4;
  options.restarts = 1;
  const std::vector<rated_construction> found = search_schedules(model, 1, options);
  const std::vector<double> equal(n, 1);
  double fixed_best = std::numeric_limits<double>::infinity();
  std::string fixed_name;
  for (const construction& each : constructions_for(n, 4)) {
    const unsigned rounds =
        rounds_to_epsilon(each.rounds, equal, options.epsilon, static_cast<unsigned>(each.rounds.rounds.size()) * 40);
    if (rounds == 0) continue;
    double total = 0;
    for (unsigned t = 0; t < rounds; ++t) {
      total += fluid_round_cost(model, each.rounds.rounds[t % each.rounds.rounds.size()], 1).seconds;
    }
    if (total < fixed_best) {
      fixed_best = total;
      fixed_name = each.rounds.name;
    }
  }
  std::cout << n << " sites: search " << found.front().to_epsilon_s << " s (" << found.front().rounds.name
            << "), best fixed " << fixed_best << " s (" << fixed_name << ")\n";
  EXPECT_LT(found.front().to_epsilon_s, fixed_best);
}

INSTANTIATE_TEST_SUITE_P(Sites, SearchAgainstFixed, ::testing::Values(27U, 64U));

}  // namespace
}  // namespace tributary::test
