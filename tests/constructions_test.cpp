// The proofs of the constructions, for every size they claim up to 64 sites.
#include "planner/constructions.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "planner/mixing.hpp"
#include "planner/search.hpp"
#include "platforms/spec.hpp"

namespace tributary::planner {
namespace {

/// Valid partitions, the exactness claimed and not a round sooner, the pair coverage claimed.
void prove(const construction& c, unsigned sites) {
  ASSERT_FALSE(c.rounds.rounds.empty()) << c.rounds.name;
  for (const partition& round : c.rounds.rounds) {
    ASSERT_TRUE(is_partition(round, sites)) << c.rounds.name << " for " << sites;
    std::size_t placed = 0;
    for (const group& members : round) {
      ASSERT_FALSE(members.empty());
      placed += members.size();
    }
    ASSERT_EQ(placed, sites) << c.rounds.name << ": nobody is left out";
  }
  const std::vector<double> equal(sites, 1.0);
  const auto looked_at = std::max<unsigned>(c.exact_after, static_cast<unsigned>(c.rounds.rounds.size()));
  const std::vector<double> sigma = disagreement(c.rounds, equal, looked_at);
  for (unsigned t = 0; t < sigma.size(); ++t) {
    if (c.exact_after == 0 || t + 1 < c.exact_after) {
      EXPECT_GT(sigma[t], 1e-9) << c.rounds.name << " for " << sites << " after " << t + 1;
    } else {
      EXPECT_EQ(sigma[t], 0) << c.rounds.name << " for " << sites << " after " << t + 1;
    }
  }
  if (c.pairs_each == 0) return;
  const auto met = meetings(c.rounds, sites);
  for (unsigned i = 0; i < sites; ++i) {
    for (unsigned j = 0; j < sites; ++j) {
      ASSERT_EQ(met[i][j], i == j ? 0 : c.pairs_each) << c.rounds.name << " " << i << " " << j;
    }
  }
}

TEST(Constructions, AllToAll) {
  for (unsigned n = 2; n <= 64; ++n) prove(all_to_all_construction(n), n);
}

TEST(Constructions, MixedRadixGridsOfEverySizeThatFactors) {
  unsigned proved = 0;
  for (unsigned n = 2; n <= 64; ++n) {
    for (unsigned k = 2; k <= 8; ++k) {
      const std::vector<unsigned> radices = radices_for(n, k);
      if (radices.empty()) continue;
      unsigned product = 1;
      for (const unsigned radix : radices) {
        EXPECT_LE(radix, k);
        product *= radix;
      }
      EXPECT_EQ(product, n);
      prove(mixed_radix(radices), n);
      ++proved;
    }
  }
  EXPECT_GT(proved, 150U);
  EXPECT_TRUE(radices_for(22, 8).empty()) << "11 is prime and larger";
  EXPECT_EQ(radices_for(64, 8), (std::vector<unsigned>{8, 8}));
  EXPECT_EQ(radices_for(27, 3), (std::vector<unsigned>{3, 3, 3}));
}

TEST(Constructions, AffinePlanesOfEveryPrimePowerOrder) {
  for (const unsigned q : {2U, 3U, 4U, 5U, 7U, 8U}) {
    const auto plane = affine_plane(q);
    ASSERT_TRUE(plane) << q;
    EXPECT_EQ(plane->rounds.rounds.size(), q + 1);
    prove(*plane, q * q);
    for (std::size_t a = 0; a <= q; ++a) {
      for (std::size_t b = a + 1; b <= q; ++b)
        EXPECT_TRUE(orthogonal(plane->rounds.rounds[a], plane->rounds.rounds[b]));
    }
  }
  EXPECT_TRUE(affine_plane(9)) << "81 sites are more than a platform has, the field is there";
  EXPECT_FALSE(affine_plane(6)) << "no plane of order 6";
}

TEST(Constructions, KirkmansFifteen) {
  const construction fifteen = kirkman_fifteen();
  EXPECT_EQ(fifteen.rounds.rounds.size(), 7U);
  for (const partition& round : fifteen.rounds.rounds) EXPECT_EQ(round.size(), 5U);
  prove(fifteen, 15);
}

TEST(Constructions, PairsOnceEach) {
  for (unsigned n = 2; n <= 64; ++n) {
    const construction pairs = one_factorisation(n);
    EXPECT_EQ(pairs.rounds.rounds.size(), n - 1 + n % 2);
    prove(pairs, n);
  }
}

TEST(Constructions, HypercubesRingsGridsAndHierarchies) {
  for (unsigned m = 1; m <= 6; ++m) prove(mixed_radix(std::vector<unsigned>(m, 2)), 1U << m);
  for (unsigned n = 3; n <= 64; ++n) {
    if (n > 4) prove(ring(n), n);
    const auto met = meetings(ring(n).rounds, n);
    for (unsigned i = 0; i < n; ++i)
      EXPECT_EQ(met[i][(i + 1) % n], n == 2 ? 2U : 1U) << "every edge of the ring once, " << n;
    for (unsigned k = 3; k <= 8; ++k) {
      if (k >= n) continue;
      const construction grid = grid_rotation(n, k);
      for (const partition& round : grid.rounds.rounds) {
        ASSERT_TRUE(is_partition(round, n));
        for (const group& members : round) EXPECT_LE(members.size(), k) << n << " in groups of " << k;
      }
      if (grid.exact_after != 0) prove(grid, n);
    }
  }
  prove(hierarchy(9, 3), 9);
}

TEST(Exchange, AllToAllByHand) {
  // Rounds of 2 s: 72 ordered pairs each; an update is 2 s old when it arrives and 4 s old just before the next one.
  const exchange_figures figures = exchange(all_to_all(9), {2.0}, 9);
  EXPECT_DOUBLE_EQ(figures.pairs_per_s, 36);
  EXPECT_DOUBLE_EQ(figures.worst_age_s, 4);
  EXPECT_DOUBLE_EQ(figures.mean_age_s, 3);
}

TEST(Exchange, SitesThatNeverMeetAreInfinitelyStale) {
  EXPECT_TRUE(std::isinf(exchange(mixed_radix({3, 3}).rounds, {1, 1}, 9).mean_age_s));
  const exchange_figures plane = exchange(affine_plane(3)->rounds, {1, 1, 1, 1}, 9);
  EXPECT_DOUBLE_EQ(plane.worst_age_s, 5) << "a pass of 4 s, and 1 s on the way";
  EXPECT_DOUBLE_EQ(plane.mean_age_s, 3);
}

platform_model nine_city(const std::string& memory) {
  return model_of(load_platform(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/nine_city.yaml",
                                {{"site_defaults.aggregator.memory=" + memory}, ""}));
}

TEST(Search, FindsTheReferenceCrossover) {
  search_options options;
  EXPECT_EQ(search_schedules(nine_city("8 GB"), 1, options).front().rounds.name, "all-to-all");
  const auto little = search_schedules(nine_city("2 GB"), 1, options).front();
  EXPECT_EQ(little.rounds.name, "grid 3 x 3");
  EXPECT_NEAR(little.to_epsilon_s, 2.443, 0.0005);
}

TEST(Search, LocalSearchReachesBruteForceForNine) {
  for (const char* memory : {"128 MB", "512 MB", "2 GB"}) {
    const platform_model model = nine_city(memory);
    const double exact = best_orthogonal_pair(model, 3, 1)->seconds;
    EXPECT_NEAR(best_labelling(model, mixed_radix({3, 3}), 1, 1, 40).seconds, exact, exact * 1e-9) << memory;
  }
}

TEST(Search, IsAFunctionOfItsSeed) {
  const platform_model model = nine_city("512 MB");
  const construction plane = *affine_plane(3);
  EXPECT_EQ(best_labelling(model, plane, 1, 7, 3).rounds.rounds, best_labelling(model, plane, 1, 7, 3).rounds.rounds);
}

}  // namespace
}  // namespace tributary::planner
