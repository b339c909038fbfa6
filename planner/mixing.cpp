#include "planner/mixing.hpp"

#include <Eigen/SVD>

namespace tributary::planner {

Eigen::MatrixXd mixing_matrix(const partition& round, const std::vector<double>& weights) {
  const auto n = static_cast<Eigen::Index>(weights.size());
  Eigen::MatrixXd w = Eigen::MatrixXd::Identity(n, n);
  for (const group& members : round) {
    double total = 0;
    for (const unsigned site : members) total += weights[site];
    for (const unsigned i : members) {
      for (const unsigned j : members) w(i, j) = weights[j] / total;
    }
  }
  return w;
}

std::vector<double> disagreement(const std::vector<partition>& schedule, const std::vector<double>& weights,
                                 unsigned rounds) {
  const auto n = static_cast<Eigen::Index>(weights.size());
  double total = 0;
  for (const double weight : weights) total += weight;
  Eigen::MatrixXd average(n, n);
  for (Eigen::Index j = 0; j < n; ++j) average.col(j).setConstant(weights[static_cast<std::size_t>(j)] / total);

  Eigen::MatrixXd product = Eigen::MatrixXd::Identity(n, n);
  std::vector<double> sigma;
  for (unsigned t = 0; t < rounds; ++t) {
    product = mixing_matrix(schedule[t % schedule.size()], weights) * product;
    const Eigen::JacobiSVD<Eigen::MatrixXd> svd(product - average);
    const double norm = svd.singularValues()(0);
    sigma.push_back(norm < 1e-12 ? 0 : norm);
  }
  return sigma;
}

unsigned rounds_to_epsilon(const std::vector<partition>& schedule, const std::vector<double>& weights, double epsilon,
                           unsigned most) {
  const std::vector<double> sigma = disagreement(schedule, weights, most);
  for (unsigned t = 0; t < sigma.size(); ++t) {
    if (sigma[t] <= epsilon) return t + 1;
  }
  return 0;
}

}  // namespace tributary::planner
