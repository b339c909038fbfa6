// How fast a schedule makes the sites agree: averaging as linear algebra.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "planner/schedule.hpp"

namespace tributary::planner {

/// The round as a matrix: W averages inside each group, weighted by site (weights > 0; equal ones give 1/k each).
[[nodiscard]] Eigen::MatrixXd mixing_matrix(const partition& round, const std::vector<double>& weights);

/// sigma(t) = || W_t ... W_1 - J ||_2 for t = 1 .. rounds, the schedule repeated; J is the weighted average, for equal
/// weights ones/n. 0 means every site holds the exact average. Values below 1e-12 are rounding and given as 0.
[[nodiscard]] std::vector<double> disagreement(const std::vector<partition>& schedule,
                                               const std::vector<double>& weights, unsigned rounds);

/// Rounds until sigma <= epsilon, the schedule repeated; 0 when it does not happen within `most`.
[[nodiscard]] unsigned rounds_to_epsilon(const std::vector<partition>& schedule, const std::vector<double>& weights,
                                         double epsilon, unsigned most);

}  // namespace tributary::planner
