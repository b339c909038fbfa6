// How fast a schedule makes the sites agree: averaging as linear algebra.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "planner/schedule.hpp"

namespace tributary::planner {

/// The round as a matrix: W averages inside each group, weighted by site (weights > 0; equal ones give 1/k each), and
/// moves every site `blend` of the way to its group's average.
[[nodiscard]] Eigen::MatrixXd mixing_matrix(const partition& round, const std::vector<double>& weights,
                                            double blend = 1);

/// sigma(t) = || W_t ... W_1 - J ||_2 for t = 1 .. rounds, the schedule repeated; J is the weighted average, for equal
/// weights ones/n. 0 means every site holds the exact average. Values below 1e-12 are rounding and given as 0.
[[nodiscard]] std::vector<double> disagreement(const schedule& of, const std::vector<double>& weights, unsigned rounds);

/// Rounds until sigma <= epsilon, the schedule repeated; 0 when it does not happen within `most`.
[[nodiscard]] unsigned rounds_to_epsilon(const schedule& of, const std::vector<double>& weights, double epsilon,
                                         unsigned most);

/// 1 - |second eigenvalue| of one period W_T ... W_1: how much of the disagreement a pass removes in the long run. 1:
/// exact within a pass.
[[nodiscard]] double spectral_gap(const schedule& of, const std::vector<double>& weights);

/// Expected squared disagreement left by one round of groups of `size` drawn at random from `sites` equal sites (size
/// divides sites), in the worst direction: W is a projection, so E[W'W] = E[W], whose entries off the diagonal are
/// (size-1) / (size (sites-1)); off the average its one eigenvalue is (sites-size) / (size (sites-1)).
[[nodiscard]] double random_groups_contraction(unsigned sites, unsigned size);

/// Expected squared disagreement left by one pass in the worst direction, when each site is missing from each round
/// with `failure` on its own and those present average without it; equal weights. Exact: E[W' M W] round by round from
/// the last, every subset of each group counted (groups of at most 16).
[[nodiscard]] double contraction_under_failures(const schedule& of, unsigned sites, double failure);

}  // namespace tributary::planner
