// Schedules as constructions. Each says when it is exact - every site holds the average of all - and whether its rounds
// bring every pair of sites together equally often. Both are proved for every size the constructions claim, in tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/schedule.hpp"

namespace tributary::planner {

struct construction {
  schedule rounds;
  unsigned exact_after = 0;  ///< rounds until sigma is 0 with equal weights; 0: never
  unsigned pairs_each = 0;   ///< every pair meets exactly this often in one pass; 0: unevenly or not all
};

/// Everybody in one group: exact after one round.
[[nodiscard]] construction all_to_all_construction(unsigned sites);

/// Digits of the site number in mixed radix, one round a digit: sites that differ in that digit alone form a group.
/// Exact after as many rounds as there are radices, since each round averages over one digit. `radices` multiply to the
/// number of sites, all at least 2. Equal radices k, n = k^m: the hyper-grid (k = 2: the hypercube; m = 2: rows and
/// columns).
[[nodiscard]] construction mixed_radix(const std::vector<unsigned>& radices);

/// Radices of at most `largest` whose product is `sites`, as few as possible, largest first; empty when a prime factor
/// is larger.
[[nodiscard]] std::vector<unsigned> radices_for(unsigned sites, unsigned largest);

/// Affine plane of prime-power order q: q^2 sites, q + 1 rounds of q groups of q; lines of different slopes meet once,
/// so any two rounds are exact, and every pair meets exactly once in a pass. Empty when q is no prime power of at
/// most 9.
[[nodiscard]] std::optional<construction> affine_plane(unsigned order);

/// Kirkman's fifteen: 7 rounds of 5 groups of 3, every pair exactly once: the lines of PG(3,2) in parallel classes.
[[nodiscard]] construction kirkman_fifteen();

/// All pairs by the circle method (a one-factorisation): n - 1 rounds for even n, n with one site waiting each for odd
/// n; every pair exactly once in a pass. Exact after log2(n) rounds it is not, except for n = 2.
[[nodiscard]] construction one_factorisation(unsigned sites);

/// Neighbours on a ring in turn: two rounds (three for odd n, so that every edge is used). Never exact beyond four
/// sites.
[[nodiscard]] construction ring(unsigned sites);

/// Groups of at most `size` for any number of sites: rows, then columns, of a grid filled in site order, sizes as equal
/// as they can be. Exact after two rounds when size^2 = sites.
[[nodiscard]] construction grid_rotation(unsigned sites, unsigned size);

/// Groups of `size` neighbours, then one member of each group, then the groups again. Not exact under plain averaging.
[[nodiscard]] construction hierarchy(unsigned sites, unsigned size);

/// Pairs at distance 1, 2, 4 ... 2^(m-1): the one-peer exponential graph (Ying et al. 2021) with exchange both ways.
/// For 2^m sites it is the hypercube and exact after m rounds; for other numbers, where some sites wait, it is not
/// exact.
[[nodiscard]] construction one_peer_exponential(unsigned sites);

/// Exact for any number of sites with groups of at most `base`, in the manner of the Base-(k+1) graph (Takezawa et al.
/// 2023). n = V + R, V = a base^p the leading digit: V agrees by its hyper-grid while R agrees by the same rule; then
/// each site of R and a site of V of its own move |V|/n of the way to each other (blend 2|V|/n of a pair's average),
/// which gives R the overall average and leaves it in V's mean; then V agrees again.
[[nodiscard]] construction base_sequence(unsigned sites, unsigned base);

/// All constructions that fit `sites`, groups of at most `largest` (all-to-all apart).
[[nodiscard]] std::vector<construction> constructions_for(unsigned sites, unsigned largest);

/// The same rounds with site s replaced by label[s].
[[nodiscard]] schedule relabelled(const schedule& of, const std::vector<unsigned>& label);

/// How often each pair meets in one pass: [i][j], symmetric, diagonal 0.
[[nodiscard]] std::vector<std::vector<unsigned>> meetings(const schedule& of, unsigned sites);

// ---- what a schedule exchanges ------------------------------------------------------------------------------------

struct exchange_figures {
  double pairs_per_s = 0;  ///< ordered pairs served a second, over one pass
  double mean_age_s = 0;   ///< age of i's latest update at j, averaged over pairs and time; infinite if some never meet
  double worst_age_s = 0;
};

/// `round_s`: duration of each round of the schedule. i's update of a round, made at the round's begin, is at j from
/// the round's end on, when both are in one group.
[[nodiscard]] exchange_figures exchange(const schedule& of, const std::vector<double>& round_s, unsigned sites);

}  // namespace tributary::planner
